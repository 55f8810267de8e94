"""Contributions as an estimator: the paper's (section 3.3), with an optional link and standard errors.

g(ACC) = r + q_beta' beta + alpha' Q beta = g(base) + sum over an architecture's choices j of delta_j,
delta_j = g(base + Delta_j) - g(base)

With the identity link delta_j = Delta_j and this is the equation of ACC. With another link a contribution stays
what it is in the table, the points that choice j alone adds to the average network, but several add up on the
scale of the link.

The two parts, depths (q_beta) and configs (Q), told apart (section 5.1, table 2): adding a number to every config of a block
and taking it from every depth that has the block changes no prediction, so contributions alone do not say what belongs to
which part. :func:`separated` says it: the configs of a block have mean zero, and so have the depths of a stage. Then
q_beta is what depth brings with average configs, Q what configs change at given depths, and the base what the average
architecture has.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import cached_property
from typing import Self

import numpy as np
from numpy.typing import NDArray

from binas.base.errors import EstimatorError
from binas.estimators.links import Link, LinkName, get_link
from binas.estimators.objective import BilinearObjective
from binas.space.architecture import Architecture
from binas.space.space import SearchSpace
from binas.tables.contributions import Contributions
from binas.tables.entries import Column, Provenance
from binas.tables.samples import Samples

Array = NDArray[np.float64]


class BilinearEstimator:
    """Accuracy of architectures from contributions, on the scale that their provenance names unless ``link`` is given.

    Errors follow from the table's covariance; where it has none, from its standard errors, taken as independent.
    """

    def __init__(self, contributions: Contributions, link: LinkName | None = None) -> None:
        self.contributions = contributions
        self.scale = link_of(contributions) if link is None else get_link(link)
        self._check()

    @property
    def link(self) -> LinkName:
        """The scale on which contributions add up."""
        return self.scale.name

    @property
    def space(self) -> SearchSpace:
        """The space of the contributions."""
        return self.contributions.space

    @cached_property
    def base(self) -> float:
        """r on the scale of the link."""
        return float(self.scale.forward(self.contributions.base))

    @cached_property
    def values(self) -> Column:
        """delta on the scale of the link, per depth (q_beta) and per config (the entries of Q)."""
        return Column.from_flat(self.space, self.scale.forward(self._reached) - self.base)

    def fit(self, samples: Samples) -> Self:
        """Nothing to learn: the contributions say everything."""
        return self

    def predict(self, architectures: Iterable[Architecture]) -> Array:
        """Accuracies in percent, (n,)."""
        return self._predict_rows(self.space.layout.rows(architectures))

    def standard_error(self, architectures: Iterable[Architecture]) -> Array:
        """Standard errors of the predicted accuracies in points, (n,), to first order; NaN where not known."""
        return self.errors(self.gradients(architectures))

    def gradients(self, architectures: Iterable[Architecture]) -> Array:
        """d accuracy / d (base, contributions), (n, 1 + choices)."""
        return self._gradient(self.space.layout.rows(architectures))

    def errors(self, weights: Array) -> Array:
        """Standard errors in points of sums of (base, contributions), one per row of ``weights``, (n,)."""
        return self.contributions.errors(weights)

    def joint_errors(self, weights: Array) -> Array:
        """Covariance of these sums, in points^2, (n, n)."""
        return self.contributions.joint_errors(weights)

    def objective(self) -> BilinearObjective:
        """r + q_beta' beta + alpha' Q beta on the scale of the link."""
        if not self.scale.bounded:
            return BilinearObjective.from_contributions(self.contributions)
        return BilinearObjective(self.base, self.values, link=self.link, errors=self.standard_error)

    def compare(self, first: Architecture, second: Architecture) -> tuple[float, float]:
        """Predicted accuracy of ``first`` minus that of ``second`` in points, and its standard error.

        What both have in common cancels, so the error is that of the choices in which they differ.
        """
        rows = self.space.layout.rows([first, second])
        accuracy, gradient = self._predict_rows(rows), self._gradient(rows)
        return float(accuracy[0] - accuracy[1]), float(self.errors(gradient[:1] - gradient[1:])[0])

    @cached_property
    def _reached(self) -> Array:
        """base + Delta_j for every choice j: the accuracy it takes the average network to, in percent."""
        return self.contributions.base + self.contributions.values.flat()

    def totals(self, rows: Array) -> Array:
        """g(base) + delta'z of rows z, on the scale of the link."""
        return np.asarray(self.base + rows @ self.values.flat())

    def _predict_rows(self, rows: Array) -> Array:
        return self.scale.inverse(self.totals(rows))

    def _gradient(self, rows: Array) -> Array:
        """d accuracy / d (base, Delta), (n, 1 + choices): (1, z) for the identity link."""
        slopes, start = self.scale.slope(self._reached), self.scale.slope(self.contributions.base)
        of_base = start + rows @ (slopes - start)
        total = np.column_stack([of_base, rows * slopes])
        return np.asarray(total / self.scale.slope(self._predict_rows(rows))[:, None])

    def _check(self) -> None:
        if not self.scale.bounded:
            return
        reached = np.append(self.contributions.base, self._reached)
        outside = np.flatnonzero((reached <= 0.0) | (reached >= 100.0))
        if len(outside):
            name = ["the base accuracy", *self.space.layout.names][outside[0]]
            raise EstimatorError(
                f"{name} stands at {reached[outside[0]]:.4g} %; the link {self.link} needs accuracies "
                "between 0 and 100 %. Use the identity link for these contributions."
            )


