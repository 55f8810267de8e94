"""Linear regression on products of features through the n x n Gram matrix of the samples.

The features of a sample are z and products z_i z_j of chosen pairs (i, j): up to N + N^2 of them. Inner products of
such rows need no product to be written down,

    <x, x'> = <z, z'> + sum over groups (I, J) of <z_I, z'_I> <z_J, z'_J>,

and every regularised least-squares fit is a combination W = X' c of the n rows. So c, of length n, is all that is
solved for (appendix on the closed form; Algorithm 2 takes the same c from the SVD of X).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from binas.base.errors import EstimatorError
from binas.estimators.triangular import factorise, solve_lower, solve_lower_transposed

Array = NDArray[np.float64]
Indices = NDArray[np.int64]
Groups = list[tuple[Indices, Indices]]

EXACT = 2000  # samples up to which every component is computed; beyond, the leading ones
OVERSAMPLING = 64
STEPS = 2  # of the subspace iteration
CHOOSING = 1000  # samples of a part on which the ridge is chosen
PARTS = 3
RIDGES = np.logspace(-6, 3, 46)  # tried, as multiples of the mean eigenvalue
WEIGHTS = (0.0003, 0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1.0)  # of products, tried


def feature_count(size: int, groups: Groups) -> int:
    """Number of features that can differ: the entries of z and the products, each pair once."""
    pairs = [
        len(left) * (len(left) + 1) // 2 if left is right else len(left) * len(right)
        for left, right in groups
    ]
    return size + sum(pairs)


def gram_matrix(rows: Array, groups: Groups, weight: float = 1.0) -> Array:
    """<x_i, x_j> of all samples with centred features, (n, n); products count ``weight`` times."""
    gram = rows @ rows.T
    for left, right in groups:
        product = rows[:, left] @ rows[:, left].T
        product *= product if left is right else rows[:, right] @ rows[:, right].T
        product *= weight
        gram += product
    means = gram.mean(axis=0)
    gram -= means
    gram -= means[:, None]
    gram += means.mean()
    return gram


def leading_components(gram: Array, count: int, seed: int) -> tuple[Array, Array]:
    """The largest ``count`` eigenvalues s^2 of the Gram matrix, falling, and their vectors U (n, count).

    Those that are zero up to rounding are left out. Beyond ``EXACT`` samples the vectors span the leading subspace
    approximately (randomised subspace iteration), from a start given by ``seed``.
    """
    if len(gram) <= EXACT:
        values, vectors = np.linalg.eigh(gram)
    else:
        basis = _leading_subspace(gram, min(len(gram), count + OVERSAMPLING), seed)
        values, inner = np.linalg.eigh(basis.T @ (gram @ basis))
        vectors = basis @ inner
    kept = np.flatnonzero(values > len(gram) * np.finfo(float).eps * values[-1])[::-1][:count]
    if not len(kept):
        raise EstimatorError("all samples are the same to this predictor; there is nothing to learn from.")
    return values[kept], vectors[:, kept]


def _leading_subspace(gram: Array, size: int, seed: int) -> Array:
    basis = np.random.default_rng(seed).normal(size=(len(gram), size))
    for _ in range(STEPS):
        basis, _ = np.linalg.qr(gram @ basis)
    return basis


def component_fit(values: Array, vectors: Array, target: Array) -> Array:
    """c = U diag(s^-2) U' y: least squares on the given components (Algorithm 2, steps 5 and 6)."""
    return np.asarray(vectors @ ((vectors.T @ target) / values))


def component_errors(vectors: Array, target: Array, folds: int, seed: int) -> Array:
    """Mean squared error on held-out samples with the first 1, 2, ... components.

    A part in ``folds`` of the samples is held out, each in turn; beyond ``EXACT`` samples the first alone is enough.
    The components do not depend on the accuracies, so they are those of all samples; what is fitted anew in every
    split is the regression on them. One triangular factor per split serves every number of components.
    """
    parts = np.array_split(np.random.default_rng(seed).permutation(len(target)), folds)
    most = min(vectors.shape[1], len(target) - len(parts[0]) - 1)
    scores = np.column_stack([np.ones(len(target)), vectors[:, :most]])
    used = parts[:1] if len(target) > EXACT else parts
    total = np.zeros(most)
    for part in used:
        total += _split_errors(scores, target, part)
    return total / sum(map(len, used))


def _split_errors(scores: Array, target: Array, held: Indices) -> Array:
    """Summed squared errors on ``held`` by number of components."""
    used = np.setdiff1d(np.arange(len(target)), held)
    factor: Array = np.asarray(np.linalg.qr(np.column_stack([scores[used], target[used]]), mode="r"))
    size = scores.shape[1]
    reduced, projected = factor[:size, :size], factor[:size, size]
    basis = solve_lower(reduced.T, scores[held].T).T
    predicted = np.cumsum(basis * projected, axis=1)[:, 1:]
    return np.asarray(((predicted - target[held, None]) ** 2).sum(axis=0))


