"""The curve on which predictions flatten: increasing, inverted, straight where nothing is known of it."""

import math

import numpy as np
import pytest
from hypothesis import given, strategies as st

from binas.estimators.bending import Curve, fit_curve

CURVE = Curve(0.2, -5.0)
X = np.linspace(-20.0, 20.0, 401)


def test_it_increases_and_has_a_ceiling():
    values = CURVE.of(X)
    assert (np.diff(values) > 0).all()
    assert values.max() < 1 / 0.2
    assert CURVE.of(np.zeros(1)) == 0.0


def test_its_steepness_and_its_change_with_the_bend_are_derivatives():
    step = 1e-6
    np.testing.assert_allclose(
        CURVE.steepness(X), (CURVE.of(X + step) - CURVE.of(X - step)) / (2 * step), rtol=1e-5
    )
    changed = (Curve(0.2 + step, -5.0).of(X) - Curve(0.2 - step, -5.0).of(X)) / (2 * step)
    np.testing.assert_allclose(CURVE.by_bend(X), changed, rtol=1e-5, atol=1e-7)


def test_below_the_lowest_sample_it_is_straight():
    low = CURVE.steepness(np.array([-5.0, -8.0, -20.0]))
    np.testing.assert_allclose(low, math.exp(0.2 * 5.0))


@given(st.floats(-30, 20), st.floats(0, 0.5), st.floats(-10, 0))
def test_it_is_inverted(x, bend, lowest):
    curve = Curve(bend, lowest)
    assert curve.before(float(curve.of(np.float64(x)))) == pytest.approx(x, abs=1e-3)


def test_what_is_above_the_ceiling_is_infinite():
    assert CURVE.before(5.0) == math.inf
    assert Curve(0.0, -5.0).before(5.0) == 5.0


def test_the_bend_is_found():
    x = np.linspace(-8.0, 8.0, 60)
    assert fit_curve(x, 70 + 0.7 * Curve(0.15, -8.0).of(x)).bend == pytest.approx(0.15, rel=0.1)


@pytest.mark.parametrize("accuracy", [lambda x: 70 + x, lambda x: 70 + np.exp(0.2 * x), lambda x: 70 + 0 * x])
def test_what_does_not_flatten_is_straight(accuracy):
    x = np.linspace(-8.0, 8.0, 60)
    assert fit_curve(x, accuracy(x)).bend == 0.0


def test_too_few_or_equal_predictions_are_straight():
    assert fit_curve(np.array([-1.0, 0.0, 1.0]), np.array([1.0, 2.0, 2.1])).bend == 0.0
    assert fit_curve(np.zeros(10), np.arange(10.0)).bend == 0.0
