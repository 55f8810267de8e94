"""Whole runs: killed anywhere they end the same, and a changed setting redoes only what depends on it."""

import json
import os
import random
import shutil
import signal
import subprocess
import sys
import time
from types import SimpleNamespace

import numpy as np
import pytest
from small_data import bars

import binas.base.files
import binas.training.checkpoint
from binas.run import engine
from binas.run.config import load_config
from binas.run.log import read_log
from binas.run.run import open_run
from binas.run.start import create_run
from binas.tasks import all_steps
from binas.tasks.artefacts import COMPARISONS, read_network
from binas.training.team import one_thread
from tiny_run import NETWORKS, STEPS, TRAIN, call, final, made_table, run_json, write_config


class Died(BaseException):
    """What a kill looks like from inside: nothing is caught, nothing is tidied."""


def go_on(folder, config):
    with one_thread():
        return engine.advance(create_run(folder, load_config(config)), all_steps())


def test_killed_at_every_step_boundary(finished, config, tmp_path, monkeypatch):
    """After a step's work but before its record, and again right after the record, for every step."""
    write, deaths = engine.write_record, []

    def dies(folder, record):
        moments = [(record.step, "before")] if record.state == "finished" else []
        if moments and moments[0] not in deaths:
            deaths.append(moments[0])
            raise Died
        write(folder, record)
        if moments and (record.step, "after") not in deaths:
            deaths.append((record.step, "after"))
            raise Died

    monkeypatch.setattr(engine, "write_record", dies)
    for _ in range(2 * len(STEPS)):
        with pytest.raises(Died):
            go_on(tmp_path / "run", config)
    assert deaths == [(step, when) for step in STEPS for when in ("before", "after")]
    assert go_on(tmp_path / "run", config) == []
    assert final(tmp_path / "run") == final(finished)


def test_killed_at_random_writes(finished, config, tmp_path, monkeypatch):
    """Each time the process gets a little further, dying instead of writing some file."""
    write, rng, left = binas.base.files.write_bytes, random.Random(0), [0]

    def dies(path, data):
        left[0] -= 1
        if left[0] < 0:
            raise Died
        write(path, data)

    for module in (binas.base.files, binas.training.checkpoint):
        monkeypatch.setattr(module, "write_bytes", dies)
    deaths = 0
    while True:
        left[0] = rng.randint(4, 22)
        try:
            go_on(tmp_path / "run", config)
            break
        except Died:
            deaths += 1
    assert deaths >= 3
    assert final(tmp_path / "run") == final(finished)


@pytest.mark.slow
def test_killed_by_the_system_at_random_moments(finished, config, tmp_path):
    """SIGKILL a moment after some number of further events in the log, until a process gets to the end."""
    folder, rng, kills = tmp_path / "run", random.Random(1), 0
    command = [sys.executable, "-m", "binas.cli.main", "run", str(config), "--out", str(folder), "--quiet"]
    while True:
        wanted, moment = len(read_log(folder)) + rng.randint(2, 6), rng.uniform(0, 0.5)
        process = subprocess.Popen(command, env={**os.environ, "OMP_NUM_THREADS": "1"})
        while process.poll() is None and len(read_log(folder)) < wanted:
            time.sleep(0.01)
        time.sleep(moment)
        process.send_signal(signal.SIGKILL)
        if process.wait() == 0:
            break
        assert process.returncode == -signal.SIGKILL
        kills += 1
    assert kills >= 2
    assert final(folder) == final(finished)


def test_an_unchanged_run_is_left_alone(copied, config):
    before = {path: path.stat().st_mtime_ns for path in copied.rglob("*") if path.is_file()}
    assert run_json(config, "--out", copied)["done"] == []
    changed = [path.name for path in before if path.stat().st_mtime_ns != before[path]]
    assert set(changed) <= {"config.yaml", "space.yaml"}


AFTER_SUPERNET = ["estimate", "sample", "check", "search", *NETWORKS]


