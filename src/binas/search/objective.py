"""Objective and costs of architectures: one by one for the verifier, many at once for solvers.

``value`` of an objective and :func:`architecture_cost` walk through the names of one architecture, slowly and exactly
rounded. The verifier relies on them, so they share nothing with the fast way through ``space.layout``, which
:func:`objective_values` and ``Cost.total`` take for many architectures at once.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from binas.base.errors import ProblemError
from binas.estimators.objective import (
    BilinearObjective,
    DepthsObjective,
    Objective,
    QuadraticObjective,
    StagewiseObjective,
    chosen_entries,
    column_total,
)
from binas.space.architecture import Architecture
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


def objective_values(objective: Objective, space: SearchSpace, depths: Indices, configs: Indices) -> Array:
    """Objective of many architectures at once from index arrays (see ``SearchSpace.to_indices``), (n,).

    Vectorised where the objective allows it.
    """
    if isinstance(objective, BilinearObjective):
        return objective.base + objective.values.total(space.layout.positions(depths, configs))
    if isinstance(objective, DepthsObjective):
        indices = [np.searchsorted(stage.depths, depths[:, s]) for s, stage in enumerate(space.stages)]
        return objective_values(objective.inner, space, depths, configs) + objective.joint[tuple(indices)]
    if isinstance(objective, QuadraticObjective):
        return _quadratic_values(objective, space.layout.positions(depths, configs))
    items = [space.from_indices(d, c) for d, c in zip(depths.tolist(), configs.tolist(), strict=True)]
    return np.array([objective.value(space, item) for item in items])


def _quadratic_values(objective: QuadraticObjective, positions: Indices) -> Array:
    """b + a'z + z'Qz by looking up the few entries that count: no matrix product, no threads."""
    padded = np.pad(objective.quadratic, (0, 1))
    total = objective.constant + np.append(objective.linear, 0.0)[positions].sum(axis=1)
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
        n = space.layout.size
        arrays = [(objective.linear, (n,)), (objective.quadratic, (n, n))]
    elif isinstance(objective, DepthsObjective):
        check_objective(objective.inner, space)
        arrays = [(objective.joint, tuple(len(stage.depths) for stage in space.stages))]
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
