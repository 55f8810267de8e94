"""How well predictions rank and value architectures, with bootstrap intervals.

A ranking correlation means little alone. :mod:`binas.estimators.judging` reports these numbers beside those of
MACs alone, and beside the noise ceiling: what a perfect predictor would reach against accuracies that were
themselves measured on finitely many images.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from binas.base.errors import EstimatorError

Array = NDArray[np.float64]
Statistic = Callable[..., float]

RESAMPLES = 1000
LEVEL = 0.95


@dataclass(frozen=True, slots=True)
class Interval:
    """A number and the bounds of its bootstrap interval; NaN where it is not defined."""

    value: float
    low: float
    high: float

    def to_json(self) -> dict[str, float | None]:
        """value, low and high; null where not defined."""
        numbers = {"value": self.value, "low": self.low, "high": self.high}
        return {name: None if math.isnan(number) else number for name, number in numbers.items()}


def kendall(predicted: ArrayLike, truth: ArrayLike) -> float:
    """Kendall's tau-b: (concordant - discordant) / sqrt((pairs - ties in x) (pairs - ties in y)).

    NaN where one side does not vary.
    """
    from scipy.stats import kendalltau

    x, y = _pair(predicted, truth)
    return float(kendalltau(x, y).statistic) if _vary(x, y) else math.nan


def spearman(predicted: ArrayLike, truth: ArrayLike) -> float:
    """Pearson's correlation of the ranks (ties get their mean rank); NaN where one side does not vary."""
    from scipy.stats import rankdata

    x, y = _pair(predicted, truth)
    return pearson(rankdata(x), rankdata(y))


def pearson(predicted: ArrayLike, truth: ArrayLike) -> float:
    """cov(x, y) / (std(x) std(y)); NaN where one side does not vary."""
    x, y = _pair(predicted, truth)
    return float(np.corrcoef(x, y)[0, 1]) if _vary(x, y) else math.nan


def mse(predicted: ArrayLike, truth: ArrayLike) -> float:
    """Mean of (predicted - truth)^2, in squared percentage points."""
    x, y = _pair(predicted, truth)
    return float(np.mean((x - y) ** 2))


def r2(predicted: ArrayLike, truth: ArrayLike) -> float:
    """1 - sum (predicted - truth)^2 / sum (truth - mean truth)^2; NaN where the truth does not vary."""
    x, y = _pair(predicted, truth)
    return 1.0 - mse(x, y) / float(np.var(y)) if _vary(y) else math.nan


def regret(predicted: ArrayLike, truth: ArrayLike, cost: ArrayLike, limit: float) -> float:
    """Points lost by trusting the predictions: among those with cost <= limit, best truth - truth of best predicted.

    The first wins among equal predictions. NaN where nothing keeps the limit.
    """
    x, y = _pair(predicted, truth)
    within = np.flatnonzero(np.asarray(cost, dtype=np.float64) <= limit)
    if not len(within):
        return math.nan
    return float(y[within].max() - y[within[np.argmax(x[within])]])


def bootstrap(
    statistic: Statistic, *arrays: ArrayLike, resamples: int = RESAMPLES, seed: int = 0, level: float = LEVEL
) -> Interval:
    """A statistic of paired arrays with its percentile interval over architectures drawn with replacement.

    Copies of one architecture tie in both arrays, and tau-b leaves such pairs out, so resampling does not move it.
    """
    columns = [np.asarray(array, dtype=np.float64) for array in arrays]
    count, rng = len(columns[0]), np.random.default_rng(seed)
    value = statistic(*columns)
    drawn = []
    for _ in range(resamples):
        index = rng.integers(count, size=count)
        drawn.append(statistic(*(column[index] for column in columns)))
    known = [number for number in drawn if not math.isnan(number)]
    if not known:
        return Interval(value, math.nan, math.nan)
    low, high = np.quantile(known, [(1 - level) / 2, (1 + level) / 2])
    return Interval(value, float(low), float(high))


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


def _pair(predicted: ArrayLike, truth: ArrayLike) -> tuple[Array, Array]:
    x, y = np.asarray(predicted, dtype=np.float64), np.asarray(truth, dtype=np.float64)
    if x.shape != y.shape or x.ndim != 1 or len(x) == 0:
        raise EstimatorError(
            f"cannot compare predictions of shape {x.shape} with accuracies of shape {y.shape}."
        )
    return x, y


def _vary(*arrays: Array) -> bool:
    return all(bool((array != array[0]).any()) for array in arrays)
