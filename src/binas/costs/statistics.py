"""Robust numbers from noisy timings: a low quantile with its confidence interval, and drift of a control.

Other programs only ever make a run slower, so the low end of many short samples is what the device itself needs;
on a quiet machine it hardly differs from the median.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache

import numpy as np
from numpy.typing import NDArray

from binas.base.interval import Interval
from binas.base.statistics import LEVEL

Array = NDArray[np.float64]

NORMAL = 1.959963984540054  # half a 95 % interval of a normal distribution, in standard errors
WINDOW = 12  # control samples in a window of drift detection, at least
MOST_WINDOWS = 8
DRIFT = 0.03  # smallest relative change between windows that is called drift


@dataclass(frozen=True, slots=True)
class Estimate(Interval):
    """A quantile of ``count`` samples with its 95 % confidence interval, in the samples' unit.

    ``spread`` is how far three quarters of the samples stay above the value, relative to it:
    (q75 - value) / value.
    """

    spread: float
    count: int

    @property
    def stderr(self) -> float:
        """Standard error of a normal distribution with the same interval."""
        return (self.high - self.low) / (2 * NORMAL)

    @property
    def uncertainty(self) -> float:
        """Half the confidence interval relative to the value."""
        return (self.high - self.low) / (2 * self.value)

    def scaled(self, factor: float) -> Estimate:
        """The same in another unit."""
        return Estimate(self.value * factor, self.low * factor, self.high * factor, self.spread, self.count)


def estimate(samples: Sequence[float] | Array, quantile: float) -> Estimate:
    """The ``quantile`` of samples with an interval of order statistics, free of assumptions about the noise.

    The number of samples below the true quantile is binomial(n, quantile), so the true quantile lies between
    the order statistics of its 2.5 % and 97.5 % points. With few samples there is none so low: then the
    interval starts at the smallest, and ends at the largest if there is none so high.
    """
    ordered = np.sort(np.asarray(samples, dtype=np.float64))
    count = len(ordered)
    low, high = _ranks(count, quantile)
    value, upper = (float(q) for q in np.quantile(ordered, (quantile, 0.75)))
    return Estimate(
        value,
        min(value, float(ordered[low])),
        max(value, float(ordered[high])),
        (upper - value) / value,
        count,
    )


@cache
def _ranks(count: int, quantile: float) -> tuple[int, int]:
    """Which order statistics, from 0, bound the quantile of so many samples."""
    tail = (1 - LEVEL) / 2
    low, high = np.searchsorted(_binomial(count, quantile), (tail, 1 - tail))
    return max(int(low) - 1, 0), min(int(high), count - 1)


def _binomial(count: int, share: float) -> Array:
    """P(X <= k) for k = 0, ..., count, X the number of successes of ``share`` in so many trials."""
    ways = [
        math.lgamma(count + 1) - math.lgamma(k + 1) - math.lgamma(count - k + 1) for k in range(count + 1)
    ]
    k = np.arange(count + 1)
    return np.cumsum(np.exp(ways + k * math.log(share) + (count - k) * math.log1p(-share)))


@dataclass(frozen=True, eq=False)
class Drift:
    """The level of the control through a session: seconds since its start, and level over the median level.

    ``detected``: the slowest and the fastest window differ by more than 3 %, and their intervals do not touch.
    """

    times: Array
    levels: Array
    detected: bool

    @property
    def change(self) -> float:
        """Slowest over fastest level, minus 1."""
        return float(self.levels.max() / self.levels.min() - 1.0)

    def factor(self, times: Sequence[float] | Array) -> Array:
        """By how much the device was slower than usual at these times; 1 throughout when no drift was detected."""
        if not self.detected:
            return np.ones(len(times))
        return np.interp(np.asarray(times, dtype=np.float64), self.times, self.levels)


def find_drift(times: Sequence[float], values: Sequence[float], quantile: float) -> Drift:
    """Cut the control's samples into windows and compare the quantile of each."""
    pieces = max(1, min(MOST_WINDOWS, len(values) // WINDOW))
    windows = [estimate(part, quantile) for part in np.array_split(np.asarray(values), pieces)]
    centres = np.array([part.mean() for part in np.array_split(np.asarray(times), pieces)])
    levels = np.array([window.value for window in windows])
    slow, fast = windows[int(levels.argmax())], windows[int(levels.argmin())]
    detected = slow.value > fast.value * (1 + DRIFT) and slow.low > fast.high
    return Drift(centres, levels / np.median(levels), bool(detected))
