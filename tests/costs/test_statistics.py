import numpy as np
import pytest
from hypothesis import given, strategies as st
from scipy import stats

from binas.costs.statistics import estimate, find_drift

positive = st.floats(1e-6, 1e3)


@given(st.lists(positive, min_size=1, max_size=60), st.sampled_from([0.1, 0.25, 0.5]))
def test_the_value_lies_in_its_interval_and_the_interval_in_the_samples(samples, quantile):
    found = estimate(samples, quantile)
    assert min(samples) <= found.low <= found.value <= found.high <= max(samples)
    assert found.count == len(samples)
    assert found.stderr >= 0
    assert found.uncertainty >= 0


@given(st.lists(positive, min_size=2, max_size=40), st.floats(1e-3, 1e3))
def test_another_unit_scales_everything_but_ratios(samples, factor):
    one, other = estimate(samples, 0.1), estimate(samples, 0.1).scaled(factor)
    assert other.value == pytest.approx(one.value * factor)
    assert other.stderr == pytest.approx(one.stderr * factor)
    assert other.uncertainty == pytest.approx(one.uncertainty, rel=1e-9, abs=1e-12)
    assert (other.spread, other.count) == (one.spread, one.count)


@pytest.mark.parametrize("quantile", [0.1, 0.25, 0.5])
@pytest.mark.parametrize("count", [1, 2, 17, 400, 5000])
def test_the_order_statistics_are_those_of_the_binomial_distribution(quantile, count):
    low, high = stats.binom.ppf((0.025, 0.975), count, quantile)
    found = estimate(np.arange(1.0, count + 1), quantile)
    assert found.low == min(found.value, max(low, 1))
    assert found.high == max(found.value, min(high + 1, count))


@pytest.mark.parametrize(("quantile", "count"), [(0.1, 60), (0.25, 40), (0.5, 20)])
def test_the_interval_covers_the_true_quantile_as_often_as_it_says(quantile, count):
    rng = np.random.default_rng(0)
    truth = -np.log(1 - quantile)  # of the standard exponential distribution
    found = [estimate(rng.exponential(size=count), quantile) for _ in range(1000)]
    covered = np.mean([item.low <= truth <= item.high for item in found])
    assert covered >= 0.94


def test_more_samples_make_the_interval_narrower():
    rng = np.random.default_rng(1)
    few, many = (estimate(1 + 0.1 * rng.exponential(size=n), 0.1) for n in (40, 640))
    assert many.uncertainty < few.uncertainty / 2


def test_spread_is_what_a_quarter_of_the_samples_exceed():
    found = estimate([1.0] * 70 + [1.5] * 30, 0.1)
    assert found.value == 1.0
    assert found.spread == pytest.approx(0.5)


class TestDrift:
    times = np.linspace(0, 100, 200)

    def noise(self, seed=0):
        return 1 + 0.02 * np.random.default_rng(seed).exponential(size=len(self.times))

    @pytest.mark.parametrize("seed", range(20))
    def test_noise_alone_is_no_drift(self, seed):
        found = find_drift(self.times, 1e-3 * self.noise(seed), 0.1)
        assert not found.detected
        assert (found.factor([0.0, 50.0]) == 1.0).all()

    def test_a_slope_is_detected_and_measured(self):
        found = find_drift(self.times, 1e-3 * self.noise() * (1 + 0.2 * self.times / 100), 0.1)
        assert found.detected
        assert found.change == pytest.approx(0.2 * 7 / 8, abs=0.04)  # between the middles of the windows
        early, late = found.factor([10.0, 90.0])
        assert late / early == pytest.approx(1.18 / 1.02, rel=0.03)

    def test_a_step_is_detected(self):
        found = find_drift(self.times, 1e-3 * self.noise() * np.where(self.times > 60, 1.3, 1.0), 0.1)
        assert found.detected
        assert found.change == pytest.approx(0.3, abs=0.03)

    def test_a_few_samples_tell_nothing(self):
        found = find_drift([0.0, 1.0, 2.0], [1.0, 2.0, 3.0], 0.1)
        assert not found.detected
        assert found.change == 0.0