def link_of(contributions: Contributions) -> Link:
    """The scale on which contributions add up, as their provenance says; identity where it says nothing."""
    return get_link(str(contributions.provenance.to_data().get("link", "identity")))


def contributions_on_link(
    space: SearchSpace,
    base: float,
    values: Array,
    link: Link,
    provenance: Provenance,
    count: Column | None = None,
) -> Contributions:
    """Contributions in points that :class:`BilinearEstimator` with the same link reads as ``base`` and ``values``.

    ``values`` are in the order of ``Column.flat``, on the scale of the link.
    """
    percent = float(link.inverse(base))
    points = Column.from_flat(space, link.inverse(base + values) - percent)
    return Contributions(space, percent, points, count=count, provenance=provenance)


def separated(space: SearchSpace, base: float, values: Column) -> tuple[float, Column]:
    """The same estimator with configs of mean zero in every block and depths of mean zero in every stage."""
    depths, configs = [], []
    for stage, of_depths, blocks in zip(space.stages, values.depths, values.configs, strict=True):
        means = np.array([block.mean() for block in blocks])
        moved = of_depths + np.array([means[:depth].sum() for depth in stage.depths])
        base += float(moved.mean())
        depths.append(moved - moved.mean())
        configs.append(tuple(block - mean for block, mean in zip(blocks, means, strict=True)))
    return base, Column(tuple(depths), tuple(configs))


def ablation(estimator: BilinearEstimator, architectures: Sequence[Architecture]) -> dict[str, Array]:
    """Predicted accuracies in percent without one part: ``q_beta = 0`` and ``Q = 0``, after :func:`separated`.

    A part is left out of the answer where the space does not let it be told apart: q_beta where every stage has one
    depth, Q where every block has one config.
    """
    space = estimator.space
    base, values = separated(space, estimator.base, estimator.values)
    rows = space.layout.rows(architectures)
    weights = values.flat()
    found = {}
    if any(len(stage.depths) > 1 for stage in space.stages):
        found["q_beta = 0"] = rows[:, : space.alpha_size] @ weights[: space.alpha_size]
    if any(len(block) > 1 for stage in space.stages for block in stage.blocks):
        found["Q = 0"] = rows[:, space.alpha_size :] @ weights[space.alpha_size :]
    return {name: estimator.scale.inverse(base + total) for name, total in found.items()}
