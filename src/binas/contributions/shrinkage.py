"""The factorial fit: regression within images, shrunken as far as the data find best.

0/1 outcomes, coefficients gamma in the contrasts of :mod:`binas.contributions.design`:

    gamma = (A + K^-1)^-1 m,    K = sum_l v_l * similarity_l,

A and m from :mod:`binas.contributions.normal`, one variance v_l, relative to the noise, per group of effects: depths,
option values over all blocks, option values of a block, single configs. Read as a model, gamma ~ N(0, noise * K), the
outcomes have a likelihood in which gamma is integrated out (the evidence),

    log L = -1/2 [n log((spread - m'(A + K^-1)^-1 m) / n) + log det(I + A K)],    n = images * (passes - 1).

It tells which scales of K the data allow (within ``ALLOWED`` of the best); among these cross-validation over images
chooses. The largest one allowed goes into the error bars.

A soft outcome (probability or log-probability of the true class) is less noisy, but it has other units, and it
ranks almost, not exactly, as accuracy does. So it is fitted first (gamma_soft), brought to accuracy by one slope, and
what the 0/1 outcomes of the same evaluations say beyond that is added, shrunken in turn:

    gamma = slope * gamma_soft + (A + (w K)^-1)^-1 (m - slope * A gamma_soft).

The slope is that of 0/1 outcomes of held-out images on fits to the other images, pulled towards the slope of single outcomes
(how correctness goes with the soft outcome within an image), which many more numbers determine. Noise of the soft outcome
that has nothing to do with correctness makes the slope of single outcomes too small, whatever their number; so where the
held-out slope disagrees with it, or is too uncertain to tell, the soft outcome is not used (``Settings.doubt``). w says how
far accuracy effects differ from soft ones: about ``BEYOND_SOFT`` of their variance, unless the evidence says otherwise.

Errors: noise by the sandwich over images, plus what shrinkage may hold back. gamma = W m is linear in the outcomes. With
s_i the scores of image i (:func:`binas.contributions.normal.score_products`),

    Cov = W (sum_i s_i s_i') W' N / (N - 1)  +  sum_kinds noise_k * f_k M_k K_k M_k'  +  Var(slope) g g'.

The first term is the sampling variance, valid whatever the dependence within an image. Shrinkage also biases; with
effects as large as the prior f K says, the mean squared bias is the second term, M being the share held back and f
the largest factor that the evidence allows (``Settings.plausible``). The third is the uncertainty of the slope that
brings soft outcomes to accuracy, g the change of gamma with it. ``noise_k`` is the variance of one evaluation as the
sandwich sees it, the unit of K.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np
from scipy.linalg import cholesky, eigh

from binas.contributions.normal import Recorded, Sums, score_products
from binas.contributions.outcomes import Array

# Usual proportions: depths matter several times as much as choices inside a block, and options have much the same
# effect in all blocks. Rankings change little between (10, 1, 1, 1) and (300, 1, 1, 1).
PROPORTIONS = {"depth": 30.0, "shared": 3.0, "factor": 1.0, "deviation": 1.0}
SCALES = 10.0 ** np.arange(-4.0, 6.1, 0.25)
STEP = 10.0
CLEAR = 8.0  # gain of log evidence for which a single variance is changed
ALLOWED = 1.92  # loss of log evidence up to which a scale is allowed: 95 % by the likelihood ratio
BEYOND_SOFT = 0.05  # variance of accuracy effects that soft ones do not show, relative to what they show
HALF_A_DECADE = math.log(10) / 2  # how well that number is known
SLOPE_SPREAD = 0.5  # how far slopes of effects differ from slopes of single outcomes, relative
DISAGREES = 2.0  # standard errors between the two from which on they are not believed to be of one kind

Similarities = Mapping[str, Array]


@dataclass(frozen=True)
class Settings:
    """What the data choose: v_l by name (empty: no shrinkage), the slope with its standard error, w (``beyond``).

    ``plausible`` >= 1 is the largest factor on all v_l that the evidence allows. Where the data say little, the best
    prediction shrinks almost everything away; error bars must still allow for effects of that size. ``doubt`` says why the
    soft outcome must not be used; empty where it may.
    """

    variances: Mapping[str, float]
    slope: float = 1.0
    slope_error: float = 0.0
    beyond: float = 0.0
    plausible: float = 1.0
    doubt: str = ""


@dataclass(frozen=True, eq=False)
class Fit:
    """Coefficients, and the matrices their errors follow from (:func:`covariance`).

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
    slope = settings.slope
    second, soft = _inverse(gram, prior, settings.beyond), first @ moment[1]
    rest = one - second @ gram
    gamma = slope * soft + second @ (moment[0] - slope * gram @ soft)
    return Fit(
        gamma=gamma,
        direct=np.stack([gamma, soft]),
        weights=np.hstack([second, slope * rest @ first]),
        priors=np.stack([settings.beyond * prior, prior]),
        missed=np.stack([rest, math.hypot(slope, settings.slope_error) * rest @ held_back]),
    )


