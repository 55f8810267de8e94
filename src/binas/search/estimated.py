"""Estimators and learned predictors as objectives of a search.

| estimator | objective | solvers |
| --- | --- | --- |
| ``BilinearEstimator``, ``AdditivePredictor`` | bilinear | all, exactly |
| ``WithinStageEstimator`` | stagewise | ``auto``, ``frontier``: exactly |
| ``BilinearPredictor``, ``QuadraticPredictor`` | quadratic | ``miqcp`` exactly, ``frank-wolfe``, ``evolution`` |
| ``MLPPredictor`` | callable with gradient | ``frank-wolfe``, ``evolution`` |

An objective is on the scale of the estimator's link. The link is increasing, so the optimum is the same; the accuracy
of an answer is ``estimator.predict([architecture])``.
"""

from __future__ import annotations

from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from binas.estimators.bilinear import BilinearEstimator
from binas.estimators.closed_form import AdditivePredictor, ClosedFormPredictor
from binas.estimators.within_stage import WithinStageEstimator
from binas.search.matrices import bilinear_part
from binas.search.objective import (
    BilinearObjective,
    CallableObjective,
    Objective,
    QuadraticObjective,
    StagewiseObjective,
)
from binas.space.architecture import Architecture
from binas.space.space import SearchSpace
from binas.tables.entries import Column

Array = NDArray[np.float64]


class DifferentiablePredictor(Protocol):
    """A fitted predictor of rows z = (alpha * active, beta), such as ``MLPPredictor``."""

    space_: SearchSpace

    def totals(self, rows: Array) -> Array:
        """Predictions on the scale of the link, (n,)."""

    def gradients(self, rows: Array) -> Array:
        """Their derivatives with respect to z, (n, N)."""

    def check_fitted(self) -> None:
        """Refuse to go on before anything was learned."""


Estimator = BilinearEstimator | ClosedFormPredictor | DifferentiablePredictor


def as_objective(estimator: Estimator) -> Objective:
    """What a search maximises when it trusts ``estimator``: its prediction on the scale of its link."""
    if isinstance(estimator, BilinearEstimator):
        return _bilinear(estimator)
    estimator.check_fitted()
    if isinstance(estimator, WithinStageEstimator):
        return StagewiseObjective(estimator.constant_, estimator.stage_tables())
    if isinstance(estimator, AdditivePredictor):
        return BilinearObjective(estimator.constant_, Column.from_flat(estimator.space_, estimator.linear_))
    if isinstance(estimator, ClosedFormPredictor):
        return QuadraticObjective(estimator.constant_, estimator.linear_, estimator.quadratic_)
    return _differentiable(estimator)


def _bilinear(estimator: BilinearEstimator) -> BilinearObjective:
    """With the table's standard errors where the link leaves its numbers as they are."""
    if not estimator.link.bounded:
        return BilinearObjective.from_contributions(estimator.contributions)
    return BilinearObjective(estimator.base, estimator.values)


def _differentiable(predictor: DifferentiablePredictor) -> CallableObjective:
    """The relaxation gives a block's configs the weight alpha times the probability that the block runs."""
    space = predictor.space_
    runs = bilinear_part(space, Column.full(space, 1.0), 0.0).matrix

    def function(architecture: Architecture) -> float:
        return float(predictor.totals(space.layout.rows([architecture]))[0])

    def relaxed(alpha: Array, beta: Array) -> float:
        return float(predictor.totals(np.concatenate([alpha * (runs @ beta), beta])[None])[0])

    def gradient(alpha: Array, beta: Array) -> tuple[Array, Array]:
        active = runs @ beta
        slopes = predictor.gradients(np.concatenate([alpha * active, beta])[None])[0]
        of_alpha, of_beta = space.layout.split(slopes)
        return of_alpha * active, of_beta + (of_alpha * alpha) @ runs

    return CallableObjective(function, relaxed, gradient)
