"""Closing the widest gaps of a frontier that is not exact, by single answers.

Of a frontier that is not exact a stretch is what lies between a point (cost x, value v) and the next one: no
architecture that costs at most the stretch's limit is better than its ceiling u, so the frontier is short by at most u - v.
The best architecture under a limit inside a stretch, with its bound (:mod:`binas.search.lagrangian`), lowers the ceiling
below that limit and may be a point of its own; the widest gap is asked first. What is asked in the middle halves a
gap where points are missing; what is asked at the end of a stretch shows that there are none.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from binas.search.deadline import Deadline
from binas.search.lagrangian import Exact, solve_exact
from binas.search.terms import StageTerms, Terms

Array = NDArray[np.float64]
Ints = NDArray[np.int64]

MAX_QUESTIONS = 200
MAX_CANDIDATES = 100_000  # of one question: a tenth of a second


@dataclass(frozen=True, eq=False)
class Found:
    """An architecture, as indices, with its cost and value."""

    cost: float
    value: float
    depths: Ints
    configs: Ints


@dataclass(frozen=True, eq=False)
class Stretch:
    """Costs above ``low`` up to ``limit``: ``value`` is reached from ``low`` on, nothing there is above ``ceiling``.

    ``asked``: at the middle in vain, so the end is next; twice: nothing more can be learned.
    """

    low: float
    limit: float
    value: float
    ceiling: float
    asked: int = 0

    @property
    def gap(self) -> float:
        """By how much the frontier may be short here."""
        return self.ceiling - self.value

    def question(self) -> float:
        """The limit to ask for next."""
        return self.limit if self.asked else self.low + (self.limit - self.low) / 2

    def parted(self, limit: float, bound: float, found: Found | None) -> list[Stretch]:
        """What is left of it once nothing up to ``limit`` is above ``bound``; ``found`` is a new point up to there."""
        bound = min(bound, self.ceiling)
        below = replace(self, limit=limit, ceiling=bound, asked=2)
        above = replace(self, low=limit, asked=self.asked + 1)
        if found is not None:
            below = replace(self, limit=strictly_below(found.cost), ceiling=bound, asked=0)
            known = replace(self, low=found.cost, limit=limit, value=found.value, ceiling=bound, asked=2)
            above = replace(above, value=found.value, asked=0)
            return [below, known] if limit >= self.limit else [below, known, above]
        return [below] if limit >= self.limit else [below, above]


def strictly_below(cost: float, fixed: float = 0.0) -> float:
    """A limit that keeps out what costs ``cost`` and nothing cheaper: terms are on a grid four times as coarse."""
    return float(cost - 2 * max(np.spacing(abs(cost)), np.spacing(abs(cost - fixed))))


def closed(
    stretches: list[Stretch],
    ask: Callable[[float], tuple[float, Found | None]],
    enough: float,
    deadline: Deadline,
) -> tuple[list[Found], float]:
    """New points, and by how much the frontier with them may be short: down to ``enough`` where there is time.

    ``ask`` gives what no architecture up to a cost is better than, and the best one known.
    """
    heap = [(-stretch.gap, k, stretch) for k, stretch in enumerate(stretches)]
    heapq.heapify(heap)
    new, settled, count = list[Found](), 0.0, len(heap)
    for _ in range(MAX_QUESTIONS):
        while heap and heap[0][2].asked > 1:
            settled = max(settled, heapq.heappop(heap)[2].gap)
        if not heap or heap[0][2].gap <= max(enough, settled) or deadline.late:
            break
        stretch = heapq.heappop(heap)[2]
        limit = stretch.question()
        bound, found = ask(limit)
        if found is not None and not (stretch.low < found.cost <= limit and found.value > stretch.value):
            found = None
        new += [] if found is None else [found]
        for part in stretch.parted(limit, bound, found):
            count += 1
            heapq.heappush(heap, (-part.gap, count, part))
    return new, max([settled, *(stretch.gap for _, _, stretch in heap)])


def stretches_of(terms: Terms, costs: Array, values: Array, ceilings: Array) -> list[Stretch]:
    """The stretches of a frontier by rising cost (row 1); ``ceilings`` hold from each point to the next."""
    fixed = float(terms.constant[1])
    limits = [*(strictly_below(cost, fixed) for cost in costs[1:].tolist()), _largest(terms)]
    rows = zip(costs.tolist(), limits, values.tolist(), ceilings.tolist(), strict=True)
    return [Stretch(*row) for row in rows]


def _largest(terms: Terms) -> float:
    """No architecture within the bounds costs more than this (row 1)."""
    parts = [
        stage.depth[1].max() + sum(np.maximum(block[1], 0.0).max() for block in stage.blocks)
        for stage in terms.stages
    ]
    return float(min(terms.bounds[0], terms.constant[1] + sum(parts)))


def answer_at(terms: Terms, limit: float, enough: float, deadline: Deadline) -> tuple[float, Found | None]:
    """What nothing of row 1 up to ``limit`` is better than, and the best architecture known."""
    asked = replace(terms, bounds=np.append(limit, terms.bounds[1:]))
    outcome = solve_exact(asked, MAX_CANDIDATES, deadline, enough)
    return outcome.bound, None if outcome.best is None else _found(terms, outcome.best)


def _found(terms: Terms, best: Exact) -> Found:
    """An architecture with its cost on the grid of the terms, where sums are exact; -1 for inactive blocks."""
    inside = np.arange(best.configs.shape[1]) < best.depths[:, None]
    configs = np.where(inside, best.configs, -1)
    parts = zip(terms.stages, best.depths.tolist(), configs, strict=True)
    cost = float(terms.constant[1]) + sum(_cost(*part) for part in parts)
    return Found(cost, best.value, best.depths, configs)


def _cost(stage: StageTerms, depth: int, configs: Ints) -> float:
    """What one stage costs (row 1)."""
    if stage.variants is not None:
        depths, listed = stage.variants
        same = (depths == depth) & (listed == configs[: listed.shape[1]]).all(axis=1)
        return float(stage.blocks[0][1, same.argmax()])
    blocks = (float(stage.blocks[b][1, configs[b]]) for b in range(depth))
    return float(stage.depth[1, stage.depths.index(depth)]) + sum(blocks)
