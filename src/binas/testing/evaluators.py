"""Evaluators with known contributions: what a measuring protocol must find out."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from binas.contributions.design import Design, sparse_rows
from binas.contributions.outcomes import Array, Indices, Outcomes
from binas.space.architecture import Architecture
from binas.space.sampling import sample_many
from binas.space.space import SearchSpace
from binas.tables.contributions import Contributions
from binas.tables.entries import Column

_MIX = (0x9E3779B97F4A7C15, 0xBF58476D1CE4E5B9, 0x94D049BB133111EB)  # constants of splitmix64

SHOWN = 0.5  # of what decides a single evaluation shows in the probability of the true class
APART = (
    0.05  # variance of effects on that probability that accuracy does not share, relative to those it shares
)


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


class Interactions:
    """Made-up effects of pairs of choices, of all stages and blocks, with a standard deviation of ``points`` over networks.

    What random networks would show as effects of single choices is taken out: contributions stay what they are.
    """

    def __init__(self, space: SearchSpace, points: float, seed: int, drawn: int = 4000) -> None:
        rng, size = np.random.default_rng([seed, 5]), space.layout.size
        self.pairs = np.triu(rng.normal(size=(size, size)), 1)
        rows = space.layout.rows(sample_many(space, drawn, seed))
        design, raw = np.column_stack([np.ones(drawn), rows]), self._raw(rows)
        self.single = np.linalg.lstsq(design, raw, rcond=None)[0]
        self.scale = points / float((raw - design @ self.single).std())

    def total(self, rows: Array) -> Array:
        """Points of networks given by their rows z of ``space.layout``, (n,)."""
        return np.asarray(self.scale * (self._raw(rows) - self.single[0] - rows @ self.single[1:]))

    def _raw(self, rows: Array) -> Array:
        return np.asarray(((rows @ self.pairs) * rows).sum(axis=1))


class PopulationEvaluator(KnownEvaluator):
    """Images drawn from a population in which an architecture has exactly the accuracy base + contributions + interactions.

    Image i is right on a path with probability p_i + s_i * effect, p_i from Beta(base, 1 - base): as with real networks
    most images are right, or wrong, for almost every network. s_i = p_i (1 - p_i) / mean, so that its mean is 1 and no
    probability leaves 0..1 for effects up to half of 100 base (1 - base) points. The probability of the true class is
    that of being right, and ``SHOWN`` of what made this evaluation right or wrong beyond it; choices move it almost,
    not exactly, as they move accuracy (``APART``). Another ``seed`` draws other images. With ``shift`` and ``scale``
    effects are shift + scale * effect: a supernet's own statistics instead of a network's.
    """

    def __init__(
        self,
        truth: Contributions,
        images: int,
        seed: int = 0,
        interactions: Interactions | None = None,
        shift: float = 0.0,
        scale: float = 1.0,
    ) -> None:
        super().__init__(truth, images, seed)
        base, rng = truth.base / 100, np.random.default_rng([seed, 9])
        self._right = rng.beta(base, 1 - base, images)
        self._moved = self._right * (1 - self._right) / (base * (1 - base) / 2)
        self.interactions, self.shift, self.scale = interactions, shift, scale
        configs, depths = np.split(truth.values.flat(), [self.space.alpha_size])
        mixed = [np.random.default_rng(0).permutation(part) for part in (configs, depths)]
        self._apart = math.sqrt(APART) * np.concatenate(mixed)

    def accuracy(self, architectures: Sequence[Architecture]) -> Array:
        """True accuracies in the population, percent, (n,)."""
        return self.truth.base + self._effects(self.space.layout.rows(architectures))

    def easier(self, architectures: Sequence[Architecture]) -> Array:
        """Points by which the images drawn are easier than the population for networks, (n,); 0 on average over draws."""
        effects = self._effects(self.space.layout.rows(architectures))
        chances = np.clip(self._right + np.outer(effects / 100, self._moved), 0.0, 1.0)
        return np.asarray(100 * chances.mean(axis=1) - self.truth.base - effects)

    def correct(self, architecture: Architecture) -> NDArray[np.bool_]:
        """Which images one architecture classifies rightly."""
        depths, configs = (
            np.repeat(part, self.images, axis=0) for part in self.space.to_indices([architecture])
        )
        return np.asarray(self.outcomes(np.arange(self.images), depths, configs).correct > 0)

    def outcomes(self, images: Indices, depths: Indices, configs: Indices) -> Outcomes:
        """Outcomes of ``images`` (n,) on paths ``depths`` (n, S) and ``configs`` (n, S, D)."""
        rows = sparse_rows(self.space, depths, configs).toarray()
        effect = self._moved[images] * (self.shift + self.scale * self._effects(rows)) / 100
        chance = np.clip(self._right[images] + effect, 1e-6, 1.0)
        drawn = _uniform(self._key(images, self.space.layout.positions(depths, configs)))
        apart = self._moved[images] * (rows @ self._apart) / 100
        probability = np.clip(chance + SHOWN * (chance - drawn) + apart, 1e-6, 1.0)
        return Outcomes((drawn < chance).astype(np.float32), np.log(probability).astype(np.float32))

    def _effects(self, rows: Array) -> Array:
        single = rows @ self.truth.values.flat()
        return np.asarray(single if self.interactions is None else single + self.interactions.total(rows))


def known_contributions(
    space: SearchSpace, seed: int, points: float = 1.0, base: float = 60.0
) -> Contributions:
    """Made-up contributions around ``base``: depths with a standard deviation of about ``points``, configs of a third."""
    design, rng = Design(space), np.random.default_rng(seed)
    scale = np.repeat([points / 3, points], [space.alpha_size, space.beta_size])
    raw = rng.normal(size=design.size) * scale
    return Contributions(space, base, Column.from_flat(space, design.contrasts @ (design.contrasts.T @ raw)))


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
