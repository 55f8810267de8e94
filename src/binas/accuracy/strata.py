"""Architectures to measure: drawn uniformly, or so that they cover the range of a cost evenly.

Uniform draws crowd around the middle of the cost range; a search asks about all of it. For even coverage the
range from the cheapest to the dearest architecture is cut into strata of equal width, and each gets its share of
draws from the uniform distribution over decisions, tilted to its middle:

    P(architecture) ~ uniform(architecture) * exp(tilt * cost(architecture)).

It factorises over stages and blocks, so it is sampled exactly; what falls outside the stratum is drawn again.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import brentq

from binas.space.architecture import Architecture
from binas.space.sampling import sample
from binas.space.space import SearchSpace
from binas.tables.entries import Column

Array = NDArray[np.float64]

STRATA = 20
TRIES = 200  # draws in a row without a new architecture before a stratum counts as exhausted
STEEPEST = 2000.0  # tilt per whole cost range at which only the cheapest or dearest choices are left


def uniform_architectures(space: SearchSpace, count: int, seed: int) -> list[Architecture]:
    """``count`` different architectures, uniform over decisions; fewer if the space runs out of them."""
    rng, found = np.random.default_rng(seed), dict[Architecture, None]()
    _fill(found, count, lambda: sample(space, rng))
    return list(found)


def cost_strata(
    space: SearchSpace, cost: Column, count: int, seed: int, strata: int = STRATA
) -> list[Architecture]:
    """``count`` different architectures, equally many from each of ``strata`` equal parts of the cost range.

    Strata at the ends may hold fewer; their share goes to those nearer the middle. Cheapest strata first.
    """
    rng, (low, high) = np.random.default_rng(seed), cost_range(cost, space)
    scaled = cost.map(lambda values: values / ((high - low) or 1.0))
    edges = np.linspace(low, high, strata + 1) / ((high - low) or 1.0)
    found: dict[int, dict[Architecture, None]] = {}
    for done, k in enumerate(sorted(range(strata), key=lambda k: -abs(2 * k - strata + 1))):
        left = count - sum(map(len, found.values()))
        found[k] = _stratum(space, scaled, (edges[k], edges[k + 1]), round(left / (strata - done)), rng)
    return list(dict.fromkeys(a for k in range(strata) for a in found[k]))


def cost_range(cost: Column, space: SearchSpace) -> tuple[float, float]:
    """Smallest and largest total of a cost over all architectures (without its fixed part)."""
    totals = []
    for choose in (np.min, np.max):
        best = 0.0
        for s, stage in enumerate(space.stages):
            blocks = [float(choose(values)) for values in cost.configs[s]]
            best += float(choose([c + sum(blocks[:d]) for c, d in zip(cost.depths[s], stage.depths, strict=True)]))
        totals.append(best)
    return totals[0], totals[1]


def _stratum(
    space: SearchSpace, cost: Column, edges: tuple[float, float], count: int, rng: np.random.Generator
) -> dict[Architecture, None]:
    """Up to ``count`` different architectures whose cost lies within ``edges``."""
    tilted = Tilted(space, cost, tilt_towards(space, cost, (edges[0] + edges[1]) / 2))

    def draw() -> Architecture | None:
        architecture, total = tilted.draw(rng)
        return architecture if edges[0] <= total <= edges[1] else None

    found: dict[Architecture, None] = {}
    _fill(found, count, draw)
    return found


def _fill(
    found: dict[Architecture, None], count: int, draw: Callable[[], Architecture | None]
) -> None:
    """Draw until ``count`` different architectures are found, or no new one comes any more."""
    misses = 0
    while len(found) < count and misses < TRIES:
        architecture = draw()
        if architecture is None or architecture in found:
            misses += 1
        else:
            found[architecture], misses = None, 0


class Tilted:
    """The uniform distribution over decisions, weighted by exp(tilt * cost)."""

    def __init__(self, space: SearchSpace, cost: Column, tilt: float) -> None:
        self.space, self.cost = space, cost
        self.configs, self.depths, self.mean = [], [], 0.0
        for s, stage in enumerate(space.stages):
            logs = [tilt * values - np.log(len(values)) for values in cost.configs[s]]
            totals = np.array([np.logaddexp.reduce(values) for values in logs])
            shares = [np.exp(values - total) for values, total in zip(logs, totals, strict=True)]
            reached = np.concatenate([[0.0], np.cumsum(totals)])[list(stage.depths)]
            depth = _shares(tilt * cost.depths[s] + reached)
            means = np.array([p @ c for p, c in zip(shares, cost.configs[s], strict=True)])
            inside = np.concatenate([[0.0], np.cumsum(means)])[list(stage.depths)]
            self.mean += float(depth @ (cost.depths[s] + inside))
            self.configs.append(shares)
            self.depths.append(depth)

    def draw(self, rng: np.random.Generator) -> tuple[Architecture, float]:
        """One architecture and its cost."""
        stages, total = [], 0.0
        for s, stage in enumerate(self.space.stages):
            i = int(rng.choice(len(stage.depths), p=self.depths[s]))
            picks = [int(rng.choice(len(p), p=p)) for p in self.configs[s][: stage.depths[i]]]
            total += float(self.cost.depths[s][i]) + sum(
                float(self.cost.configs[s][b][c]) for b, c in enumerate(picks)
            )
            stages.append([stage.blocks[b][c].name for b, c in enumerate(picks)])
        return Architecture.of(stages), total


def tilt_towards(space: SearchSpace, cost: Column, wanted: float) -> float:
    """The tilt at which the mean cost is ``wanted``, for costs scaled to a range of 1."""

    def excess(tilt: float) -> float:
        return Tilted(space, cost, tilt).mean - wanted

    if excess(-STEEPEST) >= 0:
        return -STEEPEST
    return STEEPEST if excess(STEEPEST) <= 0 else float(brentq(excess, -STEEPEST, STEEPEST, xtol=1e-3))


def _shares(logs: Array) -> Array:
    weights = np.exp(logs - logs.max())
    return np.asarray(weights / weights.sum())
