"""Adding up two sets of labels without ever holding all sums: filter, prune, and where that is not enough, thin.

Sums are made in chunks; each is filtered by caps and thresholds and joins a pool, which is pruned to the non-dominated
whenever it has doubled. So memory follows what is kept, not what is tried. Where even that is too much the pool is thinned:
values are compared on a grid of a power of two, so that a label loses less than one step of it however often it is
thinned, and grids of larger steps contain those of smaller ones.
"""

from __future__ import annotations

import math
from collections.abc import Sequence, Sized
from dataclasses import dataclass, field
from itertools import pairwise
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from binas.search.deadline import NEVER, Deadline
from binas.search.labels import Labels, Merge, standing
from binas.search.pareto import pareto

Array = NDArray[np.float64]
Indices = NDArray[np.intp]
Some = TypeVar("Some", bound=Sized)

DIRECT = 3000  # candidates below this are sorted at once
CHUNK = 1 << 18  # candidates made at a time: a few MiB, which stay in the cache, and milliseconds
HELD = (
    1 << 18
)  # candidates that wait before they are pruned, at first: more often is no slower, and sooner back in time
UNJUDGED = 1_000_000  # labels of several cost rows that are cheaper to add to than to compare
HELD_MANY = 1 << 17  # the same with further cost rows, where dominance is dearer to find
BINS = 4096
THIN = 40
ENDS = 1e-3  # the share of a range at each end that is sampled most finely
FINE = 0.25  # of all samples, those that go there


class TooManyError(Exception):
    """More partial architectures than may be held or tried; another way should take over."""


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

    def bins(self, cost: Array) -> NDArray[np.int32]:
        """The step of each cost."""
        bins = ((cost - self.start) * self.scale).astype(np.int32)
        return np.clip(bins, 0, len(self.steps) - 1, out=bins)

    def passes(self, data: Sequence[Array]) -> NDArray[np.bool_]:
        """Which labels (rows: value, first cost, further costs) reach the threshold."""
        floor, value = self.steps[self.bins(data[1])], data[0]
        for multiplier, row in zip(self.multipliers.tolist(), data[2:], strict=True):
            value = value - multiplier * row
        return np.asarray(value > floor if self.strict else value >= floor)

    def raise_to(self, value: Array, cost: Array) -> None:
        """Values that are reached count for every strictly higher step of cost."""
        np.maximum.at(self.steps[1:], np.minimum(self.bins(cost), len(self.steps) - 2), value)
        np.maximum.accumulate(self.steps, out=self.steps)


@dataclass
class _Pool:
    """Candidates of one merge with their flat indices.

    ``judged`` rows count for dominance, ``rank`` as in :mod:`binas.search.pareto` (None: nothing is dropped), ``most``
    labels may stay (twice as many in between); ``step`` is the certified loss of thinning so far. ``reach``: labels have
    one (:mod:`binas.search.labels`). Up to ``spare`` of them are not compared at all. Past the ``deadline`` pruning raises.
    """

    judged: int
    rank: int | None = 1
    most: float = math.inf
    step: float = 0.0
    reach: bool = False
    spare: int = 0
    deadline: Deadline = NEVER
    parts: list[tuple[Array, Indices]] = field(default_factory=list)
    size: int = 0
    limit: int = 0

    def add(self, data: Array, flat: Indices) -> bool:
        """Take more candidates; whether they were pruned."""
        self.parts.append((data, flat))
        self.size += len(flat)
        held = HELD if self.judged <= 2 else HELD_MANY
        if self.rank is None or self.size <= max(held, self.limit):
            return False
        self.prune()
        if self.size > 2 * self.most:
            self._thin()
        self.limit = 2 * self.size
        return True

    def prune(self) -> tuple[Array, Indices]:
        """Everything held, without what is dominated."""
        data = (
            self.parts[0][0] if len(self.parts) == 1 else np.concatenate([p[0] for p in self.parts], axis=1)
        )
        flat = self.parts[0][1] if len(self.parts) == 1 else np.concatenate([p[1] for p in self.parts])
        if self.rank is not None and len(flat) > self.spare:
            self.deadline.check()
            keep = pareto(data[: self.judged], self.rank, self.deadline)
            data, flat = self._kept(data, keep), flat[keep]
        self.parts, self.size = [(data, flat)], len(flat)
        return data, flat

    def _thin(self) -> None:
        data, flat = self.parts[0]
        keep, self.step = thinned(data[: self.judged], int(self.most), self.step, self.deadline)
        self.parts, self.size = [(self._kept(data, keep), flat[keep])], len(keep)

    def _kept(self, data: Array, keep: Indices) -> Array:
        self.deadline.check()
        return standing(data, keep) if self.reach else data[:, keep]


