"""Closing the gaps of a frontier that is not exact: what lies near a line is listed at once, and nothing else is above it.

Of a frontier that is not exact a stretch is what lies between a point (cost x, value v) and the next one: no architecture
that costs less than the stretch's limit is better than its ceiling u, so the frontier is short by at most u - v.
Multipliers l of the traced cost and m of the further costs k <= K bound every architecture by a line over the cost (the dual
of the relaxed knapsack, :mod:`binas.search.dual`):

    value <= height + l * cost - reduced costs - m * (K - k),    height + l * T = UB(l, m) at the limit T

A question is a limit T, that of the widest gap. Its line is a ceiling at every cost. All architectures up to T that are at
most a gap g below it are listed together (:class:`binas.search.lagrangian.Neighbourhood`) and become points; what is not
listed is further below, so up to T the line less g is a ceiling too. Where architectures are dense, a question
settles a long stretch; where there are few, one limit.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from binas.search.bounds import ceilings
from binas.search.deadline import TimeUpError
from binas.search.dual import Padded, solve_dual
from binas.search.fold import Effort
from binas.search.labels import Labels, decode
from binas.search.lagrangian import Exact, Neighbourhood, Outcome, solve_exact
from binas.search.merging import TooManyError
from binas.search.pareto import pareto
from binas.search.terms import StageTerms, Terms

Array = NDArray[np.float64]
Ints = NDArray[np.int64]

MAX_QUESTIONS = 500
MAX_CANDIDATES = 1_000_000  # of one step of a list: a tenth of a second
LAST = 20  # so many times as many in the last step, where only value and traced cost are compared
PATIENT = 7  # so many times as many where nothing shorter is left to list
SPARE = 10.0  # seconds that must be left for such a list: one of its steps takes up to a second
BYTES = 150  # of memory for each of the candidates
FIRST = 16.0  # of what is enough, the part that is listed first
GROWTH = 1.5
PLENTY = 2000  # points of one list: with fewer the next gap is listed too, which costs next to nothing
PROBES = 4
DENSE = 5000  # points after so many questions: lists then need no fold, and a fold would be far from exact


@dataclass(frozen=True, eq=False)
class Points:
    """Architectures by rising cost and value, as indices: depths (n, S), configs (n, S, D); -1 for inactive blocks."""

    costs: Array
    values: Array
    depths: Ints
    configs: Ints

    def reached(self, costs: Array) -> Array:
        """The best value at each cost."""
        return np.append(-np.inf, self.values)[np.searchsorted(self.costs, costs, side="right")]

    def joined(self, other: Points) -> Points:
        """Those of both that no other beats."""
        costs, values = np.append(self.costs, other.costs), np.append(self.values, other.values)
        keep = pareto(np.stack([values, costs]))
        return Points(
            costs[keep],
            values[keep],
            np.concatenate([self.depths, other.depths])[keep],
            np.concatenate([self.configs, other.configs])[keep],
        )


@dataclass(frozen=True)
class Line:
    """Nothing that costs less than ``until``, but for points that are known, is above height + slope * cost."""

    slope: float
    height: float
    until: float = np.inf

    def at(self, costs: Array) -> Array:
        """The ceiling below each cost."""
        return np.where(costs <= self.until, self.height + self.slope * costs, np.inf)


class Closing:
    """A frontier whose gaps are closed, the widest first: ``above`` are the ceilings of its stretches up to ``limits``."""

    def __init__(self, terms: Terms, points: Points, above: Array, effort: Effort):
        self.terms, self.points, self.above, self.effort = terms, points, above, effort
        self.enough = max(effort.enough, effort.tolerance)
        self.end = _above(_largest(terms), float(terms.constant[1]))
        self.limits = np.append(points.costs[1:], self.end)
        self.lines = list[Line]()
        self.given_up = list[float]()  # limits of stretches where too much would have to be listed
        self.candidates = MAX_CANDIDATES

    @property
    def error(self) -> float:
        """By how much the frontier may be short at any limit, rounding included."""
        values = self.points.values
        return float((self.above - values).max()) + 1e-9 * float(np.abs(values).max(initial=1.0))

    def begin(self) -> bool:
        """Take the cheapest of all architectures, so that the frontier begins there; whether it is proven which that is."""
        first = cheapest_point(self.terms, self.effort)
        if first is not None:
            self.add(first, [])
        return first is not None

    def run(self, questions: int | None = None) -> None:
        """Ask so many questions, or fewer where there is no time, or no gap left that is not enough or given up.

        What was given up is asked once more at the end, with longer lists, where there is time for them.
        """
        for _ in range(MAX_QUESTIONS if questions is None else questions):
            place = self._widest()
            if place is None and self.given_up and self._more_candidates():
                place = self._widest()
            if place is None or self.effort.deadline.late:
                return
            self._ask(place)

    def _widest(self) -> int | None:
        """The stretch with the widest gap that was not given up; None where what is left is enough."""
        gaps = np.where(np.isin(self.limits, self.given_up), 0.0, self.above - self.points.values)
        place = int(np.argmax(gaps))
        return place if gaps[place] > self.enough else None

    def _more_candidates(self) -> bool:
        """Allow longer lists and forget what was given up; False where they are long already, or time is short."""
        if self.candidates > MAX_CANDIDATES or self.effort.deadline.left < SPARE:
            return False
        self.candidates = PATIENT * MAX_CANDIDATES
        self.given_up.clear()
        return True

    def _ask(self, place: int) -> None:
        """The line of a stretch's limit, and what is near it."""
        limit, constant = float(self.limits[place]), float(self.terms.constant[0])
        near = self._near(limit)
        known = float(self.points.values[place]) - constant
        listed, labels, settled = self._listed(near, near.at.bound + near.slack - known)
        if not settled:
            self.given_up.append(limit)
        slope, bound = float(near.at.multipliers[0]), near.at.bound + near.slack + constant
        line = Line(slope, bound - slope * float(near.padded.terms.bounds[0]))
        lowered = replace(line, height=line.height - listed, until=limit)
        self.add(self._read(labels), [line, lowered])

    def _near(self, limit: float) -> Neighbourhood:
        """What is near the bound of all that costs less than a limit."""
        most = min(strictly_below(limit, float(self.terms.constant[1])), float(self.terms.bounds[0]))
        padded = Padded(replace(self.terms, bounds=np.append(most, self.terms.bounds[1:])))
        candidates = int(min(self.candidates, self.effort.memory / BYTES))
        at = solve_dual(padded, self.effort.deadline).relaxed
        return Neighbourhood(padded, at, candidates, deadline=self.effort.deadline, last=LAST)

    def _listed(self, near: Neighbourhood, short: float) -> tuple[float, Labels | None, bool]:
        """Down to which gap everything is listed, what that is, and whether it settles the limit.

        ``short``: by how much the best that is known is below the bound.
        """
        listed, tried, labels = 0.0, max(self.enough / FIRST, near.slack), None
        while short - listed > self.enough or (listed < self.enough and (not labels or len(labels) < PLENTY)):
            try:
                labels = near.frontier(tried + near.slack)
            except (TimeUpError, TooManyError):
                break
            listed, tried = tried, GROWTH * tried
            best = float(labels.data[0].max(initial=-np.inf))
            short = min(short, near.at.bound + near.slack - best)
        return listed, labels, short - listed <= self.enough

    def _read(self, labels: Labels | None) -> Points:
        """Those of a list that are better than what is known."""
        points, terms = self.points, self.terms
        if labels is None:
            return Points(np.zeros(0), np.zeros(0), points.depths[:0], points.configs[:0])
        values, costs = labels.data[:2] + terms.constant[:2, None]
        new = np.flatnonzero(values > points.reached(costs))
        return Points(costs[new], values[new], *decode(terms, labels, new))

    def add(self, found: Points, lines: list[Line]) -> None:
        """Take more points and lines: a ceiling also holds for stretches inside its own."""
        points = self.points.joined(found)
        limits = np.append(points.costs[1:], self.end)
        above = self.above[np.maximum(np.searchsorted(self.points.costs, limits) - 1, 0)]
        fresh = np.flatnonzero(~np.isin(limits, self.limits))
        for line in self.lines:
            above[fresh] = np.minimum(above[fresh], line.at(limits[fresh]))
        for line in lines:
            above = np.minimum(above, line.at(limits))
        self.points, self.limits, self.above = points, limits, np.maximum(above, points.values)
        self.lines += lines


