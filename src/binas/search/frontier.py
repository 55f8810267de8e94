"""The exact answer for all limits at once: every architecture that no other beats in accuracy and cost."""

from __future__ import annotations

import csv
import io
import math
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from binas.base.errors import ProblemError, TableError
from binas.estimators.links import get_link
from binas.search.fold import fold
from binas.search.labels import decode
from binas.search.limits import Limit
from binas.search.objective import objective_values
from binas.search.problem import Evaluation, SearchProblem
from binas.search.restrict import levels, restricted, widened
from binas.search.solve import solve
from binas.search.terms import Row, build_terms, is_separable, limit_rows
from binas.space.architecture import Architecture
from binas.tables.conditions import conditions
from binas.tables.units import Unit

Array = NDArray[np.float64]
Indices = NDArray[np.int64]

ERROR = "certified_error"  # the column of a frontier that is not exact
READ_TOLERANCE = 1e-7  # between a number in a file and the same by the tables


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

    def to_csv(self) -> str:
        """A line per point: cost with its unit in the name of the column, accuracy in percent, architecture.

        A frontier that is not exact has its certified error in a further column.
        """
        buffer = io.StringIO()
        writer = csv.writer(buffer, lineterminator="\n")
        error = {} if self.exact else {ERROR: repr(self.error)}
        writer.writerow([*_header(self.cost, self.unit), *error])
        for point in self:
            writer.writerow(
                [repr(point.cost), repr(point.accuracy), str(point.architecture), *error.values()]
            )
        return buffer.getvalue()

    @classmethod
    def from_csv(cls, text: str, problem: SearchProblem) -> Frontier:
        """Read back what :meth:`to_csv` wrote; every number is checked against the tables of ``problem``.

        That no point is missing is not checked: it takes a new frontier.
        """
        return _from_rows(list(csv.reader(io.StringIO(text))), problem)


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


def _header(cost: str, unit: Unit) -> list[str]:
    return [f"{cost}_{unit.name}", "accuracy_percent", "architecture"]


def _from_rows(rows: list[list[str]], problem: SearchProblem) -> Frontier:
    headers = {name: _header(name, cost.unit) for name, cost in problem.costs.items()}
    first = rows[0] if rows else []
    name = next((name for name, header in headers.items() if first[:3] == header), None)
    if name is None or first[3:] not in ([], [ERROR]) or any(len(row) != len(first) for row in rows):
        raise TableError(
            f"this is no frontier of these tables: its first line is {','.join(first)[:80]!r}, not COST_UNIT"
            f",accuracy_percent,architecture with a cost of {', '.join(problem.costs)}. Make it again (binas frontier)."
        )
    points = _points_of_rows(rows[1:], problem, name)
    error = float(rows[1][3]) if len(first) > 3 and len(rows) > 1 else 0.0
    return Frontier(problem, name, points.costs, points.accuracies, error, 0.0, points.depths, points.configs)


def _points_of_rows(rows: list[list[str]], problem: SearchProblem, cost: str) -> _Points:
    """The points of a file, refused where the tables say something else."""
    space = problem.space
    depths, configs = space.to_indices(space.parse(row[2]) for row in rows)
    numbers = np.array([[_number(row[0]), _number(row[1])] for row in rows]).reshape(-1, 2).T
    by_tables = np.stack(
        [
            problem.costs[cost].total(space.layout.positions(depths, configs)),
            get_link(problem.objective.link).inverse(
                objective_values(problem.objective, space, depths, configs)
            ),
        ]
    )
    wrong = ~np.isclose(numbers, by_tables, rtol=READ_TOLERANCE, atol=READ_TOLERANCE).all(axis=0)
    wrong[1:] |= (np.diff(numbers, axis=1) <= 0).any(axis=0)
    if wrong.any():
        line = int(wrong.argmax())
        raise TableError(
            f"line {line + 2} of the frontier, {','.join(rows[line])[:80]!r}, is not what the tables say, or out of order: "
            "the file is of other tables or was changed. Make it again (binas frontier)."
        )
    return _Points(numbers[0], numbers[1], depths, configs)


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        return math.nan  # is not what the tables say


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
