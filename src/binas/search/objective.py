"""Objective and costs of architectures: one by one for the verifier, many at once for solvers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from binas.base.errors import ProblemError
from binas.estimators.objective import (
    BilinearObjective,
    Objective,
    QuadraticObjective,
    StagewiseObjective,
    chosen_entries,
    column_total,
)
from binas.space.architecture import Architecture
from binas.space.encoding import Encoding
from binas.space.space import SearchSpace
from binas.tables.costs import Cost
from binas.tables.entries import Column

Array = NDArray[np.float64]
Indices = NDArray[np.int64]

LARGEST = 1e150  # totals beyond this would overflow on the way


def architecture_cost(space: SearchSpace, cost: Cost, architecture: Architecture) -> float:
    """fixed + the entries of an architecture's choices, or the largest of these where the cost is a maximum."""
    if cost.combine == "max":
        return max(cost.fixed, *chosen_entries(space, cost.values, architecture))
    return cost.fixed + column_total(space, cost.values, architecture)


@dataclass(frozen=True)
class BatchValues:
    """Objective and costs of many architectures at once from index arrays (see ``SearchSpace.to_indices``)."""

    space: SearchSpace

    def positions(self, depths: Indices, configs: Indices) -> Indices:
        """Where the ones of z = (alpha * active, beta) stand, (n, S + blocks); len(z) for blocks that are not active."""
        encoding, columns = Encoding(self.space), []
        nowhere = self.space.alpha_size + self.space.beta_size
        for s, stage in enumerate(self.space.stages):
            start = self.space.alpha_size + encoding.beta_stages[s].start
            columns.append(start + np.searchsorted(stage.depths, depths[:, s]))
            for b, where in enumerate(encoding.alpha_blocks[s]):
                columns.append(np.where(b < depths[:, s], where.start + configs[:, s, b], nowhere))
        return np.stack(columns, axis=1)

    def column(self, column: Column, depths: Indices, configs: Indices) -> Array:
        """Totals of a column for depths (n, S) and configs (n, S, D)."""
        return self._gathered(column.flat(), self.positions(depths, configs))

    def cost(self, cost: Cost, depths: Indices, configs: Indices) -> Array:
        """One cost with its fixed part, added up or the largest part."""
        if cost.combine == "sum":
            return cost.fixed + self.column(cost.values, depths, configs)
        parts = np.append(cost.values.flat(), -np.inf)[self.positions(depths, configs)]
        return np.asarray(np.maximum(cost.fixed, parts.max(axis=1)))

    def objective(self, objective: Objective, depths: Indices, configs: Indices) -> Array:
        """Objective values; vectorised where the objective allows it."""
        if isinstance(objective, BilinearObjective):
            return objective.base + self.column(objective.values, depths, configs)
        if isinstance(objective, QuadraticObjective):
            return self._quadratic(objective, self.positions(depths, configs))
        items = [
            self.space.from_indices(d, c) for d, c in zip(depths.tolist(), configs.tolist(), strict=True)
        ]
        return np.array([objective.value(self.space, item) for item in items])

    def one_hot(self, depths: Indices, configs: Indices) -> Array:
        """Rows z = (alpha * active, beta)."""
        z = np.zeros((len(depths), self.space.alpha_size + self.space.beta_size + 1))
        np.put_along_axis(z, self.positions(depths, configs), 1.0, axis=1)
        return z[:, :-1]

    def _gathered(self, vector: Array, positions: Indices) -> Array:
        return np.asarray(np.append(vector, 0.0)[positions].sum(axis=1))

    def _quadratic(self, objective: QuadraticObjective, positions: Indices) -> Array:
        """b + a'z + z'Qz by looking up the few entries that count: no matrix product, no threads."""
        padded = np.pad(objective.quadratic, (0, 1))
        total = objective.constant + self._gathered(objective.linear, positions)
        for column in range(positions.shape[1]):
            total = total + padded[positions[:, column, None], positions].sum(axis=1)
        return np.asarray(total)


def check_objective(objective: Objective, space: SearchSpace) -> None:
    """Refuse an objective whose shape does not fit the space or that holds NaN."""
    arrays: list[tuple[Any, tuple[int, ...]]] = []
    if isinstance(objective, BilinearObjective):
        shapes = Column.full(space, 0.0)
        arrays = [(a, b.shape) for a, b in zip(objective.values.arrays(), shapes.arrays(), strict=True)]
    elif isinstance(objective, QuadraticObjective):
        n = space.alpha_size + space.beta_size
        arrays = [(objective.linear, (n,)), (objective.quadratic, (n, n))]
    elif isinstance(objective, StagewiseObjective):
        arrays = [
            (table.get(depth, np.empty(0)), tuple(len(configs) for configs in stage.blocks[:depth]))
            for stage, table in zip(space.stages, objective.tables, strict=True)
            for depth in stage.depths
        ]
    base = getattr(objective, "base", getattr(objective, "constant", 0.0))
    for array, shape in [*arrays, (np.float64(base), ())]:
        if np.shape(array) != shape or not (np.abs(array) <= LARGEST).all():
            raise ProblemError(
                f"the objective does not fit the space {space.name!r}, or holds NaN or numbers too large to add up."
            )
