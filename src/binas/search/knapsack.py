"""The relaxed multiple-choice knapsack (appendix on sparsity, definition of the MCKP).

max p'u  such that  t'u <= T,  sum of u over each group = 1,  u >= 0

Every linear subproblem of block-coordinate Frank-Wolfe has this form: the groups are the configs of a
block (alpha) or the depths of a stage (beta). Values are in points of the objective, costs and budget in
the unit of the limited cost.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from binas.base.errors import ProblemError
from binas.search.highs import DUAL_SIMPLEX, LinearProgram, solve_linear
from binas.search.sparse import Sparse

Array = NDArray[np.float64]
Ints = NDArray[np.int64]


def relaxed_knapsack(values: ArrayLike, costs: ArrayLike, groups: ArrayLike, budget: float) -> Array | None:
    """The solution u of the relaxed MCKP, or None if even the cheapest choices cost more than the budget.

    ``groups[j]`` is any integer label of item j's group. Each group starts at its cheapest item and climbs
    its upper concave hull; the edges of all hulls are taken in order of value gained per cost until the
    budget is used up, the last one in part. So all groups are one-hot except at most one with two
    non-zeros (the two lemmas of the appendix). O(n log n). Of items with equal value the cheapest is
    taken, then the first. Costs may have any sign; the budget may be infinite.
    """
    value, cost, label = _checked(values, costs, groups)
    hull = _upper_hulls(value, cost, label)
    left = budget - math.fsum(cost[hull.items[hull.first]])
    if not left >= 0.0:
        return None
    return _climb(hull, left, len(value))


def relaxed_knapsack_rows(
    values: ArrayLike, costs: ArrayLike, groups: ArrayLike, budgets: ArrayLike
) -> Array | None:
    """The relaxed MCKP under several limits: ``costs`` is (m, n), ``budgets`` (m,). None if infeasible.

    A solution under one limit alone that keeps the others is optimal under all of them; only if there is
    none a linear program is solved. Its vertices have at most m non-zeros more than there are groups.
    """
    rows, bounds = np.asarray(costs, dtype=np.float64), np.asarray(budgets, dtype=np.float64)
    if not len(rows):
        return relaxed_knapsack(values, np.zeros(np.shape(values)), groups, math.inf)
    for row, bound in zip(rows, bounds.tolist(), strict=True):
        solution = relaxed_knapsack(values, row, groups, bound)
        if solution is None or len(rows) == 1 or (rows @ solution <= bounds).all():
            return solution
    return _linear_program(np.asarray(values, dtype=np.float64), rows, np.asarray(groups), bounds)


@dataclass(frozen=True, eq=False)
class _Hulls:
    """The hull points of all groups, group by group, costs ascending."""

    items: Ints  # index of the item behind each point
    first: NDArray[np.bool_]  # whether it is its group's cheapest
    slope: Array  # value gained per cost along the edge that ends here
    length: Array  # cost of that edge


def _checked(values: ArrayLike, costs: ArrayLike, groups: ArrayLike) -> tuple[Array, Array, Ints]:
    value, cost = np.asarray(values, dtype=np.float64), np.asarray(costs, dtype=np.float64)
    label = np.asarray(groups, dtype=np.int64)
    if not (value.ndim == 1 and value.shape == cost.shape == label.shape):
        raise ProblemError(
            "a knapsack needs one value, one cost and one group per item; the shapes are "
            f"{value.shape}, {cost.shape} and {label.shape}."
        )
    if not (np.isfinite(value).all() and np.isfinite(cost).all()):
        raise ProblemError("a value or cost of the knapsack is NaN or infinite.")
    return value, cost, label


def _upper_hulls(value: Array, cost: Array, label: Ints) -> _Hulls:
    order = _undominated(value, cost, label)
    first = np.diff(label[order], prepend=label[order][:1] - 1) != 0
    hull, slopes = _chain(value[order].tolist(), cost[order].tolist(), first.tolist())
    kept = np.array(hull, dtype=np.int64)
    length = np.diff(cost[order][kept], prepend=0.0)
    return _Hulls(order[kept], first[kept], np.array(slopes), length)


def _undominated(value: Array, cost: Array, label: Ints) -> Ints:
    """Items by group and cost, without those that a cheaper or equally cheap one matches in value."""
    order = np.lexsort((-value, cost, label))
    rank = np.unique(value, return_inverse=True)[1][order]
    group = np.cumsum(np.diff(label[order], prepend=label[order][:1]) != 0)
    best = np.maximum.accumulate(group * len(value) + rank)  # running maximum that restarts with each group
    return order[np.diff(best, prepend=-1) > 0]


def _chain(value: list[float], cost: list[float], first: list[bool]) -> tuple[list[int], list[float]]:
    """Upper concave hull of each group by one pass with a stack; slopes never rise within a group.

    Items on a line between others stay: they make more solutions one-hot.
    """
    hull: list[int] = []
    slopes: list[float] = []
    for i, starts in enumerate(first):
        slope = math.inf
        while not starts:
            top = hull[-1]
            slope = (value[i] - value[top]) / (cost[i] - cost[top])
            if first[top] or slope <= slopes[-1]:
                break
            hull.pop()
            slopes.pop()
        hull.append(i)
        slopes.append(slope)
    return hull, slopes


def _climb(hull: _Hulls, left: float, size: int) -> Array:
    """Take edges by falling slope while the cost that is left lasts, the last one in part."""
    edges = np.flatnonzero(~hull.first)
    edges = edges[np.argsort(-hull.slope[edges], kind="stable")]
    spent = np.cumsum(hull.length[edges])
    count = int(np.searchsorted(spent, left, side="right"))
    group = np.cumsum(hull.first) - 1
    reached = np.flatnonzero(hull.first) + np.bincount(group[edges[:count]], minlength=int(hull.first.sum()))
    solution = np.zeros(size)
    solution[hull.items[reached]] = 1.0
    if count < len(edges):
        last = edges[count]
        part = (left - (spent[count - 1] if count else 0.0)) / hull.length[last]
        solution[hull.items[last - 1]] -= part
        solution[hull.items[last]] += part
    return solution


def _linear_program(values: Array, rows: Array, groups: NDArray[Any], bounds: Array) -> Array | None:
    """The same by the dual simplex of HiGHS, each row scaled to entries of at most one."""
    size, (labels, member) = len(values), np.unique(groups, return_inverse=True)
    sums = Sparse.from_entries(member, np.arange(size), np.ones(size), (len(labels), size))
    scale = np.maximum(np.abs(rows).max(axis=1), 1e-300)
    gain = max(float(np.abs(values).max(initial=0.0)), 1e-300)
    program = LinearProgram(
        cost=-values / gain,
        matrix=Sparse.stack(Sparse.from_dense(rows / scale[:, None]), sums),
        lower=np.append(np.full(len(rows), -np.inf), np.ones(len(labels))),
        upper=np.append(bounds / scale, np.ones(len(labels))),
        least=np.zeros(size),
        most=np.full(size, np.inf),
    )
    solution = solve_linear(program, **DUAL_SIMPLEX)
    return None if solution.x is None or solution.status != "optimal" else np.maximum(solution.x, 0.0)
