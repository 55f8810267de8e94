"""The curve on which predictions flatten: each further point that is predicted is worth less than the one before.

Sums know no ceiling, networks do. With x the distance of a prediction from the samples' mean in points and k >= 0, the bend,

    phi(x) = (1 - exp(-k x)) / k,    phi'(x) = exp(-k x),    phi(x) = x for k = 0.

It increases everywhere, so no ranking changes, and never passes 1 / k. Below the lowest sample, where nothing is known of
it, the curve goes on straight, as steep as it is there.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

# Standard errors that a bend must be above zero. One is enough: beyond the samples a line that should bend is further off
# than a curve that should not, and the error of the bend is in what is shown (benchmarks/results/truth.md).
CLEAR = 1.0
TRIED = np.geomspace(
    0.1, 6.0, 40
)  # bends times the range of the predictions: the last point is worth 90 to 0.2 %


@dataclass(frozen=True, slots=True)
class Curve:
    """phi with its ``bend`` k, per point, straight below ``lowest``, in points from the mean."""

    bend: float
    lowest: float

    def of(self, x: Array) -> Array:
        """phi, in points."""
        if not self.bend:
            return x
        inside = np.maximum(x, self.lowest)
        return np.asarray(-np.expm1(-self.bend * inside) / self.bend + self.steepness(x) * (x - inside))

    def steepness(self, x: Array) -> Array:
        """phi': what a point is worth there."""
        return np.asarray(np.exp(-self.bend * np.maximum(x, self.lowest)))

    def by_bend(self, x: Array) -> Array:
        """d phi / d k, in points^2; of a curve that bends."""
        k, inside = self.bend, np.maximum(x, self.lowest)
        worth = self.steepness(x)
        curved = (k * inside * worth + np.expm1(-k * inside)) / k**2
        return np.asarray(curved - inside * worth * (x - inside))

    def before(self, value: float) -> float:
        """The x of a value of phi; infinite where it is above all of them."""
        if not self.bend:
            return value
        start = -math.expm1(-self.bend * self.lowest) / self.bend
        if value < start:
            return self.lowest + (value - start) * math.exp(self.bend * self.lowest)
        return math.inf if self.bend * value >= 1 else -math.log1p(-self.bend * value) / self.bend


def fit_curve(x: Array, accuracy: Array) -> Curve:
    """The curve whose line fits measured accuracies best by least squares; straight unless bending it helps.

    It does where (R_0 - R_k) / (R_k / (n - 3)) > :data:`CLEAR` ^2, R the sums of squares that are left.
    """
    lowest, span = float(x.min()), float(np.ptp(x))
    if len(x) < 4 or not span:
        return Curve(0.0, lowest)
    straight = _left(x, accuracy)
    curves = [Curve(float(bend) / span, lowest) for bend in TRIED]
    left = [_left(curve.of(x), accuracy) for curve in curves]
    best = int(np.argmin(left))
    helps = (straight - left[best]) * (len(x) - 3) > CLEAR**2 * left[best]
    return curves[best] if helps else Curve(0.0, lowest)


def _left(x: Array, accuracy: Array) -> float:
    """The sum of squares that a line of the accuracies on x leaves."""
    away, target = x - x.mean(), accuracy - accuracy.mean()
    return float(target @ target - (away @ target) ** 2 / (away @ away))
