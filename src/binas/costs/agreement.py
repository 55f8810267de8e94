"""How well predictions agree with measurements: errors in percent, rank correlations, confidence intervals.

The functions work along the last axis by default, so that all resamples of a bootstrap are one call.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray
from scipy.stats import bootstrap, rankdata

from binas.tables.verification import Interval

Array = NDArray[np.float64]
RESAMPLES = 2000


def bias_percent(predicted: Array, measured: Array, axis: int = -1) -> Array:
    """Mean of predicted / measured - 1, in percent."""
    return np.asarray(100.0 * np.mean(predicted / measured - 1.0, axis=axis))


def mape_percent(predicted: Array, measured: Array, axis: int = -1) -> Array:
    """Mean of |predicted / measured - 1|, in percent."""
    return np.asarray(100.0 * np.mean(np.abs(predicted / measured - 1.0), axis=axis))


def spearman(first: Array, second: Array, axis: int = -1) -> Array:
    """Spearman's rank correlation; ties share their mean rank, and a constant correlates with nothing (0)."""
    x, y = (rankdata(values, axis=axis) for values in (first, second))
    x, y = (ranks - ranks.mean(axis=axis, keepdims=True) for ranks in (x, y))
    return _ratio((x * y).sum(axis), (x * x).sum(axis) * (y * y).sum(axis))


def kendall(first: Array, second: Array, axis: int = -1) -> Array:
    """Kendall's tau-b: agreement of the order of all pairs, ties discounted."""
    x, y = (np.moveaxis(np.asarray(values), axis, -1) for values in (first, second))
    x, y = (np.sign(values[..., :, None] - values[..., None, :]) for values in (x, y))
    return _ratio((x * y).sum((-2, -1)), (x * x).sum((-2, -1)) * (y * y).sum((-2, -1)))


def _ratio(product: Array, squares: Array) -> Array:
    return np.asarray(product / np.sqrt(np.where(squares > 0, squares, np.inf)))


def with_interval(statistic: Callable[..., Array], predicted: Array, measured: Array) -> Interval:
    """A statistic of pairs with its 95 % bootstrap interval over the pairs."""
    found = bootstrap(
        (predicted, measured),
        statistic,
        paired=True,
        vectorized=True,
        n_resamples=RESAMPLES,
        method="percentile",
        rng=np.random.default_rng(0),
    ).confidence_interval
    value = float(statistic(predicted, measured))
    return Interval(value=value, low=min(value, float(found.low)), high=max(value, float(found.high)))
