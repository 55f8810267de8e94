"""What lies around a proven answer: other good architectures, and the price of a limit, what moving it a little buys."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

from binas.search.alternatives import Alternatives, best_architectures
from binas.search.deadline import NEVER, Deadline, TimeLimit
from binas.search.limits import Limit
from binas.search.problem import SearchProblem
from binas.search.result import SearchResult, Status, evaluation_json
from binas.search.solve import solve
from binas.search.solvers.auto import Auto
from binas.space.architecture import Architecture
from binas.tables.units import format_quantity

PRICE_NODES = 500  # of the search tree for each price: the same answer on every machine


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
