"""Variants of a problem: what is chosen outside the stages, such as threads, runtime, device or number type.

Every variant has a table of its own for the costs that differ. So a problem with V variants is V problems, and what is exact
for each is exact for all: the best answer is the best of V verified ones, the frontier is the upper envelope of V frontiers.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from binas.search.problem import SearchProblem, preference
from binas.search.result import SearchResult, Status
from binas.search.solvers._base import GAP

Array = NDArray[np.float64]
Indices = NDArray[np.intp]


def by_variant(problem: SearchProblem) -> dict[str, SearchProblem]:
    """The problem of each variant by its name; empty where there are none."""
    return {name: problem.of_variant(name) for name in problem.variants}


def best_of_variants(problem: SearchProblem, results: Mapping[str, SearchResult]) -> SearchResult:
    """The best of verified results, one for each variant; as much is proven as all of them together prove."""
    answers = [
        replace(result.evaluation, variant=name)
        for name, result in results.items()
        if result.evaluation is not None
    ]
    best = min(answers, key=preference(problem), default=None)
    chosen = next(iter(results.values())) if best is None else results[best.variant or ""]
    bound = _bound(results.values())
    return replace(
        chosen,
        problem=problem,
        status=_status(None if best is None else best.accuracy, bound, [r.status for r in results.values()]),
        evaluation=best,
        bound=bound,
        seconds=sum(result.seconds for result in results.values()),
        details={**chosen.details, "variants": {name: _summary(result) for name, result in results.items()}},
    )


def _bound(results: Iterable[SearchResult]) -> float | None:
    """Nothing in any variant is better than this; None where one of them proves nothing."""
    open_results = [result for result in results if result.status is not Status.INFEASIBLE]
    bounds = [result.bound for result in open_results if result.bound is not None]
    return max(bounds) if bounds and len(bounds) == len(open_results) else None


def _status(accuracy: float | None, bound: float | None, statuses: Sequence[Status]) -> Status:
    if accuracy is None:
        proven = all(status is Status.INFEASIBLE for status in statuses)
        return Status.INFEASIBLE if proven else Status.STOPPED_WITHOUT_ANSWER
    if bound is not None and bound <= accuracy + GAP + 1e-9 * max(1.0, abs(accuracy)):
        return Status.OPTIMAL
    stopped = (Status.STOPPED_WITH_ANSWER, Status.STOPPED_WITHOUT_ANSWER)
    return Status.STOPPED_WITH_ANSWER if any(status in stopped for status in statuses) else Status.FEASIBLE


def _summary(result: SearchResult) -> dict[str, Any]:
    bound = result.bound if result.bound is not None and math.isfinite(result.bound) else None
    return {"status": str(result.status), "accuracy": result.accuracy, "bound": bound}


def upper_envelope(costs: Sequence[Array], accuracies: Sequence[Array]) -> tuple[Indices, Indices]:
    """Which curve and which of its points each point of the upper envelope is, by rising cost and accuracy.

    Where several have the same cost and accuracy the first curve has the point.
    """
    owner = np.repeat(np.arange(len(costs)), [len(part) for part in costs])
    place = np.concatenate([np.arange(len(part)) for part in costs])
    cost, accuracy = np.concatenate(list(costs)), np.concatenate(list(accuracies))
    order = np.lexsort((owner, -accuracy, cost))
    before = np.maximum.accumulate(np.concatenate([[-np.inf], accuracy[order]]))[:-1]
    kept = order[accuracy[order] > before]
    return owner[kept], place[kept]
