"""Predictions held against measured networks: what brings them to accuracy, and all that a ± must contain.

Contributions are added up on other images than networks are judged on, with the supernet's BatchNorm instead of a network's
own, and sums know no ceiling: predictions of good networks lie too high. Samples, networks drawn at random and measured one
by one, tell by how much. With p_i the prediction of sample i by an estimator that did not learn from it, y_i its
accuracy, c the mean of p,

    shown(p) = level + slope (phi(p - c) - mean phi),    level and slope by least squares of y on phi.

phi(x) is x, a straight line, unless the samples flatten towards the top; then it is a curve with a bend k
(:mod:`binas.estimators.bending`). Regression to the mean is in the slope: of what was predicted above the mean so much is
real. The slope is above zero, or it is not used (``Calibration.why``), and phi increases, so no ranking changes and an exact
search stays exact.

The standard error of what is shown for a network x with prediction p contains four things, all in points^2:

    Var = g' V g  +  (slope phi')^2 trust e(x)^2  +  lack_of_fit^2 kappa(x, x),    g = (1, phi - mean phi, slope dphi/dk).

1. ``covariance`` V of (level, slope), and of the bend where there is one: over the images (all networks are judged on the
   same ones, so their error is common to all networks: it moves every accuracy alike and no difference) and over the
   networks that happened to be drawn.
2. e(x), the error of the estimator's own parameters in p(x) minus the mean prediction of the samples: what they
   have in common with it, as the base accuracy, was measured again by the level.
3. ``lack_of_fit``: how far networks are from what is shown beyond all that. Interactions are there; kappa, 1 on average over
   networks, says how far from a given one, and what two networks share of it (:mod:`binas.estimators.leftover`).

S^2, the residual variance of the samples minus what their own finitely many images add, is what 2 and 3 explain
together: lack_of_fit^2 = S^2 - mean (slope phi' e)^2 where that is positive; else the estimator overstates its errors, and
trust = S^2 / mean (slope phi' e)^2 < 1. Half its own standard error is added to S^2 (nothing below zero counts): an
interval made with a variance that is itself estimated must be wider, as Student's is. Of a difference of two networks
the level cancels, and so does the lack of fit as far as they share it: (g1 - g2)' V (g1 - g2) + slope^2 phi1' phi2' trust
e(x1, x2)^2 + lack_of_fit^2 (k11 + k22 - 2 k12), k = kappa.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import cached_property
from typing import Protocol, Self, runtime_checkable

import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel, ConfigDict, Field, model_validator

from binas.estimators._base import Estimator
from binas.estimators.bending import Curve, fit_curve
from binas.estimators.leftover import own_leftover, shared_leftover
from binas.estimators.links import LinkName
from binas.estimators.objective import Objective
from binas.space.architecture import Architecture
from binas.space.space import SearchSpace
from binas.tables.samples import Samples

Array = NDArray[np.float64]

CLEAR = 2.0  # standard errors that a slope must be above zero
TINY = 1e-12
STEEPEST = 50.0  # bend times the distance of the lowest sample; exp of it is a number


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
    """shown = level + slope (phi(predicted - centre) - middle), in percent, with what its errors are made of, in points."""

    model_config = ConfigDict(extra="forbid", frozen=True)
    centre: float = Field(description="Mean prediction of the samples, percent")
    level: float = Field(description="Mean accuracy of the samples, percent")
    slope: float = Field(gt=0, description="Points shown for a point predicted, at the centre")
    bend: float = Field(
        0.0, ge=0, description="Share by which a point is worth less a point higher; 0 = a line"
    )
    lowest: float = Field(
        0.0, le=0, description="Of the samples' predictions minus the centre: straight below"
    )
    middle: float = Field(0.0, description="Mean phi of the samples")
    covariance: tuple[tuple[float, ...], ...] = Field(
        description="Of (level, slope), and the bend if there is one"
    )
    lack_of_fit: float = Field(ge=0, description="Standard deviation of networks around what is shown")
    trust: float = Field(ge=0, le=1, description="Share of the estimator's own error variances that is true")
    samples: int = Field(description="Measured networks behind it")
    why: str = Field("", description="Why predictions are only shifted; empty where the slope was fitted")

    @model_validator(mode="after")
    def _has_its_errors(self) -> Self:
        size = 3 if self.bend else 2
        if len(self.covariance) != size or any(len(row) != size for row in self.covariance):
            raise ValueError(f"the covariance is not one of {size} numbers")
        if not self.bend * -self.lowest <= STEEPEST:  # not a number is refused too
            raise ValueError("the curve is steeper than any that is fitted")
        return self

    @property
    def curve(self) -> Curve:
        """phi."""
        return Curve(self.bend, self.lowest)

    @property
    def steepest(self) -> float:
        """The most points shown for a point predicted."""
        return self.slope * math.exp(-self.bend * self.lowest)

    def of(self, predicted: Array) -> Array:
        """What is shown for predictions in percent."""
        return np.asarray(self.level + self.slope * (self.curve.of(predicted - self.centre) - self.middle))

    def before(self, accuracy: float) -> float:
        """The prediction for which ``accuracy`` is shown; infinite where no prediction is worth so much."""
        return self.centre + self.curve.before((accuracy - self.level) / self.slope + self.middle)

    def gradients(self, predicted: Array) -> Array:
        """g, of what is shown by level, slope and bend, (n, 2) or (n, 3)."""
        return _gradients(self.curve, predicted - self.centre, self.middle, self.slope)

    def worth(self, predicted: Array) -> Array:
        """slope phi': the points shown for one more point of predictions."""
        return self.slope * self.curve.steepness(predicted - self.centre)

    def errors(self, predicted: Array, own: Array, kappa: Array) -> Array:
        """Standard errors of what is shown, given predictions, the estimator's own errors e and kappa(x, x), in points."""
        g = self.gradients(predicted)
        fitted = np.einsum("ni,ij,nj->n", g, np.array(self.covariance), g)
        around = self.worth(predicted) ** 2 * self.trust * np.nan_to_num(own) ** 2
        return np.asarray(np.sqrt(np.maximum(fitted, 0.0) + around + self.lack_of_fit**2 * kappa))

    def error_of_difference(self, predicted: Array, own: float, unlike: float) -> float:
        """Standard error of what is shown for one network minus another, in points.

        ``predicted`` are their two predictions, the difference of which has the estimator's own error ``own``; ``unlike`` is
        k11 + k22 - 2 k12 of kappa.
        """
        one, two = self.gradients(predicted)
        fitted = float((one - two) @ np.array(self.covariance) @ (one - two))
        around = float(np.prod(self.worth(predicted))) * self.trust * own**2
        return math.sqrt(max(0.0, fitted) + around + self.lack_of_fit**2 * max(0.0, unlike))

    def sentence(self) -> str:
        """What is shown for predictions, for people."""
        level, slope = (math.sqrt(self.covariance[i][i]) for i in range(2))
        line = f"accuracy = {self.level:.2f} (± {level:.2f}) + {self.slope:.2f} (± {slope:.2f})"
        about = f"{line} x (predicted - {self.centre:.2f}), as {self.samples} measured networks say"
        if self.bend:
            less, error = 100 * self.bend, 100 * math.sqrt(self.covariance[2][2])
            about += f", flattening: a point is worth {less:.1f} % (± {error:.1f}) less a point higher"
        return f"{about}; single networks ± {self.lack_of_fit:.2f} around it.{' ' + self.why if self.why else ''}"


