"""Search methods of others on the supernet of a run: kept, resumed, judged alike."""

import json
import shutil

import pytest

from binas.base.progress import Progress
from binas.run.run import open_run
from binas.search.methods import METHODS, MethodRecord
from binas.tasks import methods
from binas.tasks.methods import (
    FOLDER,
    MethodSettings,
    contest,
    evaluations_of,
    measuring_seconds,
    run_method,
    tables_of,
)
from binas.tasks.oracle import oracle_of
from binas.training import evaluate_architecture
from binas.training.config import FinetuneSettings
from binas.training.team import one_thread
from tiny_run import call

LIMIT = "latency=50%"
MEASURING = ["estimate", "sample", "check"]
QUICK = ["hardcore", "soft-penalty", "darts", "random"]


def test_a_contest_is_kept_and_goes_on_where_it_was_interrupted(copied, monkeypatch):
    run = open_run(copied)
    settings = MethodSettings(method=("binas", *QUICK), seeds=1, budget=600)
    with one_thread():
        first = list(contest(run, [LIMIT], settings, Progress()))
    assert [item.method for item in first] == ["binas", *QUICK]
    files = list((copied / FOLDER).glob("*/*.json"))
    assert len(files) == len(first)
    (files[0].parent / f"darts-0-{first[3].identity[:8]}.json").unlink()  # as if it had been killed there
    asked = []
    for name in METHODS:
        monkeypatch.setitem(
            METHODS, name, lambda given, name=name, search=METHODS[name]: asked.append(name) or search(given)
        )
    with one_thread():
        again = list(contest(run, [LIMIT], settings, Progress()))
    assert asked == ["darts"]
    timeless = {"seconds": 0.0}
    assert [x.model_copy(update=timeless) for x in again] == [x.model_copy(update=timeless) for x in first]
    for item in first:
        if item.method in ("binas", "hardcore", "random"):
            assert item.kept
        if item.method in METHODS:
            assert 0 < item.evaluations <= 600
            assert item.gradients == 0  # the score function needs none
    assert first[0].shared
    assert first[0].evaluations == evaluations_of(run.tables)


def test_all_are_judged_on_the_test_images_with_batchnorm_re_estimated(copied):
    run = open_run(copied)
    with one_thread():
        record = run_method(run, LIMIT, "binas")
        found = run.space.parse(record.architecture)
        count = run.settings(FinetuneSettings).recalibration
        again = evaluate_architecture(run.supernet(), found, run.data, run.data.test, count)
    assert (record.accuracy, record.images) == (pytest.approx(again.percent), len(run.data.test))
    assert record.error == pytest.approx(again.error)


def test_another_seed_of_ours_measures_its_tables_anew_and_once(copied, monkeypatch):
    run = open_run(copied)
    with one_thread():
        record = run_method(run, LIMIT, "binas", seed=1)
        tables = tables_of(run, 1, Progress())
    assert tables.contributions.values.flat().tolist() != run.tables.contributions.values.flat().tolist()
    assert set(tables.samples.architectures) != set(run.tables.samples.architectures)
    assert record.evaluations == evaluations_of(tables) == evaluations_of(run.tables)
    assert record.seconds > measuring_seconds(tables) > 0
    worked = [json.loads((copied / "steps" / f"{name}.json").read_text())["seconds"] for name in MEASURING]
    assert measuring_seconds(run.tables) == sum(worked)
    monkeypatch.setattr(methods, "estimates", None)  # nothing is measured a second time
    assert tables_of(run, 1, Progress()).choice.chosen == tables.choice.chosen
    assert run_method(run, LIMIT, "bcfw", seed=1).method == "bcfw"


def test_ours_counts_every_image_that_went_through_a_network(copied):
    run = open_run(copied)
    count = len(run.data.validation)
    first, second = count // 2, count - count // 2
    assert evaluations_of(run.tables) == 4 * first + 6 * (second + 64)  # passes; samples with recalibration
    with one_thread():
        oracle = oracle_of(run)
        assert oracle.images == first
        assert oracle.images_per_network == first + 64


def test_the_command_tells_of_every_method(copied):
    asked = ["methods", copied, "-l", LIMIT, "--seeds", 2, "--budget", 300]
    code, said = call(*asked, "--method", "hardcore", "--method", "darts", "--json")
    assert code == 0, said
    data = json.loads(said)
    assert [(row["method"], row["seeds"]) for row in data["methods"]] == [("hardcore", 2), ("darts", 2)]
    assert len([MethodRecord.model_validate(item) for item in data["records"]]) == 4
    code, said = call(*asked, "--method", "hardcore", "--quiet")
    assert code == 0
    assert "2 of 2" in said
    assert "which chose nothing" in said


def test_a_run_without_weights_is_told_who_trains_them(copied):
    shutil.rmtree(copied / "supernet")
    code, said = call("methods", copied, "--method", "binas", "--seeds", 1)
    assert code == 2
    assert "holds no trained supernet yet" in said


def test_what_cannot_be_asked_is_said(copied):
    code, said = call("methods", copied, "--method", "magic")
    assert code == 2
    assert "'magic' is none of binas, hardcore" in said
    code, said = call("methods", copied, "--method", "random", "--budget", 20, "--seeds", 1)
    assert code == 2
    assert "larger --budget" in said


def test_the_gradient_is_an_option(copied):
    asked = ["methods", copied, "-l", LIMIT, "--seeds", 1, "--budget", 300, "--method", "hardcore", "--json"]
    records = []
    for gradient in ("score", "straight-through"):
        code, said = call(*asked, "--method", "random", "--gradient", gradient)
        assert code == 0, said
        records.append([MethodRecord.model_validate(item) for item in json.loads(said)["records"]])
    (usual, drawn), (other, again) = records
    assert (usual.name, other.name) == ("hardcore", "hardcore, straight-through")
    assert usual.gradients == 0 < other.gradients <= 300
    assert again == drawn  # follows no gradient: not searched a second time
    code, said = call(
        "search", copied, "-l", LIMIT, "--solver", "hardcore", "--gradient", "straight-through", "--json"
    )
    assert code == 0, said
    assert json.loads(said)["status"] == "feasible"


def test_hardcore_can_be_the_solver_of_a_run(copied):
    code, said = call("search", copied, "--solver", "hardcore", "--quiet")
    assert code == 0, said
    answers = open_run(copied).answers
    assert [(item.solver, item.status) for item in answers] == [("hardcore", "feasible")] * 2
    assert all(item.confirmed is not None for item in answers)


def test_hardcore_is_a_solver_of_a_run_and_not_of_tables(copied, tmp_path):
    code, said = call("search", copied, "-l", LIMIT, "--solver", "hardcore", "--json")
    assert code == 0, said
    found = json.loads(said)
    assert (found["solver"], found["status"]) == ("hardcore", "feasible")
    spent = open_run(copied).tables.contributions.provenance.to_data()["evaluations"]
    assert 0.5 * spent < found["details"]["image_evaluations"] <= spent
    tables = tmp_path / "tables"
    tables.mkdir()
    for name in ("space.yaml", "contributions.json", "costs.json"):
        (tables / name).write_bytes((copied / name).read_bytes())
    code, said = call("search", tables, "-l", LIMIT, "--solver", "hardcore")
    assert code == 2
    assert "only tables" in said
