"""Sets of partial architectures ("labels") and the operations of the fold: choose, merge, unite, prune.

A label has a value (row 0) and one number per cost row (rows 1..m); it is worth keeping only while no
other label is at least as good in all of them. Where a label came from is remembered as indices into
the sets it was made of, and architectures are read back for many labels at once by :func:`decode`.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from binas.search.terms import Terms

Array = NDArray[np.float64]
Indices = NDArray[np.intp]

DIRECT = 3000  # candidates below this are sorted at once
CHUNK = 1 << 21  # candidates made at a time: bounds memory to a few dozen MiB
BINS = 4096
THIN = 40
BLOCK = 256
STRONG = 512


@dataclass(frozen=True, eq=False)
class Choice:
    """Labels that are configs of one block."""

    stage: int
    block: int
    index: Indices


@dataclass(frozen=True, eq=False)
class Merge:
    """Labels that are sums of a left and a right label."""

    left: Labels
    right: Labels
    i: Indices
    j: Indices


@dataclass(frozen=True, eq=False)
class Union:
    """Labels of one stage taken from its allowed depths."""

    stage: int
    depths: tuple[int, ...]
    parts: tuple[Labels, ...]
    part: Indices
    index: Indices


@dataclass(frozen=True, eq=False)
class Labels:
    """``data`` has shape (1 + m, n); ``source`` says how to read the labels back."""

    data: Array
    source: Choice | Merge | Union | None

    def __len__(self) -> int:
        return int(self.data.shape[1])

    def take(self, keep: Indices) -> Labels:
        """A subset of the labels."""
        source = self.source
        if isinstance(source, Choice):
            source = Choice(source.stage, source.block, source.index[keep])
        elif isinstance(source, Merge):
            source = Merge(source.left, source.right, source.i[keep], source.j[keep])
        elif isinstance(source, Union):
            source = Union(source.stage, source.depths, source.parts, source.part[keep], source.index[keep])
        return Labels(self.data[:, keep], source)


def nothing(rows: int) -> Labels:
    """The one label of no decision at all."""
    return Labels(np.zeros((1 + rows, 1)), None)


def choices(stage: int, block: int, data: Array, keep: Indices | None = None) -> Labels:
    """The configs of a block as labels."""
    index = np.arange(data.shape[1]) if keep is None else keep
    return Labels(data[:, index], Choice(stage, block, index))


def pareto(data: Array) -> Indices:
    """Indices of labels that no other label beats, sorted by the first cost; of equal labels the first stays.

    Complete for up to two cost rows; with more, some dominated labels may stay, which costs time only.
    """
    if data.shape[0] == 1:
        return np.array([int(np.argmax(data[0]))])
    if data.shape[0] == 2:
        return _pareto_two(data[0], data[1])
    return staircase(data) if data.shape[0] == 3 else _pareto_many(data)


def _pareto_two(value: Array, cost: Array) -> Indices:
    order = np.argsort(cost, kind="stable")
    value, cost = value[order], cost[order]
    running = np.maximum.accumulate(value)
    better = np.empty(len(order), dtype=bool)
    better[:1] = True
    np.greater(value[1:], running[:-1], out=better[1:])
    kept = np.flatnonzero(better)
    cost = cost[kept]
    last = np.empty(len(kept), dtype=bool)  # of equal costs the last kept one is the best
    last[-1:] = True
    np.greater(cost[1:], cost[:-1], out=last[:-1])
    return order[kept[last]]


def staircase(data: Array, step: float = 0.0) -> Indices:
    """Non-dominated labels of two cost rows; with ``step``, also drop labels that another beats but for so much value.

    Sweeps by the first cost; a staircase of (second cost, value) holds the best labels so far.
    """
    order = np.lexsort((-data[0], data[2], data[1]))
    costs: list[float] = []
    values: list[float] = []
    kept: list[int] = []
    for index, cost, value in zip(
        order.tolist(), data[2, order].tolist(), data[0, order].tolist(), strict=True
    ):
        place = bisect_right(costs, cost)
        if place and values[place - 1] >= value - step:
            continue
        kept.append(index)
        start = place - 1 if place and costs[place - 1] == cost else place
        stop = bisect_right(values, value, start)
        costs[start:stop] = [cost]
        values[start:stop] = [value]
    return np.array(kept, dtype=np.intp)


def _pareto_many(data: Array) -> Indices:
    """With three or more cost rows, drop most (not necessarily all) dominated labels.

    Labels are compared, best values first, with the cheapest ones kept so far and within their block.
    """
    order = np.lexsort((*data[:0:-1], -data[0]))
    costs = data[1:, order].T
    size = costs @ (1.0 / np.maximum(np.ptp(costs, axis=0), 1e-300))
    strong = np.zeros((0, costs.shape[1] + 1))
    result: list[Indices] = []
    for start in range(0, len(order), BLOCK):
        block = costs[start : start + BLOCK]
        alive = np.logical_not(_below(strong[:, :-1], block).any(axis=0))
        inside = np.triu(_below(block, block), 1)
        alive &= ~np.asarray((inside & alive[:, None]).any(axis=0))
        result.append(order[start : start + BLOCK][alive])
        fresh = np.column_stack([block[alive], size[start : start + BLOCK][alive]])
        strong = np.concatenate([strong, fresh])
        strong = strong[np.argsort(strong[:, -1], kind="stable")[:STRONG]]
    kept = np.concatenate(result)
    return kept[np.argsort(data[1, kept], kind="stable")]


def _below(one: Array, two: Array) -> NDArray[np.bool_]:
    """[a, b]: row a of ``one`` is at most row b of ``two`` in every column."""
    result: NDArray[np.bool_] = np.less_equal.outer(one[:, 0], two[:, 0])
    for column in range(1, one.shape[1]):
        result &= np.less_equal.outer(one[:, column], two[:, column])
    return result


@dataclass(frozen=True, eq=False)
class Threshold:
    """Least value worth keeping as a step function of the first cost: ``steps[floor((cost - start) * scale)]``.

    With ``multipliers`` the value compared is value - multipliers * further costs. ``strict`` thresholds
    also drop values equal to them.
    """

    start: float
    scale: float
    steps: Array
    multipliers: Array
    strict: bool = False

    def passes(self, data: Sequence[Array]) -> NDArray[np.bool_]:
        """Which labels (rows: value, first cost, further costs) reach the threshold."""
        bins = ((data[1] - self.start) * self.scale).astype(np.int32)
        floor = self.steps[np.clip(bins, 0, len(self.steps) - 1, out=bins)]
        value = data[0]
        for multiplier, row in zip(self.multipliers.tolist(), data[2:], strict=True):
            value = value - multiplier * row
        return np.asarray(value > floor if self.strict else value >= floor)


def merge(
    left: Labels, right: Labels, caps: Array, needs: Sequence[Threshold] = (), rows: int | None = None
) -> Labels:
    """All sums of a left and a right label within ``caps`` (per cost row), pruned to the non-dominated.

    ``needs`` say, per first cost, the least value that can still matter; candidates below one of them
    are dropped before anything is sorted. ``rows`` limits dominance to that many cost rows, which is right
    when nothing will be added to the result any more.
    """
    if len(left) < len(right):
        left, right = right, left
    if len(right) == 0:
        return Labels(left.data[:, :0], Merge(left, right, np.zeros(0, np.intp), np.zeros(0, np.intp)))
    total = len(left) * len(right)
    thresholds = list(needs)
    if total > DIRECT and left.data.shape[0] == 2:
        thresholds.append(_own_threshold(left.data, right.data))
    height = max(1, CHUNK // len(right))
    parts = [
        _candidates(left.data[:, start : start + height], right.data, caps, thresholds, start)
        for start in range(0, len(left), height)
    ]
    data = parts[0][0] if len(parts) == 1 else np.concatenate([part[0] for part in parts], axis=1)
    flat = parts[0][1] if len(parts) == 1 else np.concatenate([part[1] for part in parts])
    judged = data if rows is None else data[: 1 + rows]
    keep = pareto(judged) if data.shape[1] else np.zeros(0, np.intp)
    i, j = np.divmod(flat[keep], len(right))
    return Labels(data[:, keep], Merge(left, right, i, j))


def _candidates(
    left: Array, right: Array, caps: Array, thresholds: list[Threshold], start: int
) -> tuple[Array, Indices]:
    """Sums that pass caps and thresholds, with their flat index (left index * number of right labels + right)."""
    sums = [np.add.outer(a, b).ravel() for a, b in zip(left, right, strict=True)]
    index: Indices | None = None
    if left.shape[1] * right.shape[1] == 0:
        return np.zeros((len(sums), 0)), np.zeros(0, np.intp)
    for row, cap in enumerate(caps.tolist(), 1):
        if cap < np.inf:
            sums, index = _select(sums, index, sums[row] <= cap)
    for threshold in thresholds:
        sums, index = _select(sums, index, threshold.passes(sums))
    offset = start * right.shape[1]
    if index is None:
        index = np.arange(sums[0].size)
    return np.stack(sums), index + offset


def _select(
    rows: list[Array], index: Indices | None, keep: NDArray[np.bool_]
) -> tuple[list[Array], Indices | None]:
    """Rows and flat index where ``keep``; each filter looks only at what the one before left."""
    inside = np.flatnonzero(keep)
    if len(inside) == len(keep):
        return rows, index
    return [row[inside] for row in rows], inside if index is None else index[inside]


def _own_threshold(left: Array, right: Array) -> Threshold:
    """Values that some sums reach at a strictly lower cost: a candidate not above them is dominated.

    The sums tried are a thinned left with all of right and a thinned right with all of left.
    """
    low = left[1].min() + right[1].min()
    high = left[1].max() + right[1].max()
    scale = (BINS - 1) / (high - low) if high > low else 0.0
    steps = np.full(BINS + 1, -np.inf)
    for one, two in ((_thinned(left), right), (left, _thinned(right))):
        cost = np.add.outer(one[1], two[1]).ravel()
        value = np.add.outer(one[0], two[0]).ravel()
        bins = ((cost - low) * scale).astype(np.int32)
        np.maximum.at(steps[1:], bins, value)  # shifted by one bin: counts only for strictly lower bins
    return Threshold(low, scale, np.maximum.accumulate(steps), np.zeros(0), strict=True)


def _thinned(data: Array) -> Array:
    if data.shape[1] <= THIN:
        return data
    return data[:, np.linspace(0, data.shape[1] - 1, THIN).astype(np.intp)]


def unite(stage: int, depths: tuple[int, ...], parts: list[Labels], prune: bool = True) -> Labels:
    """The labels of a stage: those of each allowed depth (its depth part already added)."""
    data = np.concatenate([part.data for part in parts], axis=1)
    part = np.repeat(np.arange(len(parts)), [len(p) for p in parts])
    index = np.concatenate([np.arange(len(p)) for p in parts])
    keep = pareto(data) if prune and data.shape[1] else np.arange(data.shape[1])
    return Labels(data[:, keep], Union(stage, depths, tuple(parts), part[keep], index[keep]))


def decode(terms: Terms, labels: Labels, index: Indices) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Depths (n, S) and config indices (n, S, D) of the labels at ``index``; -1 for inactive blocks."""
    stages, width = len(terms.space.stages), terms.space.max_depth
    depths = np.zeros((len(index), stages), dtype=np.int64)
    configs = np.full((len(index), stages, max(width, 1)), -1, dtype=np.int64)
    _read(terms, labels, index, np.arange(len(index)), depths, configs)
    return depths, configs[:, :, :width]


