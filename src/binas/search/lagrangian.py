"""One proven answer in a few milliseconds: Lagrangian bounds, reduced costs, and a fold of what is left.

For multipliers m >= 0 on the cost rows, the best value of value - m * cost splits into independent
choices: per block the best config, per stage the best depth. That gives an upper bound
UB(m) = m * bound + sum of stage bests (the dual of the relaxed multiple-choice knapsack), an architecture,
and for each choice its *reduced cost*: how far the bound falls if the choice is forced. An architecture's
value is at most UB minus the sum of its reduced costs, so with a good answer of value LB in hand every
choice whose reduced cost exceeds UB - LB is out; few remain, and they are folded exactly.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from binas.search.dual import Padded, Relaxed, cheapest, improve, indices_of, solve_dual
from binas.search.labels import Labels, Merge, choices, decode, merge, nothing, unite
from binas.search.terms import Terms
from binas.space.architecture import Architecture

Array = NDArray[np.float64]
Ints = NDArray[np.int64]

MAX_CANDIDATES = 3_000_000


@dataclass(frozen=True, eq=False)
class Reduced:
    """Reduced costs for fixed multipliers: per config given the best depth that uses it, and per depth."""

    configs: Array
    depths: Array
    block_best: Array

    @classmethod
    def at(cls, padded: Padded, multipliers: Array) -> Reduced:
        """Reduced cost = best Lagrangian value of the stage minus its best with the choice forced."""
        score, best, stage = padded.stage_scores(multipliers)
        depths = stage.max(axis=1, keepdims=True) - stage
        # the least loss of a depth at which the block runs
        using = np.where(padded.active, depths[:, :, None], np.inf).min(axis=1)
        return cls(best[:, :, None] - score + using[:, :, None], depths, best)


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
    terms_size = abs(dual.relaxed.bound) + float(dual.relaxed.multipliers @ np.abs(dual.relaxed.totals[1:]))
    slack = 1e-9 * max(1.0, abs(dual.relaxed.bound)) + 1e-12 * terms_size
    labels = None
    if gap > 0:
        labels, count = _fold_reduced(padded, dual.relaxed, gap + slack, max_candidates)
    else:
        count = 0
    if labels is not None and len(labels):
        place = int(np.argmax(labels.data[0]))
        if incumbent is None or labels.data[0, place] > incumbent.totals[0]:
            depths, configs = decode(terms, labels, np.array([place]))
            return Exact(float(labels.data[0, place] + terms.constant[0]), depths[0], configs[0], count)
    if incumbent is None:
        return None
    depths, configs = indices_of(padded, incumbent)
    return Exact(float(incumbent.totals[0] + terms.constant[0]), depths, configs, count)


def _fold_reduced(padded: Padded, at: Relaxed, gap: float, most: int) -> tuple[Labels, int]:
    """Fold only choices whose reduced cost stays within the gap, keeping non-dominated labels."""
    terms, reduced = padded.terms, Reduced.at(padded, at.multipliers)
    stages = [
        stage_labels(padded, reduced, at.multipliers, s, gap, True, most) for s in range(len(terms.stages))
    ]
    lows = np.array([stage.data[1:].min(axis=1, initial=np.inf) for stage in stages]).reshape(len(stages), -1)
    after = np.vstack([np.cumsum(lows[::-1], axis=0)[::-1][1:], np.zeros(terms.rows)])
    best = [lagrangian_values(stage.data, at.multipliers).max(initial=-np.inf) for stage in stages]
    total, count, reached = nothing(terms.rows), 0, 0.0
    for k in range(len(stages)):
        if len(total) * len(stages[k]) > most:
            raise TooManyError
        count += len(total) * len(stages[k])
        total = merge(total, stages[k], padded.budget - after[k])
        reached += best[k]
        total = above(total, at.multipliers, reached - gap)
    return total, count


def lagrangian_values(data: Array, multipliers: Array) -> Array:
    """value - multipliers * costs of every label."""
    return np.asarray(data[0] - multipliers @ data[1:])


def stage_labels(
    padded: Padded, reduced: Reduced, multipliers: Array, s: int, gap: float, prune: bool, most: int
) -> Labels:
    """Variants of a stage whose reduced cost is within the gap, over all depths that are."""
    stage = padded.terms.stages[s]
    loss = reduced.depths[s].tolist()
    allowed = {d: p for p, d in enumerate(stage.depths) if loss[p] <= gap}
    parts: list[Labels] = []
    prefix, reached = nothing(padded.terms.rows), 0.0
    near = reduced.configs[s] <= gap
    for b in range(-1, max(allowed)):
        if b >= 0:
            block = choices(s, b, stage.blocks[b], np.flatnonzero(near[b, : stage.blocks[b].shape[1]]))
            least = min(loss[p] for d, p in allowed.items() if d > b)
            reached += float(reduced.block_best[s, b])
            prefix = _extended(prefix, block, multipliers, reached - gap + least, prune, most)
        if b + 1 in allowed:
            p = allowed[b + 1]
            part = above(prefix, multipliers, reached - gap + loss[p])
            parts.append(Labels(part.data + stage.depth[:, p : p + 1], part.source))
    return unite(s, tuple(allowed), parts, prune)


def _extended(
    prefix: Labels, block: Labels, multipliers: Array, floor: float, prune: bool, most: int
) -> Labels:
    """Add one block to every label, keeping those whose Lagrangian value reaches the floor."""
    if len(prefix) * len(block) > most:
        raise TooManyError
    if len(block) == 1 or not prune:
        return above(cross(prefix, block), multipliers, floor)
    return above(merge(prefix, block, np.full(len(multipliers), np.inf)), multipliers, floor)


def above(labels: Labels, multipliers: Array, floor: float) -> Labels:
    """The labels whose Lagrangian value reaches the floor (a single label always stays)."""
    if len(labels) == 1:
        return labels
    keep = np.flatnonzero(lagrangian_values(labels.data, multipliers) >= floor)
    return labels if len(keep) == len(labels) else labels.take(keep)


def cross(left: Labels, right: Labels, caps: Array | None = None) -> Labels:
    """All sums of two label sets without dropping any that is dominated."""
    data = (left.data[:, :, None] + right.data[:, None, :]).reshape(left.data.shape[0], -1)
    i, j = np.divmod(np.arange(data.shape[1]), max(len(right), 1))
    if caps is not None:
        keep = np.flatnonzero((data[1:] <= caps[:, None]).all(axis=0))
        data, i, j = data[:, keep], i[keep], j[keep]
    return Labels(data, Merge(left, right, i, j))


def to_architecture(terms: Terms, depths: Ints, configs: Ints) -> Architecture:
    """The architecture of index arrays."""
    return terms.space.from_indices(depths.tolist(), configs.tolist())
