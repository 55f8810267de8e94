"""Judging predictions against measured accuracies, always beside MACs alone and the noise ceiling.

The noise ceiling is what a perfect predictor would reach against measured accuracies.

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
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Annotated, Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray
from pydantic import BaseModel, BeforeValidator, ConfigDict, PlainSerializer

from binas.base.errors import EstimatorError
from binas.base.interval import Interval
from binas.base.statistics import RESAMPLES, bootstrap, kendall, pearson, spearman
from binas.estimators.metrics import mse, r2, regret
from binas.tables.samples import Samples

Array = NDArray[np.float64]

DRAWS = 100  # of noise, for a simulated ceiling


@dataclass(frozen=True, eq=False)
class CostLimit:
    """A limit for the regret: the cost of every sample and the most it may be, in one unit."""

    label: str
    costs: Array
    limit: float


Kept = Annotated[Interval, BeforeValidator(Interval.from_json), PlainSerializer(Interval.to_json)]


class Judgement(BaseModel):
    """How one set of predictions ranks and values the samples; in a file an interval that is not defined is null.

    ``mse`` (squared points) and ``r2`` are None for scores that are not accuracies, such as MACs; ``regret`` is in
    points, by limit.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)
    name: str
    kendall: Kept
    spearman: Kept
    pearson: Kept
    mse: Kept | None = None
    r2: Kept | None = None
    regret: dict[str, Kept] = {}


@dataclass(frozen=True, slots=True)
class RankingReport:
    """Predictions judged on ``count`` samples, with what they must be held against."""

    count: int
    judgements: tuple[Judgement, ...]
    macs: Judgement | None
    ceiling: NoiseCeiling | None

    def to_json(self) -> dict[str, Any]:
        """For reports."""
        return {
            "samples": self.count,
            "estimators": [item.model_dump(mode="json") for item in self.judgements],
            "macs_only": None if self.macs is None else self.macs.model_dump(mode="json"),
            "noise_ceiling": None if self.ceiling is None else self.ceiling.model_dump(mode="json"),
        }


def judge(
    name: str,
    predicted: ArrayLike,
    truth: ArrayLike,
    limits: Sequence[CostLimit] = (),
    is_accuracy: bool = True,
    resamples: int = RESAMPLES,
    seed: int = 0,
) -> Judgement:
    """All metrics of one set of predictions; ``is_accuracy=False`` for scores that only rank."""
    measured = partial(bootstrap, resamples=resamples, seed=seed)
    lost = {
        item.label: measured(partial(regret, limit=item.limit), predicted, truth, item.costs)
        for item in limits
    }
    return Judgement(
        name=name,
        kendall=measured(kendall, predicted, truth),
        spearman=measured(spearman, predicted, truth),
        pearson=measured(pearson, predicted, truth),
        mse=measured(mse, predicted, truth) if is_accuracy else None,
        r2=measured(r2, predicted, truth) if is_accuracy else None,
        regret=lost,
    )


def report(
    predictions: Mapping[str, ArrayLike],
    samples: Samples,
    macs: ArrayLike | None,
    limits: Sequence[CostLimit] = (),
    resamples: int = RESAMPLES,
    seed: int = 0,
) -> RankingReport:
    """Judge predictions by name; ``macs`` of every sample are the baseline, None where they are not known."""
    if len(samples) < 2:
        raise EstimatorError(f"a ranking needs at least two samples, there are {len(samples)}.")
    settled = partial(judge, truth=samples.accuracy, limits=limits, resamples=resamples, seed=seed)
    return RankingReport(
        len(samples),
        tuple(settled(name, predicted) for name, predicted in predictions.items()),
        None if macs is None else settled("MACs only", macs, is_accuracy=False),
        noise_ceiling(samples, seed),
    )


class NoiseCeiling(BaseModel):
    """Kendall's tau of a perfect predictor; ``half`` is the tau between the two halves where they are known."""

    model_config = ConfigDict(extra="forbid", frozen=True)
    kendall: float
    how: Literal["split-half", "simulated"]
    half: float | None = None


def describe_ceiling(ceiling: Mapping[str, Any] | None) -> str:
    """How well a perfect predictor would rank, for people; the ceiling as it is written in JSON."""
    if ceiling is None:
        return "Noise ceiling: not known; the samples carry neither errors nor halves."
    split = f"from two halves of the images, whose tau is {ceiling['half'] or 0:.3f}"
    how = split if ceiling["how"] == "split-half" else "simulated from the samples' errors"
    return f"Noise ceiling: a perfect predictor would reach Kendall {ceiling['kendall']:.3f} ({how})."


def noise_ceiling(samples: Samples, seed: int = 0) -> NoiseCeiling | None:
    """The ceiling by halves where every sample has them, else by errors; None where neither is known."""
    halves = samples.halves
    if halves is not None:
        half = kendall(halves[:, 0], halves[:, 1])
        known = None if math.isnan(half) else half
        return NoiseCeiling(kendall=ceiling_from_halves(half), how="split-half", half=known)
    if len(samples) and not np.isnan(samples.error).any():
        ceiling = simulated_ceiling(samples.accuracy, samples.error, seed)
        return NoiseCeiling(kendall=ceiling, how="simulated")
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