def dense_frontier(terms: Terms, effort: Effort) -> Closing | None:
    """The frontier from its cheapest point on, as far as there is time, where architectures are dense; None elsewhere."""
    closing, proven = begun(terms, effort)
    if closing is None or not proven:
        return None
    closing.run(PROBES)
    if len(closing.points.costs) < DENSE:
        return None
    closing.run()
    return closing


def begun(terms: Terms, effort: Effort) -> tuple[Closing | None, bool]:
    """A frontier of one point, the cheapest architecture met (None: none was), and whether none is cheaper for sure."""
    outcome = _cheapest(terms, effort)
    if outcome.best is None:
        return None, outcome.proven
    first = point_of(terms, outcome.best)
    above = ceilings(terms, np.stack([first.values, first.costs]), [np.zeros(terms.rows - 1)])
    return Closing(terms, first, above, effort), outcome.proven


def cheapest_point(terms: Terms, effort: Effort) -> Points | None:
    """The architecture that costs least of the traced cost within all bounds; None where that is not proven."""
    outcome = _cheapest(terms, effort)
    return point_of(terms, outcome.best) if outcome.proven and outcome.best is not None else None


def _cheapest(terms: Terms, effort: Effort) -> Outcome:
    """The search for the architecture that costs least of the traced cost within all bounds."""
    bounds = np.append(min(_largest(terms), terms.bounds[0]), terms.bounds[1:])
    stages = tuple(
        StageTerms(s.depths, _cheap(s.depth), tuple(map(_cheap, s.blocks)), s.variants) for s in terms.stages
    )
    cheap = replace(terms, stages=stages, constant=_cheap(terms.constant), bounds=bounds)
    return solve_exact(cheap, deadline=effort.deadline)


