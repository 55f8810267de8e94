"""The K best architectures, or all within so many points of the best. Exact.

An architecture's value is at most UB - (sum of its reduced costs), see :mod:`binas.search.lagrangian`. So all
architectures of value at least UB - g are among those whose reduced costs sum to at most g. These are folded as for one
answer, but a partial architecture is dropped only when K others beat it, and g is raised until K are found.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import islice

import numpy as np
from numpy.typing import NDArray

from binas.base.errors import ProblemError
from binas.estimators.objective import DepthsObjective
from binas.search.band import drawn_best
from binas.search.deadline import Deadline, TimeLimit, TimeUpError
from binas.search.depths import by_depths, highest_value
from binas.search.dual import (
    Padded,
    Relaxed,
    around,
    changed,
    cheapest,
    improve,
    indices_of,
    solve_dual,
)
from binas.search.labels import Labels, decode
from binas.search.lagrangian import Neighbourhood
from binas.search.merging import TooManyError
from binas.search.problem import Evaluation, SearchProblem, evaluate
from binas.search.restrict import restricted
from binas.search.result import SearchResult, Status
from binas.search.solve import solve_one
from binas.search.solvers._base import GAP, Options
from binas.search.solvers.auto import Auto
from binas.search.solvers.milp import Milp
from binas.search.terms import Terms, build_terms, limit_rows
from binas.search.variants import by_variant
from binas.space.architecture import Architecture

MAX_LISTED = 4_000_000
MAX_LISTED_MANY = 3_000_000  # with several limits, integer programs are faster than longer lists
MOST = 1000
MOST_BY_PROGRAM = 50
FIRST = 1.25  # of the optimum's distance from the bound, where the growing begins
LIST_NODES = 5000  # of the search tree for each next best: so a list ends, also without a time limit
LAST_BLOCKS = 50_000  # of listed architectures, looked up in the tables when time is up: tenths of a second
GROWTH = 2.0
GROWTH_MANY = 1.5  # with several limits, where twice the gap holds far more


@dataclass(frozen=True)
class Alternatives:
    """The best architectures in order, the optimum first.

    ``complete``: nothing that was asked for is missing, but for what is less than 1e-6 points better than what is listed;
    otherwise more exist than are listed, or time was up. Nothing within the limits that is not listed is better than
    ``bound`` (percent); None where that is not known, or nothing is left. So items of at least ``bound`` are the best, in
    order; those below it, where the list is not complete, are good ones that are known.
    """

    items: tuple[Evaluation, ...]
    complete: bool
    bound: float | None = None


def best_architectures(
    problem: SearchProblem,
    count: int | None = None,
    within: float | None = None,
    most: int = MOST,
    *,
    time_limit: TimeLimit = None,
) -> Alternatives:
    """The ``count`` best distinct architectures, or all within ``within`` points of the best (at most ``most``).

    Where the problem has variants, every architecture is listed once, in the variant that suits it best. After
    ``time_limit`` seconds it is what was found so far, from the best downwards.
    """
    whole = count is None or (isinstance(count, int) and count >= 1)
    near = within is None or 0 <= within < np.inf
    if (count is None and within is None) or not whole or not near:
        raise ProblemError(
            "ask for a whole number of architectures from 1 (--top 10), or for all within a finite distance of "
            "zero or more points (--within 0.1)."
        )
    return _best(problem, _Question(count, within, most), Deadline.after(time_limit))


@dataclass(frozen=True)
class _Question:
    """What is asked for: so many (None: any number), within so many points of the best (None: any); at most ``most``."""

    count: int | None
    within: float | None
    most: int

    @property
    def number(self) -> int:
        """How many are listed at most."""
        return self.most if self.count is None else min(self.count, self.most)

    def near(self, items: list[Evaluation]) -> list[Evaluation]:
        """The items in order, of those within the distance of the best."""
        items = sorted(items, key=lambda item: (-item.accuracy, str(item.architecture)))
        if self.within is None or not items:
            return items
        least = items[0].accuracy - self.within - 1e-9 * max(1.0, abs(items[0].accuracy))
        return [item for item in items if item.accuracy >= least]

    def answer(
        self, items: list[Evaluation], complete: bool, bound: float | None, sure: float = -math.inf
    ) -> Alternatives:
        """What is listed of some items; ``complete``: no other is within the distance.

        Down to ``sure`` (percent) none that is better is missing: so many as were counted for are enough only there.
        """
        count = self.count
        enough = (
            count is not None
            and len(items) >= count
            and items[count - 1].accuracy >= sure - 1e-9 * max(1.0, abs(sure))
        )
        left = [item.accuracy for item in items[self.number : self.number + 1]]
        most = max([*left, *([] if bound is None else [bound])], default=None)
        shown = tuple(items[: self.number])
        return Alternatives(shown, enough or (complete and len(items) <= self.number), most)


def _best(problem: SearchProblem, question: _Question, deadline: Deadline) -> Alternatives:
    if problem.variants:
        singles = list(by_variant(problem).values())
        counts = range(len(singles), 0, -1)
        parts = [_best(x, question, deadline.shared(k)) for k, x in zip(counts, singles, strict=True)]
        return _over_variants(problem, parts, question, deadline)
    smaller = restricted(problem.on_link_scale())
    if smaller is None:
        return Alternatives((), True)
    gap, percent = GAP / problem.objective.steepest, problem.objective.percent
    result = solve_one(smaller, Auto(), Options(deadline, gap=gap))
    optimum = _Optimum.of(result)
    if optimum is None:
        best, bound = result.evaluation, result.bound
        known = () if best is None else (evaluate(problem, best.architecture),)
        proven = result.status is Status.INFEASIBLE
        return Alternatives(known, proven, None if bound is None else percent(bound))
    distance = np.inf if question.within is None else _on_link_scale(problem, optimum.value, question.within)
    asked = _Asked(question.number, distance, gap, deadline)
    return _told(problem, _closest(smaller, optimum, asked), question, asked)


@dataclass(frozen=True)
class _Asked:
    """What is asked of one problem, on its own scale: ``number`` at most, within ``distance`` of the optimum.

    What is at most ``gap`` below what nothing else is better than counts as the best.
    """

    number: int
    distance: float
    gap: float
    deadline: Deadline

    def settled(self, listed: _Listed) -> bool:
        """Whether as many as are asked for are proven to be the best."""
        if listed.bound is None:
            return True
        least = listed.bound - self.gap - 1e-9 * max(1.0, abs(listed.bound))
        return sum(value >= least for value, _ in listed.items) >= self.number


@dataclass(frozen=True)
class _Optimum:
    """A proven answer: nothing is better than ``bound``, which is at most the gap above its value."""

    architecture: Architecture
    value: float
    bound: float

    @classmethod
    def of(cls, result: SearchResult) -> _Optimum | None:
        """That of a result, where it is proven."""
        best = result.evaluation
        if best is None or result.status is not Status.OPTIMAL:
            return None
        return cls(best.architecture, best.accuracy, best.accuracy if result.bound is None else result.bound)


Known = tuple[float, Architecture]  # with its value on the scale of the link


@dataclass(frozen=True)
class _Listed:
    """Architectures, whether none that was asked for is missing, and what no other is better than (None: none is left)."""

    items: list[Known]
    complete: bool
    bound: float | None

    def with_others(self, items: Iterable[Known]) -> _Listed:
        """The same with further architectures, each once."""
        names = {architecture: value for value, architecture in [*items, *self.items]}
        return replace(self, items=[(value, name) for name, value in names.items()])


def _told(problem: SearchProblem, listed: _Listed, question: _Question, asked: _Asked) -> Alternatives:
    """A list in percent, every item computed from the tables; past the deadline as many as take a moment."""
    percent, found = problem.objective.percent, sorted(listed.items, key=lambda item: -item[0])
    items = _evaluated(problem, [architecture for _, architecture in found], asked.deadline)
    bounds = [value for value, _ in found[len(items) : len(items) + 1]]
    complete = listed.complete and not bounds
    bound = max([*bounds, *([] if listed.bound is None else [listed.bound])], default=None)
    if bound is None:
        return question.answer(question.near(items), complete, None)
    return question.answer(question.near(items), complete, percent(bound), percent(bound - asked.gap))


def _evaluated(
    problem: SearchProblem, architectures: Sequence[Architecture], deadline: Deadline
) -> list[Evaluation]:
    """The first of some architectures with accuracy and costs: all, or past the deadline as many as take a moment."""
    blocks, items = sum(len(stage.blocks) for stage in problem.space.stages), list[Evaluation]()
    for architecture in architectures:
        if len(items) * blocks > LAST_BLOCKS and deadline.late:
            break
        items.append(evaluate(problem, architecture))
    return items


def _closest(problem: SearchProblem, optimum: _Optimum, asked: _Asked) -> _Listed:
    """The best architectures that are asked for, or those within the distance of the optimum."""
    if isinstance(problem.objective, DepthsObjective):
        return _over_depths(problem, optimum, asked)
    listing = _Listing(problem, optimum, asked.deadline)
    try:
        return listing.closest(asked.number, asked.distance)
    except TooManyError:
        return _crowded(problem, listing, asked)


def _over_depths(problem: SearchProblem, optimum: _Optimum, asked: _Asked) -> _Listed:
    """The same with all depths given, for each choice of these that comes close enough (:mod:`binas.search.depths`)."""
    items, complete, bounds = [(optimum.value, optimum.architecture)], True, list[float]()
    least = optimum.value - asked.distance
    for part in by_depths(problem):
        if highest_value(part) < least or asked.deadline.late:
            complete = complete and highest_value(part) < least
            bounds.append(highest_value(part))
            break
        listed = _of_part(part, optimum.value, asked)
        items, complete = [*items, *listed.items], complete and listed.complete
        bounds += [] if listed.bound is None else [listed.bound]
    return _Listed([], complete, max(bounds, default=None)).with_others(items)


def _of_part(part: SearchProblem, best: float, asked: _Asked) -> _Listed:
    """What one choice of all depths adds to the list, ``best`` being the value of the optimum."""
    result = solve_one(part, Auto(), Options(asked.deadline, gap=asked.gap))
    optimum, met = _Optimum.of(result), result.evaluation
    if result.status is Status.INFEASIBLE:
        return _Listed([], True, None)
    if optimum is None:
        known = [] if met is None else [(met.accuracy, met.architecture)]
        return _Listed(known, False, highest_value(part) if result.bound is None else result.bound)
    short = best - optimum.value
    if short > asked.distance:
        return _Listed([], True, optimum.bound)
    return _closest(part, optimum, replace(asked, distance=asked.distance - short))


def _on_link_scale(problem: SearchProblem, best: float, within: float) -> float:
    """How far below ``best``, on the scale of the link, networks ``within`` points of it may lie."""
    least = problem.objective.percent(best) - within
    return best - problem.objective.at_percent(least) + 1e-9


def _over_variants(
    problem: SearchProblem, parts: list[Alternatives], question: _Question, deadline: Deadline
) -> Alternatives:
    """The lists of all variants as one; no variant's list ends before the joint one does."""
    known = sorted((item for part in parts for item in part.items), key=lambda item: -item.accuracy)
    names = list(dict.fromkeys(item.architecture for item in known))
    items = _evaluated(problem, names, deadline)
    bounds = [part.bound for part in parts if part.bound is not None]
    bounds += [] if len(items) == len(names) else [items[-1].accuracy]
    complete = len(items) == len(names) and all(part.complete for part in parts)
    listed = question.answer(question.near(items), complete, max(bounds, default=None))
    return replace(listed, complete=listed.complete and complete)


