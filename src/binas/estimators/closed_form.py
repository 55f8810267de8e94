"""Predictors learned in closed form from measured architectures (section 5.2, appendix on the closed form).

g(accuracy) = b + a' z + z' Q z,    z = (alpha * active, beta), g the link

differ only in which entries of Q are free:

* :class:`AdditivePredictor`: none. The form of the paper's estimator, learned; gives contributions.
* :class:`BilinearPredictor`: alpha times beta, any stage with any stage.
* :class:`QuadraticPredictor`: all.
* :class:`binas.estimators.within_stage.WithinStageEstimator`: all pairs inside a stage.

``solver="svd"`` is the paper's Algorithm 2: features and accuracies are centred, k principal components kept, least
squares on those; k is the number with the least squared error on held-out samples. ``solver="ridge"`` (default) minimises

    sum_i (g(y_i) - b - a'z_i - z_i' Q z_i)^2 + ridge (||a||^2 + ||Q||^2 / weight)

with ridge and the weight of products chosen by exact leave-one-out. Both work on the n x n Gram matrix of the n
samples (:mod:`binas.estimators.gram`); nothing of size N^2 x N^2 is ever built.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from dataclasses import asdict, dataclass, field
from typing import Any, Literal, Self, get_args

import numpy as np
from numpy.typing import NDArray

from binas.base.errors import EstimatorError
from binas.estimators import gram
from binas.estimators.bilinear import contributions_on_link, separated
from binas.estimators.gram import Groups
from binas.estimators.learned import LEAST, QuadraticForm
from binas.estimators.links import get_link
from binas.estimators.objective import BilinearObjective
from binas.space.space import SearchSpace
from binas.tables.contributions import Contributions
from binas.tables.entries import Column, Provenance
from binas.tables.samples import Samples

Array = NDArray[np.float64]
Solver = Literal["svd", "ridge"]

MOST_COMPONENTS = 1500  # tried; the paper finds about this many best


@dataclass(frozen=True, slots=True)
class Chosen:
    """How strongly a fit was regularised: a number of components, or a ridge; and how much products count."""

    components: int | None = None
    ridge: float | None = None
    weight: float = 1.0


@dataclass(eq=False)
class ClosedFormPredictor(QuadraticForm):
    """What the predictors in closed form share: settings, ``fit``, ``predict``.

    ``components`` (of svd), ``ridge`` and ``weight`` (of ridge) are chosen from the data where they are None;
    ``folds`` is the number of splits in which svd holds samples out. Learned beside the form: ``chosen_``.
    """

    has_products = True

    solver: Solver = "ridge"
    components: int | None = None
    ridge: float | None = None
    weight: float | None = None
    folds: int = 5
    seed: int = 0

    chosen_: Chosen = field(init=False, repr=False)

    @staticmethod
    @abstractmethod
    def groups(space: SearchSpace) -> Groups:
        """Index sets (I, J) of z: the entries of Q that are free are those in some I x J."""

    def fit(self, samples: Samples) -> Self:
        """Learn from measured architectures."""
        self.check_samples(samples)
        rows = samples.space.layout.rows(samples.architectures)
        return self.fit_totals(samples.space, rows, get_link(self.link).forward(samples.accuracy))

    def fit_totals(self, space: SearchSpace, rows: Array, values: Array) -> Self:
        """Learn from rows z (n, N) and their values on the scale of the link (n,)."""
        solve = self._svd if self.solver == "svd" else self._ridge
        groups, target = self.groups(space), values - values.mean()
        chosen, dual = solve(rows, groups, target)
        self.space_, self.chosen_ = space, chosen
        self.linear_ = rows.T @ dual
        self.quadratic_ = _products(groups, rows, dual, chosen.weight)
        self.constant_ = 0.0
        self.constant_ = float(values.mean() - self.totals(rows).mean())
        self.posterior_ = None
        if chosen.ridge is not None:
            self.posterior_ = gram.Posterior(rows, groups, chosen.weight, chosen.ridge, target)
        return self

    def chosen_data(self) -> dict[str, Any]:
        """Components, or ridge and weight."""
        return asdict(self.chosen_)

    def _svd(self, rows: Array, groups: Groups, target: Array) -> tuple[Chosen, Array]:
        """Algorithm 2 on the Gram matrix, whose eigenvalues are the squares of the singular values."""
        most = min(self.components or MOST_COMPONENTS, gram.feature_count(rows.shape[1], groups))
        values, vectors = gram.leading_components(gram.gram_matrix(rows, groups), most, self.seed)
        count = min(self.components or len(values), len(values))
        if self.components is None:
            count = int(np.argmin(gram.component_errors(vectors, target, self.folds, self.seed))) + 1
        return Chosen(components=count), gram.component_fit(values[:count], vectors[:, :count], target)

    def _ridge(self, rows: Array, groups: Groups, target: Array) -> tuple[Chosen, Array]:
        weight, ridge = self.weight or 1.0, self.ridge
        if ridge is None:
            tried = (weight,) if self.weight or not groups else gram.WEIGHTS
            weight, ridge = gram.choose_ridge(rows, groups, target, tried, self.seed)
        chosen = Chosen(ridge=ridge, weight=weight)
        return chosen, gram.ridge_fit(gram.gram_matrix(rows, groups, weight), target, ridge)

    def check_samples(self, samples: Samples) -> None:
        """Refuse settings that make no sense, and samples too few to learn from."""
        if self.solver not in get_args(Solver):
            raise EstimatorError(
                f"there is no solver {self.solver!r}; choose one of {', '.join(get_args(Solver))}."
            )
        limits = {"components": 1, "ridge": 0.0, "weight": 0.0, "folds": 2}
        for name, least in limits.items():
            value = getattr(self, name)
            if value is not None and not (value >= least and value > 0 and math.isfinite(value)):
                raise EstimatorError(
                    f"{name} is {value}; it must be {'at least' if least else 'above'} {least:g}."
                )
        self.check_count(samples, max(LEAST, self.folds))


def _products(groups: Groups, rows: Array, dual: Array, weight: float) -> Array:
    """Q = sum_i c_i z_i z_i' where it is free (Algorithm 2, step 9)."""
    result = np.zeros((rows.shape[1], rows.shape[1]))
    for left, right in groups:
        result[np.ix_(left, right)] = weight * ((rows[:, left] * dual[:, None]).T @ rows[:, right])
    return result


