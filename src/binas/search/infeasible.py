"""Why limits cannot be kept, and the smallest change that would make them possible."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from binas.base.errors import ProblemError
from binas.estimators.objective import BilinearObjective
from binas.search.deadline import Deadline, TimeLimit
from binas.search.frontier import Frontier
from binas.search.highs import LinearProgram, Model
from binas.search.limits import Limit
from binas.search.matrices import tight_form
from binas.search.problem import SearchProblem, evaluate
from binas.search.restrict import levels
from binas.search.result import SearchResult, Status
from binas.search.solve import solve
from binas.search.solvers.auto import Auto
from binas.search.sparse import Sparse
from binas.search.variants import by_variant
from binas.tables.entries import Column
from binas.tables.units import format_quantity

Array = NDArray[np.float64]

NODES = 500  # of the search tree for each question asked of a solver: the same answer on every machine


@dataclass(frozen=True, slots=True)
class Relaxation:
    """Changing one limit to ``value`` makes the problem feasible; ``change`` is relative to the old limit.

    ``proven``: no smaller change of this limit would do.
    """

    limit: Limit
    value: float
    change: float
    proven: bool = True


@dataclass(frozen=True)
class Infeasibility:
    """Extremes each limited cost can reach alone, the limits impossible alone, and single relaxations that help.

    ``together`` lists the new values when no single change is enough: those of the architecture that breaks
    the limits by the smallest common fraction. Not ``proven``: time was up, and some architecture may keep the limits.
    """

    problem: SearchProblem
    extremes: Mapping[str, tuple[float, float]]
    blocking: tuple[Limit, ...]
    relaxations: tuple[Relaxation, ...]
    together: tuple[Relaxation, ...]
    proven: bool = True

    def sentence(self) -> str:
        """One paragraph for people."""
        problem, parts = self.problem, [self._verdict()]
        for limit in self.blocking:
            least, most = self.extremes[limit.cost]
            unit = problem.costs[limit.cost].unit
            word, reach = ("most", most) if limit.lower else ("least", least)
            parts.append(
                f"{limit.cost} alone is impossible: the {word} any architecture has is {format_quantity(reach, unit)}."
            )
        best = self.relaxations[:1] or self.together
        changes = " and ".join(_written(problem, item) for item in best)
        smallest = "The smallest change that works" if all(x.proven for x in best) else "A change that works"
        if best:
            parts.append(f"{smallest}: move {changes}.")
        elif self.proven:
            parts.append("No change of limits was found that works.")
        return " ".join(parts)

    def _verdict(self) -> str:
        if self.proven:
            return f"no architecture keeps {self.problem.describe_limits()}."
        return (
            f"time was up before it was known whether any architecture keeps {self.problem.describe_limits()}: none was "
            "found, and none was ruled out. Give it more time."
        )

    def to_json(self) -> dict[str, Any]:
        """The object under ``infeasible`` in ``binas search --json``."""
        units = {name: cost.unit.name for name, cost in self.problem.costs.items()}
        return {
            "explanation": self.sentence(),
            "proven": self.proven,
            "extremes": {
                name: {"least": low, "most": high, "unit": units[name]}
                for name, (low, high) in self.extremes.items()
            },
            "blocking": [limit.cost for limit in self.blocking],
            "relaxations": [
                {
                    "cost": item.limit.cost,
                    "lower": item.limit.lower,
                    "value": item.value,
                    "unit": units[item.limit.cost],
                }
                for item in (self.relaxations or self.together)
            ],
        }


def _written(problem: SearchProblem, item: Relaxation) -> str:
    unit = problem.costs[item.limit.cost].unit
    word = "down to" if item.limit.lower else "up to"
    which = f"lower limit on {item.limit.cost}" if item.limit.lower else f"{item.limit.cost} limit"
    return f"the {which} {word} {format_quantity(_rounded(item.value, item.limit.lower), unit)}"


def _rounded(value: float, down: bool) -> float:
    """Five significant digits, rounded to the side that works."""
    if value == 0:
        return 0.0
    step = 10.0 ** (math.floor(math.log10(abs(value))) - 4)
    return (math.floor(value / step) if down else math.ceil(value / step)) * step


def why_no_answer(result: SearchResult | Frontier, time_limit: TimeLimit = None) -> str:
    """Why a search found no architecture, or a frontier has no point, in one paragraph; empty where there is one."""
    if len(result) if isinstance(result, Frontier) else result.status.has_answer:
        return ""
    if shows_infeasible(result):
        return explain_infeasible(result.problem, time_limit=time_limit, known=True).sentence()
    what, proves = "the frontier", ", or trace it with fewer limits"
    if isinstance(result, SearchResult):
        what, proves = f"the solver {result.solver!r}", ", or use the solver auto, which proves it"
        proves = ", or relax a limit" if result.solver == "auto" else proves
    return (
        f"{what} found no architecture that keeps {result.problem.describe_limits()} before it "
        f"stopped; that does not mean there is none. Give it more time{proves}."
    )


def shows_infeasible(result: SearchResult | Frontier) -> bool:
    """Whether a result proves that no architecture keeps the limits."""
    if isinstance(result, Frontier):
        return not len(result) and not result.stopped
    return result.status is Status.INFEASIBLE


def explain_infeasible(
    problem: SearchProblem, *, time_limit: TimeLimit = None, known: bool = False
) -> Infeasibility:
    """Find out which limits block and what the cheapest relaxation is, within so many nodes per question.

    After ``time_limit`` seconds changes that were not found by then are left out, and no more is proven. ``known``: that
    nothing keeps the limits is proven already, and is not asked again.
    """
    deadline = Deadline.after(time_limit)
    names = list(dict.fromkeys(limit.cost for limit in problem.limits))
    extremes = {name: _range(problem, name) for name in names}
    blocking = tuple(limit for limit in problem.limits if not _possible_alone(problem, limit, extremes))
    proven = known or bool(blocking) or _proven_infeasible(problem, deadline)
    relaxations = tuple(sorted(_single(problem, deadline), key=lambda item: item.change))
    together = None if relaxations else _joint(problem, deadline)
    if not proven and (together == () or any(_kept(problem, item) for item in relaxations)):
        raise _feasible(problem)
    return Infeasibility(problem, extremes, blocking, relaxations, together or (), proven)


def _proven_infeasible(problem: SearchProblem, deadline: Deadline) -> bool:
    """Whether a solve proves that nothing keeps the limits; refused where something does."""
    status = solve(problem, Auto(NODES), time_limit=deadline).status
    if status.has_answer:
        raise _feasible(problem)
    return status is Status.INFEASIBLE


def _kept(problem: SearchProblem, item: Relaxation) -> bool:
    """Whether what keeps the other limits keeps this one as it is."""
    return problem.keeps(item.limit, item.value)


def _feasible(problem: SearchProblem) -> ProblemError:
    return ProblemError(f"nothing to explain: some architecture keeps {problem.describe_limits()}.")


@dataclass(frozen=True, slots=True)
class _Reach:
    value: float
    proven: bool


def _extreme(
    problem: SearchProblem, cost: str, limits: tuple[Limit, ...], highest: bool, deadline: Deadline
) -> _Reach | None:
    """Least (or greatest) value of a cost under some limits; None if none was found that keeps them."""
    if problem.variants:
        return _best_reach(
            [_extreme(p, cost, limits, highest, deadline) for p in by_variant(problem).values()], highest
        )
    table = problem.costs[cost]
    if table.combine == "max":
        return _least_maximum(
            problem, cost, limits, deadline
        )  # a maximum has no lower limits to ask for the highest
    objective = BilinearObjective.negative_cost(table)
    if highest:
        objective = BilinearObjective(table.fixed, table.values)
    asked = replace(problem, objective=objective, limits=limits)
    result = solve(asked, Auto(NODES), time_limit=deadline)
    if result.accuracy is None:
        return None
    return _Reach(result.accuracy * (1.0 if highest else -1.0), result.status is Status.OPTIMAL)


def _best_reach(reaches: list[_Reach | None], highest: bool) -> _Reach | None:
    """The furthest of what the variants reach; proven where nothing is open in any of them."""
    known = [reach for reach in reaches if reach is not None]
    if not known:
        return None
    values = [reach.value for reach in known]
    return _Reach(max(values) if highest else min(values), all(reach.proven for reach in known))


def _range(problem: SearchProblem, cost: str) -> tuple[float, float]:
    """Least and greatest value of a cost over all architectures and variants, exactly."""
    problems = list(by_variant(problem).values()) or [problem]
    ranges = [single.costs[cost].range(problem.space) for single in problems]
    return min(least for least, _ in ranges), max(greatest for _, greatest in ranges)


def _least_maximum(
    problem: SearchProblem, cost: str, limits: tuple[Limit, ...], deadline: Deadline
) -> _Reach | None:
    """The smallest maximum that some architecture reaches under other limits, by bisection of its possible values."""
    values = levels(problem.costs[cost])
    asked = replace(problem, objective=_nothing(problem))

    def within(value: float) -> SearchResult:
        return solve(replace(asked, limits=(*limits, Limit(cost, value))), Auto(NODES), time_limit=deadline)

    low, high, result = 0, len(values) - 1, within(float(values[-1]))
    best, proven = result.evaluation, True
    while best is not None and low < high:  # nothing is below values[low]; best is at most values[high]
        middle = (low + high) // 2
        result = within(float(values[middle]))
        proven = proven and result.status in (Status.OPTIMAL, Status.INFEASIBLE)
        if result.evaluation is None:
            low = middle + 1
        else:
            high, best = middle, result.evaluation
    return None if best is None else _Reach(best.costs[cost], proven)


def _possible_alone(
    problem: SearchProblem, limit: Limit, extremes: Mapping[str, tuple[float, float]]
) -> bool:
    least, greatest = extremes[limit.cost]
    return problem.keeps(limit, greatest if limit.lower else least)


def _single(problem: SearchProblem, deadline: Deadline) -> list[Relaxation]:
    """For each limit: the value it would have to take if all others stay."""
    relaxations = []
    for limit in problem.limits:
        others = tuple(other for other in problem.limits if other is not limit)
        reach = _extreme(problem, limit.cost, others, limit.lower, deadline)
        if reach is not None:
            relaxations.append(Relaxation(limit, reach.value, _change(limit, reach.value), reach.proven))
    return relaxations


def _change(limit: Limit, value: float) -> float:
    return abs(value - limit.value) / max(abs(limit.value), 1e-300)


def _joint(problem: SearchProblem, deadline: Deadline) -> tuple[Relaxation, ...] | None:
    """The architecture that breaks all limits by the smallest common fraction, and the limits it would need; None: no time.

    min t  s.t.  sign * cost_k <= sign * limit_k + t * |limit_k|  for every limit k, over architectures; for a
    maximum the same for each of its entries that the architecture uses, and for its fixed part.
    """
    if problem.variants:
        found = (_joint(single, deadline) for single in by_variant(problem).values())
        every = [changes for changes in found if changes is not None]
        return min(every, key=lambda changes: max((x.change for x in changes), default=0.0), default=None)
    if deadline.late:
        return None
    sums = tuple(limit for limit in problem.limits if limit not in problem.limits_on_maxima)
    model = Model(_joint_program(problem, sums), {"mip_rel_gap": 0.0, "mip_max_nodes": 2 * NODES})
    solution = model.run(deadline.left)
    if solution.x is None:
        return None
    layout = problem.space.layout
    reached = evaluate(problem, layout.round(*layout.split(solution.x[:-1])))
    needed = [(limit, reached.costs[limit.cost]) for limit in reached.broken]
    proven = solution.status == "optimal"
    return tuple(Relaxation(limit, value, _change(limit, value), proven) for limit, value in needed)


def _joint_program(problem: SearchProblem, sums: tuple[Limit, ...]) -> LinearProgram:
    """The program of :func:`_joint` over (x, t), x that of the tight form."""
    form = tight_form(replace(problem, objective=_nothing(problem), limits=sums))
    size, weights = len(form.objective), np.array([_weight(limit) for limit in sums])
    entries, spare, least = _entry_rows(problem)
    right = np.concatenate([form.bounds / weights, spare])
    matrix = Sparse.stack(form.equality, Sparse.from_dense(form.rows / weights[:, None]), entries)
    return LinearProgram(
        cost=np.append(np.zeros(size), 1.0),
        matrix=matrix.with_column(np.append(np.zeros(len(form.right)), -np.ones(len(right)))),
        lower=np.append(form.right, np.full(len(right), -np.inf)),
        upper=np.append(form.right, right),
        least=np.append(np.zeros(size), least),
        most=np.append(np.ones(size), np.inf),
        integer=np.arange(size + 1) < size,
    )


def _weight(limit: Limit) -> float:
    return max(abs(limit.value), 1e-12)


def _entry_rows(problem: SearchProblem) -> tuple[Sparse, Array, float]:
    """Rows value / weight * x - t <= limit / weight for every entry of a maximum above its limit; the least t."""
    columns, values, right, least = [np.zeros(0, dtype=int)], [np.zeros(0)], [np.zeros(0)], 0.0
    for limit in problem.limits_on_maxima:
        cost, most, weight = problem.costs[limit.cost], limit.value + problem.tolerance(limit), _weight(limit)
        flat = cost.values.flat()
        above = np.flatnonzero(flat > most)
        columns.append(above)
        values.append(flat[above] / weight)
        right.append(np.full(len(above), most / weight))
        least = max(least, (cost.fixed - most) / weight)
    column = np.concatenate(columns)
    shape = (len(column), problem.space.layout.size)
    rows = Sparse.from_entries(np.arange(len(column)), column, np.concatenate(values), shape)
    return rows, np.concatenate(right), least


def _nothing(problem: SearchProblem) -> BilinearObjective:
    return BilinearObjective(0.0, Column.full(problem.space, 0.0))