def _gradients(curve: Curve, x: Array, middle: float, slope: float) -> Array:
    columns = [np.ones_like(x), curve.of(x) - middle]
    return np.stack([*columns, slope * curve.by_bend(x)] if curve.bend else columns, axis=-1)


def calibrate(predicted: Array, samples: Samples, own: Array | None = None) -> Calibration:
    """The line, or the curve, through the samples' measured accuracies, given held-out predictions in percent, (n,).

    ``own`` are the errors e of the estimator in these predictions minus their mean, in points; None or NaN where unknown.
    """
    x = predicted - predicted.mean()
    why = "" if _is_clear(*_slope(x, samples)) else _not_used(*_slope(x, samples))
    curve = Curve(0.0, float(x.min())) if why else fit_curve(x, samples.accuracy)
    middle = float(curve.of(x).mean())
    away = curve.of(x) - middle
    slope = 1.0 if why else _slope(away, samples)[0]
    columns = _gradients(curve, x, middle, slope)
    fitted = columns[:, :1] if why else columns
    left = samples.accuracy - samples.accuracy.mean() - slope * away
    beyond, told = _beyond_images(left, columns, samples), _mean_square(own, slope * curve.steepness(x))
    covariance = np.zeros((columns.shape[1], columns.shape[1]))
    size = fitted.shape[1]
    covariance[:size, :size] = _over_images(fitted, samples) + beyond * np.linalg.pinv(fitted.T @ fitted)
    return Calibration(
        centre=float(predicted.mean()),
        level=float(samples.accuracy.mean()),
        slope=slope,
        bend=curve.bend,
        lowest=min(0.0, curve.lowest),
        middle=middle,
        covariance=tuple(tuple(row) for row in covariance.tolist()),
        lack_of_fit=math.sqrt(max(0.0, beyond - told)),
        trust=min(1.0, beyond / told) if told else 1.0,
        samples=len(samples),
        why=why,
    )


