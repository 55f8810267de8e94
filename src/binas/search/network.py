"""A problem with pairs of choices as a network of decisions, and the bound that its pairs allow.

    max  constant + sum_v unary[v, x_v] + sum_{v < w} pair[v, w, x_v, x_w]    s.t.  sum_v cost[r, v, x_v] <= bound[r]

One variable v per decision: the depths of all stages, then the configs of all blocks, "not there" among them where a depth
leaves the block out. Depths and blocks that contradict each other are held apart by a number larger than any objective.

For any phi and prices m >= 0 no architecture within the limits is better than

    constant + m'bound + sum_v max_x [unary - m'cost + sum_w phi[v, w]](x)
                       + sum_{v < w} max_{x, y} [pair - phi[v, w](x) - phi[w, v](y)]

(the dual of the relaxation over the local polytope; T. Werner, A linear programming approach to max-sum problem, 2007). phi
and m are improved in turn, phi by max-sum diffusion: what a variable and its pairs can reach is spread evenly over them.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from binas.base.errors import ProblemError
from binas.estimators.objective import BilinearObjective, QuadraticObjective
from binas.search.deadline import NEVER, Deadline
from binas.search.problem import SearchProblem
from binas.search.terms import limit_rows
from binas.space.space import SearchSpace

Array = NDArray[np.float64]
Indices = NDArray[np.int64]

SWEEPS = 200
SETTLED = 1e-5  # of the reach: a gain per sweep below which the bound is as good as it gets
FAR = 4096.0  # times the reach: what phi and prices move stays far below half of it
SECTIONS = 50  # of an interval of prices
MAX_PAIRS = 2**24  # numbers in the table of all pairs, 128 MiB; up to four such tables are held at once


@dataclass(frozen=True, eq=False)
class Network:
    """Decisions as variables, options padded to the largest number D; what is padded or contradicts has ``-far``.

    ``entries`` (K, D) is where an option stands in z, the length of z for a block that is not there. ``unary`` (K, D),
    ``pair`` (K, K, D, D) with pair[w, v] the transpose of pair[v, w], ``cost`` (rows, K, D) beyond the least of a variable,
    ``room`` (rows,) what is left for it.
    """

    space: SearchSpace
    entries: Indices
    constant: float
    unary: Array
    pair: Array
    cost: Array
    room: Array
    far: float

    @property
    def size(self) -> int:
        """Number of variables K."""
        return len(self.unary)

    @property
    def bound(self) -> float:
        """No assignment within the limits is better."""
        upper = np.triu(self.pair.max(axis=(2, 3)), 1)
        return self.constant + float(self.unary.max(axis=1).sum() + upper.sum())

    @property
    def reach(self) -> float:
        """No two architectures differ by more."""
        return self.far / FAR

    def values(self, assigned: Indices) -> Array:
        """Objective of assignments (n, K), as long as no price and no phi has moved anything."""
        total = np.full(len(assigned), self.constant)
        for v in range(self.size):
            total += self.unary[v, assigned[:, v]]
            for w in range(v):
                total += self.pair[v, w, assigned[:, v], assigned[:, w]]
        return total

    def costs(self, assigned: Indices) -> Array:
        """Every row of assignments (n, K), (n, rows)."""
        return np.asarray(self.cost[:, np.arange(self.size), assigned].sum(axis=2).T)

    def ordered(self, order: Indices) -> Network:
        """The same variables in another order."""
        return replace(
            self,
            entries=self.entries[order],
            unary=self.unary[order],
            pair=self.pair[np.ix_(order, order)],
            cost=self.cost[:, order],
        )

    def assignment(self, positions: Indices) -> Indices:
        """The option of every variable for an architecture whose ones in z are at ``positions``."""
        chosen = np.isin(self.entries, positions) & (self.unary > -self.far / 2)
        absent = (self.entries == self.space.layout.size) & (self.unary > -self.far / 2)
        return np.asarray(np.where(chosen.any(axis=1), chosen.argmax(axis=1), absent.argmax(axis=1)))


def network_of(problem: SearchProblem) -> Network:
    """The network of a problem with a bilinear or quadratic objective; refused where its pairs would fill the memory."""
    entries = _entries(problem.space)
    if entries.size**2 > MAX_PAIRS:
        raise ProblemError(
            f"the space {problem.space.name!r} has {len(entries)} decisions of up to {entries.shape[1]} options: a table of "
            f"all their pairs would take {entries.size**2 / 2**27:.1f} GiB. Use evolution, or milp for a bilinear objective."
        )
    constant, linear, both = _form(problem)
    padding, empty = entries < 0, problem.space.layout.size
    at = np.where(padding, empty, entries)
    unary, pair = np.append(linear, 0.0)[at], np.pad(both, (0, 1))[at[:, None, :, None], at[None, :, None, :]]
    pair[np.arange(len(at)), np.arange(len(at))] = 0.0
    spread = np.abs(unary).max(axis=1).sum() + np.abs(pair).max(axis=(2, 3)).sum()
    far = FAR * (2.0 * float(spread) + 1e-6)
    unary[padding] = -far
    apart = _contradictions(problem.space, at)
    pair[apart] = -far
    pair[np.broadcast_to(padding[:, None, :, None] | padding[None, :, None, :], pair.shape)] = -far
    pair[np.arange(len(at)), np.arange(len(at))] = 0.0
    rows = limit_rows(problem)
    flats = [np.append(row.sign * problem.costs[row.cost].values.flat(), 0.0) for row in rows]
    cost = np.array([flat[at] for flat in flats]).reshape(len(rows), *at.shape)
    room = np.array([row.bound - row.sign * problem.costs[row.cost].fixed for row in rows])
    least = np.where(padding, np.inf, cost).min(axis=2)  # of every variable: what is beyond it has a price
    cost, room = np.where(padding, 0.0, cost - least[:, :, None]), room - least.sum(axis=1)
    return Network(problem.space, at, constant, unary, pair, cost, room, far)


def _form(problem: SearchProblem) -> tuple[float, Array, Array]:
    """b, a + diag Q, and Q + Q' of the objective."""
    objective = problem.objective
    if isinstance(objective, BilinearObjective):
        flat = objective.values.flat()
        return objective.base, flat, np.zeros((len(flat), len(flat)))
    assert isinstance(objective, QuadraticObjective)
    linear = objective.linear + np.diag(objective.quadratic)
    return objective.constant, linear, objective.quadratic + objective.quadratic.T


