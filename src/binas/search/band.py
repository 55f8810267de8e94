"""A band of limits on one cost: the best architecture whose cost lies between two numbers, or close above one.

Dominance drops nothing here: a dearer partial architecture may be the one that ends inside the band. So the space is met in
the middle. With multipliers m on the limits, an architecture's value is at most UB(m) minus the sum of its reduced costs
(:mod:`binas.search.lagrangian`); all partial architectures of each half of the stages whose reduced costs sum to at most g
are listed, and the best pair whose costs add up into the band is found by sorting. A pair of value at least UB - g is the
optimum; else g grows. 10^5 labels a half stand for 10^10 architectures, so even a band of a millionth is searched exactly.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from binas.search.deadline import NEVER, Deadline, TimeUpError
from binas.search.dual import Padded, improve, solve_dual
from binas.search.labels import Labels, Merge, decode, nothing
from binas.search.lagrangian import Exact, Neighbourhood, Outcome, all_reachable, better, exact_of
from binas.search.limits import Limit
from binas.search.merging import TooManyError, best_sums, halved, lagrangian_values, sums_above
from binas.search.problem import SearchProblem
from binas.search.terms import Row, Terms, build_terms, limit_rows

Array = NDArray[np.float64]
Indices = NDArray[np.intp]

HALF = 1_500_000  # labels of one half, at most
THINNED = 300_000  # labels of one half where they are drawn at random
DRAWS = 8
FIRST_GAP = 1e-4  # of the widest, where the growing begins
GROWTH = 2.0


def band_rows(problem: SearchProblem) -> list[Row] | None:
    """The limits as at most one upper and one lower row on the same cost; None where they are on several costs."""
    rows = limit_rows(problem)
    if len({row.cost for row in rows}) != 1:
        return None
    sides = [[row for row in rows if row.sign == sign] for sign in (1.0, -1.0)]
    return [min(side, key=lambda row: row.bound) for side in sides if side]


def solve_band(
    problem: SearchProblem,
    rows: list[Row],
    most: int = HALF,
    deadline: Deadline = NEVER,
    enough: float = 0.0,
) -> Outcome:
    """The best architecture that keeps ``rows`` (of :func:`band_rows`), by lists of at most ``most`` labels a half.

    At most ``enough`` below the bound it is proven. Where lists or time end first, the best met is not.
    """
    terms = build_terms(problem, rows)
    padded = Padded(terms)
    if not all_reachable(padded) or (len(rows) == 2 and -rows[1].bound > rows[0].bound):
        return Outcome(None, True, -np.inf)
    tolerances = np.array([problem.tolerance(Limit(row.cost, row.bound)) for row in rows])
    return _Halves(padded, rows[0].sign, tolerances, most, deadline, enough).solve()


def drawn_best(padded: Padded, sign: float, number: int, gap: float, deadline: Deadline) -> Labels:
    """The ``number`` best sums of two drawn halves under one row of that sign: good ones, where all are too many to list.

    Raises :class:`TooManyError` where one stage alone has too many within the gap, :class:`TimeUpError` past the deadline.
    """
    halves = _Halves(padded, sign, np.zeros(1), HALF, deadline, 0.0)
    left, right = halves.lists(gap, np.random.default_rng(0))
    return best_sums(left, right, float(padded.budget[0]), number, deadline)


class _Halves:
    """The two halves of a problem's stages, listed up to a gap."""

    def __init__(
        self, padded: Padded, sign: float, tolerances: Array, most: int, deadline: Deadline, enough: float
    ):
        self.padded, self.sign, self.most, self.deadline = padded, sign, most, deadline
        self.terms: Terms = padded.terms
        dual = solve_dual(padded, deadline)
        self.start = None if dual.incumbent is None else improve(padded, dual.incumbent, deadline)
        self.near = Neighbourhood(padded, dual.relaxed, most, rank=None, deadline=deadline)
        self.bound = dual.relaxed.bound + float(self.terms.constant[0])
        rounding = float(dual.relaxed.multipliers @ tolerances)
        self.enough = max(enough, self.near.slack + rounding)
        self.candidates = 0

    def solve(self) -> Outcome:
        """Growing gaps until the best pair proves itself; drawn lists where that is too much."""
        best = None if self.start is None else exact_of(self.padded, self.start)
        gap = FIRST_GAP * self.near.widest
        try:
            while True:
                gap = min(gap, self._short(best)) + self.near.slack
                best = better(best, self._pair(gap))
                if self._short(best) <= gap:
                    return Outcome(best, True, -np.inf if best is None else best.value)
                gap *= GROWTH
        except TooManyError:
            return self._drawn(best, gap)
        except TimeUpError:
            return self._stopped(best)

    def _short(self, best: Exact | None) -> float:
        """The largest gap at which something better than ``best`` can be."""
        return self.near.widest if best is None else self.bound - best.value

    def _stopped(self, best: Exact | None) -> Outcome:
        """What there is: proven where it all but reaches the bound, as sums of many parts do.

        The bound is that of the limits with their tolerances, which are for rounding: short by these is not short.
        """
        return Outcome(best, best is not None and self._short(best) <= self.enough, self.bound)

    def _drawn(self, best: Exact | None, gap: float) -> Outcome:
        """The best of some lists that leave most out."""
        rng = np.random.default_rng(0)
        try:
            for _ in range(DRAWS):
                best = better(best, self._pair(gap, rng))
                if self._stopped(best).proven:
                    break
        except (TooManyError, TimeUpError):  # by one stage alone
            pass
        return self._stopped(best)

    def _pair(self, gap: float, rng: np.random.Generator | None = None) -> Exact | None:
        """The best architecture inside the band whose halves are both within the gap."""
        left, right = self.lists(gap, rng)
        self.candidates += len(left) + len(right)
        place = self._best_place(left.data, right.data)
        if place is None:
            return None
        i, j = place
        pair = Labels(
            left.data[:, [i]] + right.data[:, [j]], Merge(left, right, np.array([i]), np.array([j]))
        )
        depths, configs = decode(self.terms, pair, np.arange(1))
        value = float(pair.data[0, 0] + self.terms.constant[0])
        return Exact(value, depths[0], configs[0], self.candidates)

    def lists(self, gap: float, rng: np.random.Generator | None) -> tuple[Labels, Labels]:
        """Both halves."""
        stages = self.near.stages(gap)
        if rng is not None:
            tilt = self._tilt([self.sign * stage.data[1] for stage in stages])
            few = int(min(self.most, THINNED) ** 0.5)
            stages = [_draw(stage, few, tilt * self.sign * stage.data[1], rng) for stage in stages]
        one, two = halved(stages)
        return self._fold(one, gap, rng), self._fold(two, gap, rng)

    def _tilt(self, costs: list[Array]) -> float:
        """t such that labels drawn with weights exp(t * cost) cost, on average, what the band asks for (by bisection)."""
        target = float(np.mean([side for side in self._band() if np.isfinite(side)]))
        scale = 50.0 / max(1e-300, *(float(np.ptp(cost)) for cost in costs))
        low, high = -scale, scale
        for _ in range(40):
            middle = (low + high) / 2
            below = sum(_tilted_mean(cost, middle) for cost in costs) < target
            low, high = (middle, high) if below else (low, middle)
        return low

    def _fold(self, stages: list[Labels], gap: float, rng: np.random.Generator | None) -> Labels:
        """All sums of some stages within the gap, of those with equal costs the best; sorted by cost."""
        total, reached, multipliers = nothing(self.terms.rows), 0.0, self.near.at.multipliers
        few = min(self.most, THINNED)
        for stage in stages:
            if rng is not None:
                total = _draw(total, few // max(1, len(stage)), np.zeros(len(total)), rng)
            reached += float(lagrangian_values(stage.data, multipliers).max(initial=-np.inf))
            sums = sums_above(
                total, stage, multipliers, reached - gap, self.most, rank=None, deadline=self.deadline
            )
            total = _best_of_equals(sums)
        return total

    def _best_place(self, left: Array, right: Array) -> tuple[int, int] | None:
        """Indices of the pair of highest value whose costs, rising in ``right``, add up into the band."""
        if not left.shape[1] or not right.shape[1]:
            return None
        cost, other = self.sign * left[1], self.sign * right[1]
        order = np.argsort(other, kind="stable")
        other, values = other[order], right[0, order]
        lowest, highest = self._band()
        start = np.searchsorted(other, lowest - cost, side="left")
        stop = np.searchsorted(other, highest - cost, side="right")
        totals = left[0] + window_maxima(values, start, stop)
        i = int(np.argmax(totals))
        if totals[i] == -np.inf:
            return None
        return i, int(order[start[i] + int(np.argmax(values[start[i] : stop[i]]))])

    def _band(self) -> tuple[float, float]:
        """The least and greatest cost of the choices (without the fixed part) inside the band."""
        signs = (self.sign, -self.sign)
        bounds = {sign: sign * float(bound) for sign, bound in zip(signs, self.padded.budget, strict=False)}
        return bounds.get(-1.0, -np.inf), bounds.get(1.0, np.inf)


def _best_of_equals(labels: Labels) -> Labels:
    """Of labels with the same cost the one of highest value, by rising first row."""
    order = np.lexsort((-labels.data[0], labels.data[1]))
    first = np.diff(labels.data[1, order], prepend=-np.inf) > 0
    return labels.take(order[first])


def _tilted_mean(cost: Array, tilt: float) -> float:
    """The mean of some costs under weights exp(tilt * cost)."""
    exponent = tilt * cost
    return float(np.average(cost, weights=np.exp(exponent - exponent.max())))


def _draw(labels: Labels, count: int, log_weights: Array, rng: np.random.Generator) -> Labels:
    """At most ``count`` of the labels, drawn without replacement (the largest weights with Gumbel noise)."""
    if len(labels) <= count:
        return labels
    return labels.take(np.argsort(-log_weights - rng.gumbel(size=len(labels)))[: max(1, count)])


def window_maxima(values: Array, start: Indices, stop: Indices) -> Array:
    """max(values[start:stop]) for each pair, -inf where empty: two overlapping windows of a power of two."""
    result, length = np.full(len(start), -np.inf), stop - start
    table, width = values, 1
    while width <= length.max(initial=0):
        mine = np.flatnonzero((length >= width) & (length < 2 * width))
        result[mine] = np.maximum(table[start[mine]], table[stop[mine] - width])
        table, width = np.maximum(table[:-width], table[width:]), 2 * width
    return result
