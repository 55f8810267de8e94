"""The factorial fit: regression within images, shrunken as far as cross-validation over images finds best.

0/1 outcomes, coefficients gamma in the contrasts of :mod:`binas.accuracy.design`:

    gamma = (A + K^-1)^-1 m,    K = sum_l v_l * similarity_l,

A and m from :mod:`binas.accuracy.normal`, one variance v_l, relative to the noise, per group of effects: depths,
option values over all blocks, option values of a block, single configs.

A soft outcome (probability or log-probability of the true class) is less noisy, but it has other units, and it
ranks almost, not exactly, as accuracy does. So it is fitted first (gamma_soft), brought to accuracy by one slope, and
what the 0/1 outcomes of the same evaluations say beyond that is added, shrunken in turn:

    gamma = slope * gamma_soft + (A + (w K)^-1)^-1 (m - slope * A gamma_soft).

The slope is that of 0/1 outcomes of held-out images on fits to the other images; w says that accuracy effects differ
from soft ones with ``BEYOND_SOFT`` of their variance. With more data the second term takes over, so the answer
converges to that of the 0/1 outcomes, whatever the soft ones mean.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np
from scipy.linalg import cho_factor, cho_solve

from binas.accuracy.normal import Sums
from binas.accuracy.outcomes import Array

# Usual proportions: depths matter several times as much as choices inside a block, and options have much the same
# effect in all blocks. Rankings change little between (10, 1, 1, 1) and (300, 1, 1, 1).
PROPORTIONS = {"depth": 30.0, "shared": 3.0, "factor": 1.0, "deviation": 1.0}
SCALES = tuple(float(v) for v in 10.0 ** np.arange(-4.0, 6.1, 0.5))
STEP = 10.0
BEYOND_SOFT = 0.1  # variance of accuracy effects that soft ones do not show, relative to what they show

Similarities = Mapping[str, Array]
Folds = list[tuple[Sums, Sums]]


@dataclass(frozen=True)
class Settings:
    """What cross-validation chooses: v_l by name (empty: no shrinkage), slope, w.

    ``plausible`` >= 1 is the largest factor on all v_l that the data do not clearly speak against. Where they say
    little, the best prediction shrinks almost everything away; error bars must still allow for effects of that size.
    """

    variances: Mapping[str, float]
    slope: float = 1.0
    deviation: float = 0.0
    plausible: float = 1.0


@dataclass(frozen=True, eq=False)
class Fit:
    """Coefficients, and the matrices their errors follow from (:mod:`binas.accuracy.errorbars`).

    ``gamma`` = ``weights`` (q, kinds * q) @ moments of all kinds; ``direct`` (kinds, q) are the coefficients that
    residuals of each kind are taken from; ``priors`` (kinds, q, q) are the prior covariances relative to the noise
    of each kind and ``missed`` (kinds, q, q) the share of true effects that shrinkage holds back.
    """

    gamma: Array
    direct: Array
    weights: Array
    priors: Array
    missed: Array


def fit(sums: Sums, similarities: Similarities, settings: Settings) -> Fit:
    """The coefficients with given settings; the first kind of outcome is 0/1, a second one is soft."""
    gram, moment, prior = sums.gram, sums.moment, prior_of(similarities, settings)
    one, first = np.eye(len(gram)), _inverse(gram, prior)
    held_back = one - first @ gram
    if len(moment) == 1:
        gamma = first @ moment[0]
        return Fit(gamma, gamma[None], first, prior[None], held_back[None])
    slope, wide = settings.slope, settings.deviation * prior
    second, soft = _inverse(gram, wide), first @ moment[1]
    rest = one - second @ gram
    gamma = slope * soft + second @ (moment[0] - slope * gram @ soft)
    return Fit(
        gamma=gamma,
        direct=np.stack([gamma, soft]),
        weights=np.hstack([second, slope * rest @ first]),
        priors=np.stack([wide, prior]),
        missed=np.stack([rest, slope * rest @ held_back]),
    )


def prior_of(similarities: Similarities, settings: Settings) -> Array:
    """K relative to the noise; infinite on the diagonal without shrinkage."""
    size = len(next(iter(similarities.values())))
    if not settings.variances:
        return np.diag(np.full(size, np.inf))
    return np.asarray(sum(v * similarities[name] for name, v in settings.variances.items()))


def choose_settings(sums: Sums, similarities: Similarities) -> Settings:
    """Variances with small squared error on held-out images, and what brings a soft outcome to accuracy.

    Few data tell one scale reliably, not four. So the variances start in usual proportions, and one of them
    alone is changed only where that lowers the error by more than twice the standard error of the difference over
    the groups of images.
    """
    folds, kind = sums.folds(), len(sums.moments) - 1
    start = 1.0 / float(np.diag(sums.gram).mean())
    variances, plausible = _variances(_Losses(folds, similarities, kind), start)
    settings = Settings(variances, plausible=plausible)
    if kind == 0:
        return settings
    slope = _slope(folds, similarities, settings)
    soft = _inverse(sums.gram, prior_of(similarities, settings)) @ sums.moment[1]
    hard_noise, soft_noise = (_unexplained(sums, gamma, k) for k, gamma in enumerate((slope * soft, soft)))
    return replace(settings, slope=slope, deviation=BEYOND_SOFT * slope**2 * soft_noise / hard_noise)


@dataclass(frozen=True, eq=False)
class _Losses:
    """Squared error on each held-out group of images, as a function of the variances."""

    folds: Folds
    similarities: Similarities
    kind: int

    def __call__(self, variances: Mapping[str, float]) -> Array:
        prior = prior_of(self.similarities, Settings(variances))
        fits = [(_inverse(rest.gram, prior) @ rest.moment[self.kind], held) for rest, held in self.folds]
        return np.array([_loss(gamma, held, self.kind) for gamma, held in fits])


def _variances(losses: _Losses, start: float) -> tuple[dict[str, float], float]:
    """One scale for all by least error, then single variances where that is clearly better; the plausible factor."""
    scaled = [{name: scale * start * PROPORTIONS[name] for name in losses.similarities} for scale in SCALES]
    found = [losses(variances) for variances in scaled]
    k = int(np.argmin([values.sum() for values in found]))
    best, least = scaled[k], found[k]
    for name in sorted(losses.similarities):
        for step in (STEP, 1 / STEP):
            best, least = _walked(losses, best, least, name, step)
    larger = [{name: v * scale / SCALES[k] for name, v in best.items()} for scale in SCALES[k + 1 :]]
    count = next(
        (i for i, variances in enumerate(larger) if _clearly_less(least, losses(variances))), len(larger)
    )
    return best, SCALES[k + count] / SCALES[k]


def _walked(
    losses: _Losses, best: dict[str, float], least: Array, name: str, step: float
) -> tuple[dict[str, float], Array]:
    """Change one variance by ``step`` again and again, as long as that is clearly better."""
    while True:
        tried = {**best, name: best[name] * step}
        found = losses(tried)
        if not _clearly_less(found, least):
            return best, least
        best, least = tried, found


def _clearly_less(values: Array, others: Array) -> bool:
    """Whether the mean gain exceeds twice its standard error over the folds."""
    gain = others - values
    return bool(gain.mean() > 2 * gain.std(ddof=1) / np.sqrt(len(gain)))


def _slope(folds: Folds, similarities: Similarities, settings: Settings) -> float:
    """sum eta'y / sum eta'eta over held-out images, eta the soft fit to the other images; y the 0/1 outcomes."""
    prior = prior_of(similarities, settings)
    above = below = 0.0
    for rest, held in folds:
        soft = _inverse(rest.gram, prior) @ rest.moment[1]
        above += float(soft @ held.moment[0])
        below += float(soft @ held.gram @ soft)
    return above / below if below > 0 and above > 0 else 1.0


def _unexplained(sums: Sums, gamma: Array, kind: int) -> float:
    """Sum of squares within images that a fit leaves over, never zero."""
    left = float(sums.spreads[kind]) + _loss(gamma, sums, kind)
    return max(left, 1e-12 * float(sums.spreads[kind]), 1e-300)


def _loss(gamma: Array, held: Sums, kind: int) -> float:
    """Squared error on held-out images, up to a constant."""
    return float(gamma @ held.gram @ gamma - 2 * gamma @ held.moment[kind])


def _inverse(gram: Array, prior: Array) -> Array:
    """(gram + prior^-1)^-1; without shrinkage the pseudo-inverse of the gram."""
    if np.isinf(prior).any():
        return np.asarray(np.linalg.pinv(gram, hermitian=True))
    one = np.eye(len(gram))
    return np.asarray(cho_solve(cho_factor(gram + cho_solve(cho_factor(prior), one)), one))
