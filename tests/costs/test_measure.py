"""Real measuring, short: a tiny space on every backend that is here."""

import math

import pytest
from test_backends import HERE
from test_workloads import tiny  # noqa: F401  (a fixture)

from binas.base.errors import MeasureError
from binas.costs.backends import backend_class
from binas.costs.device import BackendDevice
from binas.costs.doctor import diagnose, noise_of
from binas.costs.machine import cpu_name, describe_machine, device_name, runtime_name
from binas.costs.measure import (
    Measuring,
    measurable,
    measure_architecture,
    measure_space,
    measuring_again,
)
from binas.costs.meters import cuda_seconds, energy_zones, host_seconds, own_seconds
from binas.costs.session import Plan
from binas.costs.settings import Settings
from binas.costs.workloads import control_workload
from binas.tables.costs import Cost, CostTable, load_costs
from binas.tables.entries import Column, Provenance
from binas.tables.units import parse_unit

QUICK = Plan(rounds=3, tolerance=1e9, budget=1e9, sample_seconds=1e-4)  # three rounds, however long they take


# Of one backend always; that each prepares and runs what is measured is tested in test_backends.py.
EACH = [
    pytest.param(
        *item.values, marks=[*item.marks, *([] if "onnxruntime" in item.values else [pytest.mark.slow])]
    )
    for item in HERE
]


@pytest.mark.parametrize("name", EACH)
def test_a_space_becomes_a_verified_table(tiny, tmp_path, name):  # noqa: F811
    how = Measuring(Settings(backend=name), plan=QUICK, journal=tmp_path / "journal")
    done = measure_space(tiny, how, samples=8)
    cost, known = done.cost, done.cost.provenance
    assert cost.unit.name == "ms"
    assert cost.fixed >= 0
    assert all(math.isfinite(x) and x >= 0 for row in cost.values.configs for block in row for x in block)
    assert cost.values.configs[0][0].tolist() == cost.values.configs[0][1].tolist()
    assert (known.threads, known.batch, known.dtype, known.backend) == (1, 1, "float32", name)
    assert known.runtime == runtime_name(how.settings)
    assert known.device == device_name(how.settings) == cpu_name()
    assert known.repeats == 3
    assert known.verification.networks >= 3
    assert known.calibration.form in known.calibration.tried
    CostTable(tiny, {"latency": cost}).save(tmp_path / "costs.json")
    again = load_costs(tmp_path / "costs.json", tiny)["latency"]
    assert again.provenance == known
    assert measuring_again(again, QUICK).settings == how.settings


def test_what_was_measured_is_not_measured_again(tiny, tmp_path, monkeypatch):  # noqa: F811
    how = Measuring(Settings(), plan=QUICK, journal=tmp_path / "journal")
    first = measure_space(tiny, how, samples=0)

    def refuse(*_):
        raise AssertionError("the device was asked again")

    monkeypatch.setattr("binas.costs.measure.BackendDevice.warm_up", refuse)
    second = measure_space(tiny, how, samples=0)
    assert second.cost.values.equals(first.cost.values)
    assert second.cost.provenance == first.cost.provenance


def test_one_network_alone(tiny):  # noqa: F811
    found = measure_architecture(tiny, tiny.extreme(), Measuring(plan=QUICK))
    assert 0 < found.low <= found.value <= found.high
    assert found.control > 0
    assert found.disturbance >= 0


def test_energy_needs_counters(tiny):  # noqa: F811
    if energy_zones():
        pytest.skip("this machine has energy counters")
    with pytest.raises(MeasureError, match="no readable energy counters"):
        measure_architecture(tiny, tiny.extreme(), Measuring(quantity="energy", plan=QUICK))
    with pytest.raises(MeasureError, match="known are latency, energy"):
        Measuring(quantity="taste")


@pytest.mark.parametrize(
    ("settings", "meter"),
    [
        (Settings(), own_seconds),
        (Settings(threads=2), host_seconds),
        (Settings("torch"), own_seconds),
        (Settings("torch", "cuda"), cuda_seconds),
        (Settings("onnxruntime", "cuda"), host_seconds),
    ],
)
def test_each_setting_has_its_clock(settings, meter):
    device = BackendDevice(backend_class(settings.backend)(settings), lambda _: control_workload())
    assert device.meter is device.seconds is meter


class TestAgain:
    def cost(self, tiny, unit="ms", **known):  # noqa: F811
        return Cost("latency", parse_unit(unit), 1.0, Column.full(tiny, 1.0), provenance=Provenance(**known))

    def test_only_tables_that_say_how_can_be_measured_again(self, tiny):  # noqa: F811
        mine, theirs = self.cost(tiny, **Settings().to_data()), self.cost(tiny, device="Pixel 9")
        assert measurable({"mine": mine, "theirs": theirs}) == ["mine"]
        assert measuring_again(mine, QUICK) == Measuring(
            plan=QUICK, progress=measuring_again(mine, QUICK).progress
        )
        with pytest.raises(MeasureError, match="does not say how it was measured"):
            measuring_again(theirs, QUICK)

    def test_in_a_unit_that_is_not_measured(self, tiny):  # noqa: F811
        with pytest.raises(MeasureError, match="is in MACs; only tables in ms or mJ"):
            measuring_again(self.cost(tiny, "MACs", **Settings().to_data()), QUICK)


class TestMachine:
    def test_the_cpu_has_a_name_also_where_the_system_hides_it(self, tmp_path):
        (tmp_path / "cpuinfo").write_text("processor : 0\nmodel name : Snail 3000\nmodel name : Snail 3000\n")
        assert cpu_name(tmp_path / "cpuinfo") == "Snail 3000"
        assert cpu_name(tmp_path / "none")

    def test_the_doctor_looks_at_everything(self):
        found = diagnose()
        assert {f.backend for f in found.backends} == {"torch", "onnxruntime", "openvino"}
        assert found.versions["torch"] is not None
        assert found.noise.value > 0
        assert "control" in found.verdict()
        data = found.to_json()
        assert data["noise"]["spread"] >= 0
        assert all(f["version"] is not None or f["missing"] for f in data["backends"])

    def test_noise_is_of_as_many_samples_as_asked(self):
        assert noise_of(Settings(), samples=20).count == 20


def test_what_work_was_done_with():
    facts = describe_machine()
    assert {"python", "binas", "torch", "onnxruntime", "cpu"} <= set(facts)
    assert all(facts.values())
