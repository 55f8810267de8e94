"""Around the optimum: the K best architectures, all within so many points of the best, and the price of a limit. Exact.

An architecture's value is at most UB - (sum of its reduced costs), see :mod:`binas.search.lagrangian`. So all
architectures of value at least UB - g are among those whose reduced costs sum to at most g. These are folded as for one
answer, but a partial architecture is dropped only when K others beat it, and g is raised until K are found.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from binas.base.errors import ProblemError
from binas.estimators.objective import DepthsObjective
from binas.search.deadline import NEVER, Deadline, TimeLimit, TimeUpError
from binas.search.depths import by_depths, highest_value
from binas.search.dual import Padded, around, cheapest, improve, solve_dual
from binas.search.labels import Labels, decode
from binas.search.lagrangian import Neighbourhood
from binas.search.limits import Limit
from binas.search.merging import TooManyError
from binas.search.problem import Evaluation, SearchProblem, evaluate
from binas.search.restrict import restricted
from binas.search.result import SearchResult, Status, evaluation_json
from binas.search.solve import solve
from binas.search.solvers.auto import Auto
from binas.search.solvers.milp import Milp
from binas.search.terms import Terms, build_terms, limit_rows
from binas.search.variants import by_variant
from binas.space.architecture import Architecture
from binas.tables.units import format_quantity

MAX_LISTED = 4_000_000
MAX_LISTED_MANY = 3_000_000  # with several limits, integer programs are faster than longer lists
MOST = 1000
MOST_BY_PROGRAM = 50
PRICE_NODES = 500  # of the search tree for each price: the same answer on every machine
FIRST = 1.25  # of the optimum's distance from the bound, where the growing begins
GROWTH = 2.0
GROWTH_MANY = 1.5  # with several limits, where twice the gap holds far more


@dataclass(frozen=True)
class Alternatives:
    """The best architectures in order, the optimum first.

    ``complete``: nothing that was asked for is missing; otherwise more exist than are listed, or time was up. Nothing within
    the limits that is not listed is better than ``bound`` (percent); None where that is not known, or nothing is left.
    """

    items: tuple[Evaluation, ...]
    complete: bool
    bound: float | None = None


def best_architectures(
    problem: SearchProblem,
    count: int | None = None,
    within: float | None = None,
    most: int = MOST,
    *,
    time_limit: TimeLimit = None,
) -> Alternatives:
    """The ``count`` best distinct architectures, or all within ``within`` points of the best (at most ``most``).

    Where the problem has variants, every architecture is listed once, in the variant that suits it best. After
    ``time_limit`` seconds it is what was found so far, from the best downwards.
    """
    whole = count is None or (isinstance(count, int) and count >= 1)
    near = within is None or 0 <= within < np.inf
    if (count is None and within is None) or not whole or not near:
        raise ProblemError(
            "ask for a whole number of architectures from 1 (--top 10), or for all within a finite distance of "
            "zero or more points (--within 0.1)."
        )
    return _best(problem, _Question(count, within, most), Deadline.after(time_limit))


@dataclass(frozen=True)
class _Question:
    """What is asked for: so many (None: any number), within so many points of the best (None: any); at most ``most``."""

    count: int | None
    within: float | None
    most: int

    @property
    def number(self) -> int:
        """How many are listed at most."""
        return self.most if self.count is None else min(self.count, self.most)

    def near(self, items: list[Evaluation], top: float) -> list[Evaluation]:
        """The items in order, of those within the distance of the best, ``top``."""
        items = sorted(items, key=lambda item: (-item.accuracy, str(item.architecture)))
        if self.within is None:
            return items
        return [item for item in items if item.accuracy >= top - self.within - 1e-9 * max(1.0, abs(top))]

    def answer(self, items: list[Evaluation], complete: bool, bound: float | None) -> Alternatives:
        """What is listed of some items; ``complete``: no other is within the distance."""
        enough = self.count is not None and len(items) >= self.count
        left = [item.accuracy for item in items[self.number : self.number + 1]]
        most = max([*left, *([] if bound is None else [bound])], default=None)
        shown = tuple(items[: self.number])
        return Alternatives(shown, enough or (complete and len(items) <= self.number), most)


def _best(problem: SearchProblem, question: _Question, deadline: Deadline) -> Alternatives:
    if problem.variants:
        singles = list(by_variant(problem).values())
        counts = range(len(singles), 0, -1)
        parts = [_best(x, question, deadline.shared(k)) for k, x in zip(counts, singles, strict=True)]
        return _over_variants(problem, parts, question)
    smaller = restricted(problem.on_link_scale())
    if smaller is None:
        return Alternatives((), True)
    result, percent = solve(smaller, "auto", time_limit=deadline), problem.objective.percent
    best = result.evaluation
    if best is None or result.status is not Status.OPTIMAL:
        known = () if best is None else (evaluate(problem, best.architecture),)
        bound = None if result.bound is None else percent(result.bound)
        return Alternatives(known, result.status is Status.INFEASIBLE, bound)
    distance = np.inf if question.within is None else _on_link_scale(problem, best.accuracy, question.within)
    listed = _closest(smaller, best, question.number, distance, deadline)
    items = [evaluate(problem, architecture) for architecture in listed.architectures]
    items = question.near(items, percent(best.accuracy))
    return question.answer(items, listed.complete, None if listed.bound is None else percent(listed.bound))


@dataclass(frozen=True)
class _Listed:
    """Architectures, whether none that was asked for is missing, and what no other is better than (None: none is left)."""

    architectures: list[Architecture]
    complete: bool
    bound: float | None


def _closest(
    problem: SearchProblem, best: Evaluation, number: int, distance: float, deadline: Deadline
) -> _Listed:
    """The ``number`` best architectures, or those within ``distance`` of the optimum."""
    if isinstance(problem.objective, DepthsObjective):
        return _over_depths(problem, best, number, distance, deadline)
    try:
        return _Listing(problem, best, deadline).closest(number, distance)
    except TooManyError:
        return _one_by_one(problem, best.accuracy, number, distance, deadline)


def _over_depths(
    problem: SearchProblem, optimum: Evaluation, number: int, distance: float, deadline: Deadline
) -> _Listed:
    """The same with all depths given, for each choice of these that comes close enough (:mod:`binas.search.depths`)."""
    items, complete, bounds = list[Architecture](), True, list[float]()
    least = optimum.accuracy - distance
    for part in by_depths(problem):
        if highest_value(part) < least or deadline.late:
            complete = complete and highest_value(part) < least
            bounds.append(highest_value(part))
            items = items or [optimum.architecture]
            break
        listed = _of_part(
            part, solve(part, "auto", time_limit=deadline), optimum.accuracy, number, distance, deadline
        )
        items, complete = [*items, *listed.architectures], complete and listed.complete
        bounds += [] if listed.bound is None else [listed.bound]
    return _Listed(items, complete, max(bounds, default=None))


def _of_part(
    part: SearchProblem,
    result: SearchResult,
    optimum: float,
    number: int,
    distance: float,
    deadline: Deadline,
) -> _Listed:
    """What one choice of all depths adds to the list, given its own best answer."""
    best = result.evaluation
    if best is None or result.status is not Status.OPTIMAL:
        known = [] if best is None else [best.architecture]
        return _Listed(known, result.status is Status.INFEASIBLE, result.bound)
    if best.accuracy < optimum - distance:
        return _Listed([], True, best.accuracy)
    return _closest(part, best, number, distance - (optimum - best.accuracy), deadline)


def _on_link_scale(problem: SearchProblem, best: float, within: float) -> float:
    """How far below ``best``, on the scale of the link, networks ``within`` points of it may lie."""
    least = problem.objective.percent(best) - within
    return best - problem.objective.at_percent(least) + 1e-9


def _over_variants(problem: SearchProblem, parts: list[Alternatives], question: _Question) -> Alternatives:
    """The lists of all variants as one; no variant's list ends before the joint one does."""
    names = dict.fromkeys(item.architecture for part in parts for item in part.items)
    items = [evaluate(problem, architecture) for architecture in names]
    items = question.near(items, max((item.accuracy for item in items), default=0.0))
    bounds = [part.bound for part in parts if part.bound is not None]
    listed = question.answer(items, all(part.complete for part in parts), max(bounds, default=None))
    return replace(listed, complete=listed.complete and all(part.complete for part in parts))


