"""Variance components: the likelihood is the one written out, every step raises it, known variances are found."""

import numpy as np
import pytest

from binas.base.errors import EstimatorError
from binas.estimators.variances import Observed, choose_variances, step


def grams(n: int, sizes: tuple[int, ...], seed: int) -> list[np.ndarray]:
    rng = np.random.default_rng(seed)
    factors = [rng.normal(size=(n, size)) for size in sizes]
    return [factor @ factor.T for factor in factors]


def drawn(matrices: list[np.ndarray], variances: list[float], noise: float, seed: int) -> np.ndarray:
    rng, n = np.random.default_rng(seed), len(matrices[0])
    total = sum(v * k for v, k in zip(variances, matrices, strict=True)) + noise * np.eye(n)
    return 3.0 + np.linalg.cholesky(total) @ rng.normal(size=n)


def test_the_likelihood_is_that_of_contrasts() -> None:
    """Restricted likelihood = likelihood of n - 1 orthonormal contrasts of the values, up to the same constant."""
    matrices = grams(12, (2, 3), 0)
    values = drawn(matrices, [1.0, 0.3], 0.5, 1)
    basis = np.linalg.svd(np.ones((1, 12)))[2][1:]

    def contrasts(variances: np.ndarray) -> float:
        total = sum(v * k for v, k in zip(variances, [*matrices, np.eye(12)], strict=True))
        inner, seen = basis @ total @ basis.T, basis @ values
        return float(-0.5 * (np.linalg.slogdet(inner)[1] + seen @ np.linalg.solve(inner, seen)))

    tried = [np.array([1.0, 0.3, 0.5]), np.array([0.1, 2.0, 0.05])]
    ours = [step(Observed.of(matrices, values), v)[0] for v in tried]
    assert ours[0] - ours[1] == pytest.approx(contrasts(tried[0]) - contrasts(tried[1]))


def test_no_step_lowers_the_likelihood() -> None:
    matrices = grams(40, (3, 6), 2)
    seen = Observed.of(matrices, drawn(matrices, [1.0, 0.0], 0.2, 3))
    variances = np.array([0.01, 5.0, 3.0])
    found = []
    for _ in range(15):
        likelihood, factors = step(seen, variances)
        found.append(likelihood)
        variances = variances * factors
    assert (np.diff(found) >= -1e-9).all()
    assert found[-1] > found[0] + 1


def test_known_variances_are_found() -> None:
    """300 values, 60 and 40 effects: a variance is known to about a quarter."""
    matrices = grams(300, (60, 40, 50), 4)
    variances, noise = choose_variances(Observed.of(matrices, drawn(matrices, [2.0, 0.5, 0.0], 1.0, 5)))
    np.testing.assert_allclose(variances[:2], [2.0, 0.5], rtol=0.5)
    assert noise == pytest.approx(1.0, rel=0.5)
    assert variances[2] < 0.02  # nothing speaks for it


def test_an_effect_that_no_sample_has_gets_nothing() -> None:
    matrices = [*grams(30, (4,), 6), np.zeros((30, 30))]
    variances, _ = choose_variances(Observed.of(matrices, drawn(matrices, [1.0, 1.0], 0.1, 7)))
    assert variances[1] == 0.0


def test_nothing_to_learn_from() -> None:
    with pytest.raises(EstimatorError, match="nothing to learn from"):
        choose_variances(Observed.of(grams(10, (2,), 8), np.ones(10)))
    with pytest.raises(EstimatorError, match="nothing to learn from"):
        choose_variances(Observed.of([np.zeros((10, 10))], np.arange(10.0)))
