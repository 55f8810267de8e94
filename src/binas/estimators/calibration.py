"""Predictions held against measured networks: the line that brings them to accuracy, and all that a ± must contain.

Contributions are added up on other images than networks are judged on, with the supernet's BatchNorm instead of a network's
own, and sums know no ceiling: predictions of good networks lie too high. Samples, networks drawn at random and measured one
by one, tell by how much. With p_i the prediction of sample i by an estimator that did not learn from it, y_i its
accuracy, c the mean of p,

    shown(p) = level + slope (p - c),    level and slope by least squares of y on p.

Regression to the mean is in the slope: of what was predicted above the mean so much is real. The slope is above zero, or it
is not used (``Calibration.why``), so no ranking changes and an exact search stays exact.

The standard error of what is shown for a network x with prediction p contains four things, all in points^2:

    Var = v_ll + 2 (p - c) v_ls + (p - c)^2 v_ss  +  slope^2 trust e(x)^2  +  lack_of_fit^2 kappa(x, x).

1. ``covariance`` v of (level, slope): over the images (all networks are judged on the same ones, so their error is common
   to all networks: it moves every accuracy alike and no difference) and over the networks that happened to be drawn.
2. e(x), the error of the estimator's own parameters in p(x) minus the mean prediction of the samples: what they
   have in common with it, as the base accuracy, was measured again by the level.
3. ``lack_of_fit``: how far networks are from the line beyond all that. Interactions are there; kappa, 1 on average over
   networks, says how far from a given one, and what two networks share of it (:mod:`binas.estimators.leftover`).

S^2, the residual variance of the samples minus what their own finitely many images add, is what 2 and 3 explain
together: lack_of_fit^2 = S^2 - slope^2 mean e^2 where that is positive; else the estimator overstates its errors, and
trust = S^2 / (slope^2 mean e^2) < 1. Half its own standard error is added to S^2 (nothing below zero counts): an
interval made with a variance that is itself estimated must be wider, as Student's is. Of a difference of two networks
the level cancels, and so does the lack of fit as far as they share it: slope^2 trust e(x1, x2)^2 + (p1 - p2)^2 v_ss +
lack_of_fit^2 (k11 + k22 - 2 k12), k = kappa.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import cached_property
from typing import Protocol, Self, runtime_checkable

import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel, ConfigDict, Field

from binas.estimators._base import Estimator
from binas.estimators.leftover import own_leftover, shared_leftover
from binas.estimators.links import LinkName
from binas.estimators.objective import Objective
from binas.space.architecture import Architecture
from binas.space.space import SearchSpace
from binas.tables.samples import Samples

Array = NDArray[np.float64]

CLEAR = 2.0  # standard errors that a slope must be above zero
TINY = 1e-12


@runtime_checkable
class Differentiable(Protocol):
    """An estimator whose errors of differences are known: those of its parameters times its gradients."""

    def gradients(self, architectures: Iterable[Architecture]) -> Array:
        """d accuracy / d parameters, (n, parameters)."""

    def errors(self, weights: Array) -> Array:
        """Standard errors in points of sums of parameters, one per row of ``weights``, (n,)."""

    def joint_errors(self, weights: Array) -> Array:
        """Covariance of these sums in points^2, (n, n)."""


class Calibration(BaseModel):
    """shown = level + slope (predicted - centre), in percent, with what its errors are made of, in points."""

    model_config = ConfigDict(extra="forbid", frozen=True)
    centre: float = Field(description="Mean prediction of the samples, percent")
    level: float = Field(description="Accuracy that is shown for it, percent: the mean of the samples")
    slope: float = Field(gt=0, description="Points shown for a point predicted")
    covariance: tuple[tuple[float, float], tuple[float, float]] = Field(description="Of (level, slope)")
    lack_of_fit: float = Field(ge=0, description="Standard deviation of networks around the line")
    trust: float = Field(ge=0, le=1, description="Share of the estimator's own error variances that is true")
    samples: int = Field(description="Measured networks behind it")
    why: str = Field("", description="Why predictions are only shifted; empty where the slope was fitted")

    def of(self, predicted: Array) -> Array:
        """What is shown for predictions in percent."""
        return np.asarray(self.level + self.slope * (predicted - self.centre))

    def before(self, accuracy: float) -> float:
        """The prediction for which ``accuracy`` is shown."""
        return self.centre + (accuracy - self.level) / self.slope

    def errors(self, predicted: Array, own: Array, kappa: Array) -> Array:
        """Standard errors of what is shown, given predictions, the estimator's own errors e and kappa(x, x), in points."""
        away = np.stack([np.ones(len(predicted)), predicted - self.centre])
        line = np.einsum("in,ij,jn->n", away, np.array(self.covariance), away)
        around = self.slope**2 * self.trust * np.nan_to_num(own) ** 2 + self.lack_of_fit**2 * kappa
        return np.asarray(np.sqrt(np.maximum(line, 0.0) + around))

    def error_of_difference(self, apart: float, own: float, unlike: float) -> float:
        """Standard error of what is shown for one network minus another, in points.

        Their predictions are ``apart`` with the estimator's own error ``own``; ``unlike`` is k11 + k22 - 2 k12 of kappa.
        """
        fit = self.lack_of_fit**2 * max(0.0, unlike)
        return math.sqrt(apart**2 * self.covariance[1][1] + self.slope**2 * self.trust * own**2 + fit)

    def sentence(self) -> str:
        """What is shown for predictions, for people."""
        error = math.sqrt(self.covariance[0][0])
        line = f"accuracy = {self.level:.2f} (± {error:.2f}) + {self.slope:.2f} (± {math.sqrt(self.covariance[1][1]):.2f})"
        about = f"{line} x (predicted - {self.centre:.2f}), as {self.samples} measured networks say"
        return f"{about}; single networks ± {self.lack_of_fit:.2f} around it.{' ' + self.why if self.why else ''}"


