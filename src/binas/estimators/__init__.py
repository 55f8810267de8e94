"""Estimators and learned predictors of accuracy, and how well they rank."""

from binas.estimators.bilinear import BilinearEstimator
from binas.estimators.closed_form import AdditivePredictor, BilinearPredictor, QuadraticPredictor
from binas.estimators.files import load_predictor
from binas.estimators.judging import CostLimit, Judgement, RankingReport, judge, report
from binas.estimators.means import marginal_means
from binas.estimators.noise import NoiseCeiling, noise_ceiling
from binas.estimators.parts import ablation
from binas.estimators.within_stage import WithinStageEstimator

__all__ = [
    "AdditivePredictor",
    "BilinearEstimator",
    "BilinearPredictor",
    "CostLimit",
    "Judgement",
    "NoiseCeiling",
    "QuadraticPredictor",
    "RankingReport",
    "WithinStageEstimator",
    "ablation",
    "judge",
    "load_predictor",
    "marginal_means",
    "noise_ceiling",
    "report",
]
