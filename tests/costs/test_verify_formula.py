from dataclasses import replace

import numpy as np
import pytest
from test_calibrate import SPACE, isolated, networks

from binas.base.errors import MeasureError
from binas.base.interval import Interval
from binas.costs.analytic import analytic_costs
from binas.costs.calibrate import (
    MeasuredNetwork,
    apply_calibration,
    calibrate,
    mape_percent,
)
from binas.costs.verify import bias_percent, check_formula, draw_networks, retest_percent, verify_table
from binas.testing import make_space


def test_errors_are_percent_of_measured():
    predicted, measured = np.array([11.0, 9.0, 20.0]), np.array([10.0, 10.0, 20.0])
    assert bias_percent(predicted, measured) == pytest.approx(0.0)
    assert mape_percent(predicted, measured) == pytest.approx(20 / 3)


def test_a_table_that_ranks_nothing_has_a_correlation_of_zero():
    """A constant correlates with nothing; NaN is no number for a file."""
    flat = isolated()
    flat = replace(flat, values=flat.values.map(np.zeros_like))
    measured = networks(isolated(), 1.0, (0.0,) * 3, 0.0, 8, 0.0, 1)
    found = verify_table(SPACE, flat, measured, measured, 0.0)
    assert found.kendall == found.spearman == Interval(0.0, 0.0, 0.0)


class TestDrawing:
    def test_corners_random_networks_and_no_overlap(self):
        fit, held_out = draw_networks(SPACE, 30)
        assert len(fit) == 2 + 12
        assert len(held_out) == 2 + 18
        assert len({*fit, *held_out}) == 34
        assert fit[:2] == [SPACE.extreme(heaviest=False), SPACE.extreme(heaviest=True)]
        assert held_out[0].depths == fit[1].depths
        assert held_out[1].depths == fit[0].depths

    def test_the_seed_decides(self):
        assert draw_networks(SPACE, 10, 1) == draw_networks(SPACE, 10, 1) != draw_networks(SPACE, 10, 2)

    def test_a_space_too_small_to_hold_networks_out(self):
        with pytest.raises(MeasureError, match="leave only"):
            draw_networks(make_space(1, 1, 2), 30)


class TestCheckFormula:
    """A device on which blocks in a network cost less than alone, by a known formula."""

    def truth(self, count, seed, noise=0.0, scale=0.9):
        return networks(isolated(), scale, (-0.03,) * 3, 0.4, count, noise, seed)

    def check(self, noise=0.0, given=None, macs=None, scale=0.9):
        parts = self.truth(14, 1, noise, scale), self.truth(20, 2, noise, scale)
        return check_formula(SPACE, isolated(), *parts, macs, given)

    def test_a_known_discount_is_recovered_and_verified(self):
        table = self.check()
        found = table.provenance.verification
        assert table.provenance.calibration.form == "per-block"
        assert found.mape_percent.value == pytest.approx(0, abs=1e-6)
        assert found.worst_percent == pytest.approx(0, abs=1e-6)
        assert found.spearman.value == found.kendall.value == pytest.approx(1.0)
        assert found.sum_percent > 5
        assert found.networks == 20
        assert [check.part for check in found.checks] == ["fit"] * 14 + ["held-out"] * 20

    def test_the_numbers_are_those_of_the_networks_held_out(self):
        table = self.check(noise=0.02)
        found = table.provenance.verification
        held_out = [check for check in found.checks if check.part == "held-out"]
        errors = [100 * (check.predicted / check.measured - 1) for check in held_out]
        assert found.bias_percent.value == pytest.approx(np.mean(errors))
        assert found.mape_percent.value == pytest.approx(np.mean(np.abs(errors)))
        assert found.worst_percent == pytest.approx(np.abs(errors).max())
        assert found.mape_percent.low <= found.mape_percent.value <= found.mape_percent.high
        assert "on 20 networks held out" in found.sentence()

    def test_macs_alone_are_a_baseline(self):
        found = self.check(macs=analytic_costs(SPACE)["macs"]).provenance.verification
        assert found.macs_percent > 1
        assert self.check().provenance.verification.macs_percent is None

    def test_a_given_table_that_is_right_is_kept(self):
        given = self.check()
        again = self.check(given=given, noise=0.01)
        assert again.values.equals(given.values)
        assert again.provenance.verification != given.provenance.verification

    def test_a_given_table_of_a_faster_device_is_replaced(self):
        given = self.check()
        slower = self.check(given=given, scale=1.2)
        assert not slower.values.equals(given.values)
        architecture = SPACE.extreme()
        assert slower.of(SPACE, [architecture]) > given.of(SPACE, [architecture])


def test_the_floor_is_the_mean_difference_of_the_halves():
    architecture = SPACE.extreme()
    pairs = [
        MeasuredNetwork(architecture, Interval(10.0, 10.0, 10.0), halves)
        for halves in ((9.9, 10.1), (10.0, 10.0))
    ]
    assert retest_percent(pairs) == pytest.approx(1.0)


def test_calibration_is_not_fitted_to_what_is_held_out():
    fit = networks(isolated(), 0.9, (-0.03,) * 3, 0.4, 14, 0.02, 1)
    held_out = networks(isolated(), 0.9, (-0.03,) * 3, 0.4, 20, 0.02, 2)
    alone = apply_calibration(SPACE, isolated(), calibrate(SPACE, isolated(), fit))
    assert check_formula(SPACE, isolated(), fit, held_out).values.equals(alone.values)
