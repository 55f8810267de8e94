"""Around the optimum: the K best architectures, all within so many points of the best, and the price of a limit. Exact.

An architecture's value is at most UB - (sum of its reduced costs), see :mod:`binas.search.lagrangian`. So all
architectures of value at least UB - g are among those whose reduced costs sum to at most g; these are listed
without dropping dominated ones, and g is raised until enough are found.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from binas.base.errors import ProblemError
from binas.estimators.objective import DepthsObjective
from binas.search.depths import by_depths, highest_value
from binas.search.dual import Padded, Relaxed, cheapest, solve_dual
from binas.search.labels import Labels, decode, nothing
from binas.search.lagrangian import Reduced, TooManyError, above, cross, lagrangian_values, stage_labels
from binas.search.limits import Limit
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

MAX_LISTED = 2_000_000
MOST = 1000
MOST_BY_PROGRAM = 50
PRICE_NODES = 500  # of the search tree for each price: the same answer on every machine
FEW = 50_000  # spaces so small that everything is listed at once


@dataclass(frozen=True)
class Alternatives:
    """The best architectures in order, the optimum first.

    ``complete``: nothing that was asked for is missing; otherwise more exist than are listed.
    """

    items: tuple[Evaluation, ...]
    complete: bool


def best_architectures(
    problem: SearchProblem, count: int | None = None, within: float | None = None, most: int = MOST
) -> Alternatives:
    """The ``count`` best distinct architectures, or all within ``within`` points of the best (at most ``most``).

    Where the problem has variants, every architecture is listed once, in the variant that suits it best.
    """
    _check_question(count, within)
    if problem.variants:
        parts = [best_architectures(single, count, within, most) for single in by_variant(problem).values()]
        return _over_variants(problem, parts, most if count is None else min(count, most), within, count)
    smaller = restricted(problem.on_link_scale())
    best = None if smaller is None else solve(smaller, "auto").evaluation
    if smaller is None or best is None:
        return Alternatives((), True)
    number = most if count is None else min(count, most)
    distance = np.inf if within is None else _on_link_scale(problem, best.accuracy, within)
    architectures, complete = _closest(smaller, best.accuracy, number, distance)
    items = [evaluate(problem, architecture) for architecture in architectures]
    items.sort(key=lambda item: (-item.accuracy, str(item.architecture)))
    if within is not None:
        top = problem.objective.percent(best.accuracy)
        slack = 1e-9 * max(1.0, abs(top))
        items = [item for item in items if item.accuracy >= top - within - slack]
    enough = count is not None and len(items) >= count
    return Alternatives(tuple(items[:number]), enough or (complete and len(items) <= number))


def _closest(
    problem: SearchProblem, optimum: float, number: int, distance: float
) -> tuple[list[Architecture], bool]:
    """The ``number`` best architectures, or those within ``distance`` of the optimum; whether none of these is missing."""
    if isinstance(problem.objective, DepthsObjective):
        return _over_depths(problem, optimum, number, distance)
    try:
        return _Listing(problem, optimum).closest(number, distance)
    except TooManyError:
        return _one_by_one(problem, optimum, number, distance)


def _over_depths(
    problem: SearchProblem, optimum: float, number: int, distance: float
) -> tuple[list[Architecture], bool]:
    """The same with all depths given, for each choice of these that comes close enough (:mod:`binas.search.depths`)."""
    items, complete = list[Architecture](), True
    for part in by_depths(problem):
        best = solve(part, "auto").evaluation if highest_value(part) >= optimum - distance else None
        if best is not None and best.accuracy >= optimum - distance:
            listed, whole = _closest(part, best.accuracy, number, distance - (optimum - best.accuracy))
            items, complete = [*items, *listed], complete and whole
    return items, complete


def _on_link_scale(problem: SearchProblem, best: float, within: float) -> float:
    """How far below ``best``, on the scale of the link, networks ``within`` points of it may lie."""
    least = problem.objective.percent(best) - within
    return best - problem.objective.at_percent(least) + 1e-9


def _over_variants(
    problem: SearchProblem, parts: list[Alternatives], most: int, within: float | None, count: int | None
) -> Alternatives:
    """The lists of all variants as one; no variant's list ends before the joint one does."""
    names = dict.fromkeys(item.architecture for part in parts for item in part.items)
    items = sorted(
        (evaluate(problem, architecture) for architecture in names),
        key=lambda item: (-item.accuracy, str(item.architecture)),
    )
    if within is not None and items:
        slack = 1e-9 * max(1.0, abs(items[0].accuracy))
        items = [item for item in items if item.accuracy >= items[0].accuracy - within - slack]
    cut = len(items) > most and most != count
    return Alternatives(tuple(items[:most]), all(part.complete for part in parts) and not cut)


def _check_question(count: int | None, within: float | None) -> None:
    whole = count is None or (isinstance(count, int) and count >= 1)
    near = within is None or 0 <= within < np.inf
    if (count is None and within is None) or not whole or not near:
        raise ProblemError(
            "ask for a whole number of architectures from 1 (--top 10), or for all within a finite distance of "
            "zero or more points (--within 0.1)."
        )


def _one_by_one(
    problem: SearchProblem, optimum: float, number: int, distance: float
) -> tuple[list[Architecture], bool]:
    """The best architectures by repeated integer programs: slower, but not hurt by a weak bound."""
    if problem.objective.kind != "bilinear":
        raise ProblemError(
            "too many architectures are close to the best to list them; add or tighten a limit."
        )
    items: list[Architecture] = []
    for item in Milp().in_order(problem):
        if item.accuracy < optimum - distance - 1e-9 * max(1.0, abs(optimum)):
            return items, True
        items.append(item.architecture)
        if len(items) >= min(number, MOST_BY_PROGRAM):
            return items, False
    return items, True


