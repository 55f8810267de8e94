"""Bounds that keep the fold small: what real architectures reach, and what remaining stages can still add.

For a partial architecture of cost x and value v to matter, some total cost T must satisfy
v + upper_rest(T - x) >= lower(T), where ``lower`` is reached by known architectures and ``upper_rest`` is
the concave hull of the other stages, the relaxed multiple-choice knapsack. Further cost rows k <= K enter
by Lagrangian multipliers m >= 0: v - m k may replace v when m K is added to the upper bound.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from binas.search.deadline import NEVER, Deadline
from binas.search.labels import Labels, Merge
from binas.search.merging import Threshold, merge
from binas.search.pareto import pareto
from binas.search.terms import StageTerms, Terms

Array = NDArray[np.float64]

GRID = 1500
COARSE = 600
TRIALS = 24


@dataclass(frozen=True, eq=False)
class Bounds:
    """Lower bound on a grid of total costs, and per multiplier vector the hull of every stage."""

    lows: Array
    width: float
    lower: Array
    multipliers: tuple[Array, ...]
    offsets: tuple[float, ...]
    hulls: tuple[tuple[Array, ...], ...]

    def needs(self, inside: list[int], slack: float = 0.0, deadline: Deadline = NEVER) -> list[Threshold]:
        """Thresholds for labels that decide the stages ``inside``; the other stages are the rest.

        Labels that stand in for thinned-out ones may be worse by ``slack`` and still matter. Past the deadline no more are
        made: each of them only drops labels.
        """
        start = float(self.lows[inside].sum())
        result = []
        for multipliers, offset, hulls in zip(self.multipliers, self.offsets, self.hulls, strict=True):
            if deadline.late:
                break
            rest = [hull for k, hull in enumerate(hulls) if k not in inside]
            upper = _sum_of_hulls(rest, self.width, len(self.lower)) + offset
            result.append(
                Threshold(start, 1.0 / self.width, _correlate(self.lower, upper) - slack, multipliers)
            )
        return result

    def raised(self, data: Array) -> Bounds:
        """The same bounds with a lower bound that also knows the given architectures (all within budget)."""
        steps = np.append(self.lower, -np.inf)
        _raise_steps(steps, data[0], data[1], float(self.lows.sum()), self.width)
        return replace(self, lower=np.maximum.accumulate(steps[:-1]))

    def worth_keeping(
        self, stage: int, data: Array, slack: float = 0.0, deadline: Deadline = NEVER
    ) -> NDArray[np.intp]:
        """Indices of one stage's labels that can still end on the frontier."""
        keep = np.ones(data.shape[1], dtype=bool)
        for threshold in self.needs([stage], slack if np.isfinite(slack) else 0.0, deadline):
            keep &= threshold.passes(list(data))
        return np.flatnonzero(keep)


def make_bounds(stages: list[Labels], budget: Array, deadline: Deadline = NEVER) -> Bounds:
    """Bounds for the given stage labels; rows after the first cost are limited by ``budget``.

    Past the deadline no more multipliers are tried.
    """
    lows = np.array([float(stage.data[1].min()) for stage in stages])
    low = float(lows.sum())
    high = min(float(budget[0]), sum(float(stage.data[1].max()) for stage in stages))
    width = (high - low) / GRID if high > low else 1.0
    vectors, hulls = list[Array](), list[tuple[Array, ...]]()
    steps = np.full(GRID + 2, -np.inf)
    for vector in _multipliers(stages, budget[1:]):
        if vectors and deadline.late:
            break
        _coarse_fold(stages, budget, vector, low, width, steps)
        vectors.append(vector)
        hulls.append(tuple(_front_hull(_scalar(stage.data, vector), stage.data[1]) for stage in stages))
    offsets = [float(m @ budget[1:]) for m in vectors]
    best = _tightest(hulls, offsets, width)
    return Bounds(
        lows,
        width,
        np.maximum.accumulate(steps[: GRID + 1]),
        tuple(vectors[k] for k in best),
        tuple(offsets[k] for k in best),
        tuple(hulls[k] for k in best),
    )


