"""Folding a whole problem: blocks into stages, stages into the frontier (exact for all limits at once).

Objective and costs are sums over stages, so the best completion of a partial architecture does not
depend on how it was made: a label that another beats in value and in every cost can be dropped at once.
Prefixes of a stage are shared by its depths.

For large problems two things keep the fold small and exact: an approximate frontier (a lower bound that
real architectures reach) and the concave hull of what the remaining stages can add (an upper bound, the
relaxed knapsack). A label that cannot reach the lower bound at any total cost is dropped. If even that is
too much, values are thinned and the certified error says by how much the result may fall short.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from binas.search.labels import Labels, Threshold, choices, merge, nothing, pareto, unite
from binas.search.terms import StageTerms, Terms

Array = NDArray[np.float64]

MAX_LABELS = 400_000
EFFORT = 600_000  # sums of label pairs above which bounds pay off
COARSE = 600
GRID = 1500


@dataclass(frozen=True, eq=False)
class Folded:
    """All non-dominated labels of a problem and the certified error: no value is short by more."""

    labels: Labels
    error: float


def fold_stage(stage: StageTerms, s: int, caps: Array) -> Labels:
    """Non-dominated variants of one stage over all its depths."""
    prefix = nothing(len(caps))
    parts: list[Labels] = []
    wanted = dict(zip(stage.depths, stage.depth.T, strict=True))
    for b in range(-1, stage.depths[-1]):
        if b >= 0:
            prefix = merge(prefix, choices(s, b, stage.blocks[b], pareto(stage.blocks[b])), np.full(len(caps), np.inf))
        if b + 1 in wanted:
            parts.append(Labels(prefix.data + wanted[b + 1][:, None], prefix.source))
    return unite(s, stage.depths, parts)


def fold(terms: Terms, max_labels: int = MAX_LABELS, tolerance: float = 0.0) -> Folded:
    """The frontier of the whole problem.

    Row 1 is the traced cost; rows with finite bounds are respected. ``tolerance`` > 0 allows thinning
    from the start with at most that certified error.
    """
    budget = terms.bounds - terms.constant[1:]
    stages = [fold_stage(stage, s, budget) for s, stage in enumerate(terms.stages)]
    if any(len(stage) == 0 for stage in stages):
        return Folded(_empty(terms), 0.0)
    lows = np.array([stage.data[1:].min(axis=1) for stage in stages])
    rest = lows.sum(axis=0)
    stages = [_within(stage, budget - rest + low) for stage, low in zip(stages, lows, strict=True)]
    if any(len(stage) == 0 for stage in stages):
        return Folded(_empty(terms), 0.0)
    stages.sort(key=len)
    needs = _needs(stages, budget) if _effort(stages) > EFFORT else None
    return _fold_stages(terms, stages, budget, needs, max_labels, tolerance)


def _empty(terms: Terms) -> Labels:
    return Labels(np.zeros((1 + terms.rows, 0)), None)


def _within(labels: Labels, caps: Array) -> Labels:
    keep = np.flatnonzero((labels.data[1:] <= caps[:, None]).all(axis=0))
    return labels if len(keep) == len(labels) else labels.take(keep)


def _effort(stages: list[Labels]) -> float:
    """Rough number of sums a plain fold makes: frontiers grow about as the sum of their parts."""
    sizes = [len(stage) for stage in stages]
    total, effort = sizes[0], 0.0
    for size in sizes[1:]:
        effort += total * size
        total += 4 * size
    return effort


def _fold_stages(
    terms: Terms,
    stages: list[Labels],
    budget: Array,
    needs: list[Threshold] | None,
    max_labels: int,
    tolerance: float,
) -> Folded:
    lows = np.array([stage.data[1:].min(axis=1) for stage in stages])
    after = np.vstack([np.cumsum(lows[::-1], axis=0)[::-1][1:], np.zeros(terms.rows)])
    total, error = stages[0], 0.0
    for k, stage in enumerate(stages[1:], 1):
        total = merge(total, stage, budget - after[k], None if needs is None else needs[k])
        if k < len(stages) - 1 and len(total):
            total, lost = thin(total, max_labels, tolerance / len(stages))
            error += lost
    return Folded(Labels(total.data + terms.constant[:, None], total.source), error)


def thin(labels: Labels, most: int, allowed: float = 0.0) -> tuple[Labels, float]:
    """Drop labels that another of no higher cost nearly reaches; the loss in value is certified.

    Loss at most ``allowed``, or as much as it takes to keep at most ``most`` labels.
    """
    step = allowed
    if len(labels) <= most and step <= 0.0:
        return labels, 0.0
    spread = float(np.ptp(labels.data[0]))
    kept = _spaced(labels.data, step)
    while len(kept) > most:
        step = max(2 * step, spread / most / 8)
        kept = _spaced(labels.data, step)
    if labels.data.shape[0] > 2 and len(kept) == len(labels):
        return labels, 0.0
    return labels.take(kept), step


def _spaced(data: Array, step: float) -> NDArray[np.intp]:
    """Greedy subset such that every dropped label has a kept one of no higher cost and value >= its own - step."""
    if data.shape[0] == 2:
        kept, floor = [], -np.inf
        for index, value in enumerate(data[0].tolist()):
            if value > floor:
                kept.append(index)
                floor = value + step
        return np.array(kept, dtype=np.intp)
    return _spaced_many(data, step)


def _spaced_many(data: Array, step: float) -> NDArray[np.intp]:
    order = np.lexsort((data[1], data[2:].sum(axis=0)))
    costs, values = data[1:, order].T, data[0, order]
    kept: list[int] = []
    kept_costs = np.empty((len(order), costs.shape[1]))
    kept_values = np.empty(len(order))
    for index in range(len(order)):
        n = len(kept)
        near = kept_values[:n] >= values[index] - step
        if not (near & (kept_costs[:n] <= costs[index]).all(axis=1)).any():
            kept_costs[n], kept_values[n] = costs[index], values[index]
            kept.append(index)
    return np.sort(order[kept])


def _needs(stages: list[Labels], budget: Array) -> list[Threshold]:
    """For each prefix of stages, the least value at each cost that can still end on the frontier.

    need_k(x) = min_T [lower(T) - upper_rest(T - x)], where lower is reached by real architectures and
    upper_rest is the concave hull of the stages after k.
    """
    multipliers = np.zeros(len(budget) - 1)
    low = sum(float(stage.data[1].min()) for stage in stages)
    high = min(float(budget[0]), sum(float(stage.data[1].max()) for stage in stages))
    width = (high - low) / GRID if high > low else 1.0
    lower = _lower_bound(stages, budget, low, width)
    hulls = [_hull(stage.data[0] - multipliers @ stage.data[2:], stage.data[1]) for stage in stages]
    needs = []
    for k in range(len(stages)):
        start = sum(float(stage.data[1].min()) for stage in stages[: k + 1])
        upper = _sum_of_hulls(hulls[k + 1 :], width)
        needs.append(Threshold(start, 1.0 / width, _correlate(lower, upper)))
    return needs


def _lower_bound(stages: list[Labels], budget: Array, low: float, width: float) -> Array:
    """Best value of a coarse fold at cost low + j * width, for j = 0..GRID (rounded so that it is reached)."""
    lows = np.array([stage.data[1:].min(axis=1) for stage in stages])
    after = np.vstack([np.cumsum(lows[::-1], axis=0)[::-1][1:], np.zeros(len(budget))])
    total = thin(stages[0], COARSE)[0]
    for k, stage in enumerate(stages[1:], 1):
        total = thin(merge(total, thin(stage, COARSE)[0], budget - after[k]), COARSE)[0]
    steps = np.full(GRID + 2, -np.inf)
    bins = np.ceil((total.data[1] - low) / width * (1 + 1e-12)).astype(np.intp)
    np.maximum.at(steps, np.clip(bins, 0, GRID + 1), total.data[0])
    return np.maximum.accumulate(steps[: GRID + 1])


def _hull(value: Array, cost: Array) -> Array:
    """Vertices (2, h) of the least concave non-decreasing function above the points; row 0 cost, row 1 value."""
    order = np.lexsort((-value, cost))
    points: list[tuple[float, float]] = []
    for x, y in zip(cost[order].tolist(), value[order].tolist(), strict=True):
        if points and y <= points[-1][1]:
            continue
        while len(points) > 1 and _not_concave(points[-2], points[-1], (x, y)):
            points.pop()
        points.append((x, y))
    return np.array(points).T


def _not_concave(a: tuple[float, float], b: tuple[float, float], c: tuple[float, float]) -> bool:
    return (b[1] - a[1]) * (c[0] - a[0]) <= (c[1] - a[1]) * (b[0] - a[0])


def _sum_of_hulls(hulls: list[Array], width: float) -> Array:
    """Largest sum of values at total cost (sum of lowest) + j * width: edges in order of slope."""
    if not hulls:
        return np.zeros(1)
    start = sum(float(hull[1, 0]) for hull in hulls)
    edges = np.concatenate([np.diff(hull, axis=1) for hull in hulls], axis=1)
    edges = edges[:, np.argsort(-edges[1] / np.maximum(edges[0], 1e-300), kind="stable")]
    x = np.concatenate([[0.0], np.cumsum(edges[0])])
    y = np.concatenate([[start], start + np.cumsum(edges[1])])
    count = min(GRID, int(np.ceil(x[-1] / width))) + 1
    return np.asarray(np.interp(np.arange(count) * width, x, y))


def _correlate(lower: Array, upper: Array) -> Array:
    """need[i] = min_j lower[i + j] - upper[j + 1] (the grid errs on the side of keeping), less rounding slack."""
    padded_upper = np.append(upper[1:], upper[-1])
    padded = np.concatenate([lower, np.full(len(padded_upper), np.inf)])
    windows = np.lib.stride_tricks.sliding_window_view(padded, len(padded_upper))[: len(lower)]
    slack = 1e-9 * (np.abs(upper).max() + np.abs(lower[np.isfinite(lower)]).max(initial=0.0))
    return np.asarray((windows - padded_upper).min(axis=1) - slack)