class _Listing:
    """Lists all architectures close to the optimum, in growing neighbourhoods."""

    def __init__(self, problem: SearchProblem, optimum: float):
        self.space = problem.space
        self.terms: Terms = build_terms(problem, limit_rows(problem))
        self.padded = Padded(self.terms)
        self.at: Relaxed = solve_dual(self.padded).relaxed
        self.reduced = Reduced.at(self.padded, self.at.multipliers)
        # with several limits, integer programs are faster than long lists
        self.most = MAX_LISTED if self.terms.rows <= 1 else MAX_LISTED // 10
        self.slack = 1e-9 * max(1.0, abs(optimum))
        finite = [part[np.isfinite(part)] for part in (self.reduced.configs, self.reduced.depths)]
        least = [float(cheapest(self.padded, row).totals[1 + row]) for row in range(self.terms.rows)]
        unused = float(self.at.multipliers @ (self.padded.budget - np.array(least)))
        # value = UB - reduced costs - multipliers * unused budget: nothing feasible is further from UB than this
        self.widest = sum(float(part.sum()) for part in finite) + max(0.0, unused)
        self.least = max(0.0, self.at.bound + float(self.terms.constant[0]) - optimum)

    def closest(self, number: int, distance: float) -> tuple[list[Architecture], bool]:
        """Architectures in order of closeness: at least ``number`` or all within ``distance``, and whether all are in."""
        first = np.inf if self.space.count <= FEW else max(self.least, 1e-4 * self.widest)
        step = min(distance, first)
        best: tuple[Labels, NDArray[np.intp]] | None = None
        complete = False
        while True:
            try:
                labels = self._all_within(self.least + step + self.slack)
            except TooManyError:
                if best is None or len(best[1]) < min(number, MOST_BY_PROGRAM):
                    raise
                break
            inside = np.flatnonzero(labels.data[0] >= self.at.bound - self.least - step - self.slack)
            best = (labels, inside)
            complete = step >= distance or step >= self.widest
            if complete or len(inside) >= number:
                break
            step = min(distance, 1.5 * step)
        assert best is not None
        return self._read(*best, number), complete and len(best[1]) <= number

    def _all_within(self, gap: float) -> Labels:
        """Every architecture within all budgets whose reduced costs sum to at most ``gap``."""
        multipliers, count = self.at.multipliers, len(self.terms.stages)
        stages = [
            stage_labels(self.padded, self.reduced, multipliers, s, gap, False, self.most)
            for s in range(count)
        ]
        lows = np.array([stage.data[1:].min(axis=1) for stage in stages]).reshape(count, -1)
        after = np.vstack([np.cumsum(lows[::-1], axis=0)[::-1][1:], np.zeros(self.terms.rows)])
        total, reached = nothing(self.terms.rows), 0.0
        for k, stage in enumerate(stages):
            if len(total) * len(stage) > 4 * self.most:
                raise TooManyError
            total = cross(total, stage, self.padded.budget - after[k])
            reached += float(lagrangian_values(stage.data, multipliers).max())
            total = above(total, multipliers, reached - gap)
            if len(total) > self.most:
                raise TooManyError
        return total

    def _read(self, labels: Labels, inside: NDArray[np.intp], number: int) -> list[Architecture]:
        order = inside[np.argsort(-labels.data[0, inside], kind="stable")]
        if len(order) > number:  # keep ties of the last one, so that the caller can order them
            last = labels.data[0, order[number - 1]]
            order = order[labels.data[0, order] >= last][: 10 * number]
        depths, configs = decode(self.terms, labels, order)
        return [self.space.from_indices(d, c) for d, c in zip(depths.tolist(), configs.tolist(), strict=True)]


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
            "price": [price.to_json(problem) for price in self.prices],
        }


def look_around(result: SearchResult, count: int | None = None, within: float | None = None) -> Surroundings:
    """The ``count`` best architectures or those ``within`` points of a result, without itself; prices where it is proven."""
    near = Alternatives((), True)
    if count is not None or within is not None:
        best = best_architectures(result.problem, count, within)
        others = (item for item in best.items if item.architecture != result.architecture)
        near = replace(best, items=tuple(others))
    return Surroundings(result, near, tuple(prices(result)) if result.status is Status.OPTIMAL else ())


def step_for(limit: float) -> float:
    """A round step of a few percent of the limit: 1 for 45, 0.1 for 5, 100,000 for 5 million."""
    share = abs(limit) / 20
    return 10.0 ** math.floor(math.log10(share)) if share > 0 else 1.0


def prices(result: SearchResult) -> Iterator[Price]:
    """The price of each limit of a solved problem, all other limits unchanged; none where it takes too much to prove."""
    if result.accuracy is None:
        return
    for limit in dict.fromkeys(result.problem.limits):
        more = step_for(limit.value)
        if not math.isfinite(limit.value + limit.sign * more):
            continue
        moved = solve(_moved(result.problem, limit, more), Auto(PRICE_NODES))
        if moved.status is Status.OPTIMAL and moved.accuracy is not None:
            yield Price(limit, more, moved.accuracy - result.accuracy, moved.architecture)


def _moved(problem: SearchProblem, limit: Limit, more: float) -> SearchProblem:
    eased = replace(limit, value=limit.value + limit.sign * more)
    return problem.with_limits(eased if other == limit else other for other in problem.limits)
