"""The bilinear design (paper section 3.3): which contributions a path adds up, and what is expected of them.

A path's row z has a one for each active (stage, block, config) and for each stage's depth, in the order of
``Column.flat``: configs, then depths. Accuracy = base + z'theta. Every row fulfils

    sum_c z[s, b, c] = sum_{d >= b} z[s, d]    and    sum_d z[s, d] = 1,

so data tell theta only up to shifts between a block and the depths that contain it. Our contributions are those
that average to zero over the configs of each block and over the depths of each stage: then base is the expected
accuracy of a random architecture and a depth contributes E[Acc | depth] - E[Acc].
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from scipy.linalg import block_diag, helmert
from scipy.sparse import csr_array

from binas.contributions.outcomes import Array, Indices
from binas.space.encoding import Encoding
from binas.space.space import Config, OptionValue, SearchSpace
from binas.tables.contributions import Contributions
from binas.tables.entries import Column, Provenance, today
from binas.version import __version__

Label = tuple[str, OptionValue]


@dataclass(frozen=True)
class Design:
    """Rows, contrasts and expected similarities of the contributions of a space."""

    space: SearchSpace

    @property
    def size(self) -> int:
        """Length of theta: configs and depths."""
        return self.space.alpha_size + self.space.beta_size

    @cached_property
    def config_slices(self) -> list[list[slice]]:
        """``config_slices[s][b]``: the entries of a block in theta."""
        return Encoding(self.space).alpha_blocks

    @cached_property
    def depth_slices(self) -> list[slice]:
        """``depth_slices[s]``: the entries of a stage's depths in theta."""
        start = self.space.alpha_size
        return [slice(start + w.start, start + w.stop) for w in Encoding(self.space).beta_stages]

    def positions(self, depths: Indices, configs: Indices) -> Indices:
        """Where the ones of each row stand, (n, stages + blocks); ``size`` where a block is not active."""
        columns = []
        for s, stage in enumerate(self.space.stages):
            columns.append(self.depth_slices[s].start + np.searchsorted(stage.depths, depths[:, s]))
            for b, where in enumerate(self.config_slices[s]):
                columns.append(np.where(depths[:, s] > b, where.start + configs[:, s, b], self.size))
        return np.stack(columns, axis=1)

    def rows(self, depths: Indices, configs: Indices) -> csr_array:
        """The rows z as a sparse matrix (n, size)."""
        positions = self.positions(depths, configs)
        active = positions < self.size
        ends = np.concatenate([[0], active.sum(axis=1).cumsum()])
        return csr_array((np.ones(int(ends[-1])), positions[active], ends), shape=(len(positions), self.size))

    @cached_property
    def contrasts(self) -> Array:
        """Orthonormal T (size, q): theta = T gamma averages to zero over each block and each stage's depths."""
        slices = [*(where for row in self.config_slices for where in row), *self.depth_slices]
        return np.asarray(block_diag(*(helmert(where.stop - where.start).T for where in slices)))

    @cached_property
    def similarities(self) -> dict[str, Array]:
        """Shapes of the prior covariance of gamma = T'theta, one per group of effects with a common variance.

        * ``depth``: the depths of a stage;
        * ``shared``: an effect per option value (expansion 3, kernel 5, ...), the same in all blocks;
        * ``factor``: an effect per option value and block;
        * ``deviation``: an effect per config, what the options do not explain.
        """
        blocks = [
            (where, configs)
            for row, stage in zip(self.config_slices, self.space.stages, strict=True)
            for where, configs in zip(row, stage.blocks, strict=True)
        ]
        labels = sorted(
            {label for _, configs in blocks for config in configs for label in config.options}, key=repr
        )
        factors = np.zeros((self.size, len(labels) * len(blocks)))
        for k, (where, configs) in enumerate(blocks):
            factors[where, k :: len(blocks)] = _incidence(configs, labels)
        shared = factors.reshape(self.size, len(labels), len(blocks)).sum(axis=2)
        one_each = np.eye(self.size)
        parts = {
            "depth": one_each[:, self.space.alpha_size :],
            "shared": shared,
            "factor": factors,
            "deviation": one_each[:, : self.space.alpha_size],
        }
        return {name: _gram(self.contrasts.T @ part) for name, part in parts.items() if part.size}

    def column(self, theta: Array) -> Column:
        """The vector as a column of a table."""
        return Column.build(
            self.space,
            lambda s, i: float(theta[self.depth_slices[s].start + i]),
            lambda s, b, c: float(theta[self.config_slices[s][b].start + c]),
        )


def table_of(
    space: SearchSpace,
    vector: Array,
    covariance: Array,
    counts: Array,
    about: Mapping[str, Any],
    repeats: int | None = None,
) -> Contributions:
    """A table in percent from shares (base, configs, depths), their covariance and numbers of evaluations."""
    design, stderr = Design(space), 100 * np.sqrt(np.maximum(0.0, np.diag(covariance)))
    provenance = Provenance(
        source="measured", date=today(), tool=f"binas {__version__}", repeats=repeats, **about
    )
    return Contributions(
        space,
        base=100 * float(vector[0]),
        values=design.column(100 * vector[1:]),
        base_stderr=float(stderr[0]),
        stderr=design.column(stderr[1:]),
        count=design.column(counts[1:]),
        provenance=provenance,
        base_count=float(counts[0]),
        covariance=1e4 * covariance,
    )


def _incidence(configs: Sequence[Config], labels: Sequence[Label]) -> Array:
    """Which config has which option value, (configs, labels)."""
    return np.array([[label in config.options for label in labels] for config in configs], dtype=np.float64)


def _gram(factor: Array) -> Array:
    return np.asarray(factor @ factor.T)
