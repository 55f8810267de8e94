"""Networks that cost the same, chosen without the search, and how the one it chose compares with them.

Two kinds of rivals: random architectures whose cost lies just below the limit, and hand-scaled ones: one config and one
depth for the whole network, as people scale networks.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from itertools import islice
from typing import Any

import numpy as np
from numpy.typing import NDArray

from binas.base.settings import FileRecord
from binas.search.limits import Limit
from binas.search.problem import SearchProblem, evaluate
from binas.space.architecture import Architecture
from binas.space.space import SearchSpace

NEAR = 0.05  # random rivals cost at most this share less than the limit
TRIES = 200  # drawn for each rival asked for, at most
CANDIDATES = 3  # hand-scaled networks tried, the most expensive ones that keep the limits


def random_rivals(problem: SearchProblem, limit: Limit, count: int, seed: int = 0) -> list[Architecture]:
    """Different random architectures that keep all limits and come within ``NEAR`` of this one; maybe fewer."""
    from binas.contributions.strata import architectures_between

    cost, most = problem.costs[limit.cost], limit.value
    drawn = architectures_between(problem.space, cost, (1 - NEAR) * most, most, seed)
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


def difference(one: NDArray[Any], two: NDArray[Any]) -> tuple[float, float]:
    """Mean of ``one`` - ``two``, what two networks got right of the same images, in points, and its standard error."""
    gaps = 100 * (one.astype(np.float64) - two)
    return float(gaps.mean()), float(gaps.std(ddof=1) / math.sqrt(len(gaps)))


class Rival(FileRecord):
    """A network under a limit: its cost by the table, accuracy in percent of the test images, and after tuning."""

    architecture: str
    cost: float
    accuracy: float
    tuned: float | None = None


class Comparison(FileRecord):
    """The network found under a limit compared with rivals on the same test images.

    ``over_random`` and ``over_hand_scaled`` are points ahead with the standard error over images.
    """

    question: str
    identity: str
    cost: str
    limit: float
    unit: str
    images: int
    found: Rival
    random: tuple[Rival, ...]
    hand_scaled: Rival | None
    over_random: tuple[float, float] | None
    over_hand_scaled: tuple[float, float] | None

    @property
    def beaten(self) -> int:
        """How many of the random rivals are less accurate."""
        return sum(rival.accuracy < self.found.accuracy for rival in self.random)

    def to_tune(self, count: int) -> list[Rival]:
        """The first ``count`` random rivals and the hand-scaled one."""
        return [*self.random[:count], *([self.hand_scaled] if self.hand_scaled else [])]

    def with_tuned(self, accuracy: Mapping[str, float], count: int) -> Comparison:
        """The same with the accuracy that those of :meth:`to_tune` have after tuning, by architecture."""

        def tuned(rival: Rival) -> Rival:
            return rival.model_copy(update={"tuned": accuracy[rival.architecture]})

        random = (*map(tuned, self.random[:count]), *self.random[count:])
        return self.model_copy(
            update={"random": random, "hand_scaled": self.hand_scaled and tuned(self.hand_scaled)}
        )

    def sentence(self) -> str:
        """Who is ahead, in words, with the standard error over images; no more than the numbers support."""
        parts = []
        if self.over_random is not None:
            parts.append(
                f"{_ahead(*self.over_random)} the mean of {len(self.random)} random networks under the same limit, better "
                f"than {self.beaten} of them"
            )
        if self.over_hand_scaled is not None:
            parts.append(f"{_ahead(*self.over_hand_scaled)} the best hand-scaled one")
        own = f"{self.found.accuracy:.2f} % one-shot on test images"
        return f"{own}; {'; '.join(parts) or 'no network to compare with'}"


def _ahead(points: float, error: float) -> str:
    if abs(points) <= 2 * error:
        return f"no clear difference ({points:+.2f} ± {error:.2f} points) to"
    return f"{abs(points):.2f} ± {error:.2f} points {'above' if points > 0 else 'below'}"