@dataclass(eq=False)
class AdditivePredictor(ClosedFormPredictor):
    """b + a'z: the form of the paper's estimator (section 3.3), learned instead of measured choice by choice.

    A search with it is exact.
    """

    kind = "additive"
    has_products = False

    @staticmethod
    def groups(space: SearchSpace) -> Groups:
        """No products."""
        return []

    def objective(self) -> BilinearObjective:
        """b + a'z on the scale of the link."""
        values = Column.from_flat(self.space, self.linear_)
        return BilinearObjective(self.constant_, values, link=self.link, errors=self.standard_error)

    def contributions(self) -> Contributions:
        """What each choice adds, in points, for :class:`BilinearEstimator` with the same link."""
        self.check_fitted()
        base, values = separated(self.space_, self.constant_, Column.from_flat(self.space_, self.linear_))
        provenance = Provenance.made("additive predictor", link=self.link)
        return contributions_on_link(self.space_, base, values.flat(), get_link(self.link), provenance)


@dataclass(eq=False)
class BilinearPredictor(ClosedFormPredictor):
    """b + q_alpha'alpha + q_beta'beta + alpha'Q beta (section 5.2, the regression of the bilinear form).

    Q couples every config with every depth, also of other stages.
    """

    kind = "bilinear"

    @staticmethod
    def groups(space: SearchSpace) -> Groups:
        """alpha times beta."""
        middle, end = space.alpha_size, space.layout.size
        return [(np.arange(middle), np.arange(middle, end))]


@dataclass(eq=False)
class QuadraticPredictor(ClosedFormPredictor):
    """b + a'z + z'Qz with every pair of decisions (section 5.2, the full quadratic form)."""

    kind = "quadratic"

    @staticmethod
    def groups(space: SearchSpace) -> Groups:
        """Everything times everything."""
        everything = np.arange(space.layout.size)
        return [(everything, everything)]