def calibrate(predicted: Array, samples: Samples, own: Array | None = None) -> Calibration:
    """The line through the samples' measured accuracies, given held-out predictions in percent, (n,).

    ``own`` are the errors e of the estimator in these predictions minus their mean, in points; None or NaN where unknown.
    """
    away = predicted - predicted.mean()
    slope, error = _slope(away, samples)
    why = "" if slope > CLEAR * error else _not_used(slope, error)
    slope = 1.0 if why else slope
    left = samples.accuracy - samples.accuracy.mean() - slope * away
    beyond, told = _beyond_images(left, away, samples), _mean_square(own, slope)
    spread = float(away @ away)
    network = beyond / np.array([len(samples), spread if spread and not why else math.inf])
    return Calibration(
        centre=float(predicted.mean()),
        level=float(samples.accuracy.mean()),
        slope=slope,
        covariance=_pairs(_over_images(away, samples, bool(why)) + np.diag(network)),
        lack_of_fit=math.sqrt(max(0.0, beyond - told)),
        trust=min(1.0, beyond / told) if told else 1.0,
        samples=len(samples),
        why=why,
    )


def _slope(away: Array, samples: Samples) -> tuple[float, float]:
    """Least squares of accuracy on prediction, and its standard error; an infinite error where predictions are equal."""
    spread, freedom = float(away @ away), max(1, len(away) - 2)
    if spread == 0.0:
        return 0.0, math.inf
    slope = float(away @ samples.accuracy) / spread
    left = samples.accuracy - samples.accuracy.mean() - slope * away
    return slope, math.sqrt(float(left @ left) / freedom / spread)


def _not_used(slope: float, error: float) -> str:
    """Why the line only shifts."""
    told = "predictions do not differ" if math.isinf(error) else f"slope {slope:.2f} ± {error:.2f}"
    return (
        f"Predictions hardly go with what was measured ({told}), so they are only shifted: believe the confirmed accuracy "
        "of an answer, and estimate with more passes, or measure more samples."
    )


def _beyond_images(left: Array, away: Array, samples: Samples) -> float:
    """S^2: residual variance minus what the samples' own images add, and half its standard error."""
    freedom = max(1, len(left) - 2)
    total = float(left @ left) / freedom
    return max(0.0, total - _image_noise(away, samples) / freedom) + total * math.sqrt(2 / freedom) / 2


def _image_noise(away: Array, samples: Samples) -> float:
    """Sum over samples of the variance that finitely many images give their distance from the line.

    By the outcomes of single images where they are known, else by the accuracies on two halves, else by the errors, taken
    as independent; 0 where nothing is known.
    """
    if samples.outcomes is not None:
        scatter = _off_the_line(samples.outcomes * np.float64(100), away)
        return float(scatter.var(axis=1, ddof=1).sum()) / int(scatter.shape[1])
    if samples.halves is not None:
        apart = _off_the_line((samples.halves[:, :1] - samples.halves[:, 1:]) / 2, away)
        return float(np.square(apart).sum())
    return float(np.nansum(samples.error**2))


def _off_the_line(values: Array, away: Array) -> Array:
    """Columns of numbers per sample, (n, k), minus their own line on the predictions."""
    centred, spread = values - values.mean(axis=0), float(away @ away)
    return np.asarray(centred - np.outer(away, away @ centred / spread) if spread else centred)


def _over_images(away: Array, samples: Samples, level_only: bool) -> Array:
    """Covariance of (level, slope) over images, (2, 2): the line of every image, and their scatter.

    Without outcomes of single images the mean error of the samples is taken for the level's: they share their images.
    """
    spread, outcomes = float(away @ away), samples.outcomes
    if outcomes is None:
        return np.diag(
            [float(np.nan_to_num(np.nanmean(samples.error))) ** 2 if _any_error(samples) else 0.0, 0.0]
        )
    slopes = np.zeros(outcomes.shape[1]) if level_only or not spread else away @ outcomes / spread
    lines = 100.0 * np.stack([outcomes.mean(axis=0), slopes])
    return np.asarray(np.cov(lines) / outcomes.shape[1])