def prior_of(similarities: Similarities, settings: Settings) -> Array:
    """K relative to the noise; infinite on the diagonal without shrinkage."""
    size = len(next(iter(similarities.values())))
    if not settings.variances:
        return np.diag(np.full(size, np.inf))
    return np.asarray(sum(v * similarities[name] for name, v in settings.variances.items()))


def choose_settings(sums: Sums, similarities: Similarities) -> Settings:
    """Variances by evidence and cross-validation, and what brings a soft outcome to accuracy."""
    kind = len(sums.moments) - 1
    variances = _proportions(sums, similarities, kind)
    prior = prior_of(similarities, Settings(variances))
    allowed = _allowed(turned(sums.gram, sums.moment[kind], prior), sums, kind)
    losses = _held_out_losses(sums, prior, kind, allowed)
    chosen = float(allowed[int(np.argmin(losses))])
    scaled = {name: chosen * v for name, v in variances.items()}
    settings = Settings(scaled, plausible=float(allowed[-1]) / chosen)
    return settings if kind == 0 else _calibrated(sums, similarities, settings)


@dataclass(frozen=True, eq=False)
class Turned:
    """Normal equations in coordinates where the prior is the identity and the gram diagonal: gamma = basis @ c."""

    spectrum: Array
    basis: Array
    moment: Array

    def coefficients(self, scales: Array) -> Array:
        """gamma with the prior scaled, (scales, q)."""
        s = scales[:, None]
        return np.asarray((s * self.moment / (1 + s * self.spectrum)) @ self.basis.T)

    def log_evidence(self, scales: Array, spread: float, freedom: float) -> Array:
        """log L for each scale of the prior, up to a constant."""
        s = scales[:, None]
        explained = (s * self.moment**2 / (1 + s * self.spectrum)).sum(axis=1)
        left = np.maximum(spread - explained, 1e-12 * spread)
        return np.asarray(-0.5 * (freedom * np.log(left) + np.log1p(s * self.spectrum).sum(axis=1)))


def turned(gram: Array, moment: Array, prior: Array) -> Turned:
    """The coordinates of a gram and a prior, and a moment in them."""
    root = cholesky(prior, lower=True)
    spectrum, vectors = eigh(root.T @ gram @ root)
    basis = root @ vectors
    return Turned(np.maximum(spectrum, 0.0), basis, basis.T @ moment)


def _proportions(sums: Sums, similarities: Similarities, kind: int) -> dict[str, float]:
    """Variances in usual proportions; single ones changed as long as the evidence clearly gains by it."""
    start = 1.0 / float(np.diag(sums.gram).mean())
    best = {name: start * PROPORTIONS[name] for name in similarities}
    most = _most_evidence(sums, similarities, kind, best)
    for name in sorted(similarities):
        for step in (STEP, 1 / STEP):
            tried = {**best, name: best[name] * step}
            found = _most_evidence(sums, similarities, kind, tried)
            while found > most + CLEAR:
                best, most = tried, found
                tried = {**best, name: best[name] * step}
                found = _most_evidence(sums, similarities, kind, tried)
    return best


def _most_evidence(
    sums: Sums, similarities: Similarities, kind: int, variances: Mapping[str, float]
) -> float:
    """Log evidence of the best scale."""
    prior = prior_of(similarities, Settings(variances))
    return float(_evidence(turned(sums.gram, sums.moment[kind], prior), sums, kind).max())


def _evidence(at: Turned, sums: Sums, kind: int) -> Array:
    spread = float(sums.spreads[kind])
    return at.log_evidence(SCALES, spread, sums.freedom) if spread > 0 else np.zeros(len(SCALES))


def _allowed(at: Turned, sums: Sums, kind: int) -> Array:
    """Scales that the evidence does not speak against, in increasing order."""
    found = _evidence(at, sums, kind)
    return np.asarray(SCALES[found >= found.max() - ALLOWED])


def _held_out_losses(sums: Sums, prior: Array, kind: int, scales: Array) -> Array:
    """Squared error on held-out images for each scale, up to a constant."""
    losses = np.zeros(len(scales))
    for rest, held in sums.folds():
        gammas = turned(rest.gram, rest.moment[kind], prior).coefficients(scales)
        losses += np.einsum("ij,jk,ik->i", gammas, held.gram, gammas) - 2 * gammas @ held.moment[kind]
    return losses


def _calibrated(sums: Sums, similarities: Similarities, settings: Settings) -> Settings:
    """Slope and w of a soft outcome."""
    prior = prior_of(similarities, settings)
    soft = _inverse(sums.gram, prior) @ sums.moment[1]
    single = max(0.0, float(sums.products[0, 1] / sums.spreads[1]))
    hard_noise, soft_noise = (_unexplained(sums, gamma, k) for k, gamma in enumerate((single * soft, soft)))
    held = _held_out_slope(sums, prior, hard_noise / sums.freedom)
    slope, error = _pulled(held, single)
    usual = BEYOND_SOFT * max(SLOPE_SPREAD * single, slope) ** 2 * soft_noise / hard_noise
    residual = sums.moment[0] - slope * sums.gram @ soft
    left = _unexplained(sums, slope * soft, 0)
    beyond = _beyond(turned(sums.gram, residual, prior), left, sums.freedom, usual)
    return replace(settings, slope=slope, slope_error=error, beyond=beyond, doubt=_doubt(held, single))


