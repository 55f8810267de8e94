"""The search problem: maximise an objective over a space under limits on costs (section 3.4)."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace

from binas.base.errors import ProblemError
from binas.estimators._base import Estimator
from binas.estimators.bilinear import BilinearEstimator
from binas.estimators.objective import Linked, Objective
from binas.search.limits import Limit, parse_limits
from binas.search.objective import LARGEST, architecture_cost, check_objective
from binas.space.architecture import Architecture
from binas.space.space import SearchSpace
from binas.tables.contributions import Contributions
from binas.tables.costs import Cost, CostTable, variant_problems
from binas.tables.entries import Column
from binas.tables.units import format_quantity

RELATIVE_TOLERANCE = 1e-9
ROUNDED = 1.001  # times that: what a solver's own sums, which are rounded, put right at the edge is inside


@dataclass(frozen=True, slots=True)
class Evaluation:
    """One architecture judged: accuracy in percent, every cost in its own unit, limits that are broken."""

    architecture: Architecture
    accuracy: float
    accuracy_stderr: float | None
    costs: Mapping[str, float]
    broken: tuple[Limit, ...]
    variant: str | None = None  # the one it is judged in, where there are variants
    raw: float | None = (
        None  # the estimator's own prediction in percent, where accuracy is a recalibrated one
    )

    @property
    def feasible(self) -> bool:
        """Whether every limit is kept."""
        return not self.broken


@dataclass(frozen=True, eq=False)
class SearchProblem:
    """max objective(a) over architectures a of ``space`` such that every limit holds.

    With ``variants`` (:mod:`binas.search.variants`) the maximum is over the variants too, each with its own costs.
    """

    space: SearchSpace
    objective: Objective
    costs: Mapping[str, Cost] = field(default_factory=dict)
    limits: tuple[Limit, ...] = ()
    variants: Mapping[str, Mapping[str, Cost]] = field(default_factory=dict)
    scales: Mapping[str, float] = field(default_factory=dict, repr=False)
    """Largest possible magnitude of each cost, for tolerances; a part of a problem has those of the whole."""

    def __post_init__(self) -> None:
        if not self.scales:
            object.__setattr__(self, "scales", {name: _magnitude(cost) for name, cost in self.costs.items()})
        check_objective(self.objective, self.space)
        for cost in (
            *self.costs.values(),
            *(cost for own in self.variants.values() for cost in own.values()),
        ):
            _check_cost(cost, self.space)
        wrong = variant_problems(self.costs, self.variants)
        if wrong:
            raise ProblemError(f"{wrong[0]}: give every variant numbers of costs that the problem has.")
        for limit in self.limits:
            if not isinstance(limit, Limit):
                raise ProblemError(
                    f"{limit!r} is not a Limit; SearchProblem.build reads limits such as 'latency=45ms'."
                )
            if limit.cost not in self.costs:
                raise ProblemError(
                    f"there is no cost {limit.cost!r} to limit; known are {', '.join(self.costs)}."
                )
            if not math.isfinite(limit.value):
                raise ProblemError(f"the limit on {limit.cost} is {limit.value}; it must be a finite number.")
            if limit.lower and self.costs[limit.cost].combine == "max":
                raise ProblemError(f"{limit.cost} is a maximum over blocks; it takes only upper limits.")

    @classmethod
    def build(
        cls,
        accuracy: Contributions | Estimator | Objective,
        costs: CostTable | Mapping[str, Cost],
        limits: str | Limit | Iterable[str | Limit] = (),
        space: SearchSpace | None = None,
    ) -> SearchProblem:
        """From what predicts accuracy, cost tables, and limits such as ``latency=45ms`` or ``latency=25% and params>=3M``.

        Contributions add up on the scale that their provenance names as ``link``. Only a plain objective needs ``space``.
        Limits are written as in :mod:`binas.search.limits`.
        """
        named, variants = (costs.costs, costs.variants) if isinstance(costs, CostTable) else (costs, {})
        if isinstance(accuracy, Contributions):
            accuracy = BilinearEstimator(accuracy)
        if isinstance(accuracy, Linked):
            objective = accuracy
        else:
            space, objective = accuracy.space, accuracy.objective()
        if space is None:
            raise ProblemError("an objective without contributions needs the space it belongs to.")
        return cls(space, objective, named, parse_limits(limits, space, named, variants), variants)

    def on_link_scale(self) -> SearchProblem:
        """The same problem with its objective taken for the accuracy: what solvers and the verifier work on."""
        objective = self.objective.on_link_scale()
        return self if objective is self.objective else replace(self, objective=objective)

    def with_limits(self, limits: Iterable[Limit]) -> SearchProblem:
        """The same problem under other limits."""
        return replace(self, limits=tuple(limits))

    def of_variant(self, variant: str | None) -> SearchProblem:
        """The problem of one variant alone, with its costs; of None the same problem."""
        if variant is None:
            return self
        return replace(self, costs={**self.costs, **self.variants[variant]}, variants={}, scales={})

    @property
    def limits_on_maxima(self) -> tuple[Limit, ...]:
        """The limits on costs that are a maximum over blocks (:mod:`binas.search.restrict`)."""
        return tuple(limit for limit in self.limits if self.costs[limit.cost].combine == "max")

    def keeps(self, limit: Limit, value: float) -> bool:
        """Whether a cost of ``value`` keeps a limit, for whoever judges an architecture."""
        return limit.holds(value, ROUNDED * self.tolerance(limit))

    def tolerance(self, limit: Limit) -> float:
        """How far rounding may carry a cost past its limit: 1e-9 of the larger of the limit and 1 % of the scale."""
        return RELATIVE_TOLERANCE * max(abs(limit.value), 0.01 * self.scales[limit.cost])

    def cost(self, name: str, architecture: Architecture) -> float:
        """One cost of an architecture (equation of LAT plus the fixed part, or the largest of these parts).

        By ``costs``; that of a variant is ``of_variant(name).cost(...)``.
        """
        return architecture_cost(self.space, self.costs[name], architecture)

    def describe_limits(self) -> str:
        """The limits for people: ``latency <= 45 ms and params <= 5 M``."""
        return " and ".join(self.describe_limit(limit) for limit in self.limits) or "no limit"

    def describe_limit(self, limit: Limit) -> str:
        """One limit for people."""
        sign = ">=" if limit.lower else "<="
        return f"{limit.cost} {sign} {format_quantity(limit.value, self.costs[limit.cost].unit)}"


def _check_cost(cost: Cost, space: SearchSpace) -> None:
    """Refuse a cost whose shape does not fit the space, or whose totals are not usable numbers."""
    shapes = [array.shape for array in Column.full(space, 0.0).arrays()]
    if [array.shape for array in cost.values.arrays()] != shapes:
        raise ProblemError(f"the cost {cost.name!r} was made for another space than {space.name!r}.")
    if not _magnitude(cost) <= LARGEST:
        raise ProblemError(f"the cost {cost.name!r} holds NaN, infinity or numbers too large to add up.")


def _magnitude(cost: Cost) -> float:
    total = abs(cost.fixed)
    if cost.combine == "max":
        return max(total, *(float(abs(values).max(initial=0.0)) for values in cost.values.arrays()))
    for depths, blocks in zip(cost.values.depths, cost.values.configs, strict=True):
        total += float(abs(depths).max()) + sum(float(abs(values).max()) for values in blocks)
    return total


def evaluate(problem: SearchProblem, architecture: Architecture) -> Evaluation:
    """Accuracy, costs and broken limits of one architecture, computed straight from the tables.

    What :func:`binas.search.verify.verify` holds claims against, so it shares no code with the fast ways. Where there are
    variants it is judged in the one that suits it best (:func:`preference`).
    """
    problem.space.check(architecture)
    if problem.variants:
        every = (
            replace(evaluate(problem.of_variant(name), architecture), variant=name)
            for name in problem.variants
        )
        return min(every, key=preference(problem))
    costs = {name: problem.cost(name, architecture) for name in problem.costs}
    broken = tuple(x for x in problem.limits if not problem.keeps(x, costs[x.cost]))
    accuracy = problem.objective.accuracy(problem.space, architecture)
    error = problem.objective.standard_error(problem.space, architecture)
    own = problem.objective.raw(problem.space, architecture)
    return Evaluation(architecture, accuracy, error, costs, broken, raw=own)


def preference(problem: SearchProblem) -> Callable[[Evaluation], tuple[float, ...]]:
    """An order of evaluations in different variants, the best first.

    Fewest broken limits, highest accuracy, then least cost: first of the costs with upper limits, then of those that differ.
    """
    limited = [limit.cost for limit in problem.limits if not limit.lower]
    differing = [name for own in problem.variants.values() for name in own]
    names = list(dict.fromkeys([*limited, *differing]))

    def key(item: Evaluation) -> tuple[float, ...]:
        return (len(item.broken), -item.accuracy, *(item.costs[name] for name in names))

    return key
