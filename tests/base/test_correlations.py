"""Correlations against scipy and by hand; intervals that cover."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats

from binas.base.errors import EstimatorError
from binas.base.statistics import bootstrap, kendall, pearson, spearman


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


@pytest.mark.parametrize("count", [2, 3, 255, 256, 257, 1000, 40_000])
@pytest.mark.parametrize("different", [3, 50, 10**9])
def test_the_same_as_scipy_for_any_number_of_samples_and_ties(count: int, different: int) -> None:
    x, y = np.random.default_rng(count).integers(different, size=(2, count)).astype(float)
    y = np.floor(y / 2 + x / 2)
    assert kendall(x, y) == pytest.approx(stats.kendalltau(x, y).statistic, abs=1e-14, nan_ok=True)
    if len(set(x)) > 1 and len(set(y)) > 1:
        assert spearman(x, y) == pytest.approx(stats.spearmanr(x, y).statistic, abs=1e-12)


def test_a_number_that_is_none_has_no_rank() -> None:
    x = [1.0, math.nan, 2.0]
    assert all(math.isnan(metric(x, [1.0, 2.0, 3.0])) for metric in (kendall, spearman))


@pytest.mark.parametrize(("y", "expected"), [([1.0, 2.0], 1.0), ([2.0, 1.0], -1.0), ([1.0, 1.0], math.nan)])
def test_two_samples(y: list[float], expected: float) -> None:
    assert kendall([1.0, 2.0], y) == pytest.approx(expected, nan_ok=True)


def test_nothing_that_varies_is_not_a_number() -> None:
    x, flat = np.arange(5.0), np.ones(5)
    assert all(math.isnan(metric(flat, x)) for metric in (kendall, spearman, pearson))
    assert all(math.isnan(metric(x, flat)) for metric in (kendall, spearman, pearson))


def test_shapes_must_fit() -> None:
    with pytest.raises(EstimatorError, match=r"\(3,\) with numbers of shape \(2,\)"):
        kendall([1, 2, 3], [1, 2])


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


def test_an_interval_holds_its_value() -> None:
    found = bootstrap(lambda x: float(x.max()), np.arange(5.0), resamples=50)
    assert found.low <= found.value == found.high == 4.0


def test_a_bias_is_covered_about_as_often_as_the_interval_says() -> None:
    rng = np.random.default_rng(3)
    samples = [0.02 + 0.01 * rng.normal(size=30) for _ in range(60)]
    found = [bootstrap(lambda x: float(x.mean()), sample, resamples=200) for sample in samples]
    assert sum(item.low <= 0.02 <= item.high for item in found) >= 50