def _one_by_one(
    problem: SearchProblem, optimum: float, number: int, distance: float, deadline: Deadline
) -> _Listed:
    """The best architectures by repeated integer programs: slower, but not hurt by a weak bound."""
    if problem.objective.kind != "bilinear":
        raise ProblemError(
            "too many architectures are close to the best to list them; add or tighten a limit."
        )
    items: list[Architecture] = []
    last = optimum
    for item in Milp().in_order(problem, deadline):
        if item.accuracy < optimum - distance - 1e-9 * max(1.0, abs(optimum)):
            return _Listed(items, True, item.accuracy)
        items.append(item.architecture)
        last = item.accuracy
        if len(items) >= min(number, MOST_BY_PROGRAM):
            return _Listed(items, False, last)
    return _Listed(items, not deadline.late, last if deadline.late else None)


class _Listing:
    """Lists the architectures close to the optimum, in growing neighbourhoods of the bound."""

    def __init__(self, problem: SearchProblem, optimum: Evaluation, deadline: Deadline):
        self.space, self.optimum, self.deadline = problem.space, optimum, deadline
        self.terms: Terms = build_terms(problem, limit_rows(problem))
        self.padded = Padded(self.terms)
        self.dual = solve_dual(self.padded, deadline)
        self.bound = self.dual.relaxed.bound + float(self.terms.constant[0])
        self.least = max(0.0, self.bound - optimum.accuracy)

    def closest(self, number: int, distance: float) -> _Listed:
        """At least ``number`` in order of closeness, or all within ``distance``; past the deadline those known by then."""
        most = MAX_LISTED if self.terms.rows <= 1 else MAX_LISTED_MANY
        near = Neighbourhood(self.padded, self.dual.relaxed, most, number + 1, self.deadline)
        slack = near.slack + 1e-9 * max(1.0, abs(self.optimum.accuracy))
        widest = min(self.least + distance, self._widest(near))
        gap = min(widest, self._enough(number), max(FIRST * self.least, 1e-6 * near.widest))
        listed = _Listed([self.optimum.architecture], False, self.optimum.accuracy)
        while True:
            try:
                labels, _ = near.whole(gap + slack)
            except TimeUpError:
                return listed
            except TooManyError:
                if len(listed.architectures) < min(number, MOST_BY_PROGRAM):
                    raise
                return listed
            listed = self._read(labels, gap + slack, number, gap >= widest)
            if gap >= widest or len(listed.architectures) >= number:
                return listed
            gap = min(widest, (GROWTH if self.terms.rows <= 1 else GROWTH_MANY) * gap)

    def _widest(self, near: Neighbourhood) -> float:
        """value = UB - reduced costs - multipliers * unused budget: nothing feasible is further from UB than this."""
        least = [float(cheapest(self.padded, row).totals[1 + row]) for row in range(self.terms.rows)]
        unused = float(self.dual.relaxed.multipliers @ (self.padded.budget - np.array(least)))
        return near.widest + max(0.0, unused)

    def _enough(self, number: int) -> float:
        """A gap at which ``number`` architectures are known to be: around a good one."""
        if self.dual.incumbent is None:
            return math.inf
        values = around(self.padded, improve(self.padded, self.dual.incumbent, self.deadline))
        return float(self.dual.relaxed.bound - values[number - 1]) if len(values) >= number else math.inf

    def _read(self, labels: Labels, gap: float, number: int, everything: bool) -> _Listed:
        """The labels of value at least bound - gap, in order; none of that value is missing but for more than ``number``."""
        values = labels.data[0] + self.terms.constant[0]
        order = np.argsort(-values, kind="stable")
        inside = order[values[order] >= self.bound - gap]
        cut = inside[number:]
        depths, configs = decode(self.terms, labels, inside[:number])
        items = [
            self.space.from_indices(d, c) for d, c in zip(depths.tolist(), configs.tolist(), strict=True)
        ]
        complete = everything and not len(cut)
        left = float(values[cut[0]]) if len(cut) else self.bound - gap
        return _Listed(items, complete, left)


