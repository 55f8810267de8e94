"""The price of a limit: what a little more of it would buy, by exact solves on either side."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace

from binas.search.problem import Limit, SearchProblem
from binas.search.result import SearchResult
from binas.search.solve import solve
from binas.space.architecture import Architecture


@dataclass(frozen=True, slots=True)
class Price:
    """Moving ``limit`` by ``more`` (in its cost's unit) raises the best accuracy by ``gain`` points."""

    limit: Limit
    more: float
    gain: float
    architecture: Architecture | None


def step_for(limit: float) -> float:
    """A round step of a few percent of the limit: 1 for 45, 0.1 for 5, 100,000 for 5 million."""
    return 10.0 ** math.floor(math.log10(abs(limit) / 20)) if limit else 1.0


def prices(result: SearchResult) -> Iterator[Price]:
    """The price of each limit of a solved problem, all other limits unchanged."""
    if result.accuracy is None:
        return
    for limit in result.problem.limits:
        more = step_for(limit.value)
        moved = solve(_moved(result.problem, limit, more), "auto")
        if moved.accuracy is not None:
            yield Price(limit, more, moved.accuracy - result.accuracy, moved.architecture)


def _moved(problem: SearchProblem, limit: Limit, more: float) -> SearchProblem:
    eased = replace(limit, value=limit.value + limit.sign * more)
    return problem.with_limits(eased if other is limit else other for other in problem.limits)
