"""Metrics against scipy and by hand; intervals that cover; the transitivity bound."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats
from sklearn.metrics import mean_squared_error, r2_score

from binas.base.errors import EstimatorError
from binas.estimators.metrics import (
    Interval,
    bootstrap,
    kendall,
    mse,
    pearson,
    r2,
    regret,
    spearman,
    transitivity,
)


def pairs(count: int, noise: float, seed: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    truth = rng.normal(size=count)
    return truth + noise * rng.normal(size=count), truth


def tau_b(x: np.ndarray, y: np.ndarray) -> float:
    """The definition, pair by pair."""
    dx, dy = np.sign(x[:, None] - x), np.sign(y[:, None] - y)
    return float((dx * dy).sum() / math.sqrt((dx**2).sum() * (dy**2).sum()))


@pytest.mark.parametrize("digits", [0, 8], ids=["ties", "no ties"])
def test_against_definitions_and_libraries(digits: int) -> None:
    x, y = (np.round(array, digits) for array in pairs(60, 0.7, 1))
    assert kendall(x, y) == pytest.approx(tau_b(x, y))
    assert spearman(x, y) == pytest.approx(stats.spearmanr(x, y).statistic)
    assert pearson(x, y) == pytest.approx(stats.pearsonr(x, y).statistic)
    assert mse(x, y) == pytest.approx(mean_squared_error(y, x))
    assert r2(x, y) == pytest.approx(r2_score(y, x))


@pytest.mark.parametrize(("y", "expected"), [([1.0, 2.0], 1.0), ([2.0, 1.0], -1.0), ([1.0, 1.0], math.nan)])
def test_two_samples(y: list[float], expected: float) -> None:
    assert kendall([1.0, 2.0], y) == pytest.approx(expected, nan_ok=True)


def test_nothing_that_varies_is_not_a_number() -> None:
    x, flat = np.arange(5.0), np.ones(5)
    assert all(math.isnan(metric(flat, x)) for metric in (kendall, spearman, pearson))
    assert all(math.isnan(metric(x, flat)) for metric in (kendall, spearman, pearson, r2))


def test_shapes_must_fit() -> None:
    with pytest.raises(EstimatorError, match=r"\(3,\) with accuracies of shape \(2,\)"):
        kendall([1, 2, 3], [1, 2])


def test_regret_is_what_trusting_the_predictions_costs() -> None:
    predicted, truth, cost = [3.0, 2.0, 9.0, 1.0], [70.0, 75.0, 90.0, 60.0], [1.0, 2.0, 5.0, 1.0]
    assert regret(predicted, truth, cost, 2.0) == 5.0
    assert regret(predicted, truth, cost, 5.0) == 0.0
    assert math.isnan(regret(predicted, truth, cost, 0.5))


def test_bootstrap_repeats_and_covers() -> None:
    x, y = pairs(100, 0.5, 0)
    assert bootstrap(pearson, x, y, seed=3) == bootstrap(pearson, x, y, seed=3)
    assert bootstrap(pearson, x, y, seed=3) != bootstrap(pearson, x, y, seed=4)
    true = 1 / math.sqrt(1 + 0.5**2)
    found = [bootstrap(pearson, *pairs(100, 0.5, seed), resamples=150) for seed in range(40)]
    assert 0.85 <= np.mean([item.low <= true <= item.high for item in found]) <= 1.0


def test_bootstrap_of_tau_is_centred() -> None:
    """Copies of an architecture must not count as agreement."""
    x, y = pairs(40, 1.0, 5)
    found = bootstrap(kendall, x, y, resamples=400)
    assert (found.low + found.high) / 2 == pytest.approx(found.value, abs=0.05)


def test_bootstrap_of_what_is_never_defined() -> None:
    found = bootstrap(kendall, np.ones(4), np.arange(4.0), resamples=5)
    assert found.to_json() == {"value": None, "low": None, "high": None}
    assert Interval(1.0, 0.5, math.nan).to_json() == {"value": 1.0, "low": 0.5, "high": None}


class TestTransitivity:
    def test_the_papers_numbers(self) -> None:
        low, high = transitivity(0.99, 0.97)
        assert low == pytest.approx(0.926, abs=5e-4)  # the paper rounds to 0.93
        assert high == pytest.approx(0.995, abs=5e-4)

    @given(st.integers(0, 10_000), st.floats(0.01, 3.0), st.floats(0.01, 3.0))
    def test_holds_for_any_three_variables(self, seed: int, one: float, two: float) -> None:
        rng = np.random.default_rng(seed)
        middle = rng.normal(size=12)
        left, right = middle + one * rng.normal(size=12), middle + two * rng.normal(size=12)
        for metric in (pearson, spearman):
            low, high = transitivity(metric(left, middle), metric(middle, right))
            assert low - 1e-9 <= metric(left, right) <= high + 1e-9

    def test_is_reached(self) -> None:
        """Unit vectors in one plane attain both ends."""
        angles = np.array([0.3, 0.5])
        low, high = transitivity(*np.cos(angles))
        assert (low, high) == pytest.approx((math.cos(0.8), math.cos(0.2)))

    def test_not_a_correlation(self) -> None:
        with pytest.raises(EstimatorError, match=r"1.2 is not a correlation"):
            transitivity(1.2, 0.5)
