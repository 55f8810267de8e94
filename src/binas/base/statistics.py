"""How well two rows of numbers agree, and how sure that is: rank correlations and the bootstrap."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from binas.base.errors import EstimatorError
from binas.base.interval import Interval

Array = NDArray[np.float64]
Ints = NDArray[np.int64]
Ranks = NDArray[np.signedinteger[Any]]
Statistic = Callable[..., float]

RESAMPLES = 1000
LEVEL = 0.95
PIECE = 256  # ranks that are compared all against all, faster than halves of them
EARLIER = np.triu(np.ones((PIECE, PIECE), dtype=bool), 1)  # [i, j]: i < j


def kendall(first: ArrayLike, second: ArrayLike) -> float:
    """Kendall's tau-b: (concordant - discordant) / sqrt((pairs - ties in x) (pairs - ties in y)).

    NaN where one side does not vary.
    """
    x, y = paired(first, second)
    if not (varies(x) and varies(y)) or np.isnan(x).any() or np.isnan(y).any():
        return math.nan
    (level, in_x), (rank, in_y) = _levels(x), _levels(y)
    both = np.sort(level * len(x) + rank)  # by x; of equal x the smaller y first, as such pairs are in order
    ends = np.flatnonzero(np.diff(both, append=-1))
    pairs, tied_x, tied_y = math.comb(len(x), 2), _pairs(in_x), _pairs(in_y)
    tied = _pairs(np.diff(ends, prepend=-1))
    swapped, _ = _out_of_order((both % len(x)).astype(np.int16 if len(x) < 2**15 else np.int64))
    ahead = pairs - tied_x - tied_y + tied - 2 * swapped
    return min(1.0, max(-1.0, ahead / math.sqrt(pairs - tied_x) / math.sqrt(pairs - tied_y)))


def _levels(values: Array) -> tuple[Ints, Ints]:
    """Number of each value among the different ones, ascending from 0, and how often each of these occurs."""
    order = np.argsort(values)
    steps = np.concatenate([[0], np.cumsum(np.diff(values[order]) != 0)])
    level = np.empty_like(steps)
    level[order] = steps
    return level, np.bincount(steps)


def _pairs(counts: Ints) -> int:
    """Pairs within groups of these sizes."""
    return int((counts * (counts - 1)).sum()) // 2


def _out_of_order(ranks: Ranks) -> tuple[int, Ranks]:
    """Pairs i < j with ranks[i] > ranks[j], and the ranks sorted: by halves, short pieces all against all."""
    if (size := len(ranks)) <= PIECE:
        return int(np.count_nonzero((ranks[:, None] > ranks) & EARLIER[:size, :size])), np.sort(ranks)
    middle = len(ranks) // 2
    (one, left), (two, right) = _out_of_order(ranks[:middle]), _out_of_order(ranks[middle:])
    across = int(np.searchsorted(right, left).sum())
    return one + two + across, np.sort(np.concatenate([left, right]), kind="stable")


def spearman(first: ArrayLike, second: ArrayLike) -> float:
    """Pearson's correlation of the ranks (ties get their mean rank); NaN where one side does not vary."""
    x, y = paired(first, second)
    return pearson(_mean_ranks(x), _mean_ranks(y))


def _mean_ranks(values: Array) -> Array:
    """Ranks from 1, equal values their mean rank; all NaN where a value is."""
    if np.isnan(values).any():
        return np.full(len(values), np.nan)
    level, counts = _levels(values)
    return (np.cumsum(counts) - (counts - 1) / 2)[level]


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
