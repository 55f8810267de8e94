"""Standard errors of a shrunken fit: noise by the sandwich over images, plus what shrinkage may hold back.

gamma = W m is linear in the outcomes. With s_i the scores of image i (:func:`binas.contributions.normal.score_products`),

    Cov = W (sum_i s_i s_i') W' N / (N - 1)  +  sum_kinds noise_k * f_k M_k K_k M_k'  +  Var(slope) g g'.

The first term is the sampling variance, valid whatever the dependence within an image. Shrinkage also biases; with
effects as large as the prior f K says, the mean squared bias is the second term, M being the share held back and f
the largest factor that the evidence allows (``Settings.plausible``). The third is the uncertainty of the slope that
brings soft outcomes to accuracy, g the change of gamma with it. ``noise_k`` is the variance of one evaluation as the
sandwich sees it, the unit of K.
"""

from __future__ import annotations

import numpy as np

from binas.contributions.normal import Recorded, Sums, score_products
from binas.contributions.outcomes import Array
from binas.contributions.shrinkage import Fit, Settings


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
