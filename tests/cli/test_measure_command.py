"""``binas measure``, ``costs verify``, ``search --on-device`` and ``doctor``: what is measured on this machine."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest
import yaml
from calling import answer, binas, contents, refusal, said
from tiny import TINY

from binas.costs.measure import MeasuredCost
from binas.costs.settings import Settings
from binas.space import load_space, save_space
from binas.tables import Contributions, Cost, CostTable, Provenance, load_costs
from binas.tables.entries import Column
from tiny_run import SPACE, made_table

QUICK = ("--rounds", 3, "--tolerance", 1.0, "--seconds", 3)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A folder with a space, a measured table and contributions by which more blocks are better."""
    folder = tmp_path_factory.mktemp("measured")
    (folder / "space.yaml").write_text(TINY)
    space = load_space(folder / "space.yaml")
    options = ("--space", folder / "space.yaml", "--out", folder / "costs.json", "--samples", 8, *QUICK)
    folder.joinpath("said.txt").write_text(said("measure", *options, "--plot", folder / "check.html"))
    values = Column.build(space, lambda s, i: 2.0 * i, lambda s, b, c: 0.1 * c)
    Contributions(space, 70.0, values).save(folder / "contributions.json")
    return folder


def costs_of(folder: Path) -> CostTable:
    return load_costs(folder / "costs.json", load_space(folder / "space.yaml"))


class TestASpaceOfOnesOwn:
    def test_the_table_is_written_and_the_journal_gone(self, folder):
        costs = costs_of(folder)
        assert costs["latency"].provenance.verification.networks >= 3
        assert {"macs", "params"} <= set(costs.costs)
        assert not list(folder.glob("*.journal*"))
        assert "<html" in (folder / "check.html").read_text()
        text = (folder / "said.txt").read_text()
        assert "networks held out: mean error" in text
        assert f"wrote {folder / 'check.html'}" in text

    def test_an_existing_table_is_kept(self, folder):
        before = (folder / "costs.json").read_bytes()
        message = refusal("measure", "--space", folder / "space.yaml", "--out", folder / "costs.json")
        assert "--overwrite" in message
        assert (folder / "costs.json").read_bytes() == before

    def test_json_and_a_preset(self, folder, tmp_path):
        out = tmp_path / "plain.csv"
        options = ("--space", folder / "space.yaml", "--out", out, "--samples", 0, *QUICK)
        found = answer("measure", *options, "--preset", "paper-cpu", "--batch", 2)
        assert found["out"] == str(out)
        about = found["provenance"]["latency"]
        assert (about["onednn"], about["batch"], about["threads"]) == (False, 2, 1)
        assert about["backend"] == "torch"
        assert load_costs(out, load_space(folder / "space.yaml"))["latency"].provenance.calibration is None

    def test_an_interrupted_measuring_resumes(self, folder, tmp_path, monkeypatch):
        from binas.costs.device import BackendDevice

        out, journal = tmp_path / "x.json", tmp_path / "x.json.journal"
        question = ("measure", "--space", folder / "space.yaml", "--out", out, "--samples", 0)
        taken, left = BackendDevice.sample, iter(range(12))

        def dies(self, entry, repeats):
            if next(left, None) is None:
                raise KeyboardInterrupt
            return taken(self, entry, repeats)

        monkeypatch.setattr(BackendDevice, "sample", dies)
        assert binas(*question, *QUICK).code == 130
        kept = journal.read_text().splitlines()
        assert len(kept) == 2 + 12
        assert "belongs to another measuring" in refusal(*question, "--rounds", 4, "--seconds", 3)
        assert journal.read_text().splitlines() == kept
        monkeypatch.setattr(BackendDevice, "sample", taken)
        said(*question, *QUICK)
        assert out.exists()
        assert not journal.exists()

    def test_redo_forgets_an_interrupted_measuring(self, folder, tmp_path):
        out, journal = tmp_path / "x.json", tmp_path / "x.json.journal"
        journal.write_text("not a journal\n")
        question = ("measure", "--space", folder / "space.yaml", "--out", out, "--samples", 0, *QUICK)
        assert "journal" in refusal(*question)
        said(*question, "--redo")
        assert out.exists()
        assert not journal.exists()

    @pytest.mark.parametrize(
        ("options", "message"),
        [
            (("--seconds", "5 minutes"), "measure.seconds"),
            (("--seconds", "-1"), "measure.seconds"),
            (("--out", "table.txt"), ".json or .csv"),
            (("--plot", "plot.pdf"), ".html or .png"),
            (("--backend", "openvino", "--device", "cuda"), "not on cuda"),
            (("--samples", 0, "--plot", "plot.png"), "nothing to draw"),
        ],
    )
    def test_bad_input_is_refused_before_anything_runs(self, folder, tmp_path, monkeypatch, options, message):
        monkeypatch.chdir(tmp_path)
        assert message in refusal("measure", "--space", folder / "space.yaml", "--out", "out.json", *options)
        assert list(tmp_path.iterdir()) == []

    def test_a_run_or_a_space(self, folder, tmp_path):
        for options in ([], ["--space", folder / "space.yaml"], ["--out", tmp_path / "x.json"]):
            assert "give the folder of a run, or --space and --out" in refusal("measure", *options)


