"""What networks share of all that main effects leave over: a kernel of pairs, without what single choices explain.

The lack of fit of an additive estimator is what interactions do beyond the effects of single choices. Interactions of two
choices alone, each with an effect of its own, have the covariance k0(z, y) = (z'y)^2 for rows z, y of ``space.layout``: the
number of pairs of choices that both networks have, squared effects of single choices included. Those were fitted, so they
are taken out as least squares over random networks R would: with rows (1, r') in X and weights h(z) = X (X'X)^+ (1, z')',

    K(z, y) = k0(z, y) - h(z)'k0(R, y) - k0(z, R)h(y) + h(z)'k0(R, R)h(y),    kappa = K / mean over networks r of K(r, r).

Networks that differ in a single block have k0 near 1 when scaled, but kappa well below: they differ by more than the raw
pairs say.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from binas.space.architecture import Architecture
from binas.space.sampling import sample_many
from binas.space.space import SearchSpace

Array = NDArray[np.float64]

SEED = 20261117  # of the random networks: every space has its own, the same ones always
DRAWN = (
    500,
    2000,
)  # random networks that main effects are fitted to, at least and at most; between, PER_CHOICE for each choice
PER_CHOICE = 8  # of them for each choice, between
SCALED_BY = 300  # further networks whose mean K(r, r) is 1
LARGEST = 1000  # choices beyond which so few networks fit nothing: the pairs as they are, k0 / sqrt(k0 k0)


@dataclass(frozen=True, eq=False)
class Leftover:
    """kappa of a space: ``rows`` (M, choices) of the random networks, ``inverse`` (X'X)^+, ``pairs`` k0(R, R), ``scale``."""

    rows: Array
    inverse: Array
    pairs: Array
    scale: float

    def of(self, rows: Array) -> Array:
        """kappa of networks given by their rows of ``space.layout``, (n, n)."""
        between, weights = (rows @ self.rows.T) ** 2, self._weights(rows)
        mixed = weights @ between.T
        raw = (rows @ rows.T) ** 2 - mixed - mixed.T + weights @ self.pairs @ weights.T
        return np.asarray(raw / self.scale)

    def alone(self, rows: Array) -> Array:
        """kappa of each network with itself, (n,)."""
        between, weights = (rows @ self.rows.T) ** 2, self._weights(rows)
        inner = np.einsum("nm,nm->n", weights @ self.pairs - 2 * between, weights)
        return np.asarray(np.maximum((rows**2).sum(axis=1) ** 2 + inner, 0.0) / self.scale)

    def _weights(self, rows: Array) -> Array:
        """h of each network, (n, M)."""
        return np.asarray(_with_one(rows) @ self.inverse @ _with_one(self.rows).T)


def shared_leftover(space: SearchSpace, architectures: Sequence[Architecture]) -> Array:
    """kappa of networks, (n, n): on average 1 on the diagonal, over all networks."""
    rows = space.layout.rows(architectures)
    known = _leftover(space)
    if known is None:
        rows = rows / np.linalg.norm(rows, axis=1, keepdims=True)
        return np.asarray((rows @ rows.T) ** 2)
    return known.of(rows)


def own_leftover(space: SearchSpace, architectures: Sequence[Architecture]) -> Array:
    """kappa of each network with itself, (n,): how far it may be from what main effects say, squared."""
    known = _leftover(space)
    return np.ones(len(architectures)) if known is None else known.alone(space.layout.rows(architectures))


@lru_cache(maxsize=8)
def _leftover(space: SearchSpace) -> Leftover | None:
    """kappa of a space; None where it has too many choices, or no interactions are left over."""
    size = space.layout.size
    if size > LARGEST:
        return None
    count = min(max(PER_CHOICE * size, DRAWN[0]), DRAWN[1])
    rows = space.layout.rows(sample_many(space, count + SCALED_BY, SEED))
    drawn = _with_one(rows[:count])
    inverse: Array = np.asarray(np.linalg.pinv(drawn.T @ drawn, hermitian=True), dtype=np.float64)
    plain = Leftover(rows[:count], inverse, (rows[:count] @ rows[:count].T) ** 2, 1.0)
    scale = float(plain.alone(rows[count:]).mean())
    few = scale <= 1e-9 * float((rows.sum(axis=1) ** 2).mean())
    return None if few else Leftover(plain.rows, inverse, plain.pairs, scale)


def _with_one(rows: Array) -> Array:
    """(1, z') of each row."""
    return np.column_stack([np.ones(len(rows)), rows])