def _entries(space: SearchSpace) -> Indices:
    """Where each option stands in z, the length of z for "not there", -1 where padded: depths first, then blocks."""
    layout = space.layout
    options = [np.arange(where.start, where.stop) for where in layout.depth_slices]
    for stage, blocks in zip(space.stages, layout.config_slices, strict=True):
        for b, where in enumerate(blocks):
            absent = [layout.size] if min(stage.depths) <= b else []
            options.append(np.append(np.arange(where.start, where.stop), absent).astype(np.int64))
    result = np.full((len(options), max(map(len, options))), -1, dtype=np.int64)
    for row, found in zip(result, options, strict=True):
        row[: len(found)] = found
    return result


def _contradictions(space: SearchSpace, at: Indices) -> NDArray[np.bool_]:
    """Which pairs of options cannot be together: a block that is there past its depth, or not there before it."""
    result = np.zeros((len(at), len(at), at.shape[1], at.shape[1]), dtype=bool)
    v = len(space.stages)
    for s, stage in enumerate(space.stages):
        for b in range(len(stage.blocks)):
            there = at[v] != space.layout.size
            runs = np.array(stage.depths) > b
            wrong = runs[:, None] != there[None, :]
            result[s, v, : len(runs)] = wrong
            result[v, s, :, : len(runs)] = wrong.T
            v += 1
    return result


def tightened(network: Network, deadline: Deadline = NEVER) -> Network:
    """An equal problem with a lower ``bound``: prices on the limits and phi moved into its numbers, until the deadline."""
    unary, pair, constant = network.unary.copy(), network.pair.copy(), network.constant
    prices, before = np.zeros(len(network.room)), np.inf
    for _ in range(SWEEPS):
        for v in range(network.size):
            if deadline.late:
                break
            _spread_evenly(unary, pair, v)
        for r, (cost, room) in enumerate(zip(network.cost, network.room.tolist(), strict=True)):
            spread = float(cost.max(axis=1).sum())
            if not spread > 0.0:
                continue  # the same for all
            moved = _price(unary, cost, room, -prices[r], 4.0 * network.reach / spread - prices[r])
            prices[r] += moved
            unary -= moved * cost
            constant += moved * room
        now = replace(network, constant=constant, unary=unary, pair=pair).bound
        if before - now < SETTLED * network.reach or deadline.late:
            break
        before = now
    return _normal(replace(network, constant=constant, unary=unary, pair=pair))


def _spread_evenly(unary: Array, pair: Array, v: int) -> None:
    """Give variable v and each of its pairs the same share of what they reach together at each of its options."""
    reached = pair[v].max(axis=2)  # (K, D); zero for v itself
    share = (unary[v] + reached.sum(axis=0)) / len(unary)
    moved = share - reached
    moved[v] = 0.0
    pair[v] += moved[:, :, None]
    pair[:, v] += moved[:, None, :]
    unary[v] = share


def _price(unary: Array, cost: Array, room: float, low: float, high: float) -> float:
    """The change p of a price for which sum_v max_x [unary - p cost] + p room is least: convex, so by golden section."""

    def bound(change: float) -> float:
        return float((unary - change * cost).max(axis=1).sum()) + change * room

    ratio = (np.sqrt(5.0) - 1) / 2
    for _ in range(SECTIONS):
        left, right = high - ratio * (high - low), low + ratio * (high - low)
        if bound(left) <= bound(right):
            high = right
        else:
            low = left
    middle = (low + high) / 2
    return float(min((0.0, low, high, middle), key=bound))


def _normal(network: Network) -> Network:
    """Every pair brought, in place, to a maximum of zero; the constant takes the rest."""
    most = network.pair.max(axis=(2, 3))
    network.pair[:] -= most[:, :, None, None]
    return replace(network, constant=network.constant + float(np.triu(most, 1).sum()))
