"""Interactions inside a stage: a learned estimator that a search still maximises exactly."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from binas.base.errors import EstimatorError
from binas.estimators.closed_form import ClosedFormPredictor, Solver
from binas.estimators.gram import Groups
from binas.space.space import SearchSpace

Array = NDArray[np.float64]

MOST_VARIANTS = 3_000_000


@dataclass(eq=False)
class WithinStageEstimator(ClosedFormPredictor):
    """b + sum_s [a_s'z_s + z_s'Q_s z_s]: every pair of decisions of one stage, none across stages.

    By ridge unless told otherwise. A sum over stages, so a search with it is exact
    (:class:`binas.search.StagewiseObjective`).
    """

    kind = "within-stage"
    solver: Solver = "ridge"

    @staticmethod
    def groups(space: SearchSpace) -> Groups:
        """Every stage times itself."""
        columns = [space.layout.stage_entries(s) for s in range(len(space.stages))]
        return [(where, where) for where in columns]

    def stage_tables(self) -> tuple[Mapping[int, Array], ...]:
        """f_s(depth, configs) of every stage on the scale of the link: by depth an array (|C_1|, ..., |C_depth|)."""
        self.check_fitted()
        for stage in self.space_.stages:
            if stage.count > MOST_VARIANTS:
                raise EstimatorError(
                    f"stage {stage.name!r} has {stage.count} variants, too many to list. Use an additive or "
                    "quadratic predictor for this space."
                )
        return tuple(
            {depth: self._table(s, i, depth) for i, depth in enumerate(stage.depths)}
            for s, stage in enumerate(self.space_.stages)
        )

    def _table(self, stage: int, index: int, depth: int) -> Array:
        """One stage at one depth: every part of a'z + z'Qz spread along the axes of its blocks."""
        layout = self.space_.layout
        blocks = layout.config_slices[stage][:depth]
        at = layout.depth_slices[stage].start + index
        both = self.quadratic_ + self.quadratic_.T
        table = np.full([where.stop - where.start for where in blocks], self._own(at))
        for b, where in enumerate(blocks):
            single = self.linear_[where] + np.diag(self.quadratic_)[where] + both[where, at]
            table += _along(single, (b,), depth)
            for other in range(b):
                table += _along(both[blocks[other], where], (other, b), depth)
        return table

    def _own(self, at: int) -> float:
        return float(self.linear_[at] + self.quadratic_[at, at])


def _along(values: Array, axes: tuple[int, ...], dimensions: int) -> Array:
    """Values of one or two blocks, shaped so that they spread over the axes of all others."""
    shape = [1] * dimensions
    for axis, size in zip(axes, values.shape, strict=True):
        shape[axis] = size
    return values.reshape(shape)