def _cheap(data: Array) -> Array:
    """Numbers whose value is that they cost little of the traced cost."""
    return np.concatenate([-data[1:2], data[1:]])


def point_of(terms: Terms, best: Exact) -> Points:
    """An architecture as a frontier of its own, by the terms, where sums are exact."""
    inside = np.arange(best.configs.shape[1]) < best.depths[:, None]
    configs = np.where(inside, best.configs, -1)
    parts = zip(terms.stages, best.depths.tolist(), configs, strict=True)
    total = terms.constant + sum(_total(*part) for part in parts)
    return Points(total[1:2], total[:1], best.depths[None], configs[None])


def _total(stage: StageTerms, depth: int, configs: Ints) -> Array:
    """Value and costs of one stage."""
    if stage.variants is not None:
        depths, listed = stage.variants
        same = (depths == depth) & (listed == configs[: listed.shape[1]]).all(axis=1)
        return np.asarray(stage.blocks[0][:, same.argmax()])
    blocks = (stage.blocks[b][:, configs[b]] for b in range(depth))
    return np.asarray(stage.depth[:, stage.depths.index(depth)] + sum(blocks))


def strictly_below(cost: float, fixed: float = 0.0) -> float:
    """A limit that keeps out what costs ``cost`` and nothing cheaper: terms are on a grid four times as coarse."""
    return float(cost - 2 * max(np.spacing(abs(cost)), np.spacing(abs(cost - fixed))))


def _above(cost: float, fixed: float) -> float:
    """A cost that is strictly above another one, by so much that :func:`strictly_below` it is that one still."""
    return float(cost + 8 * max(np.spacing(abs(cost)), np.spacing(abs(cost - fixed))))


def _largest(terms: Terms) -> float:
    """No architecture within the bounds costs more than this (row 1)."""
    parts = [
        stage.depth[1].max() + sum(np.maximum(block[1], 0.0).max() for block in stage.blocks)
        for stage in terms.stages
    ]
    return float(min(terms.bounds[0], terms.constant[1] + sum(parts)))