def _any_error(samples: Samples) -> bool:
    return not bool(np.isnan(samples.error).all())


def _mean_square(own: Array | None, slope: float) -> float:
    """slope^2 mean e^2, 0 where unknown."""
    return 0.0 if own is None or np.isnan(own).any() else slope**2 * float(np.mean(own**2))


def _pairs(matrix: Array) -> tuple[tuple[float, float], tuple[float, float]]:
    (a, b), (c, d) = matrix.tolist()
    return (a, b), (c, d)


class CalibratedEstimator:
    """An estimator whose predictions are shown as measured networks say; ``reference`` are these networks."""

    def __init__(
        self, estimator: Estimator, calibration: Calibration, reference: Sequence[Architecture] = ()
    ) -> None:
        self.estimator, self.calibration, self.reference = estimator, calibration, tuple(reference)

    @property
    def link(self) -> LinkName:
        """The link of the estimator."""
        return self.estimator.link

    @property
    def space(self) -> SearchSpace:
        """The space of the estimator."""
        return self.estimator.space

    def fit(self, samples: Samples) -> Self:
        """Nothing to learn: it was calibrated on held-out predictions."""
        return self

    def predict(self, architectures: Iterable[Architecture]) -> Array:
        """Accuracies in percent, (n,), as they are shown."""
        return self.calibration.of(self.estimator.predict(architectures))

    def standard_error(self, architectures: Iterable[Architecture]) -> Array:
        """Standard errors in points, (n,), of all that the module's first lines list."""
        items = list(architectures)
        own = own_errors(self.estimator, items, self._mean)
        return self.calibration.errors(self.estimator.predict(items), own, own_leftover(self.space, items))

    def objective(self) -> Objective:
        """The estimator's objective, shown on the line."""
        return replace(self.estimator.objective(), shown=self.calibration, errors=self.standard_error)

    def compare(self, first: Architecture, second: Architecture) -> tuple[float, float]:
        """Accuracy of ``first`` minus that of ``second`` in points, and its standard error."""
        one, two = self.estimator.predict([first, second]).tolist()
        if isinstance(self.estimator, Differentiable):
            own = own_errors(self.estimator, [first], self.estimator.gradients([second])[0])[0]
        else:
            own = np.sqrt((self.estimator.standard_error([first, second]) ** 2).sum())
        kappa = shared_leftover(self.space, [first, second])
        unlike = float(kappa[0, 0] + kappa[1, 1] - 2 * kappa[0, 1])
        error = self.calibration.error_of_difference(one - two, float(np.nan_to_num(own)), unlike)
        return self.calibration.slope * (one - two), error

    def doubt(self, architectures: Sequence[Architecture]) -> Array:
        """Covariance of the errors of what is shown for networks, in points^2, (n, n), but for the level they share."""
        line, items = self.calibration, list(architectures)
        away, kappa = self.estimator.predict(items) - line.centre, shared_leftover(self.space, items)
        own = line.slope**2 * line.trust * np.nan_to_num(self._joint(items, kappa))
        return np.asarray(own + line.lack_of_fit**2 * kappa + line.covariance[1][1] * np.outer(away, away))

    def _joint(self, items: Sequence[Architecture], kappa: Array) -> Array:
        """Covariance of the estimator's own errors, (n, n), in points^2.

        Networks share them as their gradients say, or, where those are not known, as far as they share their leftovers.
        """
        if self._mean is not None and isinstance(self.estimator, Differentiable):
            return self.estimator.joint_errors(self.estimator.gradients(items) - self._mean)
        scale = self.estimator.standard_error(items) / np.sqrt(np.maximum(np.diag(kappa), TINY))
        return np.outer(scale, scale) * kappa

    @cached_property
    def _mean(self) -> Array | None:
        return mean_gradient(self.estimator, self.reference)


def mean_gradient(estimator: Estimator, reference: Sequence[Architecture]) -> Array | None:
    """The gradient of the mean prediction of networks; None where that is not known."""
    if not reference or not isinstance(estimator, Differentiable):
        return None
    return np.asarray(estimator.gradients(reference).mean(axis=0))


def own_errors(estimator: Estimator, architectures: Sequence[Architecture], mean: Array | None) -> Array:
    """e: errors of an estimator's predictions minus a prediction of gradient ``mean``, in points, (n,).

    Those of the predictions alone where the estimator knows no other.
    """
    if mean is None or not isinstance(estimator, Differentiable):
        return estimator.standard_error(architectures)
    return estimator.errors(estimator.gradients(architectures) - mean)
