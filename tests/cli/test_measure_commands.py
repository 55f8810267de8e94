"""``binas measure``, ``costs verify``, ``doctor`` and ``search --verify-on-device`` on a tiny space."""

import json

import pytest
from tiny import TINY
from typer.testing import CliRunner

from binas.base.errors import BinasError, FileError, MeasureError, ProblemError, UnitError
from binas.cli.main import app
from binas.space import load_space
from binas.tables.contributions import Contributions
from binas.tables.costs import load_costs
from binas.tables.entries import Column

QUICK = ("--rounds", "3", "--tolerance", "1.0", "--budget", "1000s")  # ended by rounds, not by the clock


def run(*arguments):
    done = CliRunner().invoke(app, [str(argument) for argument in arguments], catch_exceptions=True)
    if isinstance(done.exception, BinasError):
        raise done.exception
    assert done.exit_code == 0, done.output
    return done.stdout


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A folder with a space, a measured table and contributions by which more blocks are better."""
    folder = tmp_path_factory.mktemp("measured")
    (folder / "space.yaml").write_text(TINY)
    space = load_space(folder / "space.yaml")
    arguments = ("--space", folder / "space.yaml", "--out", folder / "costs.json", "--samples", 8, *QUICK)
    folder.joinpath("said.txt").write_text(run("measure", *arguments, "--plot", folder / "check.html"))
    values = Column.build(space, lambda s, i: 2.0 * i, lambda s, b, c: 0.1 * c)
    Contributions(space, 70.0, values).save(folder / "contributions.json")
    return folder


def costs_of(folder):
    return load_costs(folder / "costs.json", load_space(folder / "space.yaml"))


class TestMeasure:
    def test_the_table_is_written_and_the_journal_gone(self, folder):
        cost = costs_of(folder)["latency"]
        assert cost.provenance.verification.networks >= 3
        assert not list(folder.glob("*.journal"))
        assert (folder / "check.html").read_text().startswith("<!doctype html>")
        said = (folder / "said.txt").read_text()
        assert "networks held out: mean error" in said
        assert "used" in said

    def test_an_existing_table_is_kept(self, folder):
        before = (folder / "costs.json").read_bytes()
        with pytest.raises(FileError, match="--overwrite"):
            run("measure", "--space", folder / "space.yaml", "--out", folder / "costs.json")
        assert (folder / "costs.json").read_bytes() == before

    def test_json_and_another_setting(self, folder, tmp_path):
        out = tmp_path / "plain.csv"
        arguments = ("--space", folder / "space.yaml", "--out", out, "--samples", 0, "--name", "slow", *QUICK)
        data = json.loads(run("measure", *arguments, "--preset", "paper-cpu", "--batch", 2, "--json"))
        assert data["cost"] == "slow"
        assert data["provenance"]["onednn"] is False
        assert data["provenance"]["batch"] == 2
        assert data["entries"] == 9
        assert load_costs(out, load_space(folder / "space.yaml"))["slow"].provenance.calibration is None

    def test_an_interrupted_measuring_goes_on(self, folder, tmp_path, monkeypatch):
        from binas.costs.device import BackendDevice

        arguments = (
            "measure",
            "--space",
            folder / "space.yaml",
            "--out",
            tmp_path / "x.json",
            "--samples",
            0,
        )
        taken = BackendDevice.sample
        left = iter(range(12))

        def dies(self, entry, repeats):
            if next(left, None) is None:
                raise KeyboardInterrupt
            return taken(self, entry, repeats)

        monkeypatch.setattr(BackendDevice, "sample", dies)
        assert CliRunner().invoke(app, [str(a) for a in (*arguments, *QUICK)]).exit_code != 0
        journal = tmp_path / "x.json.journal"
        kept = journal.read_text().splitlines()
        assert len(kept) == 2 + 12
        with pytest.raises(MeasureError, match="belongs to another measuring"):
            run(*arguments, "--rounds", "4", "--budget", "3s")
        monkeypatch.setattr(BackendDevice, "sample", taken)
        run(*arguments, *QUICK)
        assert (tmp_path / "x.json").exists()
        assert not journal.exists()

    @pytest.mark.parametrize(
        ("change", "error", "message"),
        [
            (("--budget", "5"), UnitError, "has no unit"),
            (("--out", "table.txt"), FileError, r"\.json or \.csv"),
            (("--plot", "plot.pdf"), FileError, r"\.html or \.png"),
            (("--backend", "openvino", "--device", "cuda"), MeasureError, "not on cuda"),
            (("--quantity", "energy", "--budget", "-1s"), BinasError, "budget"),
            (("--samples", "0", "--plot", "plot.png"), FileError, "nothing to draw"),
            (("--name", "two words"), BinasError, "two words"),
        ],
    )
    def test_bad_input_is_refused_before_anything_runs(
        self, folder, tmp_path, monkeypatch, change, error, message
    ):
        monkeypatch.chdir(tmp_path)
        with pytest.raises(error, match=message):
            run("measure", "--space", folder / "space.yaml", "--out", "out.json", *change)
        assert list(tmp_path.iterdir()) == []


class TestVerify:
    def test_the_result_is_stored_and_other_costs_stay(self, folder, tmp_path):
        from binas.costs import analytic_costs
        from binas.tables.costs import CostTable

        space = load_space(folder / "space.yaml")
        both = {**analytic_costs(space).costs, "latency": costs_of(folder)["latency"]}
        file = tmp_path / "costs.json"
        CostTable(space, both).save(file)
        said = run("costs", "verify", file, "--space", folder / "space.yaml", "--samples", 8, *QUICK)
        again = load_costs(file, space)
        kept = again["latency"].values.equals(both["latency"].values)
        assert ("its numbers stay" if kept else "it was replaced") in said
        assert set(again.costs) == set(both)
        old, new = (t["latency"].provenance.verification for t in (costs_of(folder), again))
        assert new.checks != old.checks
        assert again["macs"].values.equals(both["macs"].values)

    def test_a_table_that_was_never_measured_here(self, tmp_path):
        from binas.costs import analytic_costs

        analytic_costs(load_space("demo")).save(tmp_path / "costs.json")
        with pytest.raises(MeasureError, match="no cost measured by binas"):
            run("costs", "verify", tmp_path / "costs.json")
        with pytest.raises(MeasureError, match="does not say how it was measured"):
            run("costs", "verify", tmp_path / "costs.json", "--cost", "macs")


class TestSearchOnDevice:
    @pytest.fixture(autouse=True)
    def quick(self, monkeypatch):
        monkeypatch.setattr("binas.cli.search_commands.SECONDS_PER_NETWORK", 0.2)

    def test_a_generous_limit_is_kept_at_once(self, folder):
        data = json.loads(run("search", folder, "-l", "latency=10s", "--verify-on-device", "--json"))
        (step,) = data["details"]["on_device"]
        assert step["kept"]
        assert step["architecture"] == data["architecture"]
        assert 0 < step["measured"] <= step["high"] <= step["asked"] == 10_000

    def test_predicted_and_measured_stand_side_by_side(self, folder):
        said = run("search", folder, "-l", "latency=10s", "--verify-on-device")
        assert "built and measured" in said
        assert "kept" in said

    def test_a_device_slower_than_any_limit(self, folder, monkeypatch):
        from binas.costs.statistics import Estimate

        monkeypatch.setattr(
            "binas.costs.measure.measure_architecture", lambda *_: Estimate(1e6, 1e6, 1e6, 0.0, 9)
        )
        with pytest.raises(ProblemError, match="no network keeps latency <= 10000 ms when measured"):
            run("search", folder, "-l", "latency=10s", "--verify-on-device")

    def test_tables_of_other_devices_cannot_be_kept_here(self, tmp_path):
        from binas.testing.paper_example import write_paper_example

        write_paper_example(tmp_path)
        with pytest.raises(ProblemError, match="none does"):
            run("search", tmp_path, "-l", "latency=45ms", "--verify-on-device")


def test_the_doctor_says_what_is_missing_and_why():
    said = run("doctor")
    assert "torch" in said
    assert "noise:" in said
    data = json.loads(run("doctor", "--json"))
    assert {item["backend"] for item in data["backends"]} == {"torch", "onnxruntime", "openvino"}
