"""The bilinear design (paper section 3.3): which contributions a path adds up, and what is expected of them.

A path's row z (:mod:`binas.space.layout`) has a one for each active (stage, block, config) and for each stage's depth.
Accuracy = base + z'theta. Every row fulfils

    sum_c z[s, b, c] = sum_{d >= b} z[s, d]    and    sum_d z[s, d] = 1,

so data tell theta only up to shifts between a block and the depths that contain it. Our contributions are those
that average to zero over the configs of each block and over the depths of each stage: then base is the expected
accuracy of a random architecture and a depth contributes E[Acc | depth] - E[Acc].
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from scipy.linalg import block_diag, helmert
from scipy.sparse import csr_array

from binas.contributions.outcomes import Array, Indices
from binas.space.space import SearchSpace
from binas.tables.contributions import Contributions
from binas.tables.entries import Column, Provenance


def sparse_rows(space: SearchSpace, depths: Indices, configs: Indices) -> csr_array:
    """z of every path given by its indices (``SearchSpace.to_indices``), as a sparse matrix (n, size)."""
    size, positions = space.layout.size, space.layout.positions(depths, configs)
    active = positions < size
    ends = np.concatenate([[0], active.sum(axis=1).cumsum()])
    return csr_array((np.ones(int(ends[-1])), positions[active], ends), shape=(len(positions), size))


@dataclass(frozen=True)
class Design:
    """Contrasts and expected similarities of the contributions of a space."""

    space: SearchSpace

    @property
    def size(self) -> int:
        """Length of theta: configs and depths."""
        return self.space.layout.size

    @cached_property
    def contrasts(self) -> Array:
        """Orthonormal T (size, q): theta = T gamma averages to zero over each block and each stage's depths."""
        sizes = (where.stop - where.start for where in self.space.layout.slices)
        return np.asarray(block_diag(*(helmert(size).T for size in sizes)))

    @cached_property
    def similarities(self) -> dict[str, Array]:
        """Shapes of the prior covariance of gamma = T'theta, one per group of effects with a common variance.

        * ``depth``: the depths of a stage;
        * ``shared``: an effect per option value (expansion 3, kernel 5, ...), the same in all blocks;
        * ``factor``: an effect per option value and block;
        * ``deviation``: an effect per config, what the options do not explain.
        """
        one_each = np.eye(self.size)
        parts = {
            "depth": one_each[:, self.space.alpha_size :],
            "shared": self.space.layout.shared_options,
            "factor": self.space.layout.option_entries,
            "deviation": one_each[:, : self.space.alpha_size],
        }
        return {name: _gram(self.contrasts.T @ part) for name, part in parts.items() if part.size}


def table_of(
    space: SearchSpace,
    vector: Array,
    covariance: Array,
    counts: Array,
    about: Mapping[str, Any],
    repeats: int | None = None,
) -> Contributions:
    """A table in percent from shares (base, configs, depths), their covariance and numbers of evaluations."""
    stderr = 100 * np.sqrt(np.maximum(0.0, np.diag(covariance)))
    provenance = Provenance.made("measured", repeats=repeats, **about)
    return Contributions(
        space,
        base=100 * float(vector[0]),
        values=Column.from_flat(space, 100 * vector[1:]),
        base_stderr=float(stderr[0]),
        stderr=Column.from_flat(space, stderr[1:]),
        count=Column.from_flat(space, counts[1:]),
        provenance=provenance,
        base_count=float(counts[0]),
        covariance=1e4 * covariance,
    )


def _gram(factor: Array) -> Array:
    return np.asarray(factor @ factor.T)
