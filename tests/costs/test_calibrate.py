import math

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from scipy.optimize import lsq_linear

from binas.base.interval import Interval
from binas.costs.calibrate import (
    FITTED,
    SUM,
    MeasuredNetwork,
    _least_squares,
    apply_calibration,
    block_sums,
    calibrate,
)
from binas.space import load_space, sample_many
from binas.tables.costs import Cost, CostTable, load_costs
from binas.tables.entries import Column
from binas.tables.units import parse_unit
from binas.testing import small_space

SPACE = load_space("small-28")


def isolated(seed=0, fixed=0.5):
    rng = np.random.default_rng(seed)
    values = Column.build(SPACE, lambda s, i: 0.0, lambda s, b, c: float(rng.uniform(0.05, 0.4)))
    stderr = Column.build(SPACE, lambda s, i: 0.0, lambda s, b, c: 0.01)
    return Cost("latency", parse_unit("ms"), fixed, values, 0.02, stderr)


def networks(cost, scale, per_stage, constant, count=20, noise=0.0, seed=1):
    rng = np.random.default_rng(seed)
    result = []
    for architecture in sample_many(SPACE, count, seed):
        depths = architecture.depths
        overhead = sum(b * d for b, d in zip(per_stage, depths, strict=True))
        truth = scale * float(block_sums(SPACE, cost, [architecture])[0]) + overhead + constant
        value = truth * (1 + noise * rng.normal())
        result.append(MeasuredNetwork(architecture, Interval(value, value, value), (value, value)))
    return result


@pytest.mark.parametrize(
    ("form", "scale", "per_stage", "constant"),
    [
        (SUM, 1.0, (0.0, 0.0, 0.0), 0.5),
        ("affine", 1.3, (0.0, 0.0, 0.0), 0.2),
        ("per-block", 0.9, (-0.03, -0.03, -0.03), 0.4),
        ("per-stage", 0.9, (-0.03, 0.02, 0.01), 0.4),
    ],
)
def test_the_form_and_the_numbers_are_recovered(form, scale, per_stage, constant):
    cost = isolated()
    found = calibrate(SPACE, cost, networks(cost, scale, per_stage, constant))
    assert found.form == form
    assert found.scale == pytest.approx(scale)
    assert found.per_block == pytest.approx(per_stage, abs=1e-9)
    assert found.constant == pytest.approx(constant)
    assert set(found.tried) == {SUM, *FITTED}
    assert found.networks == (0 if form == SUM else 20)


@settings(max_examples=15)
@given(st.floats(0.5, 2.0), st.floats(-0.04, 0.1), st.floats(0.0, 1.0), st.integers(0, 100))
def test_the_calibrated_table_predicts_what_the_fit_says(scale, overhead, constant, seed):
    cost = isolated(seed)
    table = apply_calibration(
        SPACE, cost, calibrate(SPACE, cost, networks(cost, scale, (overhead,) * 3, constant))
    )
    for other in networks(cost, scale, (overhead,) * 3, constant, count=10, seed=seed + 1000):
        assert table.of(SPACE, [other.architecture]) == pytest.approx(other.cost.value, rel=1e-6)


def test_a_noisy_fit_is_close_and_errors_scale_with_it():
    cost = isolated()
    found = calibrate(SPACE, cost, networks(cost, 0.8, (-0.02,) * 3, 0.3, count=40, noise=0.01))
    table = apply_calibration(SPACE, cost, found)
    assert found.scale == pytest.approx(0.8, rel=0.05)
    assert found.tried[found.form] < 1.5
    assert math.isnan(table.fixed_stderr)
    assert table.stderr.configs[0][0][0] == pytest.approx(0.01 * found.scale)


def test_no_cost_becomes_negative_however_the_networks_look():
    cost = isolated()
    rising = networks(cost, 2.0, (0.0,) * 3, -0.4)
    found = calibrate(SPACE, cost, [n for n in rising if n.cost.value > 0])
    assert found.scale >= 0
    assert found.constant >= 0


def test_stages_that_are_empty_or_of_one_depth_are_no_obstacle():
    space = small_space((((0, 1), (2,)), ((2,), (2, 2)), ((0, 1, 2), (2, 3))))
    rng = np.random.default_rng(0)
    values = Column.build(space, lambda s, i: 0.0, lambda s, b, c: float(rng.uniform(0.1, 0.4)))
    cost = Cost("latency", parse_unit("ms"), 0.5, values)
    known = [
        MeasuredNetwork(a, Interval(value, value, value), (value, value))
        for a in dict.fromkeys(sample_many(space, 100, 0))
        if a.depths[0] == 0
        for value in [1.2 * float(block_sums(space, cost, [a])[0]) + 0.05 * sum(a.depths) + 0.3]
    ]
    table = apply_calibration(space, cost, calibrate(space, cost, known))
    assert table.fixed >= 0
    for network in known:
        assert table.of(space, [network.architecture]) == pytest.approx(network.cost.value)


def test_forms_with_more_numbers_than_networks_are_not_tried():
    cost = isolated()
    found = calibrate(SPACE, cost, networks(cost, 1.1, (0.0,) * 3, 0.5, count=5))
    assert set(found.tried) == {SUM, "affine", "per-block"}


def test_a_calibrated_table_survives_its_file(tmp_path):
    cost = isolated()
    table = apply_calibration(SPACE, cost, calibrate(SPACE, cost, networks(cost, 0.9, (-0.03,) * 3, 0.4)))
    for name in ("costs.json", "costs.csv"):
        CostTable(SPACE, {"latency": table}).save(tmp_path / name)
        again = load_costs(tmp_path / name, SPACE)["latency"]
        assert again.values.equals(table.values)
        assert again.provenance == table.provenance
        assert math.isclose(again.fixed, table.fixed)


@pytest.mark.parametrize("seed", range(20))
def test_least_squares_are_those_of_scipy(seed):
    rng = np.random.default_rng(seed)
    design, right = rng.normal(size=(12, 2 + seed % 5)), rng.normal(size=12)
    lower = np.r_[0.0, np.full(design.shape[1] - 2, -np.inf), 0.0]
    expected = lsq_linear(design, right, bounds=(lower, np.inf), method="bvls").x
    assert _least_squares(design, right) == pytest.approx(expected, abs=1e-9)
