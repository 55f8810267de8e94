"""How well two rows of numbers agree, and how sure that is: rank correlations and the bootstrap.

scipy is loaded only when a rank is asked for, so that rooms which import this stay light.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
from numpy.typing import ArrayLike, NDArray

from binas.base.errors import EstimatorError
from binas.base.interval import Interval

Array = NDArray[np.float64]
Statistic = Callable[..., float]

RESAMPLES = 1000
LEVEL = 0.95


def kendall(first: ArrayLike, second: ArrayLike) -> float:
    """Kendall's tau-b: (concordant - discordant) / sqrt((pairs - ties in x) (pairs - ties in y)).

    NaN where one side does not vary.
    """
    from scipy.stats import kendalltau

    x, y = paired(first, second)
    return float(kendalltau(x, y).statistic) if varies(x) and varies(y) else math.nan


def spearman(first: ArrayLike, second: ArrayLike) -> float:
    """Pearson's correlation of the ranks (ties get their mean rank); NaN where one side does not vary."""
    from scipy.stats import rankdata

    x, y = paired(first, second)
    return pearson(rankdata(x), rankdata(y))


def pearson(first: ArrayLike, second: ArrayLike) -> float:
    """cov(x, y) / (std(x) std(y)); NaN where one side does not vary."""
    x, y = paired(first, second)
    return float(np.corrcoef(x, y)[0, 1]) if varies(x) and varies(y) else math.nan


def bootstrap(
    statistic: Statistic, *arrays: ArrayLike, resamples: int = RESAMPLES, seed: int = 0, level: float = LEVEL
) -> Interval:
    """A statistic of paired arrays with its percentile interval over pairs drawn with replacement.

    The interval always holds the value. Copies of one pair tie in both arrays, and tau-b leaves such pairs out, so
    resampling does not move it. Resamples in which the statistic is not defined (NaN) do not count.
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
    return Interval(value, min(value, float(low)), max(value, float(high)))


def paired(first: ArrayLike, second: ArrayLike) -> tuple[Array, Array]:
    """Both as arrays (n,) of the same length, n > 0; an error otherwise."""
    x, y = np.asarray(first, dtype=np.float64), np.asarray(second, dtype=np.float64)
    if x.shape != y.shape or x.ndim != 1 or len(x) == 0:
        raise EstimatorError(f"cannot compare numbers of shape {x.shape} with numbers of shape {y.shape}.")
    return x, y


def varies(array: Array) -> bool:
    """Whether not all numbers are the same."""
    return bool((array != array[0]).any())
