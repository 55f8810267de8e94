"""An evaluator with known contributions: what a measuring protocol must find out."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from binas.contributions.design import Design
from binas.contributions.outcomes import Array, Indices, Outcomes
from binas.space.space import SearchSpace
from binas.tables.contributions import Contributions
from binas.tables.entries import Column

_MIX = (0x9E3779B97F4A7C15, 0xBF58476D1CE4E5B9, 0x94D049BB133111EB)  # constants of splitmix64


class KnownEvaluator:
    """Image i on a path is right with probability base + difficulty_i + sensitivity_i * (sum of contributions) + noise.

    Difficulties are uniform on +-``difficulty`` with mean 0, sensitivities uniform on 0.5..1.5 with mean 1, the noise of an
    image on a path is uniform on +-``noise``: so the accuracy of an architecture over all images is exactly the sum
    formula, up to the noise. The probability of the true class is that of being right. Everything depends on (seed,
    image, path) only.
    """

    def __init__(
        self,
        truth: Contributions,
        images: int,
        seed: int = 0,
        difficulty: float = 0.25,
        noise: float = 0.1,
    ) -> None:
        self.truth, self.images, self.seed, self.noise = truth, images, seed, noise
        self.fingerprint = f"known/{images}/{seed}"
        rng = np.random.default_rng(seed)
        self._difficulty = rng.permutation(np.linspace(-difficulty, difficulty, images))
        self._sensitivity = rng.permutation(np.linspace(0.5, 1.5, images))

    @property
    def space(self) -> SearchSpace:
        """The space of the contributions."""
        return self.truth.space

    def outcomes(self, images: Indices, depths: Indices, configs: Indices) -> Outcomes:
        """Outcomes of ``images`` (n,) on paths ``depths`` (n, S) and ``configs`` (n, S, D)."""
        positions = self.space.layout.positions(depths, configs)
        key = self._key(images, positions)
        effect = self._sensitivity[images] * self.truth.values.total(positions) / 100
        chance = self.truth.base / 100 + self._difficulty[images] + effect
        chance = np.clip(chance + self.noise * (2 * _uniform(key) - 1), 0.001, 0.999)
        correct = (_uniform(key + np.uint64(1)) < chance).astype(np.float32)
        return Outcomes(correct, np.log(chance).astype(np.float32))

    def _key(self, images: Indices, positions: Indices) -> NDArray[np.uint64]:
        """A number per (seed, image, path)."""
        key = np.full(len(images), self.seed, dtype=np.uint64)
        for column in [images, *positions.T]:
            key = _mixed(key ^ (column.astype(np.uint64) + np.uint64(1)))
        return key


def known_contributions(space: SearchSpace, seed: int, points: float = 1.0) -> Contributions:
    """Made-up contributions around 60 %: depths with a standard deviation of about ``points``, configs of a third."""
    design, rng = Design(space), np.random.default_rng(seed)
    scale = np.repeat([points / 3, points], [space.alpha_size, space.beta_size])
    raw = rng.normal(size=design.size) * scale
    return Contributions(space, 60.0, Column.from_flat(space, design.contrasts @ (design.contrasts.T @ raw)))


def _mixed(key: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """The output function of splitmix64: every bit depends on every bit."""
    add, first, second = (np.uint64(constant) for constant in _MIX)
    with np.errstate(over="ignore"):
        key = key + add
        key = (key ^ (key >> np.uint64(30))) * first
        key = (key ^ (key >> np.uint64(27))) * second
    return np.asarray(key ^ (key >> np.uint64(31)))


def _uniform(key: NDArray[np.uint64]) -> Array:
    """Numbers in [0, 1) that look random, one per key."""
    return np.asarray((_mixed(key) >> np.uint64(11)).astype(np.float64) / 2.0**53)