def ridge_fit(gram: Array, target: Array, ridge: float) -> Array:
    """c = (K + ridge I)^-1 y: minimises ||y - X W||^2 + ridge ||W||^2. Overwrites ``gram``."""
    gram[np.diag_indices_from(gram)] += ridge
    factor = factorise(gram)
    return solve_lower_transposed(factor, solve_lower(factor, target))


@dataclass(frozen=True, eq=False)
class Posterior:
    """Errors of a ridge fit, read as a model: coefficients ~ N(0, noise / ridge), targets = fit + N(0, noise).

    With features centred over the samples, K their Gram matrix and k the inner products of a new row x with them,

        variance(x) = noise (1 / n + [<x, x> - k' (K + ridge I)^-1 k] / ridge),    noise = ridge y' (K + ridge I)^-1 y / n.

    The noise is all that the model leaves over: that of measuring, and effects of another form.
    """

    rows: Array
    groups: Groups
    weight: float
    ridge: float
    target: Array

    def errors(self, rows: Array) -> Array:
        """Standard errors of the fit at new rows z, (n,)."""
        inner = self._inner(rows, self.rows)
        own = np.array([float(self._inner(row[None], row[None])[0, 0]) for row in rows])
        mean = inner.mean(axis=1)
        centred = inner - mean[:, None] - self._means + self._means.mean()
        left = own - 2 * mean + self._means.mean()
        left -= (solve_lower(self._factor, centred.T) ** 2).sum(axis=0)  # k' (L L')^-1 k
        return np.asarray(np.sqrt(self._noise * (1 / len(self.rows) + np.maximum(left, 0.0) / self.ridge)))

    def _inner(self, left: Array, right: Array) -> Array:
        """<x, x'> of all pairs, products ``weight`` times."""
        total = left @ right.T
        for first, second in self.groups:
            product = (left[:, first] @ right[:, first].T) * (left[:, second] @ right[:, second].T)
            total += self.weight * product
        return np.asarray(total)

    @cached_property
    def _means(self) -> Array:
        return np.asarray(self._inner(self.rows, self.rows).mean(axis=0))

    @cached_property
    def _factor(self) -> Array:
        gram = gram_matrix(self.rows, self.groups, self.weight)
        gram[np.diag_indices_from(gram)] += self.ridge
        return factorise(gram)

    @cached_property
    def _noise(self) -> float:
        return self.ridge * float((solve_lower(self._factor, self.target) ** 2).sum()) / len(self.target)


def choose_ridge(
    rows: Array, groups: Groups, target: Array, weights: tuple[float, ...], seed: int
) -> tuple[float, float]:
    """(weight of products, ridge) with the least leave-one-out error, exact on up to ``CHOOSING`` samples.

    Both are ratios of variances (of products to main effects, of noise to coefficients), which do not depend on
    the number of samples. So of more samples ``PARTS`` disjoint parts are looked at, and their errors averaged.
    """
    count = min(PARTS, -(-len(rows) // CHOOSING))
    order = np.random.default_rng(seed).permutation(len(rows))[: count * CHOOSING]
    parts = [np.sort(part) for part in np.array_split(order, count)]
    found = []
    for weight in weights:
        tried = [ridge_errors(gram_matrix(rows[part], groups, weight), target[part]) for part in parts]
        ridges, errors = (np.mean(column, axis=0) for column in zip(*tried, strict=True))
        best = int(np.argmin(errors))
        found.append((float(errors[best]), weight, float(ridges[best])))
    _, weight, ridge = min(found)
    return weight, ridge


def ridge_errors(gram: Array, target: Array) -> tuple[Array, Array]:
    """Ridges, as multiples of the mean eigenvalue, and the leave-one-out error of each."""
    values, vectors = np.linalg.eigh(gram)
    values = np.maximum(values, 0.0)
    if not values[-1] > 0.0:
        raise EstimatorError("all samples are the same to this predictor; there is nothing to learn from.")
    ridges = RIDGES * values.mean()
    centred = target - target.mean()
    return ridges, np.array([leave_one_out(values, vectors, centred, ridge) for ridge in ridges])


def leave_one_out(values: Array, vectors: Array, target: Array, ridge: float) -> float:
    """Mean squared leave-one-out error: residual_i / (1 - H_ii) with I - H = ridge (K + ridge I)^-1 - 1 1'/n."""
    inverse = 1.0 / (values + ridge)
    fitted = vectors @ (inverse * (vectors.T @ target))
    left = ridge * (vectors**2 @ inverse) - 1.0 / len(target)
    return float(np.mean((ridge * fitted / left) ** 2))