@dataclass(frozen=True, slots=True)
class Price:
    """Moving ``limit`` by ``more`` (in its cost's unit) raises the best accuracy by ``gain`` points."""

    limit: Limit
    more: float
    gain: float
    architecture: Architecture | None

    def sentence(self, problem: SearchProblem) -> str:
        """What is paid and what it buys."""
        more = format_quantity(self.more, problem.costs[self.limit.cost].unit)
        word = "less" if self.limit.lower else "more"
        return f"{more} {word} {self.limit.cost} buys {self.gain:+.4f} points."

    def to_json(self, problem: SearchProblem) -> dict[str, Any]:
        """The object under ``price`` in ``binas search --json``."""
        unit = problem.costs[self.limit.cost].unit.name
        about = {"cost": self.limit.cost, "lower": self.limit.lower, "more": self.more}
        return {**about, "unit": unit, "gain": self.gain}


@dataclass(frozen=True)
class Surroundings:
    """A result with what lies around it: other good architectures, and what a wider limit buys."""

    result: SearchResult
    near: Alternatives
    prices: tuple[Price, ...]

    def to_json(self) -> dict[str, Any]:
        """The object that ``binas search --json`` prints."""
        problem = self.result.problem
        return {
            **self.result.to_json(),
            "alternatives": [evaluation_json(problem, item) for item in self.near.items],
            "alternatives_complete": self.near.complete,
            "alternatives_bound": self.near.bound,
            "price": [price.to_json(problem) for price in self.prices],
        }