def thinned(data: Array, most: int, step: float = 0.0, deadline: Deadline = NEVER) -> tuple[Indices, float]:
    """At most ``most`` labels such that every other has one of no higher cost and value > its own - step; and that step.

    At least the ``step`` given, a power of two or zero. Raises :class:`TooManyError` where values do not matter,
    and :class:`binas.search.deadline.TimeUpError` past the deadline.
    """
    spread, kept = float(np.ptp(data[0])) if data.shape[1] else 0.0, np.arange(data.shape[1])
    if step:
        kept = kept[_spaced(data, step, deadline)]
    while len(kept) > most:
        if step > 2 * spread:
            raise TooManyError
        step = max(2 * step, power_of_two(spread / most / 4))
        kept = kept[_spaced(data[:, kept], step, deadline)]
    return kept, step


def sampled(value: Array, most: int) -> tuple[Indices, float]:
    """At most ``most`` of values that rise with the cost, and how much less than another one of them is at most.

    Finely at both ends: few whole architectures are near the least and the greatest cost, and each part of them is missed;
    in the middle there are many, and others are as good.
    """
    place = (value - value[0]) / max(float(value[-1] - value[0]), 1e-300)
    warped = np.log((place + ENDS) / (1 - place + ENDS)) / (2 * math.log((1 + ENDS) / ENDS)) + 0.5
    cells = np.floor((most - 1) * ((1 - FINE) * place + FINE * warped) + 1e-9)
    first = np.flatnonzero(np.diff(cells, prepend=-1.0))
    last = np.append(first[1:], len(value)) - 1
    return first, float((value[last] - value[first]).max(initial=0.0))


def _spaced(data: Array, step: float, deadline: Deadline) -> Indices:
    deadline.check()
    return pareto(np.concatenate([np.floor(data[:1] / step), data[1:]]), deadline=deadline)


def power_of_two(number: float) -> float:
    """The largest power of two that is at most a number; zero for zero."""
    return 2.0 ** math.floor(math.log2(number)) if number > 1e-290 else 0.0


def merge(
    left: Labels,
    right: Labels,
    caps: Array,
    needs: Sequence[Threshold] = (),
    rows: int | None = None,
    deadline: Deadline = NEVER,
) -> Labels:
    """All sums of a left and a right label within ``caps`` (per cost row), pruned to the non-dominated."""
    return merge_thinned(left, right, caps, needs, rows, math.inf, deadline)[0]


