from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, strategies as st

from binas.base.errors import EstimatorError
from binas.estimators.links import LINKS, MARGIN, get_link

names = pytest.mark.parametrize("name", LINKS)


@names
@given(accuracy=st.floats(MARGIN, 100 - MARGIN))
def test_inverse(name: str, accuracy: float) -> None:
    link = get_link(name)
    assert float(link.inverse(link.forward(accuracy))) == pytest.approx(accuracy, rel=1e-9)


@names
def test_increasing(name: str) -> None:
    accuracy = np.linspace(MARGIN, 100 - MARGIN, 1000)
    assert (np.diff(get_link(name).forward(accuracy)) > 0).all()


@names
@pytest.mark.parametrize("accuracy", [1.0, 50.0, 99.0])
def test_slope_is_the_derivative(name: str, accuracy: float) -> None:
    link, step = get_link(name), 1e-4
    rise = link.forward(accuracy + step) - link.forward(accuracy - step)
    assert float(link.slope(accuracy)) == pytest.approx(float(rise) / (2 * step), rel=1e-6)


def test_values() -> None:
    assert float(get_link("log").forward(90.0)) == pytest.approx(np.log(10))
    assert float(get_link("logit").forward(75.0)) == pytest.approx(np.log(3))
    assert float(get_link("identity").forward(75.0)) == 75.0


@names
def test_perfect_and_hopeless_networks_have_a_finite_link(name: str) -> None:
    assert np.isfinite(get_link(name).forward([0.0, 100.0])).all()


def test_logit_does_not_overflow() -> None:
    with np.errstate(over="raise"):
        assert get_link("logit").inverse([-1e4, 1e4]).tolist() == [0.0, 100.0]


def test_sums_of_damaged_tables_do_not_overflow() -> None:
    for name in ("logit", "log"):
        with np.errstate(over="raise"):
            assert np.isfinite(get_link(name).inverse([-1e308, 1e308])).all()


def test_unknown() -> None:
    with pytest.raises(EstimatorError, match="no link 'probit'; choose one of identity, logit, log"):
        get_link("probit")
