"""What did the search buy? Networks that cost the same, chosen without it, measured in the same way.

Two kinds of rivals stand beside a found network: random architectures whose cost lies just below the limit, and the best
hand-scaled one: one config and one depth for the whole network, as people scale networks. Hand-scaled candidates
are chosen by validation accuracy; every accuracy that is reported is of test images, with the supernet's weights and
BatchNorm re-estimated. All see the same images, so differences are paired: their standard error is
sd(correct_1 - correct_2) / sqrt(images).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import islice
from typing import Any

import numpy as np
from numpy.typing import NDArray

from binas.contributions.sampling import correct_images
from binas.contributions.strata import architectures_between
from binas.data.dataset import ImageData
from binas.search.limits import Limit
from binas.search.problem import SearchProblem, evaluate
from binas.space.architecture import Architecture
from binas.space.space import SearchSpace
from binas.supernet.network import Supernet

NEAR = 0.05  # random rivals cost at most this share less than the limit
TRIES = 200  # drawn for each rival wanted, at most
CANDIDATES = 3  # hand-scaled networks tried, the most expensive ones that keep the limits
Correct = NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class Rival:
    """A network, its cost by the table, and which test images it classifies rightly."""

    architecture: Architecture
    cost: float
    correct: Correct

    @property
    def percent(self) -> float:
        """Accuracy on the test images."""
        return 100 * float(self.correct.mean())

    def to_json(self) -> dict[str, Any]:
        """For reports."""
        return {"architecture": str(self.architecture), "cost": self.cost, "accuracy": self.percent}


@dataclass(frozen=True, eq=False)
class Comparison:
    """The network found under a limit beside its rivals; accuracies in percent of the same test images."""

    limit: Limit
    unit: str
    found: Rival
    random: tuple[Rival, ...]
    hand_scaled: Rival | None

    @cached_property
    def over_random(self) -> tuple[float, float]:
        """Points above the mean of the random rivals, and the standard error over images."""
        return difference(self.found.correct, np.mean([rival.correct for rival in self.random], axis=0))

    @cached_property
    def over_hand_scaled(self) -> tuple[float, float] | None:
        """Points above the hand-scaled rival, and the standard error; None where there is none."""
        rival = self.hand_scaled
        return None if rival is None else difference(self.found.correct, rival.correct)

    @property
    def beaten(self) -> int:
        """How many of the random rivals are less accurate."""
        return sum(rival.percent < self.found.percent for rival in self.random)

    def to_json(self) -> dict[str, Any]:
        """For reports."""
        data: dict[str, Any] = {
            "cost": self.limit.cost,
            "limit": self.limit.value,
            "unit": self.unit,
            "images": len(self.found.correct),
            "found": self.found.to_json(),
            "random": [rival.to_json() for rival in self.random],
            "hand_scaled": self.hand_scaled and self.hand_scaled.to_json(),
            "over_hand_scaled": self.over_hand_scaled,
        }
        return {**data, "over_random": self.over_random, "beaten": self.beaten} if self.random else data


def difference(one: NDArray[Any], two: NDArray[Any]) -> tuple[float, float]:
    """Mean of ``one`` - ``two`` over images in points, and its standard error."""
    gaps = 100 * (one.astype(np.float64) - two)
    return float(gaps.mean()), float(gaps.std(ddof=1) / math.sqrt(len(gaps)))


def compare_with_rivals(
    supernet: Supernet,
    data: ImageData,
    problem: SearchProblem,
    limit: Limit,
    found: Architecture,
    count: int = 20,
    recalibration: int = 1024,
    seed: int = 0,
    progress: Callable[[float], None] = lambda _: None,
) -> Comparison:
    """Measure ``found``, ``count`` random rivals and the best hand-scaled one under the same limit.

    ``progress`` is told the share that is done.
    """
    drawn, candidates = random_rivals(problem, limit, count, seed), hand_scaled_rivals(problem, limit)
    total = 1 + len(drawn) + len(candidates)

    def measured(number: int, architecture: Architecture) -> Rival:
        progress(number / total)
        (correct,) = correct_images(supernet, architecture, data, [data.test], recalibration)
        return Rival(architecture, problem.cost(limit.cost, architecture), correct)

    return Comparison(
        limit,
        problem.costs[limit.cost].unit.name,
        measured(0, found),
        tuple(measured(number, item) for number, item in enumerate(drawn, 1)),
        _best(supernet, data, problem, limit, candidates, recalibration),
    )


def random_rivals(problem: SearchProblem, limit: Limit, count: int, seed: int = 0) -> list[Architecture]:
    """Different random architectures that keep all limits and come within ``NEAR`` of this one; maybe fewer."""
    cost = problem.costs[limit.cost]
    most = limit.value - cost.fixed
    drawn = architectures_between(problem.space, cost.values, most - NEAR * limit.value, most, seed)
    tried = islice(drawn, TRIES * count)  # other limits may leave none
    return list(islice((item for item in tried if evaluate(problem, item).feasible), count))


def hand_scaled_rivals(problem: SearchProblem, limit: Limit) -> list[Architecture]:
    """The most expensive hand-scaled architectures that keep all limits, the most expensive first."""
    able = [item for item in hand_scaled(problem.space) if evaluate(problem, item).feasible]
    return sorted(able, key=lambda item: -problem.cost(limit.cost, item))[:CANDIDATES]


def hand_scaled(space: SearchSpace) -> Iterator[Architecture]:
    """Every architecture with one config in all blocks and depths of the same rank in all stages."""
    blocks = [{config.name for config in configs} for stage in space.stages for configs in stage.blocks]
    shared = set.intersection(*blocks) if blocks else set()
    ranks = range(max(len(stage.depths) for stage in space.stages))
    for name in sorted(shared):
        for rank in ranks:
            depths = [stage.depths[min(rank, len(stage.depths) - 1)] for stage in space.stages]
            yield Architecture.of([name] * depth for depth in depths)


def _best(
    supernet: Supernet,
    data: ImageData,
    problem: SearchProblem,
    limit: Limit,
    candidates: Sequence[Architecture],
    recalibration: int,
) -> Rival | None:
    """The candidate with the best validation accuracy, measured on test images."""
    best: tuple[float, Rival] | None = None
    for item in candidates:
        chosen_by, correct = correct_images(supernet, item, data, [data.validation, data.test], recalibration)
        if best is None or chosen_by.mean() > best[0]:
            best = float(chosen_by.mean()), Rival(item, problem.cost(limit.cost, item), correct)
    return best and best[1]