@pytest.mark.parametrize(
    ("change", "redone"),
    [
        pytest.param("search.limits=[latency=20%]", ["search", *NETWORKS], marks=pytest.mark.slow),
        pytest.param("search.estimator=additive-log", ["search", *NETWORKS], marks=pytest.mark.slow),
        ("finetune.learning_rate=0.02", ["finetune", "export", "report"]),
        ("compare.random=3", ["compare", "report"]),
        ("export.formats=[onnx]", ["export", "report"]),
        ("report.cost=macs", ["report"]),
        pytest.param("measure.table=other.json", ["measure", "search", *NETWORKS], marks=pytest.mark.slow),
        ("measure.backend=torch", []),  # with a table nothing is measured
        ("estimate.passes=5", ["estimate", "check", "search", *NETWORKS]),
        pytest.param("sample.count=8", ["sample", "check", "search", *NETWORKS], marks=pytest.mark.slow),
        ("check.resamples=11", ["check"]),
        ("train.checkpoint_seconds=7", []),
        pytest.param(
            "train.supernet.learning_rate=0.02", ["train.supernet", *AFTER_SUPERNET], marks=pytest.mark.slow
        ),
        ("train.heaviest.learning_rate=0.02", ["train.heaviest", "train.supernet", *AFTER_SUPERNET]),
        pytest.param("data.seed=3", [*TRAIN, *AFTER_SUPERNET], marks=pytest.mark.slow),
    ],
)
def test_a_change_redoes_only_what_depends_on_it(copied, config, monkeypatch, change, redone):
    monkeypatch.chdir(config.parent)
    trains = "train.supernet" in redone
    assert (
        run_json(config, "--out", copied, "--set", change, *(["--redo"] if trains else []))["done"] == redone
    )
    assert run_json("--out", copied)["done"] == []
    assert json.loads(call("status", copied, "--json")[1])["left_seconds"] == 0


def test_another_estimator_is_searched_with(copied):
    """What the search believes stands in the answers, and their accuracies are its own."""
    before = {answer.question: answer for answer in open_run(copied).answers}
    assert {answer.estimator for answer in before.values()} == {"additive"}
    assert call("search", copied, "--estimator", "additive-log")[0] == 0
    run = open_run(copied)
    assert {answer.estimator for answer in run.answers} == {"additive-log"}
    log = run.tables.estimator("additive-log")
    for answer in run.answers:
        (accuracy,) = log.predict([run.space.parse(answer.architecture)])
        assert answer.accuracy == pytest.approx(accuracy)
        assert answer.accuracy != before[answer.question].accuracy
    assert run_json("--out", copied)["done"] == NETWORKS


def test_another_device_measures_again(copied, monkeypatch):
    """Settings, model of the device and version of the runtime all count; training does not depend on them."""
    measured = []

    def measures(space, how, samples, seed, quantity):
        measured.append(how.settings.threads)
        cost = made_table(1e-4)["latency"]
        session = SimpleNamespace(warnings=("a noisy machine",), estimates={}, seconds=1.0)
        return SimpleNamespace(cost=cost, session=session)

    monkeypatch.setattr("binas.costs.measure.measure_space", measures)
    once, after = ["measure", "search", *NETWORKS], ["--set", "measure.threads=2"]
    own = ["--out", copied, "--set", "measure.table=null", "--set", "search.closed_loop=false"]
    assert run_json(*own)["done"] == once
    assert run_json(*own)["done"] == []
    assert run_json(*own, *after)["done"] == ["measure"]  # the same numbers: nothing follows
    monkeypatch.setattr("binas.costs.machine.device_name", lambda settings: "another CPU")
    step = json.loads(call("status", copied, "--json")[1])["steps"][3]
    assert (step["step"], step["state"]) == ("measure", "stale")
    assert "now 'another CPU'" in step["why"][0]
    assert run_json(*own, *after)["done"] == ["measure"]
    assert measured == [1, 2, 2]


@pytest.mark.parametrize("change", ["train.seed=5", "train.supernet.epochs=2", "data.limit=100"])
def test_finished_training_is_not_thrown_away_unasked(copied, change):
    before = {path: path.read_bytes() for path in copied.rglob("*") if path.is_file()}
    code, said = call("run", "--out", copied, "--set", change)
    assert code == 2
    assert "--redo" in said
    assert change.split("=")[0] in said or "images was" in said
    assert before == {path: path.read_bytes() for path in copied.rglob("*") if path.is_file()}


def test_weights_that_are_gone_are_trained_again_when_asked_and_what_follows_stays(copied, finished):
    """Training is exact, so the heaviest network comes out the same, and the supernet need not be done again."""
    (copied / "heaviest" / "weights.json").unlink()
    kept = {path: path.stat().st_mtime_ns for path in (copied / "supernet").iterdir()}
    code, said = call("run", "--out", copied)
    assert (code, "is missing" in said, "--redo" in said) == (2, True, True)
    assert run_json("--out", copied, "--redo")["done"] == ["train.heaviest"]
    assert kept == {path: path.stat().st_mtime_ns for path in kept}
    assert final(copied) == final(finished)