@pytest.fixture
def device(monkeypatch):
    """A machine whose latency halves with two threads; it remembers how it was asked."""
    asked = []

    def measure_space(space, how, samples, seed, name, given=None):
        asked.append((how, samples, seed, name))
        settings = how.settings
        about = Provenance(source="invented", device="x", runtime="y", repeats=3, **settings.to_data())
        cost = made_table(1e-4 / settings.threads)["latency"]
        session = SimpleNamespace(estimates={"s1": 1.0}, seconds=0.0, warnings=())
        return MeasuredCost(replace(cost, provenance=about), session)

    monkeypatch.setattr("binas.costs.measure.measure_space", measure_space)
    return asked


class TestARun:
    """The step of a run, on an invented machine."""

    @pytest.fixture
    def measured(self, finished, device):
        """A run that measures instead of reading a table."""
        assert answer("measure", finished, "--table", "none", "--backend", "torch")["done"] == ["measure"]
        return finished

    def test_another_setting_changes_the_run_and_measures_again(self, measured, device):
        assert [how.settings.threads for how, *_ in device] == [1]
        before = (measured / "costs.json").read_bytes()
        found = answer("measure", measured, "--threads", 2)
        assert found["done"] == ["measure"]
        assert found["provenance"]["latency"]["threads"] == 2
        assert [how.settings.threads for how, *_ in device] == [1, 2]
        assert yaml.safe_load((measured / "config.yaml").read_text())["measure"]["threads"] == 2
        assert before in [path.read_bytes() for path in measured.glob("old/*/costs.json")]
        assert answer("measure", measured, "--threads", 2)["done"] == []
        assert answer("measure", measured)["done"] == []
        assert len(device) == 2

    def test_what_follows_is_stale_and_training_is_not(self, measured):
        states = {item["step"]: item for item in answer("status", measured)["steps"]}
        assert states["train.supernet"]["state"] == states["estimate"]["state"] == "done"
        assert states["search"]["state"] == "stale"

    def test_several_are_variants_that_the_search_chooses_among(self, measured, device):
        found = answer("measure", measured, "--threads", 1, "--threads", 2)
        assert found["variants"] == ["threads=1", "threads=2"]
        assert "threads=2" in said("measure", measured)
        assert answer("search", measured, "-l", "latency=1ms")["variant"] == "threads=2"
        assert yaml.safe_load((measured / "config.yaml").read_text())["measure"]["threads"] == [1, 2]

    def test_a_question_is_asked_with_the_run_s_settings(self, measured, device, tmp_path):
        before = contents(measured)
        said("measure", measured, "--threads", 2, "--samples", 5, "--out", tmp_path / "two.json")
        how, samples, *_ = device[-1]
        assert (how.settings.backend, how.settings.threads, samples) == ("torch", 2, 5)
        assert load_costs(tmp_path / "two.json", SPACE)["latency"].provenance.threads == 2
        assert contents(measured) == before

    def test_redo_measures_again(self, measured, device):
        assert answer("measure", measured, "--redo")["done"] == ["measure"]
        assert len(device) == 2

    def test_what_cannot_run_here_changes_nothing_that_is_measured(self, measured):
        before = (measured / "costs.json").read_bytes()
        assert "not on cuda" in refusal("measure", measured, "--backend", "openvino", "--device", "cuda")
        assert (measured / "costs.json").read_bytes() == before


