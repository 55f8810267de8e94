"""``binas init``, ``run``, ``status`` and the single steps, as a user calls them, really measured."""

import json

import pytest
import torch
from binas.run.steps import STEPS as ALL
from small_networks import make, stage

import binas
from binas.base.progress import Progress
from binas.run.engine import advance
from binas.run.run import open_run
from binas.run.status import standings
from binas.space import save_space
from tiny_run import PHASE, STEPS, TAUGHT, call, run_json

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
        "training": {"device": "cpu", "heaviest": PHASE, "supernet": TAUGHT, "finetune": TAUGHT},
        "measuring": {"backend": "onnxruntime", "samples": 8, "rounds": 3, "tolerance": 1.0, "seconds": 3},
        "contributions": {"passes": 4},
        "check": {"count": 4, "resamples": 10},
        "search": {
            "limits": ["latency=50s", "params=40%", "latency=50s and macs<=1k"],
            "seconds_per_network": 0.2,
        },
    }
    (folder / "config.yaml").write_text(json.dumps(content))
    return folder / "config.yaml"


@pytest.fixture(scope="module")
def finished(config, tmp_path_factory):
    folder = tmp_path_factory.mktemp("runs") / "run"
    code, said = call("run", config, "--out", folder)
    assert code == 0, said
    (folder.parent / "said.txt").write_text(said)
    return folder


def test_the_run_ends_with_a_table_of_networks(finished):
    said = (finished.parent / "said.txt").read_text()
    assert "latency <= 50000 ms" in said
    assert "one-shot" in said
    assert f"{', '.join(STEPS)} done now" in said
    found = {item["question"]: item for item in run_json("--out", finished)["networks"]}
    kept = found["latency=50s"]
    assert kept["on_device"]["kept"]
    assert kept["on_device"]["measured"] > 0
    assert kept["network"]["architecture"] == kept["architecture"]
    assert 0 <= kept["network"]["judgement"]["tuned"]["test"]["percent"] <= 100
    assert found["params=40%"]["on_device"] is None  # nothing to measure


def test_a_limit_without_an_answer_does_not_stop_the_others(finished):
    said = (finished.parent / "said.txt").read_text()
    assert "latency=50s and macs<=1k: " in said
    result = json.loads((finished / "results" / "latency-50s-and-macs-1k.json").read_text())
    assert result["architecture"] is None
    assert "macs" in result["why"]


def test_limits_without_any_answer_are_an_error(config, finished):
    code, said = call("run", "--out", finished, "--set", "search.limits=[macs=1k]")
    assert code == 2
    assert "no limit has an answer" in said
    assert "macs" in said
    code, said = call("run", config, "--out", finished, "--quiet")
    assert (code, "test" in said) == (0, True)


def test_the_table_is_verified_on_whole_networks(finished):
    found = json.loads((finished / "verification.json").read_text())
    assert found["latency"]["networks"] >= 3
    phases = {json.loads(line)["phase"] for line in (finished / "metrics.jsonl").read_text().splitlines()}
    assert "costs latency" in phases


def test_status_of_a_finished_run(finished):
    code, said = call("status", finished)
    assert (code, "All is done" in said) == (0, True)
    data = json.loads(call("status", finished, "--json")[1])
    assert [item["state"] for item in data["steps"]] == ["done"] * len(STEPS)
    assert data["unknown"] == []


def test_measuring_is_a_command_of_its_own(finished):
    assert "is as the configuration says" in call("measure", finished)[1]
    assert json.loads(call("measure", finished, "--json")[1])["done"] == []
    code, said = call("measure", finished, "--threads", 2)
    assert (code, "measuring.threads=2" in said) == (2, True)
    assert call("measure")[0] == 2


def test_searching_and_judging_work_on_the_folder(finished):
    assert call("search", finished, "--limit", "latency=50s")[0] == 0
    assert call("evaluate-estimator", finished, "--resamples", 5)[0] == 0


