"""Training: the heaviest network, the supernet, a network of its own. All but the settings needs torch."""

from __future__ import annotations

from typing import TYPE_CHECKING

from binas.base.lazy import lazy_names

if TYPE_CHECKING:
    from binas.training.calibration import recalibrate
    from binas.training.config import RECIPES, FinetuneSettings, TrainSettings, fill_from_recipe
    from binas.training.evaluation import accuracy, evaluate_architecture, multipath_accuracy
    from binas.training.judgement import Accuracy, HeldOut, Judgement
    from binas.training.loop import make_accelerator
    from binas.training.phases import Bench, fine_tune, train_heaviest, train_supernet
    from binas.training.reporting import Reporter
    from binas.training.tuned import judge

__getattr__, __all__ = lazy_names(__name__, __file__)
