"""Estimators and learned predictors of accuracy, and how well they rank."""

from binas.estimators._base import Estimator
from binas.estimators.bilinear import BilinearEstimator, ablation
from binas.estimators.choosing import Choice, choose_estimator, load_choice
from binas.estimators.closed_form import AdditivePredictor, BilinearPredictor, QuadraticPredictor
from binas.estimators.depths import DepthsEstimator
from binas.estimators.gaussian_process import GaussianProcess
from binas.estimators.judging import (
    CostLimit,
    Judgement,
    NoiseCeiling,
    RankingReport,
    judge,
    noise_ceiling,
    report,
)
from binas.estimators.means import marginal_means
from binas.estimators.pairs import EffectsEstimator, PairsEstimator
from binas.estimators.predictors import load_predictor
from binas.estimators.registry import Candidate, candidates, make_estimator
from binas.estimators.within_stage import CorrectedEstimator, WithinStageEstimator

__all__ = [
    "AdditivePredictor",
    "BilinearEstimator",
    "BilinearPredictor",
    "Candidate",
    "Choice",
    "CorrectedEstimator",
    "CostLimit",
    "DepthsEstimator",
    "EffectsEstimator",
    "Estimator",
    "GaussianProcess",
    "Judgement",
    "NoiseCeiling",
    "PairsEstimator",
    "QuadraticPredictor",
    "RankingReport",
    "WithinStageEstimator",
    "ablation",
    "candidates",
    "choose_estimator",
    "judge",
    "load_choice",
    "load_predictor",
    "make_estimator",
    "marginal_means",
    "noise_ceiling",
    "report",
]