def _tightest(hulls: list[tuple[Array, ...]], offsets: list[float], width: float) -> list[int]:
    """The multiplier vectors whose upper bound on the whole is the least at some total cost."""
    curves = np.empty((len(hulls), GRID + 1))
    for k, (parts, offset) in enumerate(zip(hulls, offsets, strict=True)):
        upper = _sum_of_hulls(list(parts), width, GRID + 1) + offset
        curves[k] = np.pad(upper, (0, GRID + 1 - len(upper)), mode="edge")
    return [int(k) for k in np.unique(curves.argmin(axis=0))]


def _scalar(data: Array, multipliers: Array) -> Array:
    return np.asarray(data[0] - multipliers @ data[2:])


def _multipliers(stages: list[Labels], budget: Array) -> list[Array]:
    """Multiplier vectors to try: zero, and per further row a geometric range around value / cost, its middle first."""
    factors = sorted(np.geomspace(0.02, 8.0, TRIALS).tolist(), key=lambda x: abs(math.log(x / 0.4)))
    scales = np.zeros(len(budget))
    for row, bound in enumerate(budget.tolist()):
        costs = [stage.data[2 + row] for stage in stages]
        if sum(float(cost.max()) for cost in costs) <= bound:
            continue  # this row can never bind
        spread = sum(float(np.ptp(cost)) for cost in costs)
        gain = sum(float(np.ptp(stage.data[0])) for stage in stages)
        scales[row] = gain / spread if spread > 0 else 0.0
    units = [unit for unit in np.diag(scales) if unit.any()]
    return [np.zeros(len(budget)), *(factor * unit for factor in factors for unit in units)]


def _coarse_fold(
    stages: list[Labels], budget: Array, multipliers: Array, low: float, width: float, steps: Array
) -> None:
    """Raise ``steps`` to the values of architectures met by a coarse two-row fold of value - m k against cost.

    ``steps[j]`` is a value reached within all budgets at cost at most low + j * width.
    """
    total, values, costs = None, np.zeros(0), np.zeros((0, 0))
    for stage in stages:
        flat = np.stack([_scalar(stage.data, multipliers), stage.data[1]])
        keep = _coarse(flat, pareto(flat))
        part = Labels(flat[:, keep], None)
        if total is None:
            total, values, costs = part, stage.data[0, keep], stage.data[2:, keep]
            continue
        merged = merge(total, part, np.array([np.inf]))
        source = merged.source
        assert isinstance(source, Merge)
        i, j = (source.i, source.j) if source.left is total else (source.j, source.i)
        few = _coarse(merged.data, np.arange(len(merged)))
        values = values[i[few]] + stage.data[0, keep][j[few]]
        costs = costs[:, i[few]] + stage.data[2:, keep][:, j[few]]
        total = Labels(merged.data[:, few], None)
    assert total is not None
    good = (costs <= budget[1:, None]).all(axis=0) & (total.data[1] <= budget[0])
    _raise_steps(steps, values[good], total.data[1, good], low, width)


def _raise_steps(steps: Array, values: Array, costs: Array, low: float, width: float) -> None:
    """steps[j] = max(steps[j], values of cost at most low + j * width): each value enters at its rounded-up bin."""
    bins = np.ceil((costs - low) / width * (1 + 1e-12)).astype(np.intp)
    np.maximum.at(steps, np.clip(bins, 0, len(steps) - 1), values)


def _coarse(data: Array, index: NDArray[np.intp]) -> NDArray[np.intp]:
    """At most COARSE labels of a sorted frontier, evenly spread over its cost."""
    if len(index) <= COARSE:
        return index
    cost = data[1, index]
    marks = np.searchsorted(cost, np.linspace(cost[0], cost[-1], COARSE))
    return np.asarray(index[np.unique(np.append(marks, len(index) - 1))])


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