def _crowded(problem: SearchProblem, listing: _Listing, asked: _Asked) -> _Listed:
    """Where too many are close to the best to list them all: those that are known, and the next best by integer programs.

    Under one limit good ones are drawn: where values are proportional to cost these reach the bound, which is their proof.
    """
    known = listing.listed.with_others(listing.good_ones(asked.number))
    if asked.settled(known) or problem.objective.kind != "bilinear" or asked.deadline.late:
        return known
    return _by_programs(problem, known, listing, asked)


def _by_programs(problem: SearchProblem, known: _Listed, listing: _Listing, asked: _Asked) -> _Listed:
    """What is known, and what repeated integer programs find beyond what is proven: slower, but not hurt by a weak bound."""
    proven, options = [name for _, name in listing.listed.items], Options(asked.deadline, gap=asked.gap)
    least = listing.optimum.value - asked.distance - 1e-9 * max(1.0, abs(listing.optimum.value))
    answers = Milp(max_nodes=LIST_NODES).in_order(problem, options, proven)
    for answer in islice(answers, min(asked.number, MOST_BY_PROGRAM)):
        if answer.status is Status.INFEASIBLE:
            return replace(known, complete=True, bound=None)
        if answer.architecture is not None and answer.value is not None:
            known = known.with_others([(answer.value, answer.architecture)])
        bounds = [bound for bound in (known.bound, answer.bound) if bound is not None]
        known = replace(known, bound=min(bounds, default=None))
        if known.bound is not None and known.bound < least:
            return replace(known, complete=True)
        if asked.settled(known):
            break
    return known


