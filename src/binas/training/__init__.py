"""Training: the heaviest network, the supernet, a network of its own. All but the settings needs torch."""

from __future__ import annotations

from typing import TYPE_CHECKING

from binas.base.lazy import lazy_names

if TYPE_CHECKING:
    from binas.training.calibration import recalibrate as recalibrate
    from binas.training.config import RECIPES as RECIPES
    from binas.training.config import FinetuneSettings as FinetuneSettings
    from binas.training.config import TrainSettings as TrainSettings
    from binas.training.config import fill_from_recipe as fill_from_recipe
    from binas.training.evaluation import accuracy as accuracy
    from binas.training.evaluation import evaluate_architecture as evaluate_architecture
    from binas.training.evaluation import multipath_accuracy as multipath_accuracy
    from binas.training.judgement import Accuracy as Accuracy
    from binas.training.judgement import HeldOut as HeldOut
    from binas.training.judgement import Judgement as Judgement
    from binas.training.loop import make_accelerator as make_accelerator
    from binas.training.phases import Bench as Bench
    from binas.training.phases import fine_tune as fine_tune
    from binas.training.phases import train_heaviest as train_heaviest
    from binas.training.phases import train_supernet as train_supernet
    from binas.training.reporting import Reporter as Reporter
    from binas.training.tuned import judge as judge

__getattr__, __all__ = lazy_names(__name__, __file__)
