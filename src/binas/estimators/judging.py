"""Judging predictions against measured accuracies, always beside MACs alone and the noise ceiling."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from binas.base.errors import EstimatorError
from binas.base.interval import Interval
from binas.base.statistics import RESAMPLES, bootstrap, kendall, pearson, spearman
from binas.estimators.metrics import mse, r2, regret
from binas.estimators.noise import NoiseCeiling, noise_ceiling
from binas.tables.samples import Samples

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class CostLimit:
    """A limit for the regret: the cost of every sample and the most it may be, in one unit."""

    label: str
    costs: Array
    limit: float


@dataclass(frozen=True, slots=True)
class Judgement:
    """How one set of predictions ranks and values the samples.

    ``mse`` (squared points) and ``r2`` are None for scores that are not accuracies, such as MACs; ``regret`` is in
    points, by limit.
    """

    name: str
    kendall: Interval
    spearman: Interval
    pearson: Interval
    mse: Interval | None = None
    r2: Interval | None = None
    regret: Mapping[str, Interval] = field(default_factory=dict)

    def to_json(self) -> dict[str, Any]:
        """For reports."""
        parts = ("kendall", "spearman", "pearson", "mse", "r2")
        known = {part: getattr(self, part) for part in parts}
        return {
            "name": self.name,
            **{part: None if value is None else value.to_json() for part, value in known.items()},
            "regret": {label: value.to_json() for label, value in self.regret.items()},
        }


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
            "estimators": [item.to_json() for item in self.judgements],
            "macs_only": None if self.macs is None else self.macs.to_json(),
            "noise_ceiling": None if self.ceiling is None else self.ceiling.to_json(),
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
        name,
        measured(kendall, predicted, truth),
        measured(spearman, predicted, truth),
        measured(pearson, predicted, truth),
        measured(mse, predicted, truth) if is_accuracy else None,
        measured(r2, predicted, truth) if is_accuracy else None,
        lost,
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
