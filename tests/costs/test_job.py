"""From the first sample to the verified table, on an invented device with noise, spikes, drift and fusion."""

import numpy as np
import pytest
from fake_device import FakeDevice

from binas.costs.job import FIXED, QUANTITIES, Job, make_cost, network_entry
from binas.costs.session import Plan, run_session
from binas.costs.verify import draw_networks
from binas.space import load_space, sample_many
from binas.tables.costs import CostTable
from binas.tables.entries import Provenance

SPACE = load_space("small-28")
SCALE, PER_BLOCK, CONSTANT = 0.8, -2e-5, 1e-4  # what a network does to the costs of its blocks
PLACES = {
    (s, b, c): f"{'first' if b == 0 and s else 'later'} {stage.name} {config.name}"
    for s, stage in enumerate(SPACE.stages)
    for b, block in enumerate(stage.blocks)
    for c, config in enumerate(block)
}


def true_blocks():
    rng = np.random.default_rng(5)
    return {entry: float(rng.uniform(5e-5, 3e-4)) for entry in dict.fromkeys(PLACES.values())}


def true_network(architecture, blocks):
    chosen = [
        blocks[PLACES[s, b, SPACE.config_index(s, b, name)]]
        for s, names in enumerate(architecture.stages)
        for b, name in enumerate(names)
    ]
    return SCALE * sum(chosen) + PER_BLOCK * len(chosen) + CONSTANT


@pytest.fixture(scope="module")
def measured():
    blocks = true_blocks()
    fit, held_out = draw_networks(SPACE, 30)
    job = Job(SPACE, PLACES, tuple(fit), tuple(held_out))
    truth = blocks | {FIXED: 2e-4} | {network_entry(a): true_network(a, blocks) for a in (*fit, *held_out)}
    device = FakeDevice(truth, jitter=0.02, spikes=0.15, drift=lambda now: 1.0 + 0.1 * (now > 5.0))
    plan = Plan(rounds=40, budget=60.0)
    session = run_session(job.entries, device, plan, device.clock)
    return job, session, make_cost(job, session, QUANTITIES["latency"], "latency", Provenance())


def test_equal_blocks_are_one_entry(measured):
    job, session, _ = measured
    assert len(job.entries) == len(set(job.entries)) == 60 + 1 + 34
    assert set(session.estimates) == set(job.entries)


def test_the_table_predicts_networks_that_were_never_measured(measured):
    _, session, cost = measured
    assert session.drift.detected
    blocks = true_blocks()
    errors = []
    for architecture in sample_many(SPACE, 100, 77):
        predicted = float(cost.of(SPACE, [architecture])[0])
        errors.append(predicted / (1e3 * true_network(architecture, blocks)) - 1.0)
    errors = np.array(errors) - np.median(errors)  # the common level is the machine's usual speed
    assert np.abs(errors).mean() < 0.01
    assert np.abs(errors).max() < 0.04


def test_which_correction_was_used_is_in_the_table(measured):
    found = measured[2].provenance
    assert found.calibration.form in ("per-block", "per-stage")
    assert found.calibration.scale == pytest.approx(SCALE, rel=0.1)
    assert found.verification.mape_percent.value < 1.0
    assert found.verification.sum_percent > 5.0
    assert found.verification.retest_percent < 2.0


def test_without_networks_it_is_the_plain_table_of_blocks():
    blocks = true_blocks()
    device = FakeDevice(blocks | {FIXED: 2e-4})
    job = Job(SPACE, PLACES)
    session = run_session(job.entries, device, Plan(rounds=3, budget=1e9), device.clock)
    cost = make_cost(job, session, QUANTITIES["latency"], "speed", Provenance())
    assert cost.name == "speed"
    assert cost.fixed == pytest.approx(0.2)
    assert cost.values.configs[2][1][4] == pytest.approx(1e3 * blocks[PLACES[2, 1, 4]])
    assert not any(row.any() for row in cost.values.depths)
    assert "depths" not in CostTable(SPACE, {"speed": cost}).to_data()["costs"]["speed"]
    assert cost.provenance.calibration is None


def test_energy_is_in_millijoules():
    blocks = true_blocks()
    job, device = Job(SPACE, PLACES), FakeDevice(blocks | {FIXED: 2e-4})
    session = run_session(job.entries, device, Plan(rounds=3, budget=1e9), device.clock)
    cost = make_cost(job, session, QUANTITIES["energy"], "energy", Provenance())
    assert cost.unit.name == "mJ"
    assert cost.fixed == pytest.approx(0.2)
