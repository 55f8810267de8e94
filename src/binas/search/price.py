"""The price of a limit: what a little more of it would buy, by exact solves on either side."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace

from binas.search.limits import Limit
from binas.search.problem import SearchProblem
from binas.search.result import SearchResult, Status
from binas.search.solve import solve
from binas.search.solvers.auto import Auto
from binas.space.architecture import Architecture

NODES = 500  # of the search tree for each price: the same answer on every machine


@dataclass(frozen=True, slots=True)
class Price:
    """Moving ``limit`` by ``more`` (in its cost's unit) raises the best accuracy by ``gain`` points."""

    limit: Limit
    more: float
    gain: float
    architecture: Architecture | None


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
        moved = solve(_moved(result.problem, limit, more), Auto(NODES))
        if moved.status is Status.OPTIMAL and moved.accuracy is not None:
            yield Price(limit, more, moved.accuracy - result.accuracy, moved.architecture)


def _moved(problem: SearchProblem, limit: Limit, more: float) -> SearchProblem:
    eased = replace(limit, value=limit.value + limit.sign * more)
    return problem.with_limits(eased if other == limit else other for other in problem.limits)
