"""How large several kinds of effects are: variance components by restricted likelihood.

    values = c + sum_k f_k + noise,    Cov = V = sum_k v_k K_k + v_0 I

with given positive semi-definite K_k and variances v >= 0 to be found. With P = V^-1 - V^-1 1 1' V^-1 / (1' V^-1 1), which
integrates the constant c out, the restricted likelihood does not fall when every variance is multiplied by

    sqrt(y' P K_k P y / tr(P K_k))

(minorise-maximise: H. Zhou, L. Hu, J. Zhou, K. Lange, MM algorithms for variance components models, 2019). A variance
goes to zero where nothing speaks for its kind of effect.

A round takes n^3 operations. Where all effects lie in few directions U (n, r), orthonormal, with 1 = U U'1 and
K_k = U U'K_k, all of it happens there: V = U A U' + v_0 (I - U U') with A = U'VU, and beyond is noise alone, n - r times.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from binas.base.errors import EstimatorError
from binas.estimators.triangular import invert_lower

Array = NDArray[np.float64]

ROUNDS = 60
CLEAR = 0.05  # gain of log likelihood in a round below which it ends
LEAST_NOISE = 1e-8  # of the mean variance: V stays positive definite


@dataclass(frozen=True, eq=False)
class Observed:
    """What a likelihood is of: ``matrices`` U'K_kU (r, r), ``values`` U'y of mean zero, ``ones`` U'1.

    ``rest`` is n - r, the number of directions in which there is noise alone, and ``squares`` y'(I - UU')y what is in them.
    """

    matrices: Sequence[Array]
    values: Array
    ones: Array
    rest: int = 0
    squares: float = 0.0

    @classmethod
    def of(cls, matrices: Sequence[Array], values: Array) -> Observed:
        """With U = I."""
        return cls(matrices, values - values.mean(), np.ones(len(values)))

    @property
    def count(self) -> int:
        """n, the number of samples."""
        return len(self.values) + self.rest

    @property
    def spread(self) -> float:
        """Variance of the values."""
        return (float(self.values @ self.values) + self.squares) / self.count


def choose_variances(observed: Observed) -> tuple[Array, float]:
    """v of every matrix, and v_0 of the noise, by restricted likelihood, from equal shares."""
    spread = observed.spread
    sizes = [float(np.trace(matrix)) / observed.count for matrix in observed.matrices]
    if not spread > 0.0 or not any(size > 0.0 for size in sizes):
        raise EstimatorError(
            "all samples have the same accuracy or are the same to this predictor; there is nothing to learn from."
        )
    share = spread / (1 + len(sizes))
    variances = np.array([share / size if size > 0.0 else 0.0 for size in sizes] + [share])
    likelihood = -np.inf
    for _ in range(ROUNDS):
        before, (likelihood, factors) = likelihood, step(observed, variances)
        variances = variances * factors
        variances[-1] = max(variances[-1], LEAST_NOISE * spread)
        if likelihood - before < CLEAR:
            break
    return variances[:-1], float(variances[-1])


def step(observed: Observed, variances: Array) -> tuple[float, Array]:
    """Restricted log likelihood of given variances (the last that of the noise), and the factor for each of them."""
    matrices, values, noise = observed.matrices, observed.values, float(variances[-1])
    total = noise * np.eye(len(values))
    for variance, matrix in zip(variances, matrices, strict=False):
        total += variance * matrix
    factor = np.asarray(np.linalg.cholesky(total), dtype=np.float64)
    inverse = invert_lower(factor)
    projector = inverse.T @ inverse
    ones = projector @ observed.ones
    weight = float(observed.ones @ ones)
    projector -= np.outer(ones, ones) / weight
    seen = projector @ values
    determinant = 2 * float(np.log(np.diag(factor)).sum()) + observed.rest * math.log(noise)
    fit = float(values @ seen) + observed.squares / noise
    found = [float(seen @ (matrix @ seen)) for matrix in matrices]
    found.append(float(seen @ seen) + observed.squares / noise**2)
    expected = [float((projector * matrix).sum()) for matrix in matrices]
    expected.append(float(np.trace(projector)) + observed.rest / noise)
    factors = np.sqrt(np.maximum(found, 0.0) / np.maximum(expected, 1e-300))
    return -0.5 * (determinant + math.log(weight) + fit), factors
