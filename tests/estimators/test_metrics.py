"""Errors against scikit-learn and by hand; regret; the transitivity bound."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, strategies as st
from sklearn.metrics import mean_squared_error, r2_score

from binas.base.errors import EstimatorError
from binas.base.statistics import pearson, spearman
from binas.estimators.metrics import mse, r2, regret, transitivity


def test_against_libraries() -> None:
    rng = np.random.default_rng(1)
    truth = rng.normal(size=60)
    predicted = truth + 0.7 * rng.normal(size=60)
    assert mse(predicted, truth) == pytest.approx(mean_squared_error(truth, predicted))
    assert r2(predicted, truth) == pytest.approx(r2_score(truth, predicted))
    assert math.isnan(r2(predicted, np.ones(60)))


def test_regret_is_what_trusting_the_predictions_costs() -> None:
    predicted, truth, cost = [3.0, 2.0, 9.0, 1.0], [70.0, 75.0, 90.0, 60.0], [1.0, 2.0, 5.0, 1.0]
    assert regret(predicted, truth, cost, 2.0) == 5.0
    assert regret(predicted, truth, cost, 5.0) == 0.0
    assert math.isnan(regret(predicted, truth, cost, 0.5))


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