def _is_clear(slope: float, error: float) -> bool:
    return slope > CLEAR * error


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


def _beyond_images(left: Array, columns: Array, samples: Samples) -> float:
    """S^2: residual variance minus what the samples' own images add, and half its standard error."""
    freedom = max(1, len(left) - int(columns.shape[1]))
    total = float(left @ left) / freedom
    return max(0.0, total - _image_noise(columns, samples) / freedom) + total * math.sqrt(2 / freedom) / 2


def _image_noise(columns: Array, samples: Samples) -> float:
    """Sum over samples of the variance that finitely many images give their distance from the line.

    By the outcomes of single images where they are known, else by the accuracies on two halves, else by the errors, taken
    as independent; 0 where nothing is known.
    """
    if samples.outcomes is not None:
        scatter = _off_the_line(samples.outcomes * np.float64(100), columns)
        return float(scatter.var(axis=1, ddof=1).sum()) / int(scatter.shape[1])
    if samples.halves is not None:
        apart = _off_the_line((samples.halves[:, :1] - samples.halves[:, 1:]) / 2, columns)
        return float(np.square(apart).sum())
    return float(np.nansum(samples.error**2))


def _off_the_line(values: Array, columns: Array) -> Array:
    """Numbers per sample, (n, k), minus what is fitted to each of their columns."""
    return np.asarray(values - columns @ (np.linalg.pinv(columns) @ values))


def _over_images(columns: Array, samples: Samples) -> Array:
    """Covariance over images of what is fitted: the fit of every image, and their scatter.

    Without outcomes of single images the mean error of the samples is taken for the level's: they share their images.
    """
    size, outcomes = columns.shape[1], samples.outcomes
    if outcomes is None:
        level = float(np.nan_to_num(np.nanmean(samples.error))) ** 2 if _any_error(samples) else 0.0
        return np.diag([level, *[0.0] * (size - 1)])
    fits = 100.0 * (np.linalg.pinv(columns) @ outcomes)
    return np.asarray(np.cov(fits).reshape(size, size) / outcomes.shape[1])


def _any_error(samples: Samples) -> bool:
    return not bool(np.isnan(samples.error).all())


def _mean_square(own: Array | None, worth: Array) -> float:
    """mean (slope phi' e)^2, 0 where unknown."""
    return 0.0 if own is None or np.isnan(own).any() else float(np.mean((worth * own) ** 2))


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
        predicted = self.estimator.predict([first, second])
        if isinstance(self.estimator, Differentiable):
            own = own_errors(self.estimator, [first], self.estimator.gradients([second])[0])[0]
        else:
            own = np.sqrt((self.estimator.standard_error([first, second]) ** 2).sum())
        kappa = shared_leftover(self.space, [first, second])
        unlike = float(kappa[0, 0] + kappa[1, 1] - 2 * kappa[0, 1])
        error = self.calibration.error_of_difference(predicted, float(np.nan_to_num(own)), unlike)
        one, two = self.calibration.of(predicted).tolist()
        return one - two, error

    def doubt(self, architectures: Sequence[Architecture]) -> Array:
        """Covariance of the errors of what is shown for networks, in points^2, (n, n), but for the level they share."""
        shown, items = self.calibration, list(architectures)
        predicted, kappa = self.estimator.predict(items), shared_leftover(self.space, items)
        worth, g = shown.worth(predicted), shown.gradients(predicted)[:, 1:]
        own = np.outer(worth, worth) * shown.trust * np.nan_to_num(self._joint(items, kappa))
        fitted = g @ np.array(shown.covariance)[1:, 1:] @ g.T
        return np.asarray(own + shown.lack_of_fit**2 * kappa + fitted)

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
