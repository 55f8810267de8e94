"""Architectures to judge by: which are drawn, and how they are measured."""

import numpy as np
import pytest
import torch
from small_data import bar_data
from small_networks import MBCONV

from binas.base.errors import CheckpointError
from binas.contributions import architectures_to_measure, cost_strata, measure_samples, uniform_architectures
from binas.contributions.sampling import correct_images, image_halves, sample_of
from binas.contributions.strata import STRATA
from binas.costs import analytic_costs
from binas.space import enumerate_all, load_space
from binas.supernet import Supernet
from binas.tables import Column, Cost, parse_unit
from binas.testing import make_space

DEMO = load_space("small-28")
MACS = analytic_costs(DEMO)["macs"]


def test_uniform_draws_are_different_and_more_adds_to_the_first():
    few, many = (uniform_architectures(DEMO, count, 3) for count in (20, 50))
    assert many[:20] == few
    assert len(set(many)) == 50
    assert uniform_architectures(DEMO, 5, 4) != few[:5]


def test_a_small_space_runs_out():
    space = make_space(1, 2, 3, 1)
    assert set(uniform_architectures(space, 10_000, 0)) == set(enumerate_all(space))


def test_strata_cover_the_whole_range_of_the_cost_evenly():
    drawn = cost_strata(DEMO, MACS, 200, 0)
    assert cost_strata(DEMO, MACS, 50, 0) == drawn[:50]
    assert len(set(drawn)) == 200
    low, high = MACS.range(DEMO)
    totals = MACS.of(DEMO, drawn)
    counts = np.histogram(totals, np.linspace(low, high, STRATA + 1))[0]
    assert counts[1:-1].min() >= 8
    assert counts.max() <= 14
    uniform = MACS.of(DEMO, uniform_architectures(DEMO, 200, 0))
    assert totals.std() > 1.3 * np.std(uniform)


def made_up_cost(space):
    rng = np.random.default_rng(1)
    values = Column.build(space, lambda s, i: rng.normal(), lambda s, b, c: rng.normal())
    return Cost("made up", parse_unit("ms"), 3.0, values)


def test_strata_of_a_small_space_give_all_of_it_once():
    space = make_space(2, 2, 3, 1)
    drawn = cost_strata(space, made_up_cost(space), 10_000, 0)
    assert len(drawn) == len(set(drawn))
    assert len(drawn) > 0.9 * space.count  # a rare one at the end of the range may be missed


def test_a_row_has_accuracy_error_and_halves():
    correct = np.array([True, True, False, True, False, True])
    halves = image_halves(6)
    assert sorted(np.concatenate(halves).tolist()) == [0, 1, 2, 3, 4, 5]
    row = sample_of(MBCONV.extreme(), correct, halves)
    assert row.accuracy == pytest.approx(100 * 4 / 6)
    assert row.error == pytest.approx(100 * np.sqrt(4 / 6 * 2 / 6 / 6))
    assert np.mean(row.halves) == pytest.approx(row.accuracy)


def _only(allowed):
    """The real measurement, refused for other architectures."""

    def measured(supernet, architecture, *rest):
        assert architecture in allowed
        return correct_images(supernet, architecture, *rest)

    return measured


@pytest.fixture(scope="module")
def supernet() -> Supernet:
    torch.manual_seed(0)
    return Supernet(MBCONV).eval()


class TestMeasuring:
    def test_rows_known_already_are_kept_and_others_added(self, supernet):
        data, drawn = bar_data(), architectures_to_measure(MBCONV, 4, "uniform", 0)
        whole = list(measure_samples(supernet, data, data.validation, drawn))
        assert [len(found) for found in whole] == [1, 2, 3, 4]
        with pytest.MonkeyPatch.context() as patch:  # the first two must not be measured again
            patch.setattr("binas.contributions.sampling.correct_images", _only(drawn[2:]))
            resumed = list(measure_samples(supernet, data, data.validation, drawn, known=whole[1]))
        assert resumed[-1].to_data() == whole[-1].to_data()

    def test_recalibration_changes_the_answer_and_the_record(self, supernet):
        data, drawn = bar_data(), architectures_to_measure(MBCONV, 6, "cost", 0)
        *_, plain = measure_samples(supernet, data, data.validation, drawn)
        *_, recalibrated = measure_samples(supernet, data, data.validation, drawn, recalibration=64)
        assert not np.array_equal(plain.accuracy, recalibrated.accuracy)
        assert recalibrated.provenance.to_data()["recalibrated_on"] == 64
        with pytest.raises(CheckpointError, match="recalibrated_on was 0, now 64"):
            next(measure_samples(supernet, data, data.validation, drawn, 64, known=plain))
