"""The exact answer for all limits at once: every architecture that no other beats in accuracy and cost."""

from __future__ import annotations

import csv
import io
import math
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from binas.base.errors import ProblemError, TableError
from binas.base.rows import parse_rows
from binas.estimators.objective import DepthsObjective
from binas.search.closing import Closing, Points, begun, dense_frontier
from binas.search.deadline import Deadline, TimeLimit
from binas.search.depths import by_depths
from binas.search.fold import MEMORY, Effort, Folded, fold
from binas.search.labels import decode
from binas.search.limits import Limit
from binas.search.objective import objective_values
from binas.search.problem import Evaluation, SearchProblem
from binas.search.restrict import levels, restricted, widened
from binas.search.result import Status
from binas.search.solve import solve
from binas.search.terms import Row, Terms, build_terms, is_separable, limit_rows
from binas.search.variants import by_variant, upper_envelope
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
    variant: str | None = None


@dataclass(frozen=True, eq=False)
class Frontier(Sequence[FrontierPoint]):
    """Points sorted by cost, accuracy rising strictly.

    ``error`` is the certified error: at any limit the best accuracy is at most this much higher than
    the frontier says; zero when exact. ``stopped``: time or memory were short, and below the first point, or where there
    is none, there may be others. Where the problem has variants, the frontier is the upper envelope of theirs, and every
    point knows its own.
    """

    problem: SearchProblem
    cost: str
    costs: Array
    accuracies: Array
    error: float
    seconds: float
    _depths: Indices = field(repr=False)
    _configs: Indices = field(repr=False)
    _variants: tuple[str, ...] = field(default=(), repr=False)  # of each point, where there are variants
    stopped: bool = False

    @property
    def unit(self) -> Unit:
        """Unit of the cost."""
        return self.problem.costs[self.cost].unit

    @property
    def exact(self) -> bool:
        """Whether no rounding was needed."""
        return self.error == 0.0

    @property
    def certainty(self) -> str:
        """How sure it is that nothing is better, in words."""
        if self.exact:
            return "exact"
        return f"certified within {self.error:.2g} points" if math.isfinite(self.error) else "not certified"

    def __len__(self) -> int:
        return len(self.costs)

    def architecture(self, index: int) -> Architecture:
        """The architecture of one point."""
        return self.problem.space.from_indices(self._depths[index].tolist(), self._configs[index].tolist())

    def variant(self, index: int) -> str | None:
        """The variant of one point, where there are variants."""
        return self._variants[index] if self._variants else None

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, slice):
            return [self[i] for i in range(*index.indices(len(self)))]
        if not -len(self) <= index < len(self):
            raise IndexError(f"the frontier has {len(self)} points")
        return FrontierPoint(
            float(self.costs[index]),
            float(self.accuracies[index]),
            self.architecture(index),
            self.variant(index),
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
        points = [_point_json(point) for point in self]
        return {
            "cost": self.cost,
            "unit": self.unit.name,
            **self._conditions(),
            "exact": self.exact,
            "error": self.error if math.isfinite(self.error) else None,
            "stopped": self.stopped,
            "seconds": self.seconds,
            "points": points,
        }

    def _conditions(self) -> dict[str, Any]:
        """What the cost was measured on, in each variant where there are some."""
        if not self.problem.variants:
            return {"conditions": conditions(self.problem.costs[self.cost].provenance)}
        tables = {name: single.costs[self.cost] for name, single in by_variant(self.problem).items()}
        return {"variants": {name: conditions(cost.provenance) for name, cost in tables.items()}}

    def to_csv(self) -> str:
        """A line per point: cost with its unit in the name of the column, accuracy in percent, architecture.

        Where there are variants the variant follows, and of a frontier that is not exact the certified error.
        """
        buffer = io.StringIO()
        writer = csv.writer(buffer, lineterminator="\n")
        writer.writerow(_header(self.cost, self.problem, self.exact))
        for point in self:
            more = ([] if point.variant is None else [point.variant]) + (
                [] if self.exact else [repr(self.error)]
            )
            writer.writerow([repr(point.cost), repr(point.accuracy), str(point.architecture), *more])
        return buffer.getvalue()

    @classmethod
    def from_csv(cls, text: str, problem: SearchProblem, where: str = "the CSV of a frontier") -> Frontier:
        """Read back what :meth:`to_csv` wrote; every number is checked against the tables of ``problem``.

        That no point is missing is not checked: it takes a new frontier. ``where`` names the text in errors.
        """
        return _from_rows([cells for _, cells in parse_rows(text, where)], problem)


def frontier(
    problem: SearchProblem,
    cost: str,
    *,
    max_labels: int | None = None,
    tolerance: float = 0.0,
    time_limit: TimeLimit = None,
    memory_limit: float = MEMORY,
) -> Frontier:
    """The frontier of accuracy against ``cost``, other limits of the problem respected.

    Exact unless more than ``max_labels`` partial architectures would have to be held, they would not fit into
    ``memory_limit`` bytes, the ``time_limit`` (seconds) ends first, or ``tolerance`` (points of accuracy) allows rounding;
    then ``error`` certifies by how much it may fall short. Time and memory grow with the number of frontier points, not
    with the size of the space. A cost that is a maximum takes one exact solve per point. Of a problem with variants it
    is the upper envelope of theirs.
    """
    if not 0 <= tolerance < np.inf:
        raise ProblemError(
            f"the tolerance is {tolerance}; it must be a finite number of points from zero up."
        )
    if not 0 < memory_limit < np.inf:
        raise ProblemError(
            f"the memory limit is {memory_limit} bytes; it must be a finite number of more than zero."
        )
    _check_question(problem, cost)
    return _traced(problem, cost, Effort(max_labels, memory_limit, tolerance, Deadline.after(time_limit)))


def _traced(problem: SearchProblem, cost: str, effort: Effort) -> Frontier:
    start = time.perf_counter()
    if problem.variants:
        singles = by_variant(problem)
        ends = shares(effort, len(singles))
        parts = {name: _traced(single, cost, next(ends)) for name, single in singles.items()}
        return _envelope(problem, cost, parts)
    scaled, shown = problem.on_link_scale(), problem.objective
    trace = _of_maximum if problem.costs[cost].combine == "max" else _of_sum
    own = replace(effort, tolerance=effort.tolerance / shown.steepest, enough=effort.enough / shown.steepest)
    points = trace(scaled, cost, own)
    accuracies = shown.percents(points.accuracies)
    short = (
        shown.percents(points.accuracies + points.error) - accuracies
    )  # the error in points, at every limit
    return Frontier(
        problem,
        cost,
        points.costs,
        accuracies,
        float(short.max()) if len(short) else points.error,
        time.perf_counter() - start,
        points.depths,
        points.configs,
        stopped=points.stopped,
    )


def shares(effort: Effort, parts: int) -> Iterator[Effort]:
    """The effort of each of so many parts, one after the other: an equal share of the time that is left then."""
    for left in range(parts, 0, -1):
        yield replace(effort, deadline=effort.deadline.shared(left))


def _envelope(problem: SearchProblem, cost: str, parts: Mapping[str, Frontier]) -> Frontier:
    """The upper envelope of the frontiers of all variants; none of them falls shorter than by its own error."""
    curves = list(parts.values())
    owner, place = upper_envelope([c.costs for c in curves], [c.accuracies for c in curves])
    first = np.cumsum([0, *(len(curve) for curve in curves)])[owner] + place

    def gather(arrays: list[NDArray[Any]]) -> NDArray[Any]:
        return np.asarray(np.concatenate(arrays)[first])

    return Frontier(
        problem,
        cost,
        gather([curve.costs for curve in curves]),
        gather([curve.accuracies for curve in curves]),
        max(curve.error for curve in curves),
        sum(curve.seconds for curve in curves),
        gather([curve._depths for curve in curves]),
        gather([curve._configs for curve in curves]),
        tuple(list(parts)[k] for k in owner),
        any(curve.stopped for curve in curves),
    )


def _point_json(point: FrontierPoint) -> dict[str, Any]:
    data = {"cost": point.cost, "accuracy": point.accuracy, "architecture": str(point.architecture)}
    return data if point.variant is None else {**data, "variant": point.variant}


def _header(cost: str, problem: SearchProblem, exact: bool) -> list[str]:
    variant, error = ["variant"] if problem.variants else [], [] if exact else [ERROR]
    return [f"{cost}_{problem.costs[cost].unit.name}", "accuracy_percent", "architecture", *variant, *error]


def _from_rows(rows: list[list[str]], problem: SearchProblem) -> Frontier:
    """The frontier of the lines of a file; the first names the columns."""
    first = rows[0] if rows else []
    forms = {tuple(_header(name, problem, exact)): name for name in problem.costs for exact in (True, False)}
    cost = forms.get(tuple(first))
    if cost is None or any(len(row) != len(first) for row in rows):
        raise TableError(
            f"this is no frontier of these tables: its first line is {','.join(first)[:80]!r}, not COST_UNIT"
            f",accuracy_percent,architecture with a cost of {', '.join(problem.costs)}. Make it again (binas frontier)."
        )
    points = _points_of_rows(rows[1:], problem, cost)
    error = 0.0 if first[-1] != ERROR else _number(rows[1][-1]) if len(rows) > 1 else math.inf
    variants = tuple(row[3] for row in rows[1:]) if problem.variants else ()
    return Frontier(
        problem,
        cost,
        points.costs,
        points.accuracies,
        error,
        0.0,
        points.depths,
        points.configs,
        variants,
        stopped=math.isinf(error),  # nothing was found, and nothing ruled out
    )


def _points_of_rows(rows: list[list[str]], problem: SearchProblem, cost: str) -> _Points:
    """The points of a file, refused where the tables say something else."""
    space = problem.space
    depths, configs = space.to_indices(space.parse(row[2]) for row in rows)
    numbers = np.array([[_number(row[0]), _number(row[1])] for row in rows]).reshape(-1, 2).T
    values = objective_values(problem.objective, space, depths, configs)
    by_tables = np.stack(
        [
            _costs_of_rows(rows, problem, cost, space.layout.positions(depths, configs)),
            problem.objective.percents(values),
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


def _costs_of_rows(rows: list[list[str]], problem: SearchProblem, cost: str, positions: Indices) -> Array:
    """The cost of every line by the tables, each in its variant; NaN for a variant that there is not."""
    if not problem.variants:
        return problem.costs[cost].total(positions)
    result = np.full(len(rows), math.nan)
    for name, single in by_variant(problem).items():
        mine = np.array([row[3] == name for row in rows], dtype=bool)
        result[mine] = single.costs[cost].total(positions[mine])
    return result


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        return math.nan  # is not what the tables say


@dataclass(frozen=True, eq=False)
class _Points:
    """Points by rising cost and accuracy, on the scale of the link; depths (n, S) and configs (n, S, D) as indices.

    ``error`` and ``stopped`` as in :class:`Frontier`.
    """

    costs: Array
    accuracies: Array
    depths: Indices
    configs: Indices
    error: float = 0.0
    stopped: bool = False


def _of_sum(problem: SearchProblem, cost: str, effort: Effort) -> _Points:
    """The frontier of a cost that adds up, by folding."""
    smaller = restricted(problem)
    if smaller is None:
        return _listed(problem, cost, [])
    if isinstance(smaller.objective, DepthsObjective):
        return _over_depths(problem, smaller, cost, effort)
    terms = build_terms(smaller, _rows(smaller, cost))
    points = _folded(terms, effort)
    return replace(points, configs=widened(problem.space, smaller.space, points.configs))


def _folded(terms: Terms, effort: Effort) -> _Points:
    """The frontier by folding; with further limits by lists alone where it is dense (:mod:`binas.search.closing`).

    Else what a fold with further limits leaves of the error is closed by lists, in a quarter of the time.
    """
    if terms.rows == 1:
        return _read(terms, fold(terms, effort))
    dense = dense_frontier(terms, replace(effort, deadline=effort.deadline.shared(2)))
    if dense is not None and dense.error <= 10 * dense.enough:
        dense.effort = effort  # the other half of the time too
        dense.run()
        return _closed(dense, effort.deadline.late)
    folded = fold(terms, replace(effort, deadline=effort.deadline.shared(4 / 3)))
    points = _read(terms, folded)
    if points.stopped and not len(points.costs):
        return _found(terms, effort, dense, points)
    if folded.ceilings is None or not len(points.costs) or (effort.deadline.late and dense is None):
        return points
    known = Points(points.costs, points.accuracies, points.depths, points.configs)
    closing = Closing(terms, known, folded.ceilings, effort)
    first = dense is not None or closing.begin()
    if dense is not None:
        closing.add(dense.points, dense.lines)
    closing.run()
    return _closed(closing, points.stopped or not first)


def _found(terms: Terms, effort: Effort, dense: Closing | None, nothing: _Points) -> _Points:
    """What there is where a fold found nothing: what was listed, or a frontier from the cheapest architecture met."""
    closing, proven = begun(terms, effort) if dense is None else (dense, True)
    if closing is None:
        return replace(nothing, error=0.0, stopped=False) if proven else nothing
    closing.effort = effort
    closing.run()
    return _closed(closing, effort.deadline.late or not proven)


def _read(terms: Terms, folded: Folded) -> _Points:
    """The points of a fold."""
    depths, configs = decode(terms, folded.labels, np.arange(len(folded.labels)))
    values, costs = folded.labels.data[:2]
    return _Points(costs, values, depths, configs, folded.error, folded.stopped)


def _closed(closing: Closing, stopped: bool) -> _Points:
    """The points of a frontier whose gaps were closed."""
    points = closing.points
    return _Points(points.costs, points.values, points.depths, points.configs, closing.error, stopped)


def _over_depths(problem: SearchProblem, smaller: SearchProblem, cost: str, effort: Effort) -> _Points:
    """The upper envelope of the frontiers with all depths given (:mod:`binas.search.depths`)."""
    parts = by_depths(smaller)
    curves = [_of_sum(part, cost, own) for part, own in zip(parts, shares(effort, len(parts)), strict=True)]
    owner, place = upper_envelope([c.costs for c in curves], [c.accuracies for c in curves])
    first = np.cumsum([0, *(len(c.costs) for c in curves)])[owner] + place
    configs = [
        widened(problem.space, part.space, points.configs) for part, points in zip(parts, curves, strict=True)
    ]
    return _Points(
        np.concatenate([c.costs for c in curves])[first],
        np.concatenate([c.accuracies for c in curves])[first],
        np.concatenate([c.depths for c in curves])[first],
        np.concatenate(configs)[first],
        max(curve.error for curve in curves),
        any(curve.stopped for curve in curves),
    )


def _of_maximum(problem: SearchProblem, cost: str, effort: Effort) -> _Points:
    """The frontier of a maximum: the best architecture, then the best of those strictly below its maximum, ...

    The error is the widest gap of an answer. Where time is up, what was found so far.
    """
    items: list[Evaluation] = []
    error, asked, late = 0.0, problem, False
    while True:
        result = solve(asked, "auto", time_limit=effort.deadline)
        late = late or result.status in (Status.STOPPED_WITH_ANSWER, Status.STOPPED_WITHOUT_ANSWER)
        if result.evaluation is None:
            break
        items.append(result.evaluation)
        error = max(error, math.inf if result.gap is None else result.gap)
        below = _next_below(problem, cost, result.evaluation.costs[cost])
        if below is None or late:
            break
        asked = problem.with_limits([*problem.limits, below])
    points = _listed(problem, cost, _undominated(items))
    return replace(points, error=math.inf if late and not items else error, stopped=late)


def _next_below(problem: SearchProblem, cost: str, value: float) -> Limit | None:
    """The largest limit on a maximum that keeps out what has ``value``; None where there is none."""
    limits = (Limit(cost, float(number)) for number in levels(problem.costs[cost])[::-1])
    return next((limit for limit in limits if not problem.keeps(limit, value)), None)


def _undominated(items: list[Evaluation]) -> list[Evaluation]:
    """Of architectures by falling cost and never rising accuracy, those that no other equals at lower cost."""
    result: list[Evaluation] = []
    for item in reversed(items):
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