def _held_out_slope(sums: Sums, prior: Array, noise: float) -> tuple[float, float]:
    """sum eta'y / sum eta'eta over held-out images, eta the soft fit to the other images, and its standard error."""
    above = below = 0.0
    for rest, held in sums.folds():
        gamma = _inverse(rest.gram, prior) @ rest.moment[1]
        above += float(gamma @ held.moment[0]) / noise
        below += float(gamma @ held.gram @ gamma) / noise
    below = max(below, 1e-300)
    return above / below, 1 / math.sqrt(below)


def _pulled(held: tuple[float, float], single: float) -> tuple[float, float]:
    """The held-out slope pulled towards that of single outcomes, and its standard error.

    Never negative: a soft outcome that ranks the wrong way says nothing.
    """
    (slope, error), spread = held, max(SLOPE_SPREAD * single, 1e-9)
    known, prior = 1 / error**2, 1 / spread**2
    return max(0.0, (known * slope + prior * single) / (known + prior)), 1 / math.sqrt(known + prior)


def _doubt(held: tuple[float, float], single: float) -> str:
    """Why the two slopes cannot be of one kind, or why that cannot be told; empty where they agree."""
    slope, error = held
    told = f"{slope:.3g} ± {error:.2g} on held-out images, {single:.3g} within images"
    if error > DISAGREES * single:
        return f"its slope to accuracy is too uncertain: {told}"
    apart = abs(slope - single) > DISAGREES * math.hypot(error, SLOPE_SPREAD * single)
    return f"its noise is not that of correctness: slope to accuracy {told}" if apart else ""


def _beyond(at: Turned, spread: float, freedom: float, usual: float) -> float:
    """w with the most evidence, where ``usual`` is expected to within half a decade either way."""
    scales = usual * 10.0 ** np.arange(-2.0, 3.1, 0.25)
    penalty = 0.5 * (np.log(scales / usual) / HALF_A_DECADE) ** 2 if usual > 0 else np.zeros(len(scales))
    return float(scales[int(np.argmax(at.log_evidence(scales, spread, freedom) - penalty))])


def _unexplained(sums: Sums, gamma: Array, kind: int) -> float:
    """Sum of squares within images that a fit leaves over, never zero."""
    left = float(sums.spreads[kind] + gamma @ sums.gram @ gamma - 2 * gamma @ sums.moment[kind])
    return max(left, 1e-12 * float(sums.spreads[kind]), 1e-300)


def _inverse(gram: Array, prior: Array, scale: float = 1.0) -> Array:
    """(gram + (scale * prior)^-1)^-1; without shrinkage the pseudo-inverse of the gram."""
    if np.isinf(prior).any():
        return np.asarray(np.linalg.pinv(gram, hermitian=True))
    root = math.sqrt(scale) * cholesky(prior, lower=True)
    return np.asarray(root @ np.linalg.solve(np.eye(len(gram)) + root.T @ gram @ root, root.T))


def covariance(recorded: Recorded, sums: Sums, settings: Settings, found: Fit) -> Array:
    """Covariance of (base, theta) as shares, (1 + size, 1 + size)."""
    images, size = recorded.journal.images, len(found.gamma)
    scores = score_products(recorded, found.direct, float(sums.means[0])) * images / (images - 1)
    weights = np.zeros((1 + size, len(scores)))
    weights[0, -1] = 1.0 / images
    weights[1:, :-1] = found.weights
    total = weights @ scores @ weights.T
    total[1:, 1:] += _held_back(sums.gram, scores, settings, found)
    if len(found.direct) > 1:
        change = found.missed[0] @ found.direct[1]
        total[1:, 1:] += settings.slope_error**2 * np.outer(change, change)
    spread = np.zeros((1 + recorded.design.size, 1 + size))
    spread[0, 0], spread[1:, 1:] = 1.0, recorded.design.contrasts
    return np.asarray(spread @ total @ spread.T)


def _held_back(gram: Array, scores: Array, settings: Settings, found: Fit) -> Array:
    """sum_kinds noise_k f_k M_k K_k M_k'; nothing without shrinkage. f is about the outcome fitted first."""
    factors = np.ones(len(found.priors))
    factors[-1] = settings.plausible
    size, total = len(gram), np.zeros_like(gram)
    if np.isinf(found.priors).any():
        return total
    solved = np.linalg.pinv(gram, hermitian=True)
    for k, (prior, missed) in enumerate(zip(found.priors, found.missed, strict=True)):
        own = scores[k * size : (k + 1) * size, k * size : (k + 1) * size]
        noise = np.trace(solved @ own) / np.trace(solved @ gram)
        total += noise * factors[k] * missed @ prior @ missed.T
    return total
