"""``binas init``, ``run`` and ``status``, as a user calls them, really measured."""

import json

import pytest
import torch
from calling import answer, binas, refusal, said
from small_networks import make, stage

from binas import load_model
from binas.base.progress import Progress
from binas.run.config import load_config
from binas.run.engine import advance
from binas.run.run import open_run
from binas.run.start import create_run
from binas.run.status import standings
from binas.space import save_space
from binas.tasks import all_steps
from tiny_run import PHASE, STEPS, TAUGHT

SPACE = make(
    "embedded",
    [stage("s1", [1, 2], 8, {"expansion": [1, 2]}, stride=2, activation="re")],
    channels=1,
    resolution=28,
    classes=10,
)


@pytest.fixture(scope="module")
def config(tmp_path_factory):
    """A hundred embedded images, two stages of choices, a few samples of each block."""
    folder = tmp_path_factory.mktemp("config")
    save_space(SPACE, folder / "space.yaml")
    content = {
        "space": "space.yaml",
        "data": {"kind": "embedded", "limit": 120},
        "train": {"device": "cpu", "processes": 1, "heaviest": PHASE, "supernet": TAUGHT},
        "finetune": TAUGHT,
        "measure": {"backend": "onnxruntime", "samples": 8, "rounds": 3, "tolerance": 1.0, "seconds": 3},
        "estimate": {"passes": 4},
        "sample": {"count": 4},
        "check": {"resamples": 10},
        "search": {
            "limits": ["latency=50s", "params=40%", "latency=50s and macs<=1k"],
            "seconds_per_network": 0.2,
        },
    }
    (folder / "config.yaml").write_text(json.dumps(content))
    return folder / "config.yaml"


@pytest.fixture(scope="module")
def measured(config, tmp_path_factory):
    """A whole run on this machine, and what it said."""
    folder = tmp_path_factory.mktemp("runs") / "run"
    (folder.parent / "said.txt").write_text(said("run", config, "--out", folder))
    return folder


def test_the_run_ends_with_a_table_of_networks(measured):
    text = (measured.parent / "said.txt").read_text()
    assert "latency <= 50000 ms" in text
    assert "one-shot" in text
    assert f"{', '.join(STEPS)} done now" in text
    found = {item["question"]: item for item in answer("run", "--out", measured)["networks"]}
    kept = found["latency=50s"]
    assert kept["on_device"]["kept"]
    assert kept["on_device"]["measured"] > 0
    assert kept["network"]["architecture"] == kept["architecture"]
    assert 0 <= kept["network"]["judgement"]["tuned"]["test"]["percent"] <= 100
    assert found["params=40%"]["on_device"] is None  # nothing to measure


def test_a_limit_without_an_answer_does_not_stop_the_others(measured):
    text = (measured.parent / "said.txt").read_text()
    assert "latency=50s and macs<=1k: " in text
    result = json.loads((measured / "results" / "latency-50s-and-macs-1k.json").read_text())
    assert result["architecture"] is None
    assert "macs" in result["why"]


def test_limits_without_any_answer_are_an_error(config, measured):
    message = refusal("run", "--out", measured, "--set", "search.limits=[macs=1k]")
    assert "no limit has an answer" in message
    assert "macs" in message
    assert "Report: " in said("run", config, "--out", measured, "--quiet")


def test_the_table_is_verified_on_whole_networks(measured):
    latency = open_run(measured).tables.costs["latency"]
    assert latency.provenance.verification.networks >= 3
    phases = {json.loads(line)["phase"] for line in (measured / "metrics.jsonl").read_text().splitlines()}
    assert {"measure latency", "estimate"} <= phases
    assert latency.provenance.verification.sentence() in said("measure", measured)


def test_status_of_a_finished_run(measured):
    assert "All is done" in said("status", measured)
    found = answer("status", measured)
    assert [item["state"] for item in found["steps"]] == ["done"] * len(STEPS)
    assert found["unknown"] == []


def test_nothing_written_for_nobody(measured):
    names = {path.name for path in measured.iterdir()}
    assert not names & {"networks.json", "verification.json"}