def test_a_redo_that_is_killed_goes_on_without_being_allowed_again(copied, monkeypatch):
    write = engine.write_record

    def dies(folder, record):
        write(folder, record)
        raise Died

    run = create_run(copied, load_config(copied / "config.yaml", ["train.seed=5"]), redo=True)
    monkeypatch.setattr(engine, "write_record", dies)
    with pytest.raises(Died):
        engine.advance(run, all_steps())
    monkeypatch.setattr(engine, "write_record", write)
    assert run_json("--out", copied)["done"] == [
        step for step in STEPS if step not in ("train.data", "measure")
    ]


def test_what_is_redone_is_kept_and_said(copied, config):
    weights = {path.name for path in (copied / "supernet").iterdir()}
    assert call("run", "--out", copied, "--redo", "--set", "train.supernet.epochs=2", "--quiet")[0] == 0
    (kept,) = (copied / "old").glob("*-train.supernet")
    assert {path.name for path in (kept / "supernet").iterdir()} == weights
    assert (kept / "metrics.jsonl").exists()
    log = [json.loads(line) for line in (copied / "log.jsonl").read_text().splitlines()]
    assert any(event["event"] == "set aside" and event["step"] == "train.supernet" for event in log)


def test_networks_of_architectures_already_tuned_are_used_again(copied):
    before = {path: path.stat().st_mtime_ns for path in (copied / "networks").rglob("weights*")}
    first = open_run(copied).networks["latency=70%"]
    done = run_json("--out", copied, "--set", "search.limits=[latency=70%, latency=100%]")
    assert done["done"] == ["search", *NETWORKS]
    assert before == {path: path.stat().st_mtime_ns for path in before}
    assert open_run(copied).networks["latency=70%"] == first


def test_a_damaged_record_of_a_network_is_named(copied):
    (path, *_) = sorted((copied / "networks").glob("*/network.json"))
    path.write_text("{}")
    code, said = call(
        "run", "--out", copied, "--set", "search.limits=[latency=30%, latency=70%, latency=50%]"
    )
    assert (code, "network.json is damaged" in said) == (2, True)
    path.unlink()
    assert call("run", "--out", copied)[0] == 0


def test_more_samples_add_to_those_there(copied):
    old = json.loads((copied / "samples.json").read_text())["samples"]
    run_json("--out", copied, "--set", "sample.count=9")
    new = json.loads((copied / "samples.json").read_text())["samples"]
    assert new[: len(old)] == old
    assert len(new) == 9


def test_a_table_put_in_by_hand_is_searched_with(copied, config):
    """Files are what counts: whoever wrote them, what follows is done again."""
    table = json.loads((copied / "contributions.json").read_text())
    table["base"]["value"] -= 1.0
    (copied / "contributions.json").write_text(json.dumps(table))
    assert run_json("--out", copied)["done"] == ["check", "search", *NETWORKS]


def test_a_file_that_is_gone_is_made_again(copied, finished):
    (copied / "estimator.json").unlink()
    assert run_json("--out", copied)["done"] == ["check"]
    assert final(copied) == final(finished)


def test_relative_limits_are_recorded_in_absolute_units(finished):
    result = json.loads((finished / "results" / "latency-30pct.json").read_text())
    (limit,) = result["limits"]
    assert (limit["cost"], limit["unit"], limit["lower"]) == ("latency", "ms", False)
    assert result["costs"]["latency"]["value"] <= limit["value"] == result["costs"]["latency"]["limit"]


def test_records_say_what_a_step_was_done_with(finished):
    record = json.loads((finished / "steps" / "search.json").read_text())
    assert record["state"] == "finished"
    assert record["seconds"] > 0
    assert {"python", "torch", "binas", "onnxruntime", "cpu"} <= set(record["machine"])
    assert record["files"] == ["frontier.csv", "results/latency-30pct.json", "results/latency-70pct.json"]


def test_figures_of_every_step_that_has_some(finished):
    lines = [json.loads(line) for line in (finished / "metrics.jsonl").read_text().splitlines()]
    assert {line["phase"] for line in lines} == {"heaviest", "supernet", "estimate"}
    assert all("stability" in line for line in lines if line["phase"] == "estimate")


def test_the_check_judges_and_keeps_figures_where_there_are_enough_samples(copied):
    assert open_run(copied).tables.choice.judgement() is None  # six tell nothing
    assert call("sample", copied, "--count", 12)[0] == 0
    assert call("check", copied)[0] == 0
    judged = open_run(copied).tables.choice.judgement()
    lines = [json.loads(line) for line in (copied / "metrics.jsonl").read_text().splitlines()]
    (figures,) = [line for line in lines if line["phase"] == "check"]
    assert (figures["kendall"], figures["spearman"]) == (judged.kendall.value, judged.spearman.value)