def _read(
    terms: Terms,
    labels: Labels,
    index: Indices,
    rows: Indices,
    depths: NDArray[np.int64],
    configs: NDArray[np.int64],
) -> None:
    """Walk from the labels back to the choices they are made of (a stack: stages may have a thousand blocks)."""
    left = [(labels, index, rows)]
    while left:
        labels, index, rows = left.pop()
        source = labels.source
        if isinstance(source, Merge):
            left += [(source.left, source.i[index], rows), (source.right, source.j[index], rows)]
        elif isinstance(source, Union):
            left += _parts(terms, source, index, rows, depths)
        elif isinstance(source, Choice):
            _write(terms, source, index, rows, depths, configs)


def _parts(
    terms: Terms, source: Union, index: Indices, rows: Indices, depths: NDArray[np.int64]
) -> list[tuple[Labels, Indices, Indices]]:
    """Note the depth of each label and send it on to the labels of that depth."""
    inner = []
    for p, (depth, part) in enumerate(zip(source.depths, source.parts, strict=True)):
        mine = np.flatnonzero(source.part[index] == p)
        if len(mine):
            if terms.stages[source.stage].variants is None:
                depths[rows[mine], source.stage] = depth
            inner.append((part, source.index[index[mine]], rows[mine]))
    return inner


def _write(
    terms: Terms,
    source: Choice,
    index: Indices,
    rows: Indices,
    depths: NDArray[np.int64],
    configs: NDArray[np.int64],
) -> None:
    variants, picked = terms.stages[source.stage].variants, source.index[index]
    if variants is None:
        configs[rows, source.stage, source.block] = picked
    else:
        depths[rows, source.stage] = variants[0][picked]
        configs[rows, source.stage, : variants[1].shape[1]] = variants[1][picked]
