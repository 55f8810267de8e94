"""A band of limits on one cost: the best architecture whose cost lies between two numbers, or close above one.

Dominance drops nothing here: a dearer partial architecture may be the one that ends inside the band. So the space is met in
the middle. With multipliers m on the limits, an architecture's value is at most UB(m) minus the sum of its reduced costs
(:mod:`binas.search.lagrangian`); all partial architectures of each half of the stages whose reduced costs sum to at most g
are listed, and the best pair whose costs add up into the band is found by sorting. A pair of value at least UB - g is the
optimum; else g grows. 10^5 labels a half stand for 10^10 architectures, so even a band of a millionth is searched exactly.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from binas.search.dual import Padded, Relaxed, cheapest, improve, indices_of, solve_dual
from binas.search.labels import Labels, Merge, decode, nothing
from binas.search.lagrangian import (
    Exact,
    Reduced,
    TooManyError,
    lagrangian_values,
    stage_labels,
)
from binas.search.limits import Limit
from binas.search.problem import SearchProblem
from binas.search.terms import Row, Terms, build_terms, limit_rows

Array = NDArray[np.float64]
Indices = NDArray[np.intp]

HALF = 1_500_000  # labels of one half, at most
THINNED = 300_000  # labels of one half where they are drawn at random
DRAWS = 8
FIRST_GAP = 1e-4  # of the widest, where the growing begins
GROWTH = 2.0


@dataclass(frozen=True, eq=False)
class Banded:
    """What a band holds: the best architecture met (None if none was), whether that is proven, and an upper bound."""

    best: Exact | None
    proven: bool
    bound: float


def band_rows(problem: SearchProblem) -> list[Row] | None:
    """The limits as at most one upper and one lower row on the same cost; None where they are on several costs."""
    rows = limit_rows(problem)
    if len({row.cost for row in rows}) != 1:
        return None
    sides = [[row for row in rows if row.sign == sign] for sign in (1.0, -1.0)]
    return [min(side, key=lambda row: row.bound) for side in sides if side]


def solve_band(problem: SearchProblem, rows: list[Row], most: int = HALF) -> Banded:
    """The best architecture that keeps ``rows`` (of :func:`band_rows`), by lists of at most ``most`` labels a half."""
    terms = build_terms(problem, rows)
    padded = Padded(terms)
    if any(cheapest(padded, row).totals[1 + row] > padded.budget[row] for row in range(terms.rows)):
        return Banded(None, True, -np.inf)
    if len(rows) == 2 and -rows[1].bound > rows[0].bound:
        return Banded(None, True, -np.inf)
    tolerances = np.array([problem.tolerance(Limit(row.cost, row.bound)) for row in rows])
    return _Halves(padded, rows[0].sign, tolerances, most).solve()


class _Halves:
    """The two halves of a problem's stages, listed up to a gap."""

    def __init__(self, padded: Padded, sign: float, tolerances: Array, most: int):
        self.padded, self.sign, self.most = padded, sign, most
        self.terms: Terms = padded.terms
        dual = solve_dual(padded)
        self.at: Relaxed = dual.relaxed
        self.start = None if dual.incumbent is None else improve(padded, dual.incumbent)
        self.reduced = Reduced.at(padded, self.at.multipliers)
        parts = [part[np.isfinite(part)] for part in (self.reduced.configs, self.reduced.depths)]
        self.widest = sum(float(part.sum()) for part in parts)
        size = abs(self.at.bound) + float(self.at.multipliers @ np.abs(self.at.totals[1:]))
        self.slack = 1e-9 * max(1.0, abs(self.at.bound)) + 1e-12 * size
        self.bound = self.at.bound + float(self.terms.constant[0])
        self.rounding = float(self.at.multipliers @ tolerances)
        self.candidates = 0

    def solve(self) -> Banded:
        """Growing gaps until the best pair proves itself; drawn lists where that is too much."""
        best, gap = self._known(), FIRST_GAP * self.widest
        while True:
            gap = min(gap, self._short(best)) + self.slack
            try:
                best = _better(best, self._pair(gap))
            except TooManyError:
                return self._drawn(best, gap)
            if self._short(best) <= gap:
                return Banded(best, True, self.bound)
            gap *= GROWTH

    def _short(self, best: Exact | None) -> float:
        """The largest gap at which something better than ``best`` can be."""
        return self.widest if best is None else self.bound - best.value

    def _known(self) -> Exact | None:
        """The architecture that the dual met inside the band."""
        if self.start is None:
            return None
        depths, configs = indices_of(self.padded, self.start)
        return Exact(float(self.start.totals[0] + self.terms.constant[0]), depths, configs, 0)

    def _drawn(self, best: Exact | None, gap: float) -> Banded:
        """The best of some lists that leave most out: proven where it reaches the bound, as sums of many parts do.

        The bound is that of the limits with their tolerances, which are for rounding: short by these is not short.
        """
        rng = np.random.default_rng(0)
        try:
            for _ in range(DRAWS):
                best = _better(best, self._pair(gap, rng))
                if best is not None and self._short(best) <= self.slack + self.rounding:
                    return Banded(best, True, self.bound)
        except TooManyError:  # by one stage alone
            pass
        return Banded(best, False, self.bound)

    def _pair(self, gap: float, rng: np.random.Generator | None = None) -> Exact | None:
        """The best architecture inside the band whose halves are both within the gap."""
        left, right = self._lists(gap, rng)
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

    def _lists(self, gap: float, rng: np.random.Generator | None) -> tuple[Labels, Labels]:
        """Both halves: stages go, largest first, to the one that is smaller so far."""
        stages = [
            stage_labels(self.padded, self.reduced, self.at.multipliers, s, gap, False, self.most)
            for s in range(len(self.terms.stages))
        ]
        if rng is not None:
            tilt = self._tilt([self.sign * stage.data[1] for stage in stages])
            few = int(min(self.most, THINNED) ** 0.5)
            stages = [_draw(stage, few, tilt * self.sign * stage.data[1], rng) for stage in stages]
        sizes = [0.0, 0.0]
        halves: tuple[list[Labels], list[Labels]] = ([], [])
        for stage in sorted(stages, key=len, reverse=True):
            smaller = int(sizes[1] < sizes[0])
            sizes[smaller] += float(np.log(max(len(stage), 1)))
            halves[smaller].append(stage)
        return self._fold(halves[0], gap, rng), self._fold(halves[1], gap, rng)

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
        total, reached, multipliers = nothing(self.terms.rows), 0.0, self.at.multipliers
        few = min(self.most, THINNED)
        for stage in sorted(stages, key=len):
            if rng is not None:
                total = _draw(total, few // max(1, len(stage)), np.zeros(len(total)), rng)
            reached += float(lagrangian_values(stage.data, multipliers).max(initial=-np.inf))
            total = _best_of_equals(_sums_above(total, stage, multipliers, reached - gap, self.most))
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


def _better(one: Exact | None, two: Exact | None) -> Exact | None:
    if one is None or two is None:
        return one or two
    return two if two.value > one.value else one


def _sums_above(left: Labels, right: Labels, multipliers: Array, floor: float, most: int) -> Labels:
    """All sums of two label sets whose Lagrangian value reaches the floor, and no others: sorted, they are counted first."""
    of_left, of_right = (lagrangian_values(labels.data, multipliers) for labels in (left, right))
    order = np.argsort(-of_right, kind="stable")
    counts = np.searchsorted(-of_right[order], of_left - floor, side="right")
    if counts.sum() > most:
        raise TooManyError
    i = np.repeat(np.arange(len(left)), counts)
    j = order[np.arange(len(i)) - np.repeat(np.cumsum(counts) - counts, counts)]
    return Labels(left.data[:, i] + right.data[:, j], Merge(left, right, i, j))


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
