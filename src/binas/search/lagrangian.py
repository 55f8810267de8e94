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
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from binas.search.deadline import NEVER, Deadline, TimeUpError
from binas.search.dual import Padded, Reduced, Relaxed, cheapest, improve, indices_of, solve_dual
from binas.search.few import best_of_few
from binas.search.labels import Labels, choices, decode, nothing, unite
from binas.search.merging import UNJUDGED, TooManyError, best_sums, halved, lagrangian_values, sums_above
from binas.search.terms import Terms

Array = NDArray[np.float64]
Ints = NDArray[np.int64]

MAX_CANDIDATES = 3_000_000
CROWDED = 3.0  # choices near the bound for each block; with more, a smaller gap is tried first
SMALLER = 8.0
GROWTH = 3.0


@dataclass(frozen=True, eq=False)
class Exact:
    """An architecture met on the way: value, indices, and how many sums of labels were made."""

    value: float
    depths: Ints
    configs: Ints
    candidates: int


@dataclass(frozen=True, eq=False)
class Outcome:
    """How a search ended: the best met (None if nothing was), whether that is proven, and what nothing is better than.

    Proven with nothing met: no architecture keeps the bounds.
    """

    best: Exact | None
    proven: bool
    bound: float


def solve_exact(
    terms: Terms, max_candidates: int = MAX_CANDIDATES, deadline: Deadline = NEVER, enough: float = 0.0
) -> Outcome:
    """The proven best architecture within all bounds.

    Time grows with the gap between bound and answer, not with the size of the space. Not proven where the deadline or
    more than ``max_candidates`` sums of labels end it first; but at a gap of at most ``enough`` that is proof.
    """
    padded = Padded(terms)
    if not all_reachable(padded):
        return Outcome(None, True, -np.inf)
    dual = solve_dual(padded, deadline)
    start = None if dual.incumbent is None else improve(padded, dual.incumbent, deadline)
    bound = dual.relaxed.bound + float(terms.constant[0])
    known = None if start is None else exact_of(padded, start)
    gap = np.inf if known is None else bound - known.value
    if gap <= 0:
        return Outcome(known, True, bound)
    near = Neighbourhood(padded, dual.relaxed, max_candidates, deadline=deadline)
    tried = near.first(gap)
    while True:
        try:
            known = better(known, near.best(tried + near.slack))
        except (TimeUpError, TooManyError):
            return Outcome(known, gap <= enough, bound)
        gap = np.inf if known is None else bound - known.value
        if gap <= tried or tried == np.inf:
            return Outcome(known, True, -np.inf if known is None else known.value)
        tried = min(gap, GROWTH * tried)


def better(one: Exact | None, two: Exact | None) -> Exact | None:
    """The one of higher value; of equals the first."""
    if one is None or two is None:
        return one or two
    return two if two.value > one.value else one


def all_reachable(padded: Padded) -> bool:
    """Whether each bound alone can be kept."""
    return all(
        cheapest(padded, row).totals[1 + row] <= padded.budget[row] for row in range(padded.terms.rows)
    )


def exact_of(padded: Padded, relaxed: Relaxed, candidates: int = 0) -> Exact:
    """An architecture of the dual with its value."""
    depths, configs = indices_of(padded, relaxed)
    return Exact(float(relaxed.totals[0] + padded.terms.constant[0]), depths, configs, candidates)


