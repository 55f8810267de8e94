"""The truth for small problems: try every architecture."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from binas.search.objective import objective_values
from binas.search.problem import SearchProblem
from binas.space.architecture import Architecture
from binas.space.sampling import enumerate_all

Array = NDArray[np.float64]


def all_values(
    problem: SearchProblem, limit: int = 500_000
) -> tuple[list[Architecture], Array, dict[str, Array]]:
    """Every architecture with its objective and costs."""
    architectures = enumerate_all(problem.space, limit)
    costs = {name: cost.of(problem.space, architectures) for name, cost in problem.costs.items()}
    indices = problem.space.to_indices(architectures)
    return architectures, objective_values(problem.objective, problem.space, *indices), costs


def feasible_mask(problem: SearchProblem, costs: dict[str, Array]) -> NDArray[np.bool_]:
    """Which architectures keep every limit."""
    count = len(next(iter(costs.values()))) if costs else 0
    mask = np.ones(count, dtype=bool)
    for limit in problem.limits:
        mask &= limit.sign * costs[limit.cost] <= limit.sign * limit.value + problem.tolerance(limit)
    return mask


def brute_force(problem: SearchProblem) -> float | None:
    """The best objective within the limits, or None if nothing keeps them."""
    _, values, costs = all_values(problem)
    if problem.limits:
        values = values[feasible_mask(problem, costs)]
    return float(values.max()) if len(values) else None


def brute_force_frontier(problem: SearchProblem, cost: str) -> list[tuple[float, float]]:
    """(cost, objective) of all architectures within the limits that no other beats, by cost."""
    _, values, costs = all_values(problem)
    keep = feasible_mask(problem, costs)
    points = sorted(zip(costs[cost][keep].tolist(), (-values[keep]).tolist(), strict=True))
    result: list[tuple[float, float]] = []
    for x, negative in points:
        if not result or -negative > result[-1][1] + 1e-9 * max(1.0, abs(negative)):
            result.append((x, -negative))
    return result
