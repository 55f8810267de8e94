"""Lagrangian relaxation: for fixed multipliers every choice is independent, and the whole is an upper bound.

For multipliers m >= 0 on the cost rows, UB(m) = m * budget + sum over stages of the best of (value - m * cost), the
dual of the relaxed multiple-choice knapsack. :func:`solve_dual` looks for multipliers that make it small, and
:func:`improve` for a good architecture within all budgets.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from binas.search.deadline import NEVER, Deadline
from binas.search.highs import LinearProgram, Model
from binas.search.matrices import structure
from binas.search.sparse import Sparse
from binas.search.terms import Terms

Array = NDArray[np.float64]
Ints = NDArray[np.int64]

LAST = 2**24  # numbers looked at to improve an answer when time is up


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
    def weights(self) -> Array:
        """``active`` as numbers, for matrix products."""
        return self.active.astype(np.float64)

    @cached_property
    def flat_blocks(self) -> Array:
        """``blocks`` as (1+m, S*B*C)."""
        return self.blocks.reshape(self.blocks.shape[0], -1)

    @cached_property
    def first(self) -> Ints:
        """Index of the first config of each (stage, block) in ``flat_blocks``."""
        _, stages, blocks, configs = self.blocks.shape
        return np.arange(0, stages * blocks * configs, configs).reshape(stages, blocks)

    @cached_property
    def stage_range(self) -> Ints:
        """0..S-1."""
        return np.arange(self.blocks.shape[1])

    @cached_property
    def padding(self) -> tuple[Array, Array]:
        """Zero for real configs and depths, -inf for padding."""
        return np.where(np.isneginf(self.blocks[0]), -np.inf, 0.0), np.where(
            np.isneginf(self.depths[0]), -np.inf, 0.0
        )

    @cached_property
    def absent(self) -> NDArray[np.bool_] | None:
        """Blocks that a stage does not have, or None if every stage has all."""
        absent = np.isneginf(self.blocks[0]).all(axis=2)
        return absent if absent.any() else None

    @cached_property
    def lightest(self) -> tuple[Relaxed, ...]:
        """For each cost row the architecture with the least of it."""
        return tuple(best_for(self, row, value_weight=0.0) for row in np.eye(self.terms.rows))

    def stage_scores(self, multipliers: Array, value_weight: float = 1.0) -> tuple[Array, Array, Array]:
        """Lagrangian value of each config (S, B, C), the best of each block (S, B), of each depth (S, P)."""
        base = (self.blocks[0], self.depths[0]) if value_weight else self.padding
        score, depth = base[0], base[1]
        for row, multiplier in enumerate(multipliers.tolist(), 1):
            if multiplier:
                score = score - multiplier * self.blocks[row]
                depth = depth - multiplier * self.depths[row]
        best = score.max(axis=2)
        if self.absent is not None:
            best[self.absent] = 0.0
        return score, best, depth + (self.weights @ best[:, :, None])[:, :, 0]


@dataclass(frozen=True, eq=False)
class Relaxed:
    """The best architecture for fixed multipliers: depth index (S,), configs (S, B), totals (1+m,)."""

    multipliers: Array
    depth: Ints
    configs: Ints
    totals: Array
    bound: float


@dataclass(frozen=True, eq=False)
class Reduced:
    """Reduced costs for fixed multipliers: per config given the best depth that uses it, and per depth.

    ``best`` is the config of least reduced cost of each block, ``block_best`` its Lagrangian value.
    """

    configs: Array
    depths: Array
    best: Ints
    block_best: Array

    @classmethod
    def at(cls, padded: Padded, multipliers: Array, value_weight: float = 1.0) -> Reduced:
        """Reduced cost = best Lagrangian value of the stage minus its best with the choice forced."""
        score, best, stage = padded.stage_scores(multipliers, value_weight)
        depths = stage.max(axis=1, keepdims=True) - stage
        # the least loss of a depth at which the block runs
        using = np.where(padded.active, depths[:, :, None], np.inf).min(axis=1)
        configs = best[:, :, None] - score + using[:, :, None]
        return cls(configs, depths, score.argmax(axis=2), best)


def best_for(padded: Padded, multipliers: Array, value_weight: float = 1.0) -> Relaxed:
    """Maximise value_weight * value - multipliers * costs, choice by choice (value_weight is 0 or 1)."""
    score, _, stage = padded.stage_scores(multipliers, value_weight)
    depth, configs = stage.argmax(axis=1), score.argmax(axis=2)
    totals = totals_of(padded, depth, configs)
    bound = float(stage.max(axis=1).sum() + multipliers @ padded.budget) if value_weight else float("nan")
    return Relaxed(multipliers, depth, configs, totals, bound)


def totals_of(padded: Padded, depth: Ints, configs: Ints) -> Array:
    """Value and costs (without the constant) of an architecture given by indices."""
    active = padded.active[padded.stage_range, depth]
    chosen = padded.flat_blocks[:, (padded.first + configs)[active]]
    return np.asarray(chosen.sum(axis=1) + padded.depths[:, padded.stage_range, depth].sum(axis=1))


def cheapest(padded: Padded, row: int) -> Relaxed:
    """The architecture with the least cost in one row."""
    return padded.lightest[row]


@dataclass(frozen=True, eq=False)
class Dual:
    """Multipliers with their upper bound, and the best feasible architecture met on the way (or None)."""

    relaxed: Relaxed
    incumbent: Relaxed | None


def solve_dual(padded: Padded, deadline: Deadline = NEVER, sweeps: int = 2) -> Dual:
    """Multipliers that make the bound small: exact for one row; for several, those of the linear relaxation.

    Past the deadline every search for a multiplier ends where it is: the bound holds for any multipliers.
    """
    rows = padded.terms.rows
    best = best_for(padded, np.zeros(rows))
    incumbent = best if (best.totals[1:] <= padded.budget).all() else None
    if incumbent is not None or rows == 0:
        return Dual(best, incumbent)
    if rows > 1 and not deadline.late and all(stage.variants is None for stage in padded.terms.stages):
        best = best_for(padded, relaxation_multipliers(padded.terms, deadline))
    for _ in range(1 if rows == 1 else sweeps):
        before = best.bound
        for row in range(rows):
            moved, kept = _line_search(padded, best, row, deadline)
            best = moved if moved.bound < best.bound else best
            incumbent = _better(padded, incumbent, kept)
        if deadline.late or best.bound >= before - 1e-9 * max(1.0, abs(before)):
            break
    return Dual(best, incumbent)


def relaxation_multipliers(terms: Terms, deadline: Deadline = NEVER) -> Array:
    """Dual prices of the cost rows in the linear relaxation of the tight form (by HiGHS); zeros if it has none in time."""
    equality, right = structure(terms.space)
    data = np.concatenate(
        [*(b for stage in terms.stages for b in stage.blocks), *(s.depth for s in terms.stages)], axis=1
    )
    scales = np.maximum(np.abs(data).max(axis=1), 1e-300)
    budget = (terms.bounds - terms.constant[1:]) / scales[1:]
    program = LinearProgram(
        cost=-data[0] / scales[0],
        matrix=Sparse.stack(equality, Sparse.from_dense(data[1:] / scales[1:, None])),
        lower=np.append(right, np.full(terms.rows, -np.inf)),
        upper=np.append(right, budget),
        least=np.zeros(data.shape[1]),
        most=np.ones(data.shape[1]),
    )
    duals = Model(program, {}).run(deadline.left).prices[len(right) :]
    if len(duals) != terms.rows or not np.isfinite(duals).all():
        return np.zeros(terms.rows)
    return np.asarray(np.maximum(0.0, -duals) * scales[0] / scales[1:])


def _better(padded: Padded, one: Relaxed | None, two: Relaxed | None) -> Relaxed | None:
    """The better of two architectures, looking only at feasible ones."""
    if two is None or not (two.totals[1:] <= padded.budget).all():
        return one
    return two if one is None or two.totals[0] > one.totals[0] else one


def _line_search(
    padded: Padded, start: Relaxed, row: int, deadline: Deadline
) -> tuple[Relaxed, Relaxed | None]:
    """Best multiplier of one row, others fixed: move to where the two bracketing architectures tie."""

    def at(multiplier: float) -> Relaxed:
        multipliers = start.multipliers.copy()
        multipliers[row] = multiplier
        return best_for(padded, multipliers)

    others = start.multipliers.copy()
    others[row] = 0.0

    def line(x: Relaxed) -> tuple[float, float]:  # value in the Lagrangian without this row, and its cost
        return float(x.totals[0] - others @ x.totals[1:]), float(x.totals[1 + row])

    budget = float(padded.budget[row])
    over = at(0.0) if start.multipliers[row] else start
    high, dear = line(over)
    if dear <= budget:
        return over, over
    best, kept = over, cheapest(padded, row)
    low, cheap = line(kept)
    for _ in range(60):
        if dear <= cheap or deadline.late:
            break
        multiplier = max(0.0, (high - low) / (dear - cheap))
        middle = at(multiplier)
        best = middle if middle.bound < best.bound else best
        value, cost = line(middle)
        reference = low - multiplier * cheap
        if value - multiplier * cost <= reference + 1e-12 * max(1.0, abs(reference)):
            break
        if cost <= budget:
            kept, low, cheap = middle, value, cost
        else:
            high, dear = value, cost
    return best, kept


def improve(padded: Padded, start: Relaxed, deadline: Deadline = NEVER) -> Relaxed:
    """Greedy changes of configs that raise the value within all budgets; past the deadline only for a moment."""
    depth, configs = start.depth, start.configs.copy()
    active = padded.active[padded.stage_range, depth]
    blocks = padded.blocks[:, active]  # (1+m, active blocks, C)
    picked, rows, totals = configs[active], np.arange(blocks.shape[1]), start.totals
    for step in range(200):
        if step * blocks.size > LAST and deadline.late:
            break
        change, gain = _gains(blocks, blocks[:, rows, picked], padded.budget - totals[1:])
        best = gain.argmax(axis=1)
        moved = _taken(change[:, rows, best], gain[rows, best], padded.budget - totals[1:])
        if not len(moved):
            break
        picked[moved] = best[moved]
        totals = totals + change[:, moved, best[moved]].sum(axis=1)
    configs[active] = picked
    return Relaxed(start.multipliers, depth, configs, totals, start.bound)


def _taken(change: Array, gain: Array, room: Array) -> Ints:
    """Which of some changes (1+m, n) are made together: by falling gain, up to the first that there is no room for."""
    order = np.argsort(-gain, kind="stable")
    order = order[: int((gain > 0).sum())]
    fits = (np.cumsum(change[1:, order], axis=1) <= room[:, None]).all(axis=0)
    return order if fits.all() else order[: int(fits.argmin())]


def _gains(blocks: Array, current: Array, room: Array) -> tuple[Array, Array]:
    """What every change of one config brings, (1+m, active blocks, C); and in value, -inf where there is no room for it."""
    change = blocks - current[:, :, None]
    return change, np.where((change[1:] <= room[:, None, None]).all(axis=0), change[0], -np.inf)


def around(padded: Padded, start: Relaxed) -> tuple[Array, Ints]:
    """Values of an architecture and of all that differ from it in one config and keep the budgets, falling.

    And the change behind each, for :func:`changed`.
    """
    active = padded.active[padded.stage_range, start.depth]
    blocks, picked = padded.blocks[:, active], start.configs[active]
    current = blocks[:, np.arange(blocks.shape[1]), picked]
    _, gain = _gains(blocks, current, padded.budget - start.totals[1:])
    gain[np.arange(len(picked)), picked] = -np.inf
    changes = np.append(-1, np.flatnonzero(np.isfinite(gain)))
    gains = np.append(0.0, gain.ravel()[changes[1:]])
    order = np.argsort(-gains, kind="stable")
    return np.asarray(start.totals[0] + gains[order]), changes[order]


def changed(padded: Padded, start: Relaxed, change: int) -> Relaxed:
    """An architecture with one change: (number of the active block) * (configs of a block) + config; -1 for none."""
    if change < 0:
        return start
    block, config = divmod(change, padded.blocks.shape[3])
    configs, active = start.configs.copy(), padded.active[padded.stage_range, start.depth]
    s, b = np.argwhere(active)[block].tolist()
    configs[s, b] = config
    return replace(start, configs=configs, totals=totals_of(padded, start.depth, configs))


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