def test_the_search_believes_the_estimator_that_the_check_chose(copied):
    """Only its name counts, and the samples where it learned from them: other figures of the check change nothing."""
    path = copied / "estimator.json"
    choice = json.loads(path.read_text())
    path.write_text(json.dumps({**choice, "why": "other words"}))
    assert run_json("--out", copied)["done"] == []
    path.write_text(json.dumps({**choice, "chosen": "additive-log"}))
    assert run_json("--out", copied)["done"] == ["search", *NETWORKS]
    assert {answer.estimator for answer in open_run(copied).answers} == {"additive-log"}


def test_images_that_change_under_a_run_are_noticed(tmp_path):
    """The same configuration, but the file behind it holds other images."""
    own, folder = write_config(tmp_path / "own"), tmp_path / "run"
    assert call("train", folder, "--config", own, "--quiet")[0] == 0
    np.savez(tmp_path / "own" / "bars.npz", **bars(160, seed=1))
    code, said = call("run", "--out", folder, "--quiet")
    assert (code, "no longer those this run was made with" in said) == (2, True)
    assert run_json("--out", folder, "--redo")["done"] == STEPS


def test_every_task_is_a_command_of_its_own(trained, finished, tmp_path):
    """``binas train`` and ``binas TASK RUN`` for all others leave what ``binas run`` leaves."""
    folder = shutil.copytree(trained, tmp_path / "run")
    for task in STEPS[len(TRAIN) :]:
        code, said = call(task, folder, "--json")
        assert (code, json.loads(said)["done"]) == (0, [task])
    assert run_json("--out", folder)["done"] == []
    assert final(folder) == final(finished)
    code, said = call("search", folder)
    assert (code, "nothing was changed" in said) == (0, True)


def test_a_network_tuned_by_hand_with_other_settings_is_not_taken_for_the_runs_own(copied, finished):
    record = open_run(copied).networks["latency=30%"]
    shutil.rmtree(copied / "networks" / record.name)
    (copied / "steps" / "finetune.json").unlink()  # as before the step was done
    changed = ["--set", "finetune.learning_rate=0.03"]
    assert call("finetune", copied, "--arch", record.architecture, *changed, "--quiet")[0] == 0
    assert "finetune" in run_json("--out", copied)["done"]
    assert open_run(copied).networks["latency=30%"].weights == record.weights
    assert final(copied) == final(finished)


def test_a_comparison_that_was_made_is_not_made_again(copied):
    kept = copied / "rivals" / "latency-30pct.json"
    before = kept.stat().st_mtime_ns
    run_json("--out", copied, "--set", "search.limits=[latency=30%, latency=60%]")
    assert kept.stat().st_mtime_ns == before
    assert (copied / "rivals" / "latency-60pct.json").exists()


def test_rivals_are_fine_tuned_as_the_found_network_is(copied):
    assert run_json("--out", copied, "--set", "compare.tune=1")["done"] == ["compare", "report"]
    item = next(item for item in COMPARISONS.read(open_run(copied)) if item.question == "latency=70%")
    assert item.hand_scaled is None  # the stages of this space share no config
    for rival in (item.found, item.random[0]):
        record = read_network(copied / "networks" / open_run(copied).network_name(rival.architecture))
        assert rival.tuned.test == pytest.approx(record.judgement.tuned.test.percent)
        assert rival.tuned.validation == pytest.approx(record.judgement.tuned.validation.percent)
    assert item.tuned.over_random[0] == pytest.approx(item.found.tuned.test - item.random[0].tuned.test)
    code, said = call("run", "--out", copied)
    assert (code, "after the same fine-tuning" in said) == (0, True)
    assert said.splitlines()[-len(open_run(copied).story) :] == open_run(copied).story
    assert run_json("--out", copied, "--set", "compare.tune=0")["done"] == [
        "compare"
    ]  # the report of before is used
    assert all(item.tuned is None and item.found.tuned is None for item in COMPARISONS.read(open_run(copied)))


def test_training_first_and_the_rest_later(trained, finished, tmp_path):
    """``binas train`` is the run's first steps."""
    folder = shutil.copytree(trained, tmp_path / "run")
    assert run_json("--out", folder)["done"] == STEPS[len(TRAIN) :]
    assert final(folder) == final(finished)