def _sum_of_hulls(hulls: list[Array], width: float, most: int) -> Array:
    """Largest sum of values at total cost (sum of lowest) + j * width, j < most."""
    if not hulls:
        return np.zeros(1)
    x, y = joined_hull(hulls)
    count = min(most - 1, int(np.ceil((x[-1] - x[0]) / width))) + 1
    return np.asarray(np.interp(np.arange(count) * width, x - x[0], y))


def joined_hull(hulls: list[Array]) -> Array:
    """The hull (2, h) of all sums of points, one below each hull: their edges in order of slope."""
    edges = np.concatenate([np.diff(hull, axis=1) for hull in hulls], axis=1)
    edges = edges[:, np.argsort(-edges[1] / np.maximum(edges[0], 1e-300), kind="stable")]
    start = np.sum([hull[:, 0] for hull in hulls], axis=0)
    return np.asarray(start[:, None] + np.pad(np.cumsum(edges, axis=1), ((0, 0), (1, 0))))


def ceilings(terms: Terms, data: Array, vectors: list[Array], reach: Array | None = None) -> Array:
    """What nothing is better than at any limit from each point of a frontier up to the next.

    ``data`` are its values and costs, rising. Between two of its points nothing is better than the hull of everything at the
    cost of the second, nor than the ``reach`` of all points so far, where it is known; further rows enter by multiplier
    ``vectors``, as in :class:`Bounds`.
    """
    most = np.full(data.shape[1], np.inf)
    if reach is not None:
        most = np.maximum.accumulate(reach) - terms.constant[0]
    limits = np.append(data[1, 1:], terms.bounds[0]) - terms.constant[1]
    for vector in vectors:
        offset = float(vector @ (terms.bounds[1:] - terms.constant[2:])) if vector.any() else 0.0
        x, y = joined_hull([_stage_hull(stage, vector) for stage in terms.stages])
        most = np.minimum(most, np.interp(limits, x, y) + offset)
    return np.asarray(most + terms.constant[0])


def shortfall(values: Array, above: Array) -> float:
    """By how much, at most, the best value exceeds a frontier of such values and :func:`ceilings`, at any limit."""
    return float((above - values).max(initial=0.0)) + 1e-9 * float(np.abs(values).max(initial=1.0))


def _stage_hull(stage: StageTerms, multipliers: Array) -> Array:
    """The hull of one stage over all its depths, from the hulls of its blocks."""
    blocks = [
        _front_hull(_scalar(block, multipliers), block[1]) for block in stage.blocks[: stage.depths[-1]]
    ]
    parts = []
    for depth, own in zip(stage.depths, stage.depth.T, strict=True):
        shift = np.array([[own[1]], [own[0] - multipliers @ own[2:]]])
        parts.append(shift + (joined_hull(blocks[:depth]) if depth else np.zeros((2, 1))))
    points = np.concatenate(parts, axis=1)
    return _front_hull(points[1], points[0])


def _front_hull(value: Array, cost: Array) -> Array:
    """:func:`_hull` of the points that no other beats: the same, sooner."""
    front = pareto(np.stack([value, cost]))
    return _hull(value[front], cost[front])


def _correlate(lower: Array, upper: Array) -> Array:
    """need[i] = min_j lower[i + j] - upper[j + 1] (the grid errs on the side of keeping), less rounding slack."""
    upper = np.append(upper[1:], upper[-1])
    padded = np.concatenate([lower, np.full(len(upper), np.inf)])
    windows = np.lib.stride_tricks.sliding_window_view(padded, len(upper))[: len(lower)]
    slack = 1e-9 * (np.abs(upper).max() + np.abs(lower[np.isfinite(lower)]).max(initial=0.0))
    return np.asarray((windows - upper).min(axis=1) - slack)
