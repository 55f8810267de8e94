"""How well predictions value architectures: errors, regret, and what correlations say of each other.

A ranking correlation (:mod:`binas.base.statistics`) means little alone. :mod:`binas.estimators.judging` reports it
beside that of MACs alone, and beside the noise ceiling: what a perfect predictor would reach against accuracies that
were themselves measured on finitely many images.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike

from binas.base.errors import EstimatorError
from binas.base.statistics import paired, varies


def mse(predicted: ArrayLike, truth: ArrayLike) -> float:
    """Mean of (predicted - truth)^2, in squared percentage points."""
    x, y = paired(predicted, truth)
    return float(np.mean((x - y) ** 2))


def r2(predicted: ArrayLike, truth: ArrayLike) -> float:
    """1 - sum (predicted - truth)^2 / sum (truth - mean truth)^2; NaN where the truth does not vary."""
    x, y = paired(predicted, truth)
    return 1.0 - mse(x, y) / float(np.var(y)) if varies(y) else math.nan


def regret(predicted: ArrayLike, truth: ArrayLike, cost: ArrayLike, limit: float) -> float:
    """Points lost by trusting the predictions: among those with cost <= limit, best truth - truth of best predicted.

    The first wins among equal predictions. NaN where nothing keeps the limit.
    """
    x, y = paired(predicted, truth)
    within = np.flatnonzero(np.asarray(cost, dtype=np.float64) <= limit)
    if not len(within):
        return math.nan
    return float(y[within].max() - y[within[np.argmax(x[within])]])


def transitivity(first: float, second: float) -> tuple[float, float]:
    """Bounds on Cor(P, S) given Cor(P, O) and Cor(O, S) (appendix on the transitivity of ranking correlations).

    |Cor(P,S) - Cor(P,O) Cor(O,S)| <= sqrt((1 - Cor(P,O)^2) (1 - Cor(O,S)^2)), for Pearson's correlation and so
    for Spearman's, of predicted (P), one-shot (O) and standalone accuracy (S). Not for Kendall's tau.
    """
    for value in (first, second):
        if not -1.0 <= value <= 1.0:
            raise EstimatorError(f"{value} is not a correlation; it must be from -1 to 1.")
    middle, reach = first * second, math.sqrt((1 - first**2) * (1 - second**2))
    return max(-1.0, middle - reach), min(1.0, middle + reach)