def test_several_processes_only_train(config, tmp_path, monkeypatch):
    monkeypatch.setenv("WORLD_SIZE", "2")
    code, said = call("run", config, "--out", tmp_path / "run")
    assert (code, "launch `binas train`" in said) == (2, True)
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ("search.limits=[latency]", "search.limits"),
        ("search.limits=[]", "search.limits"),
        ("search.limits=[latency=45]", "has no unit"),
        ("search.limits=[energy=1mJ]", "no cost 'energy'"),
        ("search.limits=[latency=140%]", "above 100 %"),
        ("search.limits=[latency=45ms, latency<=45ms]", "say the same"),
        ("search.solver=magic", "must be one of auto"),
        ("measuring.backend=tpu", "'torch', 'onnxruntime', 'openvino' or 'none'"),
        ("measuring.thread=1", "allowed here are backend, device, threads"),
        ("contributions.passes=1", "greater than or equal to 2"),
        ("check.count=many", "check.count"),
        ("export.formats=[exe]", "export.formats"),
    ],
)
def test_bad_settings_are_named_with_what_is_allowed(config, tmp_path, change, said):
    code, output = call("run", config, "--out", tmp_path / "run", "--set", change)
    assert (code, said in output) == (2, True)
    assert not (tmp_path / "run").exists()


def test_status_of_a_run_that_has_not_begun(tmp_path):
    code, said = call("status", tmp_path)
    assert (code, "there is no run" in said) == (2, True)


def test_init_never_overwrites(tmp_path):
    out = tmp_path / "mine.yaml"
    code, said = call("init", "--out", out)
    assert (code, f"binas run {out}" in said) == (0, True)
    before = out.read_text()
    code, said = call("init", "--out", out)
    assert (code, "exists" in said) == (2, True)
    assert out.read_text() == before


class Stopped(BaseException):
    pass


class Stops(Progress):
    """Interrupts the training of the supernet at its first batch."""

    def begin(self, step):
        self.step = step

    def show(self, done, doing="", left=None):
        if self.step == "supernet":
            raise Stopped


def test_status_says_why_what_is_left_and_how_long(config, tmp_path, monkeypatch):
    monkeypatch.setattr("binas.run.engine.LOG_SECONDS", 0.0)
    folder = tmp_path / "run"
    assert call("train", "--config", config, "--out", folder, "--quiet")[0] == 0
    (folder / "supernet" / "weights.json").unlink()
    with pytest.raises(Stopped):
        advance(open_run(folder), ALL, Stops())
    found = {item.state.step.name: item for item in standings(open_run(folder), ALL)}
    assert found["heaviest"].left == 0
    assert found["supernet"].state.word == "started"
    assert found["costs"].state.word == "to do"
    assert found["costs"].left is None
    said = call("status", folder)[1]
    assert "whose time is unknown" in said
    assert f"binas run --out {folder}" in said


def test_the_run_leaves_networks_that_others_can_load_and_a_page(finished):
    """What a user goes home with: files that give the same answers, and a report that names the networks."""
    index = json.loads((finished / "networks.json").read_text())
    exported = finished / "networks" / index[0]["network"] / "export"
    network = binas.load_model(exported)
    images = torch.zeros(3, 1, 28, 28)
    with torch.inference_mode():
        assert network(images).shape == (3, 10)
    assert (exported / "model.onnx").exists()
    card = (exported / "README.md").read_text()
    assert "latency <= 50000 ms" in card
    page = (finished / "report.html").read_text()
    assert json.loads((finished / "results" / "latency-50s.json").read_text())["architecture"] in page
    rivals = [json.loads(path.read_text()) for path in (finished / "rivals").iterdir()]
    assert {item["question"] for item in rivals} == {item["question"] for item in index}
    code, said = call("report", finished, "--out", finished.parent / "again.html", "--json")
    assert code == 0, said
    assert len(json.loads(said)["chosen"]) == len(index)