def test_searching_and_judging_work_on_the_folder(measured):
    assert answer("search", measured, "--limit", "latency=50s")["status"] == "optimal"
    said("check", measured, "--resamples", 5, "--limit", "latency=50s")


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ("search.limits=[latency]", "search.limits"),
        ("search.limits=[]", "search.limits"),
        ("search.limits=[latency=45]", "has no unit"),
        ("search.limits=[energy=1mJ]", "no cost 'energy'"),
        ("search.limits=[latency=140%]", "above 100 %"),
        ("search.limits=[latency=45ms, latency<=45ms]", "say the same"),
        ("search.solver=magic", "must be one of auto"),
        ("measure.backend=tpu", "must be of onnxruntime, torch, openvino, or none alone"),
        ("measure.thread=1", "measure.thread is not a setting; allowed here are "),
        ("estimate.passes=1", "greater than or equal to 2"),
        ("sample.count=many", "sample.count"),
        ("training.seed=1", "is not a setting; allowed here are space, data, train, measure"),
        ("export.formats=[exe]", "export.formats"),
    ],
)
def test_bad_settings_are_named_with_what_is_allowed(config, tmp_path, change, words):
    assert words in refusal("run", config, "--out", tmp_path / "run", "--set", change)
    assert not (tmp_path / "run").exists()


@pytest.mark.slow
def test_init_never_overwrites(tmp_path):
    out = tmp_path / "mine.yaml"
    assert f"binas run {out}" in said("init", "--out", out)
    before = out.read_text()
    load_config(out)
    assert "exists" in refusal("init", "--out", out)
    assert out.read_text() == before


class Stopped(BaseException):
    pass


class Stops(Progress):
    """Interrupts the training of the supernet at its first batch."""

    shown = 0

    def show(self, done, doing="", left=None):
        self.shown += doing.startswith("train.supernet")
        if self.shown == 2:  # after its beginning
            raise Stopped


def test_status_says_why_what_is_left_and_how_long(config, tmp_path, monkeypatch):
    monkeypatch.setattr("binas.run.engine.LOG_SECONDS", 0.0)
    folder = tmp_path / "run"
    with pytest.raises(Stopped):
        advance(create_run(folder, load_config(config)), all_steps(), Stops())
    found = {item.state.step.name: item for item in standings(open_run(folder))}
    assert found["train.heaviest"].left == 0
    assert found["train.supernet"].state.word == "started"
    assert found["measure"].state.word == "to do"
    assert found["measure"].left is None
    text = said("status", folder)
    assert "whose time is unknown" in text
    assert f"binas run --out {folder}" in text
    said("train", folder, "--quiet")
    states = {item["step"]: item for item in answer("status", folder)["steps"]}
    assert (states["train.supernet"]["state"], states["search"]["state"]) == ("done", "to do")


def test_the_run_leaves_networks_that_others_can_load_and_a_page(measured):
    """What a user goes home with: files that give the same answers, and a report that names the networks."""
    networks = open_run(measured).networks
    exported = measured / "networks" / networks["latency=50s"].name / "export"
    network = load_model(exported)
    with torch.inference_mode():
        assert network(torch.zeros(3, 1, 28, 28)).shape == (3, 10)
    assert (exported / "model.onnx").exists()
    assert "latency <= 50000 ms" in (exported / "README.md").read_text()
    page = (measured / "report.html").read_text()
    assert networks["latency=50s"].architecture in page
    rivals = [json.loads(path.read_text()) for path in (measured / "rivals").iterdir()]
    assert {item["question"] for item in rivals} == set(networks)
    found = answer("report", measured, "--out", measured.parent / "again.html")
    assert len(found["chosen"]) == len(networks)


def test_the_demo_is_a_run(measured, monkeypatch):
    """Its configuration is the packaged one (tests/run/test_demo.py); here the rest of ``binas run`` follows."""
    monkeypatch.setattr("binas.run.start.configure", lambda out, config, changes: open_run(out).config)
    monkeypatch.setattr("binas.run.start.create_run", lambda out, *_, **__: open_run(out))
    found = answer("demo", "--out", measured)
    assert (found["run"], found["done"]) == (str(measured), [])
    assert "Report: " in said("demo", "--out", measured)


def test_a_run_begun_without_a_configuration_says_on_what(measured, config, tmp_path, monkeypatch):
    """A misspelt --out begins a new run on the embedded images: nobody should find that out after minutes."""
    monkeypatch.setattr("binas.run.start.create_run", lambda *_, **__: open_run(measured))
    told = "begins with the embedded images and the default settings"
    assert told in binas("run", "--out", tmp_path / "mispelt").stderr
    assert told not in binas("run", config, "--out", tmp_path / "new").stderr
    assert told not in binas("run", "--out", measured).stderr


def test_an_interruption_is_exit_code_130(config, tmp_path, monkeypatch):
    def interrupted(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr("binas.run.start.finish", interrupted)
    done = binas("run", config, "--out", tmp_path / "run")
    assert done.code == 130
    assert "Traceback" not in done.stderr
