"""The (alpha, beta) vectors of the paper (section 3.1) and back.

alpha has one entry per (stage, block, config), stage-major then block then config; beta one entry per
(stage, allowed depth). One-hot vectors are architectures; vectors of probabilities are the relaxation.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from binas.base.errors import ArchitectureError
from binas.space.architecture import Architecture
from binas.space.space import SearchSpace

Vector = NDArray[np.float64]
Inactive = Literal["zero", "first", "uniform"]


@dataclass(frozen=True)
class Encoding:
    """Where each decision of a space stands in alpha and beta."""

    space: SearchSpace

    @cached_property
    def alpha_blocks(self) -> list[list[slice]]:
        """``alpha_blocks[s][b]``: the entries of block b of stage s in alpha."""
        result, start = [], 0
        for stage in self.space.stages:
            row = []
            for configs in stage.blocks:
                row.append(slice(start, start + len(configs)))
                start += len(configs)
            result.append(row)
        return result

    @cached_property
    def beta_stages(self) -> list[slice]:
        """``beta_stages[s]``: the entries of stage s in beta."""
        ends = np.cumsum([0, *(len(stage.depths) for stage in self.space.stages)]).tolist()
        return [slice(a, b) for a, b in itertools.pairwise(ends)]

    def encode(self, architecture: Architecture, inactive: Inactive = "first") -> tuple[Vector, Vector]:
        """One-hot alpha and beta.

        A block past its stage's depth has no config. The paper still asks for sum_c alpha = 1 there,
        so ``inactive="first"`` writes the first config; ``"zero"`` leaves zeros (alpha times the
        indicator that the block is active); ``"uniform"`` writes 1/|C|.
        """
        self.space.check(architecture)
        alpha, beta = np.zeros(self.space.alpha_size), np.zeros(self.space.beta_size)
        for s, (stage, names) in enumerate(zip(self.space.stages, architecture.stages, strict=True)):
            beta[self.beta_stages[s].start + stage.depths.index(len(names))] = 1.0
            for b, where in enumerate(self.alpha_blocks[s]):
                if b < len(names):
                    alpha[where.start + self.space.config_index(s, b, names[b])] = 1.0
                elif inactive == "first":
                    alpha[where.start] = 1.0
                elif inactive == "uniform":
                    alpha[where] = 1.0 / (where.stop - where.start)
        return alpha, beta

    def decode(self, alpha: ArrayLike, beta: ArrayLike, tolerance: float = 1e-9) -> Architecture:
        """The architecture of one-hot vectors; entries of blocks past the depth are not read."""
        alpha, beta = self._checked(alpha, beta)
        for vector in self._choices(alpha, beta):
            if abs(vector.max() - 1.0) > tolerance or abs(np.abs(vector).sum() - 1.0) > tolerance:
                raise ArchitectureError(
                    "alpha and beta are not one-hot; use round() for the architecture nearest to a relaxed "
                    "point."
                )
        return self.round(alpha, beta)

    def round(self, alpha: ArrayLike, beta: ArrayLike) -> Architecture:
        """The architecture that takes the largest entry of every decision (first one on ties)."""
        alpha, beta = self._checked(alpha, beta)
        stages = []
        for s, stage in enumerate(self.space.stages):
            depth = self._depth(s, beta)
            picks = [int(np.argmax(alpha[where])) for where in self.alpha_blocks[s][:depth]]
            stages.append([stage.blocks[b][c].name for b, c in enumerate(picks)])
        return Architecture.of(stages)

    def uniform(self) -> tuple[Vector, Vector]:
        """The relaxed point that gives every choice of a decision the same probability."""
        alpha, beta = np.empty(self.space.alpha_size), np.empty(self.space.beta_size)
        for vector in self._choices(alpha, beta, active_only=False):
            vector[:] = 1.0 / len(vector)
        return alpha, beta

    def _choices(self, alpha: Vector, beta: Vector, active_only: bool = True) -> list[Vector]:
        """Views of every decision's entries; with ``active_only`` those of blocks within the depth."""
        views = [beta[where] for where in self.beta_stages]
        for s, stage in enumerate(self.space.stages):
            depth = self._depth(s, beta) if active_only else len(stage.blocks)
            views += [alpha[where] for where in self.alpha_blocks[s][:depth]]
        return views

    def _depth(self, stage: int, beta: Vector) -> int:
        return self.space.stages[stage].depths[int(np.argmax(beta[self.beta_stages[stage]]))]

    def _checked(self, alpha: ArrayLike, beta: ArrayLike) -> tuple[Vector, Vector]:
        alpha, beta = np.asarray(alpha, dtype=np.float64), np.asarray(beta, dtype=np.float64)
        if alpha.shape != (self.space.alpha_size,) or beta.shape != (self.space.beta_size,):
            raise ArchitectureError(
                f"alpha and beta have shapes {alpha.shape} and {beta.shape}; the space {self.space.name!r} "
                f"needs ({self.space.alpha_size},) and ({self.space.beta_size},)."
            )
        if not (np.isfinite(alpha).all() and np.isfinite(beta).all()):
            raise ArchitectureError("alpha or beta holds NaN or infinity.")
        return alpha, beta