class TestVerify:
    def test_the_result_is_stored_and_other_costs_stay(self, folder, tmp_path):
        file = tmp_path / "costs.json"
        given = costs_of(folder)
        given.save(file)
        question = ("costs", "verify", file, "--space", folder / "space.yaml", "--samples", 8, *QUICK)
        text = said(*question, "--plot", tmp_path / "check.html")
        assert "wrote " in text
        again = load_costs(file, given.space)
        kept = again["latency"].values.equals(given["latency"].values)
        assert ("its numbers stay" if kept else "it was replaced") in text
        assert set(again.costs) == set(given.costs)
        old, new = (table["latency"].provenance.verification for table in (given, again))
        assert new.checks != old.checks
        assert again["macs"].values.equals(given["macs"].values)
        assert (tmp_path / "check.html").exists()

    def test_json(self, monkeypatch, tmp_path):
        """The same on an invented machine."""
        table = made_table(1e-4)["latency"]
        about = Provenance(
            source="x", device="x", runtime="y", repeats=3, **Settings(backend="torch").to_data()
        )
        given = replace(table, provenance=about)
        CostTable(SPACE, {"latency": given}).save(tmp_path / "costs.json")
        save_space(SPACE, tmp_path / "space.yaml")

        def measure_space(space, how, samples, seed, name, old: Cost):
            return MeasuredCost(old, SimpleNamespace(estimates={}, seconds=0.0, warnings=("noisy",)))

        monkeypatch.setattr("binas.costs.measure.measure_space", measure_space)
        found = answer("costs", "verify", tmp_path / "costs.json")
        assert (found["cost"], found["kept"], found["warnings"]) == ("latency", True, ["noisy"])
        for wrong in ("few", 0):
            assert "--samples" in refusal("costs", "verify", tmp_path / "costs.json", "--samples", wrong)

    def test_json_with_a_picture_is_still_json(self, folder, tmp_path, monkeypatch):
        file, plot = tmp_path / "costs.json", tmp_path / "check.html"
        costs_of(folder).save(file)

        def measure_space(space, how, samples, seed, name, old: Cost):
            return MeasuredCost(old, SimpleNamespace(estimates={}, seconds=0.0, warnings=()))

        monkeypatch.setattr("binas.costs.measure.measure_space", measure_space)
        assert answer("costs", "verify", file, "--space", folder / "space.yaml", "--plot", plot)["kept"]
        assert "<html" in plot.read_text()

    def test_a_table_that_was_never_measured_here(self, tmp_path):
        from binas.costs import analytic_costs

        analytic_costs(load_space("small-28")).save(tmp_path / "costs.json")
        assert "no cost measured by binas" in refusal("costs", "verify", tmp_path / "costs.json")
        message = refusal("costs", "verify", tmp_path / "costs.json", "--cost", "macs")
        assert "does not say how it was measured" in message


class TestSearchOnDevice:
    QUESTION = ("-l", "latency=10s", "--on-device", "--seconds-per-network", 0.2)

    def test_a_generous_limit_is_kept_at_once(self, folder):
        found = answer("search", folder, *self.QUESTION)
        (step,) = found["details"]["on_device"]
        assert step["kept"]
        assert step["architecture"] == found["architecture"]
        assert 0 < step["measured"] <= step["high"] <= step["asked"] == 10_000

    def test_predicted_and_measured_stand_side_by_side(self, folder):
        text = said("search", folder, *self.QUESTION)
        assert "built and measured" in text
        assert "kept" in text

    def test_a_device_slower_than_any_limit(self, folder, monkeypatch):
        from binas.base.interval import Taken

        slow = Taken(1e6, 1e6, 1e6)
        monkeypatch.setattr("binas.costs.measure.measure_architecture", lambda *_: slow)
        monkeypatch.setattr("binas.tasks.search.REST", 0.0)
        message = refusal("search", folder, *self.QUESTION)
        assert "no network keeps latency <= 10000 ms when measured" in message

    def test_tables_of_other_devices_cannot_be_kept_here(self, example):
        assert "none does" in refusal("search", example, "-l", "latency=45ms", "--on-device")


def test_the_doctor_says_what_is_missing_and_why():
    text = said("doctor")
    assert "torch" in text
    assert "noise:" in text
    assert {item["backend"] for item in answer("doctor")["backends"]} >= {"torch", "onnxruntime", "openvino"}
