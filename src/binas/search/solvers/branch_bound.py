"""``branch-bound``: objectives with all pairs of choices, proven by branch and bound on the network of decisions."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from binas.search.deadline import Deadline
from binas.search.network import Network, network_of, tightened
from binas.search.problem import SearchProblem, evaluate
from binas.search.result import Answer, Status
from binas.search.solvers._base import Capabilities, Options, Solver
from binas.space.architecture import Architecture

Array = NDArray[np.float64]
Indices = NDArray[np.int64]

CHUNK = 4096  # partial architectures taken on at once, at most
HELD = 2**25  # numbers of those that wait, 256 MiB
AT_ONCE = 2**21  # numbers of those that are judged in one step
BEAM = 256
PROVEN = 1e-9  # relative: what counts as no better


class BranchBound(Solver):
    """Decision by decision, all partial architectures that may still lead to a better one, the most promising first.

    The bound of a partial architecture is that of :mod:`binas.search.network`, in which pairs with what is decided are
    exact. After ``max_partial`` of them, or the time given, the best found comes with the bound of what was not looked at.
    So few are taken on at once that all that wait, the options of some at every level, fit into bounded memory.
    """

    name = "branch-bound"
    capabilities = Capabilities(
        exact=True,
        objectives=frozenset({"bilinear", "quadratic"}),
        summary="branch and bound on all pairs of choices; any number of limits",
    )

    def __init__(self, max_partial: int = 50_000_000):
        self.max_partial = max_partial

    def solve(self, problem: SearchProblem, options: Options) -> Answer:
        """The proven optimum, or the best found and a bound."""
        plain = network_of(problem)
        network = tightened(plain, options.deadline)
        order = _order(network)
        search = _Search(plain, network.ordered(order), order)
        if options.warm_start is not None:
            search.offer_architecture(options.warm_start)
        search.dive(options.deadline)
        left = search.run(self.max_partial, options.deadline)
        return _answer(problem, search, left)


def _answer(problem: SearchProblem, search: _Search, left: float) -> Answer:
    details = {"partial architectures": search.seen}
    if search.best is None:
        stopped = left > -np.inf
        status = Status.STOPPED_WITHOUT_ANSWER if stopped else Status.INFEASIBLE
        return Answer(status, bound=left if stopped else None, details=details)
    architecture = search.architecture(search.best)
    value = evaluate(problem, architecture).accuracy
    if left <= search.enough:
        bound = value + max(0.0, max(left, search.dropped) - search.value)
        return Answer(Status.OPTIMAL, architecture, value, bound, details)
    return Answer(Status.STOPPED_WITH_ANSWER, architecture, value, max(left, value), details)


def _order(network: Network) -> Indices:
    """Depths first, since they say which blocks there are; then the variables that decide most."""
    depths = len(network.space.stages)
    allowed = network.unary > -network.far / 2
    ranges = np.where(allowed, network.unary, np.nan)
    weight = np.nanmax(ranges, axis=1) - np.nanmin(ranges, axis=1)
    weight[:depths] = np.inf
    return np.argsort(-weight, kind="stable")


@dataclass(frozen=True, eq=False)
class _Partial:
    """Partial architectures that decide the first ``assigned.shape[1]`` variables.

    ``total`` (n,) is what is decided and the constant, ``open`` (n, rest, D) what each option of the others is worth
    beside it, ``cost`` (n, rows) what is spent, ``bound`` (n,).
    """

    assigned: Indices
    total: Array
    open: Array
    cost: Array
    bound: Array

    def take(self, which: NDArray[np.int64] | NDArray[np.bool_] | slice) -> _Partial:
        """Some of them."""
        return _Partial(
            self.assigned[which], self.total[which], self.open[which], self.cost[which], self.bound[which]
        )


class _Search:
    """The state of one search: the best assignment so far and how much was looked at.

    Variable k of ``network``, the tightened one, is variable ``order[k]`` of the ``plain`` one, which judges assignments.
    """

    def __init__(self, plain: Network, network: Network, order: Indices):
        self.plain, self.network, self.order = plain, network, order
        self.best: Indices | None = None
        self.value = -np.inf
        self.dropped = -np.inf  # the highest bound of what was left out as no better
        self.seen = 0

    @property
    def enough(self) -> float:
        """A bound up to here cannot lead to anything better; without an answer, to none at all."""
        if self.best is None:
            return self.plain.constant - self.network.reach
        return self.value + PROVEN * max(1.0, abs(self.value))

    def architecture(self, assigned: Indices) -> Architecture:
        """The architecture of an assignment."""
        z = np.zeros(self.plain.space.layout.size + 1)
        z[self.plain.entries[np.arange(self.plain.size), assigned]] = 1.0
        return self.plain.space.layout.round(*self.plain.space.layout.split(z[:-1]))

    def offer_architecture(self, architecture: Architecture) -> None:
        """Take an architecture where it keeps the limits and is better than the best."""
        own = self.plain.assignment(self.plain.space.layout.positions_of([architecture])[0])
        self.offer(own[None, self.order])

    def offer(self, assigned: Indices) -> None:
        """Take the best of complete assignments (n, K) that keep the limits."""
        assigned = assigned[:, np.argsort(self.order)]
        kept = assigned[(self.plain.costs(assigned) <= self.plain.room).all(axis=1)]
        if not len(kept):
            return
        values = self.plain.values(kept)
        best = int(values.argmax())
        if values[best] > self.value:
            self.best, self.value = kept[best], float(values[best])

    def root(self) -> _Partial:
        """Nothing decided."""
        network = self.network
        return _Partial(
            np.zeros((1, 0), dtype=np.int64),
            np.full(1, network.constant),
            network.unary[None].copy(),
            np.zeros((1, len(network.room))),
            np.full(1, network.bound),
        )

    def dive(self, deadline: Deadline) -> None:
        """A first answer: the most promising few at every level, past the deadline only one."""
        now = self.root()
        while len(now.total) and now.assigned.shape[1] < self.network.size:
            children = self.children(now)
            few = 1 if deadline.late else BEAM
            now = children.take(np.argsort(-children.bound, kind="stable")[:few])
        if len(now.total):
            self.offer(now.assigned)

    def run(self, most: int, deadline: Deadline) -> float:
        """Look at everything that may be better; the highest bound of what was not looked at, -inf where nothing is left."""
        stack = [self.root()]
        while stack:
            if deadline.late or self.seen > most:
                return max(float(part.bound.max(initial=-np.inf)) for part in stack)
            left = stack.pop()
            few = self._few(left.assigned.shape[1])
            if len(left.total) > few:
                stack.append(left.take(slice(0, -few)))
            part = left.take(slice(-few, None))
            part = part.take(self._worth(part.bound))
            if not len(part.total):
                continue
            if part.assigned.shape[1] == self.network.size:
                self.offer(part.assigned)
                continue
            children = self.children(part)
            stack.append(children.take(np.argsort(children.bound, kind="stable")))
        return -np.inf

    def _few(self, decided: int) -> int:
        """How many, with so many variables decided, are taken on at once: their options get an equal share of the memory."""
        options = self.network.unary.shape[1]
        each = options * max(1, (self.network.size - decided - 1) * options)
        return int(max(1, min(CHUNK, HELD // self.network.size // each)))

    def _worth(self, bounds: Array) -> NDArray[np.bool_]:
        """Which bounds may lead to something better; the highest of the others is part of what is proven."""
        worth = bounds > self.enough
        self.dropped = max(self.dropped, float(bounds[~worth].max(initial=-np.inf)))
        return worth

    def children(self, part: _Partial) -> _Partial:
        """Every option of the next variable for every partial architecture that may be better and keep the limits."""
        v, here = part.assigned.shape[1], part.open[:, 0]
        rest = part.open[:, 1:].max(axis=2).sum(axis=1)
        hope = part.total[:, None] + here + rest[:, None]
        fits = np.ones(hope.shape, dtype=bool)
        least = self._least(part.open[:, 1:], v + 1)
        for r, room in enumerate(self.network.room.tolist()):
            fits &= part.cost[:, r, None] + self.network.cost[r, v] + least[:, r, None] <= room
        hope = np.where(fits & (here > -self.network.far / 2), hope, -np.inf)
        parents, options = np.nonzero(self._worth(hope))
        self.seen += len(parents)
        step = max(1, AT_ONCE // max(1, part.open[0, 1:].size))
        cuts = [
            self._decided(part, parents[i : i + step], options[i : i + step])
            for i in range(0, max(1, len(parents)), step)
        ]
        return cuts[0] if len(cuts) == 1 else _joined(cuts)

    def _decided(self, part: _Partial, parents: Indices, options: Indices) -> _Partial:
        """The children with given options that may still be better."""
        v = part.assigned.shape[1]
        opened = part.open[parents, 1:] + self.network.pair[v, v + 1 :][:, options].transpose(1, 0, 2)
        total = part.total[parents] + part.open[parents, 0, options]
        bound = total + opened.max(axis=2).sum(axis=1)
        cost = part.cost[parents] + self.network.cost[:, v, options].T
        fits = (cost + self._least(opened, v + 1) <= self.network.room).all(axis=1)
        keep = np.flatnonzero(self._worth(np.where(fits, bound, -np.inf)))
        assigned = np.column_stack([part.assigned[parents[keep]], options[keep]])
        return _Partial(assigned, total[keep], opened[keep], cost[keep], bound[keep])

    def _least(self, opened: Array, first: int) -> Array:
        """The least that the open variables can cost, (n, rows)."""
        allowed = opened > -self.network.far / 2
        rows = [
            np.where(allowed, cost[first:], np.inf).min(axis=2, initial=np.inf).sum(axis=1)
            for cost in self.network.cost
        ]
        return np.array(rows).reshape(len(rows), len(opened)).T


def _joined(parts: list[_Partial]) -> _Partial:
    names = ("assigned", "total", "open", "cost", "bound")
    return _Partial(*(np.concatenate([getattr(part, name) for part in parts]) for name in names))
