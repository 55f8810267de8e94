from binas.training.calibration import recalibrate
from binas.training.config import RECIPES, TrainingConfig
from binas.training.evaluation import Accuracy, accuracy, evaluate_architecture, multipath_accuracy
from binas.training.loop import make_accelerator
from binas.training.phases import Bench, fine_tune, train_heaviest, train_supernet
from binas.training.reporting import Reporter, RunReporter
from binas.training.tuned import HeldOut, Judgement, judge

__all__ = [
    "RECIPES",
    "Accuracy",
    "Bench",
    "HeldOut",
    "Judgement",
    "Reporter",
    "RunReporter",
    "TrainingConfig",
    "accuracy",
    "evaluate_architecture",
    "fine_tune",
    "judge",
    "make_accelerator",
    "multipath_accuracy",
    "recalibrate",
    "train_heaviest",
    "train_supernet",
]
