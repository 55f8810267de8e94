"""The noise ceiling: what a perfect predictor would reach against measured accuracies.

Accuracies come from finitely many images, so even the true accuracies rank measured ones imperfectly. Two ways
to tell how imperfectly, by what the samples carry:

* ``split-half``: the accuracies on two disjoint halves of the images rank the same architectures with some tau.
  Taken as normal scores, rho = sin(pi tau / 2) (Greiner); all images together have the reliability
  2 rho / (1 + rho) (Spearman-Brown); truth correlates with a measurement as the square root of its reliability;
  back to Kendall: tau = 2/pi asin(rho). Images shared by all architectures do no harm: their difficulty moves
  every accuracy alike and no rank.
* ``simulated``: only standard errors are known. The measured accuracies, pulled together by the share of their
  variance that is noise, stand for the truth; noise of those errors is added again and the mean tau taken. The
  errors are taken as independent; where architectures share images part of the error is common, and
  the true ceiling is higher.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from binas.base.statistics import kendall
from binas.tables.samples import Samples

Array = NDArray[np.float64]

DRAWS = 100


@dataclass(frozen=True, slots=True)
class NoiseCeiling:
    """Kendall's tau of a perfect predictor; ``half`` is the tau between the two halves where they are known."""

    kendall: float
    how: Literal["split-half", "simulated"]
    half: float = math.nan

    def to_json(self) -> dict[str, Any]:
        """For reports."""
        return {
            "kendall": self.kendall,
            "how": self.how,
            "half": None if math.isnan(self.half) else self.half,
        }


def noise_ceiling(samples: Samples, seed: int = 0) -> NoiseCeiling | None:
    """The ceiling by halves where every sample has them, else by errors; None where neither is known."""
    halves = samples.halves
    if halves is not None:
        half = kendall(halves[:, 0], halves[:, 1])
        return NoiseCeiling(ceiling_from_halves(half), "split-half", half)
    if len(samples) and not np.isnan(samples.error).any():
        return NoiseCeiling(simulated_ceiling(samples.accuracy, samples.error, seed), "simulated")
    return None


def ceiling_from_halves(half: float) -> float:
    """Kendall's tau between truth and all images from the tau between two halves; 0 for halves that do not agree."""
    if math.isnan(half) or half <= 0.0:
        return 0.0
    rho = math.sin(math.pi / 2 * half)
    return 2 / math.pi * math.asin(math.sqrt(2 * rho / (1 + rho)))


def simulated_ceiling(accuracy: Array, error: Array, seed: int = 0) -> float:
    """Mean Kendall's tau between a stand-in for the truth and the same with noise of the given errors."""
    variance = float(np.var(accuracy))
    share = max(0.0, 1.0 - float(np.mean(error**2)) / variance) if variance else 0.0
    if share == 0.0:
        return 0.0
    truth = accuracy.mean() + math.sqrt(share) * (accuracy - accuracy.mean())
    rng = np.random.default_rng(seed)
    return float(np.mean([kendall(truth, truth + error * rng.normal(size=len(truth))) for _ in range(DRAWS)]))