@dataclass(frozen=True, eq=False)
class Neighbourhood:
    """Architectures close to the bound of some multipliers: those whose reduced costs sum to at most a gap.

    Of these only what fewer than ``rank`` others beat (None: all). Raises :class:`TooManyError` for more than
    ``most`` sums in one step (``last`` times as many in that of a frontier), :class:`TimeUpError` past the deadline.
    """

    padded: Padded
    at: Relaxed
    most: int
    rank: int | None = 1
    deadline: Deadline = NEVER
    last: int = 1

    @cached_property
    def reduced(self) -> Reduced:
        """The reduced costs."""
        return Reduced.at(self.padded, self.at.multipliers)

    @cached_property
    def slack(self) -> float:
        """What rounding may take from a gap."""
        size = abs(self.at.bound) + float(self.at.multipliers @ np.abs(self.at.totals[1:]))
        return 1e-9 * max(1.0, abs(self.at.bound)) + 1e-12 * size

    @cached_property
    def widest(self) -> float:
        """Nothing is further from the bound than this, but for what it leaves of the budgets."""
        parts = [part[np.isfinite(part)] for part in (self.reduced.configs, self.reduced.depths)]
        return sum(float(part.sum()) for part in parts)

    def first(self, gap: float) -> float:
        """The gap to begin with: a good answer is often far closer to the bound than the one known.

        What is found within a smaller gap is the best of all, or at least a better one to go on with.
        """
        if not np.isfinite(gap):
            return gap
        near = int((self.reduced.configs <= gap).sum())
        return gap / SMALLER if near > CROWDED * self.reduced.block_best.size else gap

    def best(self, gap: float) -> Exact | None:
        """The best architecture within the budgets and the gap; under one budget few choices are tried one by one."""
        few = best_of_few(self.padded, self.at, self.reduced, gap) if self.padded.terms.rows == 1 else None
        if few is None:
            return self.read(*self.whole(gap))
        return None if few[0] is None else exact_of(self.padded, few[0], few[1])

    def whole(self, gap: float) -> tuple[Labels, int]:
        """Architectures within the budgets and the gap, with a ``rank`` only so many, the best; and how many sums were made.

        Under one budget two halves of the stages are folded, and the best pairs of them found by sorting.
        """
        stages, rank = sorted(self.stages(gap), key=len), self.rank
        if rank is None or self.padded.terms.rows != 1:
            return self._folded(
                stages, np.zeros(self.padded.terms.rows), gap, None if rank is None else 0, self.most
            )
        halves = halved(stages)
        lows = [_lows(half, 1).sum(axis=0) for half in halves]
        (one, first), (two, second) = (
            self._folded(half, low, gap, None, self.most)
            for half, low in zip(halves, lows[::-1], strict=True)
        )
        self.deadline.check()
        return best_sums(one, two, float(self.padded.budget[0]), rank, self.deadline), first + second

    def frontier(self, gap: float) -> Labels:
        """Architectures within the budgets and the gap that no other beats in value and first cost, by rising cost."""
        stages = sorted(self.stages(gap), key=len)
        return self._folded(stages, np.zeros(self.padded.terms.rows), gap, 1, self.last * self.most)[0]

    def _folded(
        self, stages: list[Labels], others: Array, gap: float, rows: int | None, most: int
    ) -> tuple[Labels, int]:
        """Some stages beside ``others`` of at least that cost, and how many sums were made.

        In the last step, of at most ``most`` sums, only so many cost ``rows`` matter; None: all.
        """
        lows, multipliers = _lows(stages, len(others)), self.at.multipliers
        after = others + np.vstack([np.cumsum(lows[::-1], axis=0)[::-1][1:], np.zeros_like(others)])
        total, count, reached = nothing(len(others)), 0, 0.0
        for k, stage in enumerate(stages):
            reached += float(lagrangian_values(stage.data, multipliers).max(initial=-np.inf))
            count += len(total) * len(stage)
            left, right = (stage, total) if len(total) == 1 else (total, stage)
            last = k == len(stages) - 1
            total = sums_above(
                left, right, multipliers, reached - gap, most if last else self.most,
                caps=self.padded.budget - after[k], rank=self.rank, rows=rows if last else None, deadline=self.deadline,
            )  # fmt: skip
        return total, count

    def stages(self, gap: float) -> list[Labels]:
        """The variants of every stage within the gap."""
        return [self.stage(s, gap) for s in range(len(self.padded.terms.stages))]

    def stage(self, s: int, gap: float) -> Labels:
        """Variants of a stage whose reduced cost is within the gap, over all depths that are."""
        stage, reduced, rows = self.padded.terms.stages[s], self.reduced, self.padded.terms.rows
        loss = reduced.depths[s].tolist()
        allowed = {d: p for p, d in enumerate(stage.depths) if loss[p] <= gap}
        parts: list[Labels] = []
        prefix, reached = nothing(rows), 0.0
        near, best = reduced.configs[s] <= gap, reduced.block_best[s].tolist()
        for b in range(-1, max(allowed)):
            if b >= 0:
                block = choices(s, b, stage.blocks[b], near[b, : stage.blocks[b].shape[1]].nonzero()[0])
                least = min(loss[p] for d, p in allowed.items() if d > b)
                reached += best[b]
                prefix = sums_above(
                    prefix, block, self.at.multipliers, reached - gap + least, self.most,
                    rank=self.rank, deadline=self.deadline,
                )  # fmt: skip
            if b + 1 in allowed:
                parts.append(
                    self._at_depth(prefix, stage.depth[:, allowed[b + 1]], reached, loss[allowed[b + 1]], gap)
                )
        few = rows > 1 and sum(map(len, parts)) <= UNJUDGED
        return unite(s, tuple(allowed), parts, None if few else self.rank)

    def _at_depth(self, prefix: Labels, own: Array, reached: float, loss: float, gap: float) -> Labels:
        """The labels of one depth that are within the gap, with what the depth itself adds."""
        keep = np.flatnonzero(lagrangian_values(prefix.data, self.at.multipliers) >= reached - gap + loss)
        part = prefix if len(keep) == len(prefix) else prefix.take(keep)
        return Labels(part.data + own[:, None], part.source)

    def read(self, labels: Labels, count: int) -> Exact | None:
        """The best of some labels."""
        if not len(labels):
            return None
        terms, place = self.padded.terms, int(np.argmax(labels.data[0]))
        depths, configs = decode(terms, labels, np.array([place]))
        return Exact(float(labels.data[0, place] + terms.constant[0]), depths[0], configs[0], count)


def _lows(stages: list[Labels], rows: int) -> Array:
    """The least of each cost row in each stage, (stages, rows)."""
    least = [stage.data[1:].min(axis=1, initial=np.inf) for stage in stages]
    return np.array(least).reshape(len(stages), rows)