class _Listing:
    """Lists the architectures close to the optimum, in growing neighbourhoods of the bound.

    ``listed``: those of the last neighbourhood that was not too large, ``tried``: how far from the bound the last one went.
    """

    def __init__(self, problem: SearchProblem, optimum: _Optimum, deadline: Deadline):
        self.space, self.optimum, self.deadline = problem.space, optimum, deadline
        self.rows = limit_rows(problem)
        self.terms: Terms = build_terms(problem, self.rows)
        self.padded = Padded(self.terms)
        self.dual = solve_dual(self.padded, deadline)
        self.bound = self.dual.relaxed.bound + float(self.terms.constant[0])
        self.least = max(0.0, self.bound - optimum.value)
        self.listed = _Listed([(optimum.value, optimum.architecture)], False, optimum.bound)
        self.tried = 0.0

    def closest(self, number: int, distance: float) -> _Listed:
        """At least ``number`` in order of closeness, or all within ``distance``; past the deadline those known by then."""
        most = MAX_LISTED if self.terms.rows <= 1 else MAX_LISTED_MANY
        near = Neighbourhood(self.padded, self.dual.relaxed, most, number + 1, self.deadline)
        slack = near.slack + 1e-9 * max(1.0, abs(self.optimum.value))
        widest = min(self.least + distance, self._widest(near))
        gap = min(widest, self._enough(number), max(FIRST * self.least, 1e-6 * near.widest))
        while True:
            self.tried = gap + slack
            try:
                labels, _ = near.whole(self.tried)
            except TimeUpError:
                return self.listed.with_others(self._around(number))
            except TooManyError:
                if len(self.listed.items) < min(number, MOST_BY_PROGRAM):
                    raise
                return self.listed
            self.listed = self._read(labels, self.tried, number, gap >= widest)
            if gap >= widest or len(self.listed.items) >= number:
                return self.listed
            gap = min(widest, (GROWTH if self.terms.rows <= 1 else GROWTH_MANY) * gap)

    def good_ones(self, number: int) -> list[Known]:
        """Up to ``number`` good architectures, drawn (one limit) and around a good one; nothing says that none is better."""
        drawn = list[Known]()
        if len(self.rows) == 1:
            with suppress(TooManyError, TimeUpError):
                labels = drawn_best(self.padded, self.rows[0].sign, number, self.tried, self.deadline)
                drawn = self._known(labels, np.arange(len(labels)))
        return [*drawn, *self._around(number)]

    def _around(self, number: int) -> list[Known]:
        """Up to ``number``, at most ``MOST_BY_PROGRAM``, that differ from a good one in one config, and itself."""
        start, most = self._good(), min(number, MOST_BY_PROGRAM)
        if start is None:
            return []
        close = [changed(self.padded, start, x) for x in around(self.padded, start)[1][:most].tolist()]
        values = [float(item.totals[0] + self.terms.constant[0]) for item in close]
        indices = [indices_of(self.padded, item) for item in close]
        names = [self.space.from_indices(d.tolist(), c.tolist()) for d, c in indices]
        return list(zip(values, names, strict=True))

    def _good(self) -> Relaxed | None:
        """A good architecture, in a moment."""
        incumbent = self.dual.incumbent
        return None if incumbent is None else improve(self.padded, incumbent, self.deadline)

    def _widest(self, near: Neighbourhood) -> float:
        """value = UB - reduced costs - multipliers * unused budget: nothing feasible is further from UB than this."""
        least = [float(cheapest(self.padded, row).totals[1 + row]) for row in range(self.terms.rows)]
        unused = float(self.dual.relaxed.multipliers @ (self.padded.budget - np.array(least)))
        return near.widest + max(0.0, unused)

    def _enough(self, number: int) -> float:
        """A gap at which ``number`` architectures are known to be: around a good one."""
        start = self._good()
        values = np.zeros(0) if start is None else around(self.padded, start)[0]
        return float(self.dual.relaxed.bound - values[number - 1]) if len(values) >= number else math.inf

    def _read(self, labels: Labels, gap: float, number: int, everything: bool) -> _Listed:
        """The labels of value at least bound - gap, in order; none of that value is missing but for more than ``number``."""
        values = labels.data[0] + self.terms.constant[0]
        order = np.argsort(-values, kind="stable")
        inside = order[values[order] >= self.bound - gap]
        cut = inside[number:]
        complete = everything and not len(cut)
        left = float(values[cut[0]]) if len(cut) else self.bound - gap
        return _Listed(self._known(labels, inside[:number]), complete, left)

    def _known(self, labels: Labels, index: NDArray[np.intp]) -> list[Known]:
        """The labels at ``index`` as architectures with their values."""
        depths, configs = decode(self.terms, labels, index)
        names = map(self.space.from_indices, depths.tolist(), configs.tolist())
        return list(zip((labels.data[0, index] + self.terms.constant[0]).tolist(), names, strict=True))
