"""The exact answer for all limits at once: every architecture that no other beats in accuracy and cost."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from binas.errors import ProblemError
from binas.search.fold import Folded, fold
from binas.search.labels import decode
from binas.search.problem import Limit, SearchProblem
from binas.search.terms import Row, Terms, build_terms, is_separable, limit_rows
from binas.space.architecture import Architecture
from binas.tables.units import Unit

Array = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class FrontierPoint:
    """One architecture of the frontier: cost in the frontier's unit, accuracy in percent."""

    cost: float
    accuracy: float
    architecture: Architecture


@dataclass(frozen=True, eq=False)
class Frontier(Sequence[FrontierPoint]):
    """Points sorted by cost, accuracy rising strictly.

    ``error`` is the certified error: at any limit the best accuracy is at most this much higher than
    the frontier says; zero when exact.
    """

    problem: SearchProblem
    cost: str
    costs: Array
    accuracies: Array
    error: float
    seconds: float
    _depths: NDArray[np.int64] = field(repr=False)
    _configs: NDArray[np.int64] = field(repr=False)

    @property
    def unit(self) -> Unit:
        """Unit of the cost."""
        return self.problem.costs[self.cost].unit

    @property
    def exact(self) -> bool:
        """Whether no rounding was needed."""
        return self.error == 0.0

    def __len__(self) -> int:
        return len(self.costs)

    def architecture(self, index: int) -> Architecture:
        """The architecture of one point."""
        return self.problem.space.from_indices(self._depths[index].tolist(), self._configs[index].tolist())

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, slice):
            return [self[i] for i in range(*index.indices(len(self)))]
        if not -len(self) <= index < len(self):
            raise IndexError(f"the frontier has {len(self)} points")
        return FrontierPoint(
            float(self.costs[index]), float(self.accuracies[index]), self.architecture(index)
        )

    def __iter__(self) -> Iterator[FrontierPoint]:
        return (self[i] for i in range(len(self)))

    def index_at(self, limit: float) -> int | None:
        """Index of the best point whose cost is at most ``limit`` (in the frontier's unit)."""
        most = limit + self.problem.tolerance(Limit(self.cost, limit))
        place = int(np.searchsorted(self.costs, most, side="right")) - 1
        return place if place >= 0 else None

    def at(self, limit: float) -> FrontierPoint | None:
        """The best point whose cost is at most ``limit``; None if nothing is that cheap."""
        place = self.index_at(limit)
        return None if place is None else self[place]

    def gain(self, limit: float, more: float) -> float | None:
        """Points of accuracy that raising the limit by ``more`` buys; None where nothing keeps the limit."""
        now, then = self.index_at(limit), self.index_at(limit + more)
        return None if now is None or then is None else float(self.accuracies[then] - self.accuracies[now])

    def to_json(self) -> dict[str, Any]:
        """The object that ``binas frontier --json`` prints."""
        points = [{"cost": p.cost, "accuracy": p.accuracy, "architecture": str(p.architecture)} for p in self]
        return {
            "cost": self.cost,
            "unit": self.unit.name,
            "exact": self.exact,
            "error": self.error,
            "seconds": self.seconds,
            "points": points,
        }


def frontier(
    problem: SearchProblem, cost: str, *, max_labels: int | None = None, tolerance: float = 0.0
) -> Frontier:
    """The frontier of accuracy against ``cost``, other limits of the problem respected.

    Exact unless more than ``max_labels`` partial architectures would have to be held, or ``tolerance``
    (points of accuracy) allows rounding; then ``error`` certifies by how much it may fall short. Time and
    memory grow with the number of frontier points, not with the size of the space.
    """
    if not 0 <= tolerance < np.inf:
        raise ProblemError(
            f"the tolerance is {tolerance}; it must be a finite number of points from zero up."
        )
    start = time.perf_counter()
    terms = build_terms(problem, _rows(problem, cost))
    folded = fold(terms, max_labels, tolerance)
    depths, configs = _decoded(terms, folded)
    data = folded.labels.data
    return Frontier(
        problem, cost, data[1], data[0], folded.error, time.perf_counter() - start, depths, configs
    )


def _decoded(terms: Terms, folded: Folded) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    return decode(terms, folded.labels, np.arange(len(folded.labels)))


def _rows(problem: SearchProblem, cost: str) -> list[Row]:
    """The traced cost first (with its own upper limit, if any), then the other limits."""
    if cost not in problem.costs:
        raise ProblemError(f"there is no cost {cost!r} to trace; the tables have {', '.join(problem.costs)}.")
    if not is_separable(problem):
        raise ProblemError(
            f"a frontier needs an objective that is a sum over stages, not a {problem.objective.kind} one."
        )
    if any(limit.cost == cost and limit.lower for limit in problem.limits):
        raise ProblemError(
            f"a lower limit on {cost} has no place on its own frontier; leave it out and read from there."
        )
    rows = limit_rows(problem)
    own = min((row.bound for row in rows if row.cost == cost), default=np.inf)
    return [Row(cost, 1.0, own), *(row for row in rows if row.cost != cost)]
