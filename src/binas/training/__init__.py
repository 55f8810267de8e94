"""Training: the heaviest network, the supernet, a network of its own. All but the settings needs torch."""

from __future__ import annotations

from typing import TYPE_CHECKING

from binas.base.lazy import lazy_names

if TYPE_CHECKING:
    from binas.training.calibration import recalibrate as recalibrate
    from binas.training.config import (
        RECIPES as RECIPES,
        FinetuneSettings as FinetuneSettings,
        TrainSettings as TrainSettings,
        fill_from_recipe as fill_from_recipe,
    )
    from binas.training.evaluation import (
        accuracy as accuracy,
        evaluate_architecture as evaluate_architecture,
        multipath_accuracy as multipath_accuracy,
    )
    from binas.training.judgement import Accuracy as Accuracy, HeldOut as HeldOut, Judgement as Judgement
    from binas.training.loop import make_accelerator as make_accelerator
    from binas.training.phases import (
        Bench as Bench,
        fine_tune as fine_tune,
        train_heaviest as train_heaviest,
        train_supernet as train_supernet,
    )
    from binas.training.reporting import Reporter as Reporter
    from binas.training.tuned import judge as judge

__getattr__, __all__ = lazy_names(__name__, __file__)
