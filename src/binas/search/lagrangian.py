"""One proven answer in about a millisecond: Lagrangian bounds, reduced costs, and a fold of what is left.

For multipliers m >= 0 on the cost rows, the best value of value - m * cost splits into independent
choices: per block the best config, per stage the best depth. That gives an upper bound
UB(m) = m * bound + sum of stage bests (the dual of the relaxed multiple-choice knapsack), an architecture,
and for each choice its *reduced cost*: how far the bound falls if the choice is forced. An architecture's
value is at most UB minus the sum of its reduced costs, so with a good answer of value LB in hand every
choice whose reduced cost exceeds UB - LB is out; few remain, and they are folded exactly.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from binas.search.labels import Labels, choices, decode, merge, nothing, unite
from binas.search.terms import Terms
from binas.space.architecture import Architecture

Array = NDArray[np.float64]
Ints = NDArray[np.int64]

MAX_CANDIDATES = 3_000_000


@dataclass(frozen=True, eq=False)
class Padded:
    """Terms as rectangular arrays: blocks (1+m, S, B, C), depths (1+m, S, P); -inf value where padded."""

    terms: Terms

    @cached_property
    def blocks(self) -> Array:
        """Row 0 value, rows 1.. costs of each config."""
        stages = self.terms.stages
        width = max((b.shape[1] for stage in stages for b in stage.blocks), default=1)
        height = max((len(stage.blocks) for stage in stages), default=0)
        result = np.zeros((1 + self.terms.rows, len(stages), max(height, 1), width))
        result[0] = -np.inf
        for s, stage in enumerate(stages):
            for b, block in enumerate(stage.blocks):
                result[:, s, b, : block.shape[1]] = block
        return result

    @cached_property
    def depths(self) -> Array:
        """Row 0 value, rows 1.. costs of each allowed depth."""
        width = max(len(stage.depths) for stage in self.terms.stages)
        result = np.zeros((1 + self.terms.rows, len(self.terms.stages), width))
        result[0] = -np.inf
        for s, stage in enumerate(self.terms.stages):
            result[:, s, : len(stage.depths)] = stage.depth
        return result

    @cached_property
    def depth_values(self) -> Ints:
        """The depth behind each entry of ``depths`` (0 where padded)."""
        result = np.zeros(self.depths.shape[1:], dtype=np.int64)
        for s, stage in enumerate(self.terms.stages):
            result[s, : len(stage.depths)] = stage.depths
        return result

    @cached_property
    def budget(self) -> Array:
        """What the choices may cost per row: bound minus the fixed part."""
        return self.terms.bounds - self.terms.constant[1:]

    @cached_property
    def active(self) -> NDArray[np.bool_]:
        """[s, p, b]: block b runs at the p-th depth of stage s."""
        return np.asarray(np.arange(self.blocks.shape[2]) < self.depth_values[:, :, None])

    @cached_property
    def _places(self) -> tuple[Ints, Ints]:
        return np.arange(self.blocks.shape[1])[:, None], np.arange(self.blocks.shape[2])[None, :]


@dataclass(frozen=True, eq=False)
class Relaxed:
    """The best architecture for fixed multipliers: depth index (S,), configs (S, B), totals (1+m,)."""

    multipliers: Array
    depth: Ints
    configs: Ints
    totals: Array
    bound: float


def best_for(padded: Padded, multipliers: Array, value_weight: float = 1.0) -> Relaxed:
    """Maximise value_weight * value - multipliers * costs, choice by choice."""
    weights = np.concatenate([[value_weight], -multipliers])
    score = _weighted(padded.blocks, weights, value_weight)
    configs = score.argmax(axis=2)
    best = score.max(axis=2)
    best[np.isneginf(best)] = 0.0  # blocks a stage does not have
    stage = _weighted(padded.depths, weights, value_weight) + np.einsum("spb,sb->sp", padded.active, best)
    depth = stage.argmax(axis=1)
    totals = totals_of(padded, depth, configs)
    bound = float(stage.max(axis=1).sum() + multipliers @ padded.budget) if value_weight else float("nan")
    return Relaxed(multipliers, depth, configs, totals, bound)


def _weighted(array: Array, weights: Array, value_weight: float) -> Array:
    """Weighted sum of the rows; with no weight on the value only its padding counts."""
    if value_weight == 0.0:
        result = np.where(np.isneginf(array[0]), -np.inf, 0.0)
    elif value_weight == 1.0:
        result = array[0].copy()
    else:
        result = array[0] * value_weight
    for weight, row in zip(weights[1:].tolist(), array[1:], strict=True):
        if weight:
            result += weight * row
    return np.asarray(result)


def totals_of(padded: Padded, depth: Ints, configs: Ints) -> Array:
    """Value and costs (without the constant) of an architecture given by indices."""
    stages, blocks = padded._places
    picked = padded.blocks[:, stages, blocks, configs]
    active = padded.active[stages[:, 0], depth]
    total = np.where(active, picked, 0.0).sum(axis=(1, 2)) + padded.depths[:, stages[:, 0], depth].sum(axis=1)
    return np.asarray(total)


def cheapest(padded: Padded, row: int) -> Relaxed:
    """The architecture with the least cost in one row."""
    multipliers = np.zeros(padded.terms.rows)
    multipliers[row] = 1.0
    return best_for(padded, multipliers, value_weight=0.0)


@dataclass(frozen=True, eq=False)
class Dual:
    """Multipliers with their upper bound, and the best feasible architecture met on the way (or None)."""

    relaxed: Relaxed
    incumbent: Relaxed | None


def solve_dual(padded: Padded, sweeps: int = 3) -> Dual:
    """Multipliers that make the bound small: exact for one row, coordinate descent for several."""
    rows = padded.terms.rows
    best = best_for(padded, np.zeros(rows))
    incumbent = best if (best.totals[1:] <= padded.budget).all() else None
    if incumbent is not None or rows == 0:
        return Dual(best, incumbent)
    for _ in range(1 if rows == 1 else sweeps):
        before = best.bound
        for row in range(rows):
            best, found = _line_search(padded, best, row)
            incumbent = _better(padded, incumbent, found)
        if best.bound >= before - 1e-9 * max(1.0, abs(before)):
            break
    return Dual(best, incumbent)


def _better(padded: Padded, one: Relaxed | None, two: Relaxed | None) -> Relaxed | None:
    """The better of two architectures, looking only at feasible ones."""
    if two is None or not (two.totals[1:] <= padded.budget).all():
        return one
    return two if one is None or two.totals[0] > one.totals[0] else one


def _line_search(padded: Padded, start: Relaxed, row: int) -> tuple[Relaxed, Relaxed | None]:
    """Best multiplier of one row, others fixed: move to where the two bracketing architectures tie."""

    def at(multiplier: float) -> Relaxed:
        multipliers = start.multipliers.copy()
        multipliers[row] = multiplier
        return best_for(padded, multipliers)

    def line(x: Relaxed) -> float:  # value of x in the Lagrangian without this row
        others = np.delete(start.multipliers, row) @ np.delete(x.totals[1:], row)
        return float(x.totals[0] - others)

    over = at(0.0)
    if over.totals[1 + row] <= padded.budget[row]:
        return over, over
    under = cheapest(padded, row)
    best, kept = over, under
    for _ in range(60):
        width = over.totals[1 + row] - under.totals[1 + row]
        if width <= 0:
            break
        middle = at(max(0.0, (line(over) - line(under)) / width))
        best = middle if middle.bound < best.bound else best
        multiplier = middle.multipliers[row]
        height = line(middle) - multiplier * middle.totals[1 + row]
        reference = line(under) - multiplier * under.totals[1 + row]
        if height <= reference + 1e-12 * max(1.0, abs(reference)):
            break
        if middle.totals[1 + row] <= padded.budget[row]:
            under = kept = middle
        else:
            over = middle
    return best, kept


def improve(padded: Padded, start: Relaxed) -> Relaxed:
    """Greedy single changes of configs that raise the value within all budgets."""
    stages, blocks = padded._places
    depth, configs, totals = start.depth, start.configs.copy(), start.totals
    active = padded.active[stages[:, 0], depth]
    usable = active[:, :, None] & ~np.isneginf(padded.blocks[0])
    values = np.where(usable, padded.blocks[0], -np.inf)
    for _ in range(200):
        current = padded.blocks[:, stages, blocks, configs]
        gain = values - np.where(active, current[0], 0.0)[:, :, None]
        for row, (cost, left) in enumerate(zip(padded.blocks[1:], padded.budget - totals[1:], strict=True), 1):
            gain[cost - current[row][:, :, None] > left] = -np.inf
        place = int(gain.argmax())
        if gain.flat[place] <= 0:
            break
        s, b, c = np.unravel_index(place, gain.shape)
        configs[s, b] = c
        totals = totals_of(padded, depth, configs)
    return Relaxed(start.multipliers, depth, configs, totals, start.bound)


@dataclass(frozen=True, eq=False)
class Reduced:
    """Reduced costs for fixed multipliers: per config given the best depth that uses it, and per depth."""

    configs: Array
    depths: Array
    block_best: Array

    @classmethod
    def at(cls, padded: Padded, multipliers: Array) -> Reduced:
        """Reduced cost = best Lagrangian value of the stage minus its best with the choice forced."""
        weights = np.concatenate([[1.0], -multipliers])
        score = _weighted(padded.blocks, weights, 1.0)
        best = score.max(axis=2)
        filled = np.where(np.isneginf(best), 0.0, best)
        stage = _weighted(padded.depths, weights, 1.0) + np.einsum("spb,sb->sp", padded.active, filled)
        depths = stage.max(axis=1, keepdims=True) - stage
        own = filled[:, :, None] - score  # loss inside the block
        using = np.where(padded.active, depths[:, :, None], np.inf).min(axis=1)  # least loss of a depth with b
        return cls(own + using[:, :, None], depths, filled)


@dataclass(frozen=True, eq=False)
class Exact:
    """A proven optimum: value and architecture indices, or None when no architecture keeps the bounds."""

    value: float
    depths: Ints
    configs: Ints
    candidates: int


class TooManyError(Exception):
    """More partial architectures than the fold is willing to hold; another solver should take over."""


def solve_exact(terms: Terms, max_candidates: int = MAX_CANDIDATES) -> Exact | None:
    """The proven best architecture within all bounds, or None if there is none.

    Time grows with the gap between bound and answer, not with the size of the space; raises
    :class:`TooManyError` when more than ``max_candidates`` partial architectures are needed.
    """
    padded = Padded(terms)
    for row in range(terms.rows):
        if cheapest(padded, row).totals[1 + row] > padded.budget[row]:
            return None
    dual = solve_dual(padded)
    incumbent = None if dual.incumbent is None else improve(padded, dual.incumbent)
    gap = np.inf if incumbent is None else dual.relaxed.bound - float(incumbent.totals[0])
    slack = 1e-9 * max(1.0, abs(dual.relaxed.bound))
    found = None
    if gap > 0:
        found, count = _fold_reduced(padded, dual.relaxed, gap + slack, max_candidates)
    else:
        count = 0
    if found is not None and len(found):
        place = int(np.argmax(found.data[0]))
        if incumbent is None or found.data[0, place] > incumbent.totals[0]:
            depths, configs = decode(terms, found, np.array([place]))
            return Exact(float(found.data[0, place] + terms.constant[0]), depths[0], configs[0], count)
    if incumbent is None:
        return None
    depths, configs = indices_of(padded, incumbent)
    return Exact(float(incumbent.totals[0] + terms.constant[0]), depths, configs, count)


def indices_of(padded: Padded, relaxed: Relaxed) -> tuple[Ints, Ints]:
    """Depths (S,) and config indices (S, D) in the space, also where stages are listed as variants."""
    space = padded.terms.space
    depths = np.zeros(len(space.stages), dtype=np.int64)
    configs = np.full((len(space.stages), max(space.max_depth, 1)), -1, dtype=np.int64)
    for s, stage in enumerate(padded.terms.stages):
        if stage.variants is None:
            depths[s] = padded.depth_values[s, relaxed.depth[s]]
            width = min(configs.shape[1], relaxed.configs.shape[1])
            configs[s, :width] = relaxed.configs[s, :width]
        else:
            variant = relaxed.configs[s, 0]
            depths[s] = stage.variants[0][variant]
            configs[s, : stage.variants[1].shape[1]] = stage.variants[1][variant]
    return depths, configs[:, : space.max_depth]


def _fold_reduced(padded: Padded, at: Relaxed, gap: float, most: int) -> tuple[Labels, int]:
    """Fold only choices whose reduced cost stays within the gap, keeping non-dominated labels."""
    terms, reduced = padded.terms, Reduced.at(padded, at.multipliers)
    stages = [_stage_labels(padded, reduced, at.multipliers, s, gap, prune=True) for s in range(len(terms.stages))]
    lows = np.array([stage.data[1:].min(axis=1, initial=np.inf) for stage in stages]).reshape(len(stages), -1)
    after = np.vstack([np.cumsum(lows[::-1], axis=0)[::-1][1:], np.zeros(terms.rows)])
    best = [_lagrangian(stage.data, at.multipliers).max(initial=-np.inf) for stage in stages]
    total, count, reached = nothing(terms.rows), 0, 0.0
    for k in range(len(stages)):
        if len(total) * len(stages[k]) > most:
            raise TooManyError
        count += len(total) * len(stages[k])
        total = merge(total, stages[k], padded.budget - after[k])
        reached += best[k]
        keep = np.flatnonzero(_lagrangian(total.data, at.multipliers) >= reached - gap)
        total = total if len(keep) == len(total) else total.take(keep)
    return total, count


def _lagrangian(data: Array, multipliers: Array) -> Array:
    return np.asarray(data[0] - multipliers @ data[1:])


def _stage_labels(
    padded: Padded, reduced: Reduced, multipliers: Array, s: int, gap: float, prune: bool
) -> Labels:
    """Variants of a stage whose reduced cost is within the gap, over all depths that are."""
    stage = padded.terms.stages[s]
    loss = reduced.depths[s, : len(stage.depths)]
    wanted = {d: p for p, d in enumerate(stage.depths) if loss[p] <= gap}
    parts: list[Labels] = []
    depths: list[int] = []
    prefix, reached = nothing(padded.terms.rows), 0.0
    caps = np.full(padded.terms.rows, np.inf)
    for b in range(-1, max(wanted)):
        if b >= 0:
            least = min(float(loss[p]) for d, p in wanted.items() if d > b)
            keep = np.flatnonzero(reduced.configs[s, b, : stage.blocks[b].shape[1]] <= gap)
            block = choices(s, b, stage.blocks[b], keep)
            prefix = merge(prefix, block, caps) if prune else cross(prefix, block)
            reached += float(reduced.block_best[s, b])
            inside = np.flatnonzero(_lagrangian(prefix.data, multipliers) >= reached - gap + least)
            prefix = prefix if len(inside) == len(prefix) else prefix.take(inside)
        if b + 1 in wanted:
            p = wanted[b + 1]
            part = Labels(prefix.data + stage.depth[:, p : p + 1], prefix.source)
            inside = np.flatnonzero(_lagrangian(prefix.data, multipliers) >= reached - gap + loss[p])
            parts.append(part.take(inside))
            depths.append(b + 1)
    return unite(s, tuple(depths), parts, prune)


def cross(left: Labels, right: Labels, caps: Array | None = None) -> Labels:
    """All sums of two label sets without dropping any that is dominated."""
    from binas.search.labels import Merge

    data = (left.data[:, :, None] + right.data[:, None, :]).reshape(left.data.shape[0], -1)
    i, j = np.divmod(np.arange(data.shape[1]), max(len(right), 1))
    if caps is not None:
        keep = np.flatnonzero((data[1:] <= caps[:, None]).all(axis=0))
        data, i, j = data[:, keep], i[keep], j[keep]
    return Labels(data, Merge(left, right, i, j))


def to_architecture(terms: Terms, depths: Ints, configs: Ints) -> Architecture:
    """The architecture of index arrays."""
    return terms.space.from_indices(depths.tolist(), configs.tolist())
