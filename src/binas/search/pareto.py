"""Which labels another beats: dominance in a value (row 0, the higher the better) and costs (rows 1..m).

With ``rank`` K a label is dropped only when K others beat it: what is left holds the K best of whatever the labels are
completed to. For each of the K is at least as good with the same completion.
"""

from __future__ import annotations

from bisect import bisect_right
from heapq import heappush, heapreplace

import numpy as np
from numpy.typing import NDArray

from binas.search.deadline import NEVER, Deadline

Array = NDArray[np.float64]
Indices = NDArray[np.intp]

BLOCK = 256
STRONG = 512
TIES = 200_000  # labels that are sorted by all their rows
LOOKS = 4096  # labels of a sweep between looks at the clock: a few milliseconds


def pareto(data: Array, rank: int = 1, deadline: Deadline = NEVER) -> Indices:
    """Indices of labels that fewer than ``rank`` others beat, sorted by the first cost; of equal labels the first stay.

    Complete for one cost row, and for two with rank 1; else some labels too many may stay, which costs time only. With two
    or more it takes long enough to raise :class:`binas.search.deadline.TimeUpError` past the deadline.
    """
    if data.shape[0] == 1:
        return _highest(data[0], rank)
    if data.shape[1] <= rank:  # nothing can be beaten so often
        return np.argsort(data[1], kind="stable")
    if data.shape[0] == 2:
        return _pareto_two(data[0], data[1]) if rank == 1 else _ranked_two(data[0], data[1], rank)
    if data.shape[0] == 3 and rank == 1:
        return staircase(data, deadline)
    return _pareto_many(data, rank, deadline)


def _highest(value: Array, rank: int) -> Indices:
    """The ``rank`` highest values, the highest first."""
    if rank == 1:
        return np.array([int(np.argmax(value))])
    if len(value) > 4 * rank:  # most of them need no sorting
        least = -np.partition(-value, rank - 1)[rank - 1]
        above = np.flatnonzero(value > least)
        keep = np.sort(np.append(above, np.flatnonzero(value == least)[: rank - len(above)]))
        return keep[_highest(value[keep], rank)]
    return np.argsort(-value, kind="stable")[:rank]


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


def _ranked_two(value: Array, cost: Array, rank: int) -> Indices:
    """By rising cost, what is above the ``rank``-th highest value so far."""
    order = np.lexsort((-value, cost))
    order = order[_not_beaten(value[order], rank)]
    kept, top = list[int](), list[float]()
    for place, number in enumerate(value[order].tolist()):
        if len(top) < rank:
            heappush(top, number)
        elif number > top[0]:
            heapreplace(top, number)
        else:
            continue
        kept.append(place)
    return order[np.array(kept, dtype=np.intp)]


def _not_beaten(value: Array, rank: int) -> Indices:
    """All but most of those that ``rank`` before them reach: dealt to so many hands, the highest of each hand is one."""
    rows = len(value) // rank
    hands = np.maximum.accumulate(value[: rows * rank].reshape(rows, rank), axis=0).min(axis=1)
    floor = np.repeat(np.append(-np.inf, hands), rank)[: len(value)]
    return np.flatnonzero(value > floor)


def staircase(data: Array, deadline: Deadline = NEVER) -> Indices:
    """Non-dominated labels of two cost rows.

    Sweeps by the first cost; a staircase of (second cost, value) holds the best labels so far.
    """
    order = np.lexsort((-data[0], data[2], data[1]))
    costs: list[float] = []
    values: list[float] = []
    kept: list[int] = []
    rows = zip(order.tolist(), data[2, order].tolist(), data[0, order].tolist(), strict=True)
    for number, (index, cost, value) in enumerate(rows):
        if number % LOOKS == 0:
            deadline.check()
        place = bisect_right(costs, cost)
        if place and values[place - 1] >= value:
            continue
        kept.append(index)
        start = place - 1 if place and costs[place - 1] == cost else place
        stop = bisect_right(values, value, start)
        costs[start:stop] = [cost]
        values[start:stop] = [value]
    return np.array(kept, dtype=np.intp)


def _pareto_many(data: Array, rank: int, deadline: Deadline) -> Indices:
    """With three or more cost rows, drop most (not necessarily all) labels that ``rank`` others beat.

    Labels are compared, best values first, with the cheapest ones kept so far and within their block.
    """
    deadline.check()
    every = (
        data.shape[1] <= TIES
    )  # among equal values the cheapest first: worth sorting for where they are few
    order = np.lexsort((*data[:0:-1], -data[0])) if every else np.argsort(-data[0], kind="stable")
    costs = data[1:, order].T
    spread = np.ptp(costs, axis=0)
    size = costs @ np.divide(1.0, spread, out=np.zeros_like(spread), where=spread > 1e-300)
    strong = np.zeros((0, costs.shape[1] + 1))
    result: list[Indices] = []
    for start in range(0, len(order), BLOCK):
        deadline.check()
        block = costs[start : start + BLOCK]
        beaten = _below(strong[:, :-1], block).sum(axis=0)
        inside = np.triu(_below(block, block), 1)
        beaten += (inside & (beaten < rank)[:, None]).sum(axis=0)
        alive = beaten < rank
        result.append(order[start : start + BLOCK][alive])
        fresh = np.column_stack([block[alive], size[start : start + BLOCK][alive]])
        strong = np.concatenate([strong, fresh])
        strong = strong[np.argsort(strong[:, -1], kind="stable")[: max(STRONG, 4 * rank)]]
    kept = np.concatenate(result)
    return kept[np.argsort(data[1, kept], kind="stable")]


def _below(one: Array, two: Array) -> NDArray[np.bool_]:
    """[a, b]: row a of ``one`` is at most row b of ``two`` in every column."""
    result: NDArray[np.bool_] = np.less_equal.outer(one[:, 0], two[:, 0])
    for column in range(1, one.shape[1]):
        result &= np.less_equal.outer(one[:, column], two[:, column])
    return result
