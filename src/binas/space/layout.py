"""The decisions of a space in one order, and architectures as vectors in that order.

The decisions of a space are the config of every block and the depth of every stage. All vectors of this package list
their choices alike: configs by stage, block, config (alpha in the paper, section 3.1), then allowed depths by stage
(beta). An architecture is the row

    z = (alpha * active, beta),

with a one for each active config and each stage's depth, and zeros for blocks past the depth. On these rows the paper's
estimator is linear: alpha' Q beta with Q[(s,b,c),(s,d)] = Delta^s_{b,c} 1[d >= b] equals the sum of Delta^s_{b,c}
over active blocks (section 3.3), and so is every cost. Few entries of z are ones, so rows travel as the positions of
these; vectors of probabilities are the relaxation.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from binas.base.errors import ArchitectureError
from binas.space.architecture import Architecture

if TYPE_CHECKING:
    from binas.space.space import SearchSpace

Vector = NDArray[np.float64]
Matrix = NDArray[np.float64]
Indices = NDArray[np.int64]
Inactive = Literal["zero", "first", "uniform"]


@dataclass(frozen=True, slots=True)
class Choice:
    """One entry of z: config number ``index`` of a block, or where ``block`` is None allowed depth number ``index``."""

    stage: int
    block: int | None
    index: int


@dataclass(frozen=True)
class Layout:
    """Where each choice of a space stands in z, alpha and beta; reached as ``space.layout``."""

    space: SearchSpace

    @property
    def size(self) -> int:
        """Length of z."""
        return self.space.alpha_size + self.space.beta_size

    @cached_property
    def config_slices(self) -> list[list[slice]]:
        """``config_slices[s][b]``: the entries of block b of stage s in alpha, and in z, which begins with alpha."""
        result, start = [], 0
        for stage in self.space.stages:
            row = []
            for configs in stage.blocks:
                row.append(slice(start, start + len(configs)))
                start += len(configs)
            result.append(row)
        return result

    @cached_property
    def beta_slices(self) -> list[slice]:
        """``beta_slices[s]``: the entries of stage s in beta."""
        ends = np.cumsum([0, *(len(stage.depths) for stage in self.space.stages)]).tolist()
        return [slice(a, b) for a, b in itertools.pairwise(ends)]

    @cached_property
    def depth_slices(self) -> list[slice]:
        """``depth_slices[s]``: the entries of the depths of stage s in z."""
        start = self.space.alpha_size
        return [slice(start + where.start, start + where.stop) for where in self.beta_slices]

    @cached_property
    def slices(self) -> list[slice]:
        """The entries of every decision in z, of which an architecture takes at most one: blocks, then stages' depths."""
        return [*itertools.chain.from_iterable(self.config_slices), *self.depth_slices]

    def stage_entries(self, stage: int) -> Indices:
        """Where the choices of one stage stand in z: its configs block by block, then its depths."""
        parts = [*self.config_slices[stage], self.depth_slices[stage]]
        return np.concatenate([np.arange(part.start, part.stop) for part in parts])

    @cached_property
    def option_entries(self) -> Matrix:
        """Which config has which option value (expansion 3, kernel 5, ...), for every block: (size, values * blocks).

        ``z @ option_entries`` are the option values of an architecture's active blocks: column v * blocks + b is
        value v in block b of all blocks, values in the order of their names.
        """
        blocks = [
            (where, configs)
            for row, stage in zip(self.config_slices, self.space.stages, strict=True)
            for where, configs in zip(row, stage.blocks, strict=True)
        ]
        values = sorted({v for _, configs in blocks for config in configs for v in config.options}, key=repr)
        result = np.zeros((self.size, len(values), len(blocks)))
        for b, (where, configs) in enumerate(blocks):
            result[where, :, b] = [[value in config.options for value in values] for config in configs]
        return result.reshape(self.size, -1)

    @cached_property
    def shared_options(self) -> Matrix:
        """Which config has which option value, in whatever block, (size, values)."""
        return self.in_any_block(self.option_entries)

    @cached_property
    def option_pairs(self) -> Matrix:
        """Which config has which two option values, for every block, (size, pairs * blocks); as ``option_entries``."""
        entries = self._by_block(self.option_entries)
        first, second = np.triu_indices(entries.shape[1], 1)
        pairs = entries[:, first] * entries[:, second]
        return np.asarray(pairs[:, pairs.any(axis=(0, 2))].reshape(self.size, -1))

    def in_any_block(self, entries: Matrix) -> Matrix:
        """Columns v * blocks + b, such as ``option_entries``, with blocks added up, (size, values)."""
        return np.asarray(self._by_block(entries).sum(axis=2))

    def _by_block(self, entries: Matrix) -> NDArray[np.float64]:
        """Columns v * blocks + b as (size, values, blocks)."""
        blocks = sum(len(row) for row in self.config_slices)
        return entries.reshape(self.size, entries.shape[1] // max(blocks, 1), blocks)

    @cached_property
    def choices(self) -> list[Choice]:
        """What each entry of z stands for."""
        stages = list(enumerate(self.space.stages))
        configs = [
            Choice(s, b, c)
            for s, stage in stages
            for b, block in enumerate(stage.blocks)
            for c in range(len(block))
        ]
        return configs + [Choice(s, None, i) for s, stage in stages for i in range(len(stage.depths))]

    @property
    def names(self) -> list[str]:
        """What each entry of z stands for, for messages."""
        return [self._name(choice) for choice in self.choices]

    def _name(self, choice: Choice) -> str:
        stage = self.space.stages[choice.stage]
        if choice.block is None:
            return f"depth {stage.depths[choice.index]} of stage {stage.name!r}"
        config = stage.blocks[choice.block][choice.index]
        return f"{config.name} in block {choice.block + 1} of stage {stage.name!r}"

    def positions(self, depths: Indices, configs: Indices) -> Indices:
        """Where the ones of z stand, (n, blocks + stages), one per decision; ``size`` for a block that is not active.

        Columns are in the order of ``slices``; ``depths`` (n, S) and ``configs`` (n, S, D) are those of
        ``SearchSpace.to_indices``.
        """
        stage, block, start = self._blocks
        entries = np.where(block < depths[:, stage], start + configs[:, stage, block], self.size)
        return np.hstack([entries, self._depth_entries[np.arange(len(self.space.stages)), depths]])

    @cached_property
    def _blocks(self) -> Indices:
        """Stage, number in it and first entry of every block, (3, blocks)."""
        rows = [
            (s, b, where.start)
            for s, blocks in enumerate(self.config_slices)
            for b, where in enumerate(blocks)
        ]
        return np.array(rows, dtype=np.int64).reshape(-1, 3).T

    @cached_property
    def _depth_entries(self) -> Indices:
        """``[s, depth]``: where an allowed depth stands in z."""
        result = np.full((len(self.space.stages), self.space.max_depth + 1), self.size)
        for s, stage in enumerate(self.space.stages):
            result[s, list(stage.depths)] = np.arange(self.depth_slices[s].start, self.depth_slices[s].stop)
        return result

    def positions_of(self, architectures: Iterable[Architecture]) -> Indices:
        """:meth:`positions` of architectures, which must belong to the space."""
        items = list(architectures)
        for item in items:
            self.space.check(item)
        return self.positions(*self.space.to_indices(items))

    def rows(self, architectures: Iterable[Architecture]) -> Matrix:
        """z of every architecture, (n, size)."""
        positions = self.positions_of(architectures)
        z = np.zeros((len(positions), self.size + 1))  # the last column takes what is not active
        np.put_along_axis(z, positions, 1.0, axis=1)
        return z[:, :-1]

    def encode(self, architecture: Architecture, inactive: Inactive = "first") -> tuple[Vector, Vector]:
        """One-hot alpha and beta.

        A block past its stage's depth has no config. The paper still asks for sum_c alpha = 1 there,
        so ``inactive="first"`` writes the first config; ``"zero"`` leaves zeros (alpha times the
        indicator that the block is active); ``"uniform"`` writes 1/|C|.
        """
        (z,) = self.rows([architecture])
        alpha, beta = self.split(z)
        for depth, blocks in zip(architecture.depths, self.config_slices, strict=True):
            for where in blocks[depth:]:
                if inactive == "first":
                    alpha[where.start] = 1.0
                elif inactive == "uniform":
                    alpha[where] = 1.0 / (where.stop - where.start)
        return alpha, beta

    def split(self, z: Vector) -> tuple[Vector, Vector]:
        """The two parts of a vector in the order of z: that of alpha and that of beta."""
        return z[: self.space.alpha_size], z[self.space.alpha_size :]

    def decode(self, alpha: ArrayLike, beta: ArrayLike, tolerance: float = 1e-9) -> Architecture:
        """The architecture of one-hot vectors; entries of blocks past the depth are not read."""
        alpha, beta = self._as_vectors(alpha, beta)
        for s, where in enumerate(self.beta_slices):
            active = self.config_slices[s][: self._depth(s, beta)]
            for vector in [beta[where], *(alpha[block] for block in active)]:
                if abs(vector.max() - 1.0) > tolerance or abs(np.abs(vector).sum() - 1.0) > tolerance:
                    raise ArchitectureError(
                        "alpha and beta are not one-hot; use round() for the architecture nearest to a relaxed "
                        "point."
                    )
        return self.round(alpha, beta)

    def round(self, alpha: ArrayLike, beta: ArrayLike) -> Architecture:
        """The architecture that takes the largest entry of every decision (first one on ties)."""
        alpha, beta = self._as_vectors(alpha, beta)
        depths = [self._depth(s, beta) for s in range(len(self.space.stages))]
        configs = [
            [int(np.argmax(alpha[where])) for where in blocks[:depth]]
            for depth, blocks in zip(depths, self.config_slices, strict=True)
        ]
        return self.space.from_indices(depths, configs)

    def uniform(self) -> tuple[Vector, Vector]:
        """The relaxed point that gives every choice of a decision the same probability."""
        z = np.empty(self.size)
        for where in self.slices:
            z[where] = 1.0 / (where.stop - where.start)
        return self.split(z)

    def _depth(self, stage: int, beta: Vector) -> int:
        return self.space.stages[stage].depths[int(np.argmax(beta[self.beta_slices[stage]]))]

    def _as_vectors(self, alpha: ArrayLike, beta: ArrayLike) -> tuple[Vector, Vector]:
        alpha, beta = np.asarray(alpha, dtype=np.float64), np.asarray(beta, dtype=np.float64)
        if alpha.shape != (self.space.alpha_size,) or beta.shape != (self.space.beta_size,):
            raise ArchitectureError(
                f"alpha and beta have shapes {alpha.shape} and {beta.shape}; the space {self.space.name!r} "
                f"needs ({self.space.alpha_size},) and ({self.space.beta_size},)."
            )
        if not (np.isfinite(alpha).all() and np.isfinite(beta).all()):
            raise ArchitectureError("alpha or beta holds NaN or infinity.")
        return alpha, beta
