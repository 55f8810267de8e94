"""Architectures to measure: drawn uniformly, or so that they cover the range of a cost evenly.

Uniform draws crowd around the middle of the cost range; a search asks about all of it. For even coverage the
range from the cheapest to the dearest architecture is cut into strata of equal width, and each gets its share of
draws from the uniform distribution over decisions, tilted to its middle:

    P(architecture) ~ uniform(architecture) * exp(tilt * cost(architecture)).

It factorises over stages and blocks, so it is sampled exactly; what falls outside the stratum is drawn again.
Draws come in an order that does not depend on how many are wanted: asking for more later adds to the first ones.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import cycle, islice

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import brentq

from binas.costs.analytic import analytic_costs
from binas.space.architecture import Architecture
from binas.space.odds import DEPTH, Odds, deck_of
from binas.space.sampling import sample
from binas.space.space import SearchSpace
from binas.tables.costs import Cost
from binas.tables.entries import Column

Array = NDArray[np.float64]

STRATA = 20
TRIES = 300  # draws in a row without a new architecture before no more are expected
STEEPEST = 2000.0  # tilt over the whole cost range at which only the cheapest or dearest choices are left


def uniform_architectures(space: SearchSpace, count: int, seed: int) -> list[Architecture]:
    """``count`` different architectures, uniform over decisions; fewer when no new one comes any more."""
    rng = np.random.default_rng(seed)
    return list(islice(_distinct(lambda: sample(space, rng)), count))


def drawn_architectures(
    space: SearchSpace, odds: Sequence[Odds], count: int, seed: int
) -> list[Architecture]:
    """``count`` different architectures drawn by odds, in turns; fewer when no new one comes any more."""
    rng, turns = np.random.default_rng(seed), cycle(odds)

    def draw() -> Architecture:
        own = next(turns).decks
        stages = []
        for s, stage in enumerate(space.stages):
            depth = stage.depths[int(rng.choice(own[s, DEPTH]))]
            stages.append([stage.blocks[b][int(rng.choice(own[s, b]))].name for b in range(depth)])
        return Architecture.of(stages)

    return list(islice(_distinct(draw), count))


def odds_around(space: SearchSpace, shares: Iterable[float]) -> tuple[Odds, ...]:
    """Odds under which drawn networks have these shares of the way from the least to the most MACs, on average.

    A network that was never elastic falls apart on uniform paths, most of which are far smaller than any limit asks for.
    """
    asked = tuple(shares)
    return () if not asked else tuple(_odds(space, analytic_costs(space)["macs"], share) for share in asked)


def share_of_macs(space: SearchSpace, cost: Cost, value: float) -> float:
    """Share of the range of MACs that networks have on average whose ``cost`` is ``value`` on average, such as 8 ms.

    They are drawn from the uniform distribution over decisions tilted by that cost. A latency has a large part that no
    choice changes, and cheap choices that are slow, so its share of its own range says little of MACs.
    """
    macs = analytic_costs(space)["macs"]
    least, most = macs.range(space)
    mean = macs.fixed + _tilted(space, cost, value).mean_of(macs.values)
    return float(min(1.0, max(0.0, (mean - least) / ((most - least) or 1.0))))


def _tilted(space: SearchSpace, cost: Cost, value: float) -> Tilted:
    """The distribution whose mean cost is ``value``."""
    least, most = cost.range(space)
    width = (most - least) or 1.0
    scaled = cost.values.map(lambda values: values / width)
    return Tilted(space, scaled, tilt_towards(space, scaled, (value - cost.fixed) / width))


def _odds(space: SearchSpace, cost: Cost, share: float) -> Odds:
    least, most = cost.range(space)
    tilted = _tilted(space, cost, least + share * (most - least))
    decks = {}
    for s in range(len(space.stages)):
        decks[s, DEPTH] = deck_of(tilted.depths[s])
        decks |= {(s, b): deck_of(shares) for b, shares in enumerate(tilted.configs[s])}
    return Odds(decks)


def cost_strata(
    space: SearchSpace, cost: Cost, count: int, seed: int, strata: int = STRATA
) -> list[Architecture]:
    """``count`` different architectures, in turns from each of ``strata`` equal parts of the cost range.

    A stratum that runs out of architectures, as at the ends of the range, leaves its turns to the others.
    """
    edges = np.linspace(*cost.range(space), strata + 1)
    parts = [architectures_between(space, cost, edges[k], edges[k + 1], [seed, k]) for k in range(strata)]
    return list(islice(_in_turns(parts, np.random.default_rng(seed)), count))


def _in_turns(parts: list[Iterator[Architecture]], rng: np.random.Generator) -> Iterator[Architecture]:
    """One of each part, in a new random order every time, until all are exhausted."""
    seen: set[Architecture] = set()  # an architecture on the edge of two strata belongs to both
    left = dict(enumerate(parts))
    while left:
        for k in rng.permutation(len(parts)):
            architecture = next(left[k], None) if k in left else None
            if architecture is None:
                left.pop(k, None)
            elif architecture not in seen:
                seen.add(architecture)
                yield architecture


def architectures_between(
    space: SearchSpace, cost: Cost, low: float, high: float, seed: int | list[int]
) -> Iterator[Architecture]:
    """Different random architectures whose cost, one that adds up, lies between ``low`` and ``high``."""
    least, most = cost.range(space)
    width = (most - least) or 1.0
    scaled = cost.values.map(lambda values: values / width)
    middle = ((low + high) / 2 - cost.fixed) / width
    tilted = Tilted(space, scaled, tilt_towards(space, scaled, middle))
    rng = np.random.default_rng(seed)

    def draw() -> Architecture | None:
        architecture, total = tilted.draw(rng)
        return architecture if low <= cost.fixed + total * width <= high else None

    return _distinct(draw)


def _distinct(draw: Callable[[], Architecture | None]) -> Iterator[Architecture]:
    """New architectures, until none comes any more."""
    seen: set[Architecture] = set()
    misses = 0
    while misses < TRIES:
        architecture = draw()
        if architecture is None or architecture in seen:
            misses += 1
            continue
        misses = 0
        seen.add(architecture)
        yield architecture


class Tilted:
    """The uniform distribution over decisions, weighted by exp(tilt * cost); ``mean`` is its mean cost."""

    def __init__(self, space: SearchSpace, cost: Column, tilt: float) -> None:
        self.space, self.cost = space, cost
        self.configs, self.depths = list[list[Array]](), list[Array]()
        for s, stage in enumerate(space.stages):
            logs = [tilt * values - np.log(len(values)) for values in cost.configs[s]]
            shares = [_shares(values) for values in logs]
            weight = _sums([float(np.logaddexp.reduce(values)) for values in logs])[list(stage.depths)]
            self.configs.append(shares)
            self.depths.append(_shares(tilt * cost.depths[s] + weight))
        self.mean = self.mean_of(cost)

    def mean_of(self, cost: Column) -> float:
        """The mean of any cost, or contribution, of networks drawn from this distribution."""
        total = 0.0
        for s, stage in enumerate(self.space.stages):
            means = _sums([float(p @ c) for p, c in zip(self.configs[s], cost.configs[s], strict=True)])
            total += float(self.depths[s] @ (cost.depths[s] + means[list(stage.depths)]))
        return total

    def draw(self, rng: np.random.Generator) -> tuple[Architecture, float]:
        """One architecture and its cost."""
        stages, total = [], 0.0
        for s, stage in enumerate(self.space.stages):
            i = int(rng.choice(len(stage.depths), p=self.depths[s]))
            picks = [int(rng.choice(len(p), p=p)) for p in self.configs[s][: stage.depths[i]]]
            stages.append([stage.blocks[b][c].name for b, c in enumerate(picks)])
            total += float(self.cost.depths[s][i])
            total += sum(float(self.cost.configs[s][b][c]) for b, c in enumerate(picks))
        return Architecture.of(stages), total


def tilt_towards(space: SearchSpace, cost: Column, wanted: float) -> float:
    """The tilt at which the mean cost is ``wanted``, for a cost whose range is 1."""

    def excess(tilt: float) -> float:
        return Tilted(space, cost, tilt).mean - wanted

    if excess(-STEEPEST) >= 0:
        return -STEEPEST
    return STEEPEST if excess(STEEPEST) <= 0 else float(brentq(excess, -STEEPEST, STEEPEST, xtol=1e-3))


def _shares(logs: Array) -> Array:
    weights = np.exp(logs - logs.max())
    return np.asarray(weights / weights.sum())


def _sums(values: list[float]) -> Array:
    """Sums of the first 0, 1, ... values."""
    return np.concatenate([[0.0], np.cumsum(values)])
