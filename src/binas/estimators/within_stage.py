"""Interactions inside a stage, learned alone or as a correction to contributions; a search stays exact with them."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Self

import numpy as np
from numpy.typing import NDArray

from binas.base.errors import EstimatorError
from binas.estimators.bilinear import BilinearEstimator
from binas.estimators.closed_form import AdditivePredictor, ClosedFormPredictor
from binas.estimators.gram import Groups
from binas.estimators.links import LinkName
from binas.estimators.objective import BilinearObjective, StagewiseObjective
from binas.space.architecture import Architecture
from binas.space.space import SearchSpace
from binas.tables.contributions import Contributions
from binas.tables.entries import Column
from binas.tables.samples import Samples

Array = NDArray[np.float64]

MOST_VARIANTS = 3_000_000


@dataclass(eq=False)
class WithinStageEstimator(ClosedFormPredictor):
    """b + sum_s [a_s'z_s + z_s'Q_s z_s]: every pair of decisions of one stage, none across stages.

    A sum over stages, so a search with it is exact
    (:class:`binas.estimators.objective.StagewiseObjective`).
    """

    kind = "within-stage"

    @staticmethod
    def groups(space: SearchSpace) -> Groups:
        """Every stage times itself."""
        columns = [space.layout.stage_entries(s) for s in range(len(space.stages))]
        return [(where, where) for where in columns]

    def objective(self) -> StagewiseObjective:
        """b + the table of every stage, on the scale of the link."""
        tables = self.stage_tables()
        return StagewiseObjective(self.constant_, tables, link=self.link, errors=self.standard_error)

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


class CorrectedEstimator:
    """Contributions, corrected by what samples have beyond them.

    g(accuracy) = [g(base) + sum of delta_j] + c + a'z (+ sum_s z_s'Q_s z_s with ``pairs``): the correction is an
    :class:`AdditivePredictor` or a :class:`WithinStageEstimator` of what the contributions leave over, held back by
    its ridge as far as samples are few.
    """

    def __init__(
        self, contributions: Contributions, link: LinkName = "log", pairs: bool = False, seed: int = 0
    ) -> None:
        kind = WithinStageEstimator if pairs else AdditivePredictor
        self.additive = BilinearEstimator(contributions, link)
        self.correction: WithinStageEstimator | AdditivePredictor = kind(link, seed=seed)

    @property
    def link(self) -> LinkName:
        """The scale on which contributions and corrections add up."""
        return self.additive.link

    @property
    def space(self) -> SearchSpace:
        """The space of the contributions."""
        return self.additive.space

    def fit(self, samples: Samples) -> Self:
        """Learn what measured architectures have beyond their contributions."""
        self.correction.check_samples(samples)
        rows = self.space.layout.rows(samples.architectures)
        beyond = self.additive.scale.forward(samples.accuracy) - self.additive.totals(rows)
        self.correction.fit_totals(self.space, rows, beyond)
        return self

    def predict(self, architectures: Iterable[Architecture]) -> Array:
        """Accuracies in percent, (n,)."""
        self.correction.check_fitted()
        return self.additive.scale.inverse(self._totals(self.space.layout.rows(architectures)))

    def standard_error(self, architectures: Iterable[Architecture]) -> Array:
        """Standard errors of the predicted accuracies in points, (n,): those of the correction.

        It is learned from the very errors of the contributions, so theirs are in it already.
        """
        self.correction.check_fitted()
        rows, posterior = self.space.layout.rows(architectures), self.correction.posterior_
        if posterior is None:
            return np.full(len(rows), math.nan)
        scale = self.additive.scale
        return np.asarray(posterior.errors(rows) / scale.slope(scale.inverse(self._totals(rows))))

    def objective(self) -> BilinearObjective | StagewiseObjective:
        """The sum of both on the scale of the link: of choices, or with pairs as a table per stage."""
        learned, base, plain = self.correction.objective(), self.additive.base, self.additive.values
        base, errors = base + learned.base, self.standard_error
        if isinstance(learned, BilinearObjective):
            values = Column.from_flat(self.space, plain.flat() + learned.values.flat())
            return replace(learned, base=base, values=values, errors=errors)
        tables = []
        for s, table in enumerate(learned.tables):
            pairs = zip(self.space.stages[s].depths, plain.depths[s].tolist(), strict=True)
            tables.append({d: table[d] + _sums(plain.configs[s][:d], own) for d, own in pairs})
        return replace(learned, base=base, tables=tuple(tables), errors=errors)

    def _totals(self, rows: Array) -> Array:
        return self.additive.totals(rows) + self.correction.totals(rows)


def _sums(blocks: Sequence[Array], own: float) -> Array:
    """own + one number of every block, for all combinations."""
    table = np.full([len(block) for block in blocks], own)
    for b, block in enumerate(blocks):
        table += _along(block, (b,), len(blocks))
    return table


def _along(values: Array, axes: tuple[int, ...], dimensions: int) -> Array:
    """Values of one or two blocks, shaped so that they spread over the axes of all others."""
    shape = [1] * dimensions
    for axis, size in zip(axes, values.shape, strict=True):
        shape[axis] = size
    return values.reshape(shape)
