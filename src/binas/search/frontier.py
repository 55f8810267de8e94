"""The exact answer for all limits at once: every architecture that no other beats in accuracy and cost."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from binas.base.errors import ProblemError
from binas.estimators.links import get_link
from binas.search.fold import fold
from binas.search.labels import decode
from binas.search.problem import Evaluation, Limit, SearchProblem
from binas.search.restrict import levels, restricted, widened
from binas.search.solve import solve
from binas.search.terms import Row, build_terms, is_separable, limit_rows
from binas.space.architecture import Architecture
from binas.tables.conditions import conditions
from binas.tables.units import Unit

Array = NDArray[np.float64]
Indices = NDArray[np.int64]


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
    _depths: Indices = field(repr=False)
    _configs: Indices = field(repr=False)

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
            "conditions": conditions(self.problem.costs[self.cost].provenance),
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
    memory grow with the number of frontier points, not with the size of the space. A cost that is a maximum
    takes one exact solve per point, and is always exact.
    """
    if not 0 <= tolerance < np.inf:
        raise ProblemError(
            f"the tolerance is {tolerance}; it must be a finite number of points from zero up."
        )
    start = time.perf_counter()
    _check_question(problem, cost)
    scaled, link = problem.on_link_scale(), get_link(problem.objective.link)
    if problem.costs[cost].combine == "max":
        points, error = _of_maximum(scaled, cost), 0.0
    else:
        points, error = _of_sum(scaled, cost, max_labels, tolerance / link.steepest)
    accuracies = link.inverse(points.accuracies)
    short = link.inverse(points.accuracies + error) - accuracies  # the error in points, at every limit
    seconds = time.perf_counter() - start
    return Frontier(
        problem,
        cost,
        points.costs,
        accuracies,
        float(short.max(initial=0.0)) if error else 0.0,
        seconds,
        points.depths,
        points.configs,
    )


@dataclass(frozen=True, eq=False)
class _Points:
    """Points by rising cost and accuracy, on the scale of the link; depths (n, S) and configs (n, S, D) as indices."""

    costs: Array
    accuracies: Array
    depths: Indices
    configs: Indices


def _of_sum(
    problem: SearchProblem, cost: str, max_labels: int | None, tolerance: float
) -> tuple[_Points, float]:
    """The frontier of a cost that adds up, by folding, and its certified error."""
    smaller = restricted(problem)
    if smaller is None:
        return _listed(problem, cost, []), 0.0
    terms = build_terms(smaller, _rows(smaller, cost))
    folded = fold(terms, max_labels, tolerance)
    depths, configs = decode(terms, folded.labels, np.arange(len(folded.labels)))
    data, whole = folded.labels.data, widened(problem.space, smaller.space, configs)
    return _Points(data[1], data[0], depths, whole), folded.error


def _of_maximum(problem: SearchProblem, cost: str) -> _Points:
    """The frontier of a maximum: the best architecture, then the best of those strictly below its maximum, ..."""
    found: list[Evaluation] = []
    best = solve(problem, "auto").evaluation
    while best is not None:
        found.append(best)
        below = _next_below(problem, cost, best.costs[cost])
        if below is None:
            break
        best = solve(problem.with_limits([*problem.limits, below]), "auto").evaluation
    return _listed(problem, cost, _undominated(found))


def _next_below(problem: SearchProblem, cost: str, value: float) -> Limit | None:
    """The largest limit on a maximum that keeps out what has ``value``; None where there is none."""
    limits = (Limit(cost, float(number)) for number in levels(problem.costs[cost])[::-1])
    return next((limit for limit in limits if not limit.holds(value, problem.tolerance(limit))), None)


def _undominated(found: list[Evaluation]) -> list[Evaluation]:
    """Of architectures by falling cost and never rising accuracy, those that no other equals at lower cost."""
    result: list[Evaluation] = []
    for item in reversed(found):
        if not result or item.accuracy > result[-1].accuracy + 1e-9 * max(1.0, abs(item.accuracy)):
            result.append(item)
    return result


def _listed(problem: SearchProblem, cost: str, items: list[Evaluation]) -> _Points:
    depths, configs = problem.space.to_indices(item.architecture for item in items)
    costs = np.array([item.costs[cost] for item in items])
    return _Points(costs, np.array([item.accuracy for item in items]), depths, configs)


def _check_question(problem: SearchProblem, cost: str) -> None:
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


def _rows(problem: SearchProblem, cost: str) -> list[Row]:
    """The traced cost first (with its own upper limit, if any), then the other limits."""
    rows = limit_rows(problem)
    own = min((row.bound for row in rows if row.cost == cost), default=np.inf)
    return [Row(cost, 1.0, own), *(row for row in rows if row.cost != cost)]