def look_around(
    result: SearchResult,
    count: int | None = None,
    within: float | None = None,
    *,
    time_limit: TimeLimit = None,
) -> Surroundings:
    """The ``count`` best architectures or those ``within`` points of a result, without itself; prices where it is proven.

    All of it within ``time_limit`` seconds: what is not known by then is left out.
    """
    deadline, near = Deadline.after(time_limit), Alternatives((), True)
    if count is not None or within is not None:
        best = best_architectures(result.problem, count, within, time_limit=deadline)
        others = (item for item in best.items if item.architecture != result.architecture)
        near = replace(best, items=tuple(others))
    proven = result.status is Status.OPTIMAL
    return Surroundings(result, near, tuple(prices(result, deadline)) if proven else ())


def step_for(limit: float) -> float:
    """A round step of a few percent of the limit: 1 for 45, 0.1 for 5, 100,000 for 5 million."""
    share = abs(limit) / 20
    return 10.0 ** math.floor(math.log10(share)) if share > 0 else 1.0


def prices(result: SearchResult, deadline: Deadline = NEVER) -> Iterator[Price]:
    """The price of each limit of a solved problem, all other limits unchanged; none where it takes too much to prove."""
    if result.accuracy is None:
        return
    for limit in dict.fromkeys(result.problem.limits):
        more = step_for(limit.value)
        if deadline.late or not math.isfinite(limit.value + limit.sign * more):
            continue
        moved = solve(_moved(result.problem, limit, more), Auto(PRICE_NODES), time_limit=deadline)
        if moved.status is Status.OPTIMAL and moved.accuracy is not None:
            yield Price(limit, more, moved.accuracy - result.accuracy, moved.architecture)


def _moved(problem: SearchProblem, limit: Limit, more: float) -> SearchProblem:
    eased = replace(limit, value=limit.value + limit.sign * more)
    return problem.with_limits(eased if other == limit else other for other in problem.limits)
