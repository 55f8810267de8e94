"""How large several kinds of effects are: variance components by restricted likelihood.

    values = c + sum_k f_k + noise,    Cov = V = sum_k v_k K_k + v_0 I

with given positive semi-definite K_k and variances v >= 0 to be found. With P = V^-1 - V^-1 1 1' V^-1 / (1' V^-1 1), which
integrates the constant c out, the restricted likelihood does not fall when every variance is multiplied by

    sqrt(y' P K_k P y / tr(P K_k))

(minorise-maximise: H. Zhou, L. Hu, J. Zhou, K. Lange, MM algorithms for variance components models, 2019). A variance
goes to zero where nothing speaks for its kind of effect.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from binas.base.errors import EstimatorError

Array = NDArray[np.float64]

ROUNDS = 60
CLEAR = 0.05  # gain of log likelihood in a round below which it ends
LEAST_NOISE = 1e-8  # of the mean variance: V stays positive definite


def choose_variances(matrices: Sequence[Array], values: Array) -> tuple[Array, float]:
    """v of every matrix (n, n), and v_0 of the noise, by restricted likelihood, from equal shares."""
    spread = float(np.var(values))
    sizes = [float(np.trace(matrix)) / len(values) for matrix in matrices]
    if not spread > 0.0 or not any(size > 0.0 for size in sizes):
        raise EstimatorError(
            "all samples have the same accuracy or are the same to this predictor; there is nothing to learn from."
        )
    share = spread / (1 + len(matrices))
    variances = np.array([share / size if size > 0.0 else 0.0 for size in sizes] + [share])
    likelihood = -np.inf
    for _ in range(ROUNDS):
        before, (likelihood, factors) = likelihood, step(matrices, values, variances)
        variances = variances * factors
        variances[-1] = max(variances[-1], LEAST_NOISE * spread)
        if likelihood - before < CLEAR:
            break
    return variances[:-1], float(variances[-1])


def step(matrices: Sequence[Array], values: Array, variances: Array) -> tuple[float, Array]:
    """Restricted log likelihood of given variances (the last that of the noise), and the factor for each of them."""
    total = variances[-1] * np.eye(len(values))
    for variance, matrix in zip(variances, matrices, strict=False):
        total += variance * matrix
    factor = np.linalg.cholesky(total)
    inverse = np.linalg.inv(factor)
    projector = inverse.T @ inverse
    ones = projector.sum(axis=1)
    projector -= np.outer(ones, ones) / ones.sum()
    seen = projector @ values
    likelihood = -float(np.log(np.diag(factor)).sum()) - 0.5 * float(np.log(ones.sum()) + values @ seen)
    found = [float(seen @ (matrix @ seen)) for matrix in matrices] + [float(seen @ seen)]
    expected = [float((projector * matrix).sum()) for matrix in matrices] + [float(np.trace(projector))]
    factors = np.sqrt(np.maximum(found, 0.0) / np.maximum(expected, 1e-300))
    return likelihood, factors