def merge_thinned(
    left: Labels,
    right: Labels,
    caps: Array,
    needs: Sequence[Threshold],
    rows: int | None,
    most: float,
    deadline: Deadline,
) -> tuple[Labels, float]:
    """The same in bounded memory: about 2 * ``most`` labels, and by how much one may fall short.

    ``needs`` say, per first cost, the least value that can still matter; candidates below one of them
    are dropped before anything is sorted. ``rows`` limits dominance to that many cost rows, which is right
    when nothing will be added to the result any more. With one cost row, labels that were thinned, or may be here, know
    their reach.
    """
    if len(left) < len(right):
        left, right = right, left
    if len(right) == 0:
        none = np.zeros(0, np.intp)
        return Labels(left.data[:, :0], Merge(left, right, none, none)), 0.0
    thresholds, own, one = list(needs), None, len(caps) == 1
    reach = one and (len(left.data) + len(right.data) > 4 or len(left) * len(right) > 2 * most)
    if reach:
        left, right = left.tracked(), right.tracked()
    if len(left) * len(right) > DIRECT and one:
        own = _own_threshold(left.data[:2], right.data[:2])
        thresholds.append(own)
    pool = _Pool(1 + len(caps) if rows is None else 1 + rows, 1, most, reach=reach, deadline=deadline)
    height = max(1, CHUNK // len(right))
    for start in range(0, len(left), height):
        deadline.check()
        chunk = left.data[:, start : start + height]
        if pool.add(*_candidates(chunk, right.data, caps, thresholds, start)) and own is not None:
            own.raise_to(*pool.parts[0][0][:2])
    data, flat = pool.prune()
    return Labels(data, Merge(left, right, *np.divmod(flat, len(right)))), pool.step


def sums_within(left: Labels, right: Labels, caps: Array) -> Labels:
    """All sums of few labels within ``caps``, none of them judged: for moments in which dominance is too dear to find."""
    data, flat = _candidates(left.data, right.data, caps, [], 0)
    return Labels(data, Merge(left, right, *np.divmod(flat, max(1, len(right)))))


def _candidates(
    left: Array, right: Array, caps: Array, thresholds: list[Threshold], start: int
) -> tuple[Array, Indices]:
    """Sums that pass caps and thresholds, with their flat index (left index * number of right labels + right)."""
    reach = len(left) > 1 + len(caps)
    sums = [np.add.outer(a, b).ravel() for a, b in zip(left, right, strict=True)]
    index: Indices | None = None
    if left.shape[1] * right.shape[1] == 0:
        return np.zeros((len(sums), 0)), np.zeros(0, np.intp)
    for row, cap in enumerate(caps.tolist(), 1):
        if cap < np.inf:
            sums, index = _select(sums, index, sums[row] <= cap)
    for threshold in thresholds:
        judged = [sums[2], sums[1]] if reach else sums  # what may stand for something better stays
        sums, index = _select(sums, index, threshold.passes(judged))
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
    threshold = Threshold(low, scale, np.full(BINS + 1, -np.inf), np.zeros(0), strict=True)
    for one, two in ((_few(left), right), (left, _few(right))):
        threshold.raise_to(*(np.add.outer(a, b).ravel() for a, b in zip(one, two, strict=True)))
    return threshold


def _few(data: Array) -> Array:
    if data.shape[1] <= THIN:
        return data
    return data[:, np.linspace(0, data.shape[1] - 1, THIN).astype(np.intp)]


def lagrangian_values(data: Array, multipliers: Array) -> Array:
    """value - multipliers * costs of every label."""
    return np.asarray(data[0] - multipliers @ data[1:])


def sums_above(
    left: Labels,
    right: Labels,
    multipliers: Array,
    floor: float,
    most: float,
    *,
    caps: Array | None = None,
    rank: int | None = 1,
    rows: int | None = None,
    deadline: Deadline = NEVER,
) -> Labels:
    """The sums of two sets whose Lagrangian value reaches the floor, and no others: sorted, they are counted first.

    Pruned as :func:`merge` does to what fewer than ``rank`` others beat; None: not at all. With one right label the left,
    pruned already, stays so and nothing is sorted. Raises :class:`TooManyError` for more than ``most`` sums.
    """
    if len(right) == 1 and rows is None:
        return _shifted(left, right, multipliers, floor, caps)
    of_left, of_right = (lagrangian_values(labels.data, multipliers) for labels in (left, right))
    order = np.argsort(-of_right, kind="stable")
    counts = np.searchsorted(-of_right[order], of_left - floor, side="right")
    total = int(counts.sum())
    if total > most:
        raise TooManyError
    pool = _Pool(left.data.shape[0] if rows is None else 1 + rows, rank, deadline=deadline)
    pool.spare = UNJUDGED if pool.judged > 2 else 0
    chunk = CHUNK if pool.judged <= 2 else HELD_MANY
    if total <= chunk:
        deadline.check()
        i, j = _pairs(counts, order)
        pool.add(*_sums_of(left, right, i, j, caps))
        data, flat = pool.prune()
        return Labels(data, Merge(left, right, i[flat], j[flat]))
    ends = np.cumsum(counts)
    for some in _stretches(ends, chunk):
        deadline.check()
        i, j = _pairs(counts[some], order)
        sums, flat = _sums_of(left, right, i + some.start, j, caps)
        pool.add(sums, flat + (ends[some.start] - counts[some.start]))
    data, flat = pool.prune()
    i = np.searchsorted(ends, flat, side="right")
    return Labels(data, Merge(left, right, i, order[flat - (ends - counts)[i]]))


def _pairs(counts: Indices, order: Indices) -> tuple[Indices, Indices]:
    """Each left label with so many of the right ones, the first in ``order``: indices of both."""
    i = np.repeat(np.arange(len(counts)), counts)
    return i, order[np.arange(len(i)) - np.repeat(np.cumsum(counts) - counts, counts)]


def _sums_of(
    left: Labels, right: Labels, i: Indices, j: Indices, caps: Array | None
) -> tuple[Array, Indices]:
    """The sums of some pairs that keep the caps, and which of the pairs these are."""
    sums = left.data[:, i] + right.data[:, j]
    if caps is None:
        return sums, np.arange(len(i))
    inside = np.flatnonzero((sums[1:] <= caps[:, None]).all(axis=0))
    return sums[:, inside], inside


def _stretches(ends: Indices, most: int) -> list[slice]:
    """Stretches of left labels with about ``most`` sums each, given how many there are up to each label."""
    marks = np.searchsorted(ends, np.arange(most, ends[-1], most), side="left") + 1
    edges = np.unique(np.concatenate([[0], marks, [len(ends)]])).tolist()
    return [slice(a, b) for a, b in pairwise(edges)]


def _shifted(left: Labels, one: Labels, multipliers: Array, floor: float, caps: Array | None) -> Labels:
    """The left labels with the only right one, where they reach the floor and keep the caps."""
    data = left.data + one.data
    keep = lagrangian_values(data, multipliers) >= floor
    if caps is not None:
        keep &= (data[1:] <= caps[:, None]).all(axis=0)
    inside = keep.nonzero()[0]
    return Labels(data[:, inside], Merge(left, one, inside, np.zeros_like(inside)))


def best_sums(left: Labels, right: Labels, cap: float, rank: int, deadline: Deadline = NEVER) -> Labels:
    """The ``rank`` sums of highest value within a cap on the one cost row.

    The best partner of every left label is found by sorting; the best sums are with the lefts that have the best ones, since
    each of these alone is as good as any sum with another left, and none of them is below the least of these.
    """
    order = np.argsort(right.data[1], kind="stable")
    cost, value = right.data[1, order], right.data[0, order]
    fits = np.searchsorted(cost, cap - left.data[1], side="right")
    best = np.append(np.maximum.accumulate(value), -np.inf)
    reach = np.where(fits > 0, left.data[0] + best[fits - 1], -np.inf)
    few = pareto(reach[None], rank) if len(reach) else np.zeros(0, np.intp)
    few = few[reach[few] > -np.inf]
    floor = float(reach[few].min()) if len(few) >= rank else -np.inf
    data, i, place = _highest_sums(left.data[0, few], value, fits[few], rank, floor, deadline)
    i, j = few[i], order[place]
    return Labels(np.stack([data, left.data[1, i] + right.data[1, j]]), Merge(left, right, i, j))


def _highest_sums(
    left: Array, right: Array, fits: Indices, rank: int, floor: float, deadline: Deadline
) -> tuple[Array, Indices, Indices]:
    """The ``rank`` highest of left[i] + right[j], j < fits[i], none below the floor; with i and j, the highest first.

    One left after the other; whenever enough sums wait, all but the highest are dropped and the floor rises to their least.
    """
    parts, size = list[tuple[Array, Indices, Indices]](), 0
    for i, (one, count) in enumerate(zip(left.tolist(), fits.tolist(), strict=True)):
        deadline.check()
        sums = one + right[:count]
        j = np.flatnonzero(sums >= floor)
        parts.append((sums[j], np.full(len(j), i), j))
        size += len(j)
        if size > max(CHUNK, 4 * rank):
            parts = [_highest(parts, rank)]
            size, floor = len(parts[0][0]), float(parts[0][0][-1])
    return _highest(parts, rank)


def _highest(parts: list[tuple[Array, Indices, Indices]], rank: int) -> tuple[Array, Indices, Indices]:
    """The ``rank`` highest sums of some parts, the highest first."""
    if not parts:
        return np.zeros(0), np.zeros(0, np.intp), np.zeros(0, np.intp)
    value, i, j = (np.concatenate(rows) for rows in zip(*parts, strict=True))
    keep = pareto(value[None], rank) if len(value) else np.zeros(0, np.intp)
    return value[keep], i[keep], j[keep]


def halved(stages: list[Some]) -> tuple[list[Some], list[Some]]:
    """Two halves of about as many sums: stages go, largest first, to the one that is smaller so far; each by rising size."""
    sizes, halves = [0.0, 0.0], (list[Some](), list[Some]())
    for stage in sorted(stages, key=len, reverse=True):
        smaller = int(sizes[1] < sizes[0])
        sizes[smaller] += math.log(max(len(stage), 1))
        halves[smaller].insert(0, stage)
    return halves
