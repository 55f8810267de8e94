"""Folding a whole problem: blocks into stages, stages into the frontier (exact for all limits at once).

Objective and costs are sums over stages, so the best completion of a partial architecture does not
depend on how it was made: a label that another beats in value and in every cost can be dropped at once.
Prefixes of a stage are shared by its depths.

With further limits, labels must be compared in several costs and far fewer are dominated. Two things then
keep the fold small and exact: an approximate frontier (a lower bound that real architectures reach) and the
concave hull of what the remaining stages can add (an upper bound, the relaxed knapsack). A label that cannot
reach the lower bound at any total cost is dropped. If even that is too much, or time is up, labels are thinned and the
certified error says by how much the result may fall short.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from binas.search.bounds import Bounds, ceilings, make_bounds, shortfall
from binas.search.deadline import NEVER, Deadline, TimeUpError
from binas.search.labels import Labels, choices, nothing, unite
from binas.search.merging import (
    Threshold,
    TooManyError,
    merge_thinned,
    power_of_two,
    sampled,
    sums_within,
    thinned,
)
from binas.search.pareto import pareto
from binas.search.terms import StageTerms, Terms

Array = NDArray[np.float64]

MAX_LABELS = 400_000
MAX_LABELS_MANY = 100_000  # with further cost rows, where dominance is dearer to find
MAX_PAIRS = 400_000_000  # sums made in one merge, a few seconds; beyond that labels are thinned first
LEAST_LABELS = 2000
FIRST_PASS = 2000
MAX_PAIRS_THINNED = 80_000_000  # the same where labels were left out already, and more time buys little
RATE = 10_000_000  # sums a second that a merge is reckoned to make, where time is limited
RATE_THINNED = 3_000_000  # the same where labels were left out already: little is dominated there
LAST = 1_000_000  # sums made in all merges together when time is up: moments
LAST_MANY = 500_000  # the same with further cost rows
LAST_HULLS = 1000  # hulls of blocks that the error is certified with when time is up
FEW = 64  # labels: so few are picked by prices alone
LAST_POINTS = 50_000  # architectures read back when time is up
READ_RATE = 100_000  # architectures a second that are reckoned to be read back
MEMORY = 2**30  # bytes
BOUND_ROWS = 2  # from this many cost rows on, bounds pay off (measured; with one, dominance is cheap to find)


@dataclass(frozen=True)
class Effort:
    """What a fold may take: labels in one set (None: as is usual), bytes in all, points given up, and until when.

    ``enough``: points that a result which is not exact should be certified within.
    """

    max_labels: int | None = None
    memory: float = MEMORY
    tolerance: float = 0.0
    deadline: Deadline = NEVER
    enough: float = 0.001


@dataclass(frozen=True, eq=False)
class Folded:
    """All non-dominated labels of a problem and the certified error: no value is short by more.

    ``stopped``: time or memory were short, and below the first label's cost there may be others. ``ceilings``: what
    nothing is better than from each label's cost to the next, where there is an error.
    """

    labels: Labels
    error: float
    stopped: bool = False
    ceilings: Array | None = None


def fold(terms: Terms, effort: Effort | None = None) -> Folded:
    """The frontier of the whole problem.

    Row 1 is the traced cost; rows with finite bounds are respected. A tolerance > 0 allows thinning
    from the start with at most that certified error.
    """
    effort = effort or Effort()
    folding = _Folding(terms, effort)
    budget = terms.bounds - terms.constant[1:]
    stages = _feasible([folding.stage(stage, s) for s, stage in enumerate(terms.stages)], budget)
    if stages is None:
        return folding.done(Labels(np.zeros((1 + terms.rows, 0)), None), None)
    stages.sort(key=len)
    bounds = None
    if terms.rows >= BOUND_ROWS:
        bounds = make_bounds(stages, budget, effort.deadline)
        stages = _worthy(stages, bounds, folding)
        bounds = _raised(terms, stages, budget, bounds, effort)
        stages = _worthy(stages, bounds, folding)
    return folding.done(folding.whole(stages, budget, bounds), bounds)


def _raised(terms: Terms, stages: list[Labels], budget: Array, bounds: Bounds, effort: Effort) -> Bounds:
    """Better lower bounds from a first, rough fold, where there is time for it."""
    if effort.deadline.late:
        return bounds
    rough = _Folding(terms, Effort(FIRST_PASS, effort.memory, deadline=effort.deadline))
    return bounds.raised(rough.whole(stages, budget, bounds).data)


def _worthy(stages: list[Labels], bounds: Bounds, folding: _Folding) -> list[Labels]:
    given = folding.error, folding.effort.deadline
    return [stage.take(bounds.worth_keeping(k, stage.data, *given)) for k, stage in enumerate(stages)]


def _feasible(stages: list[Labels], budget: Array) -> list[Labels] | None:
    """Stages without labels that break a budget even beside the cheapest others; None if one is left empty."""
    lows = np.array([stage.data[1 : 1 + len(budget)].min(axis=1, initial=np.inf) for stage in stages])
    if not np.isfinite(lows).all():
        return None
    others = lows.sum(axis=0) - lows
    kept = [_within(stage, budget - other) for stage, other in zip(stages, others, strict=True)]
    return kept if all(len(stage) for stage in kept) else None


def _within(labels: Labels, caps: Array) -> Labels:
    keep = np.flatnonzero((labels.data[1 : 1 + len(caps)] <= caps[:, None]).all(axis=0))
    return labels if len(keep) == len(labels) else labels.take(keep)


def _shifted(labels: Labels, part: Array) -> Labels:
    """Labels with the value and costs of a depth added; their reach grows as the value does."""
    return Labels(labels.data + np.append(part, part[:1])[: len(labels.data), None], labels.source)


class _Folding:
    """Merges one after the other; each gets its share of the memory, and after the deadline next to no time.

    ``error`` is the certified loss of thinning; where labels had to be left out without one (several cost rows), it is
    infinite and the hull of everything says how far the result may be off.
    """

    def __init__(self, terms: Terms, effort: Effort):
        self.terms, self.effort, self.error, self.stopped = terms, effort, 0.0, False
        self.most = effort.max_labels or (MAX_LABELS if terms.rows == 1 else MAX_LABELS_MANY)
        self.free = effort.memory / 2
        self.merges = sum(len(stage.blocks) + 2 for stage in terms.stages)
        point = 3 * 8 * len(terms.space.stages) * (1 + terms.space.max_depth)  # to read one back
        self.points = max(LEAST_LABELS, int(effort.memory / 4 / point))
        self.given = power_of_two(effort.tolerance / len(terms.stages))
        self.fair = power_of_two(effort.enough / len(terms.stages)) if terms.rows == 1 else 0.0

    def _step(self, lost: float = 0.0) -> float:
        """By how much labels may be short after one more merge: where something was lost already, that is what is enough."""
        return max(lost, self.given, self.fair if self.error or lost else 0.0)

    def stage(self, stage: StageTerms, s: int) -> Labels:
        """Non-dominated variants of one stage over all its depths."""
        prefix, open_caps = nothing(self.terms.rows), np.full(self.terms.rows, np.inf)
        parts: list[Labels] = []
        depth_parts = dict(zip(stage.depths, stage.depth.T, strict=True))
        for b in range(-1, stage.depths[-1]):
            if b >= 0:
                block = choices(s, b, stage.blocks[b], None if self.hurried else pareto(stage.blocks[b]))
                prefix = self._kept(*self._merged(prefix, block, open_caps))
            if b + 1 in depth_parts:
                parts.append(_shifted(prefix, depth_parts[b + 1]))
        reach = any(self._has_reach(part) for part in parts)
        parts = [part.tracked() for part in parts] if reach else parts
        return self._kept(unite(s, stage.depths, parts, reach=reach))

    def _has_reach(self, labels: Labels) -> bool:
        return len(labels.data) > 1 + self.terms.rows

    def whole(self, stages: list[Labels], budget: Array, bounds: Bounds | None) -> Labels:
        """All stages together: labels that no other beats in value and traced cost."""
        lows = np.array([stage.data[1 : 1 + self.terms.rows].min(axis=1) for stage in stages])
        after = np.vstack([np.cumsum(lows[::-1], axis=0)[::-1][1:], np.zeros(self.terms.rows)])
        total = stages[0]
        for k, stage in enumerate(stages[1:], 1):
            total, stage = self._paired(total, stage, len(stages) - k)
            needs = (
                () if bounds is None else bounds.needs(list(range(k + 1)), self._slack, self.effort.deadline)
            )
            rows = 1 if k == len(stages) - 1 else None
            total, lost = self._merged(total, stage, budget - after[k], needs, rows)
            if rows is None:
                total = self._kept(total, self._step(lost))
            else:
                return self._thin(total, self._points, lost, rows)
        return self._thin(self._standing(total, pareto(total.data[:2])), self._points, rows=1)

    @property
    def _points(self) -> int:
        """How many architectures there is room and time for in the end."""
        return int(min(self.points, max(LAST_POINTS, READ_RATE * self.effort.deadline.left)))

    def _standing(self, labels: Labels, keep: NDArray[np.intp]) -> Labels:
        """The labels at ``keep``, with the reach of the others where it is known."""
        return labels.standing(keep) if self._has_reach(labels) else labels.take(keep)

    def _paired(self, left: Labels, right: Labels, merges: int) -> tuple[Labels, Labels]:
        """Both sets, thinned until their sums can be made in this merge's share of the time."""
        most, rate = (MAX_PAIRS_THINNED, RATE_THINNED) if self.error else (MAX_PAIRS, RATE)
        pairs = min(most, max(self.few**2, rate * self.effort.deadline.left / merges))
        if pairs >= len(left) * len(right):
            return left, right
        least, sizes = min(self.few, LEAST_LABELS), self._balanced(left, right, pairs)
        one, two = (
            self._thin(x, max(least, int(size))) for x, size in zip((left, right), sizes, strict=True)
        )
        return one, two

    def _balanced(self, left: Labels, right: Labels, pairs: float) -> tuple[float, float]:
        """How many labels of each set make so many pairs and lose least: a share of a range each, with one cost only."""
        if self.terms.rows > 1:
            share = (pairs / (len(left) * len(right))) ** 0.5
            return share * len(left), share * len(right)
        ranges = [max(float(np.ptp(x.data[0])), 1e-300) for x in (left, right)]
        one = min(len(left), max(pairs / len(right), (pairs * ranges[0] / ranges[1]) ** 0.5))
        return one, pairs / one

    @property
    def few(self) -> int:
        """Labels of a set when time is up."""
        last = LAST if self.terms.rows == 1 else LAST_MANY
        return max(16, int((last / max(1, self.merges)) ** 0.5))

    @property
    def hurried(self) -> bool:
        """Whether time is up and dominance too dear to find."""
        return self.stopped and self.terms.rows > 1

    @property
    def _slack(self) -> float:
        """What labels that stand in for others may be short by."""
        return self.error if math.isfinite(self.error) else 0.0

    def _share(self) -> int:
        """How many labels the next set may have, of what memory is left for those still to come."""
        share = self.free / max(1, self.merges) / self._size
        return min(
            self.most, max(LEAST_LABELS, int(min(share, RATE_THINNED * self.effort.deadline.left / 8)))
        )

    def _most(self, left: Labels, right: Labels, rows: int | None) -> int:
        """How many sums of two sets may be held: no more than twice those that their thinning will leave."""
        share, step = self._share(), self._step()
        if rows is not None or not step:
            return share
        spread = float(np.ptp(left.data[0]) + np.ptp(right.data[0]))
        return min(share, max(LEAST_LABELS, int(2 * spread / step)))

    @property
    def _size(self) -> int:
        """Bytes of a label: value, costs, and where it came from."""
        return 8 * (3 + self.terms.rows)

    def _merged(
        self,
        left: Labels,
        right: Labels,
        caps: Array,
        needs: Sequence[Threshold] = (),
        rows: int | None = None,
    ) -> tuple[Labels, float]:
        """The sums and their loss; in a moment and of few labels where time is up, or nothing tells so many apart."""
        deadline = self.effort.deadline
        try:
            deadline.check()
            return merge_thinned(left, right, caps, needs, rows, self._most(left, right, rows), deadline)
        except (TimeUpError, TooManyError) as reason:
            self.stopped = self.stopped or isinstance(reason, TimeUpError)
        left, right = self._few(left), self._few(right)
        if self.hurried and rows is None:
            return sums_within(left, right, caps), 0.0
        return merge_thinned(left, right, caps, (), rows, math.inf, NEVER)

    def _kept(self, labels: Labels, lost: float = 0.0) -> Labels:
        """At most as many labels as there is room for; what they were merged with a loss of is part of it."""
        result = self._few(labels, lost=lost) if self.stopped else self._thin(labels, self._share(), lost)
        self.merges -= 1
        self.free -= self._size * len(result)
        return result

    def _thin(self, labels: Labels, most: int, lost: float = 0.0, rows: int | None = None) -> Labels:
        """Drop labels that another of no higher cost nearly reaches; the loss in value, at least ``lost``, is certified."""
        if len(labels) <= most and not lost:
            return labels
        if self.terms.rows == 1 and rows is None:
            return self._sampled(labels.tracked(), most, lost)
        try:
            judged = labels.data[: 1 + (rows or self.terms.rows)]
            deadline = (
                self.effort.deadline if rows is None else NEVER
            )  # the last points: all there is room for
            kept, lost = thinned(judged, most, lost, deadline)
        except TooManyError:
            return self._few(labels, most)
        except TimeUpError:
            self.stopped = True
            return self._few(labels)
        self.error += lost
        return self._standing(labels.tracked() if self.terms.rows == 1 else labels, kept)

    def _sampled(self, labels: Labels, most: int, lost: float) -> Labels:
        """The same with one cost row, for labels that others will be added to: each knows what it stands for."""
        if lost:
            kept, lost = thinned(labels.data[:2], len(labels), lost)
            labels = labels.standing(kept)
        if len(labels) > most:
            kept, more = sampled(labels.data[0], most)
            labels, lost = labels.standing(kept), lost + more
        self.error += lost
        return labels

    def _few(self, labels: Labels, most: int | None = None, lost: float = 0.0) -> Labels:
        """A few labels: with one cost row thinned; with more picked, without knowing what is lost."""
        most = most or self.few
        if self.terms.rows == 1:
            return self._thin(labels, most, lost)
        if len(labels) <= most and not lost:
            return labels
        self.error = math.inf
        return labels.take(picked(labels.data, most))

    def done(self, labels: Labels, bounds: Bounds | None) -> Folded:
        """The result with its certified error."""
        data = _shifted(labels, self.terms.constant).data
        labels = Labels(data[: 1 + self.terms.rows], labels.source)
        if self.error and not len(labels):  # nothing was found, and nothing ruled out
            return Folded(labels, math.inf, True)
        if not self.error:
            return Folded(labels, 0.0, self.stopped)
        vectors = [np.zeros(self.terms.rows - 1)] if bounds is None else self._some(bounds.multipliers)
        reach = data[2] if len(data) > 1 + self.terms.rows else None
        values, above = labels.data[0], ceilings(self.terms, labels.data, vectors, reach)
        lost = min(self.error, shortfall(values, above))
        return Folded(labels, lost, self.stopped, np.minimum(above, values + self.error))

    def _some(self, vectors: Sequence[Array]) -> list[Array]:
        """All multipliers, or as many of them as there are moments for when time is up."""
        blocks = sum(len(stage.blocks) for stage in self.terms.stages)
        most = max(1, LAST_HULLS // max(1, blocks)) if self.stopped else len(vectors)
        return list(vectors[:: -(-len(vectors) // most)])


def _corners(data: Array, count: int) -> NDArray[np.intp]:
    """About ``count`` labels of several cost rows, in a moment: the best of value - prices * costs at so many prices.

    Prices are drawn, always the same ones, from a factor of 50 below to 50 above spread of value / spread of cost.
    """
    scaled = data / np.maximum(np.ptp(data, axis=1), 1e-300)[:, None]
    prices = 50.0 ** np.random.default_rng(0).uniform(-1, 1, (count, data.shape[0] - 1))
    best = np.argmax(scaled[0] - prices @ scaled[1:], axis=1)
    return np.unique(np.concatenate([best, np.argmin(data[1:], axis=1), [np.argmin(scaled[1:].sum(axis=0))]]))


def picked(data: Array, count: int) -> NDArray[np.intp]:
    """About ``count`` labels of several cost rows: spread over frontiers of value - m * cost, and the cheapest."""
    if count < FEW:
        return _corners(data, count)
    spread = np.maximum(np.ptp(data, axis=1), 1e-300)
    prices = [np.zeros(data.shape[0] - 2)]
    for row in range(data.shape[0] - 2):
        prices += [factor * np.eye(data.shape[0] - 2)[row] for factor in (0.3, 1.0, 3.0)]
    scaled = (data[1:] / spread[1:, None]).sum(axis=0)
    result = [np.argmin(data[1:], axis=1), np.array([int(np.argmin(scaled))])]
    for price in prices:
        flat = np.stack([data[0] / spread[0] - price @ (data[2:] / spread[2:, None]), data[1]])
        front = pareto(flat)
        marks = np.linspace(0, len(front) - 1, max(2, count // len(prices))).astype(np.intp)
        result.append(front[marks])
    return np.unique(np.concatenate(result))
