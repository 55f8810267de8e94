"""The search of a run: what it refuses, and that percent mean the same as in a question where there are variants."""

import json
import re

import pytest

from binas.base.errors import ConfigError, FileError
from binas.base.progress import Progress
from binas.costs.analytic import counted_costs
from binas.run.config import load_config
from binas.run.engine import redo
from binas.run.run import Run
from binas.tables import Column, Contributions, CostTable
from binas.tasks.artefacts import ANSWERS, CONTRIBUTIONS, COSTS, SPACE, network_folder
from binas.tasks.measure import MEASURE
from binas.tasks.search import SEARCH, read_answers
from binas.training.judgement import Accuracy, HeldOut, Judgement, NetworkRecord
from tiny_run import SPACE as TINY, made_table


def opened(folder, *changes):
    """A run that has only its tables, the second variant twice as fast as the first."""
    run = Run(folder, load_config(None, ["search.closed_loop=false", *changes]), TINY)
    slow, fast = made_table(2e-4), made_table(1e-4)
    variants = {"threads=1": {"latency": slow["latency"]}, "threads=2": {"latency": fast["latency"]}}
    SPACE.write(run, TINY)
    COSTS.write(run, CostTable(TINY, {**counted_costs(TINY), **slow.costs}, variants))
    values = Column.build(TINY, lambda s, i: 1.0 * i, lambda s, b, c: 0.5 * c)
    CONTRIBUTIONS.write(run, Contributions(TINY, 70.0, values))
    return run


def test_percent_of_a_configuration_and_of_a_question_agree_over_variants(tmp_path):
    question = "latency=25% and params<=5k"
    run = opened(tmp_path, f"search.limits=[{question}]")
    SEARCH.steps[0].work(run, Progress())
    (kept,) = ANSWERS.read(run)
    asked = run.tables.problem(question)
    assert [limit.value for limit in kept.limits] == [limit.value for limit in asked.limits]
    assert kept.variant == "threads=2"


def test_an_estimator_without_a_frontier_is_refused_before_training(tmp_path):
    run = opened(tmp_path, "search.estimator=quadratic")
    with pytest.raises(ConfigError, match="no sum over stages"):
        SEARCH.check(run)
    SEARCH.check(opened(tmp_path / "other", "search.estimator=within-stage"))


def test_the_samples_of_every_variant_are_set_aside_together(tmp_path):
    run = opened(tmp_path)
    for name in ("costs.json.journal", "costs.json.journal1"):
        (tmp_path / name).write_text("of other settings")
    redo(run, MEASURE.steps, Progress())
    assert not list(tmp_path.glob("costs.json*"))
    assert len(list(tmp_path.glob("old/*/costs.json.journal*"))) == 2


def answered(folder):
    """A run of two limits whose search was done."""
    run = opened(folder, "search.limits=[latency=30%, latency=70%]")
    SEARCH.steps[0].work(run, Progress())
    return run, sorted(folder.glob("results/*.json"))


@pytest.mark.parametrize("name", ["accuracy", "value"])
def test_answers_of_other_tables_are_refused(tmp_path, name):
    run, (path, _) = answered(tmp_path)
    assert len(read_answers(run)) == 2
    path.write_text(re.sub(rf'"{name}": ([0-9.]+)', rf'"{name}": 1\1', path.read_text()))
    with pytest.raises(
        FileError, match=r"30pct\.json is not what the tables say of .*Delete it; `binas search"
    ):
        read_answers(run)
    path.unlink()
    SEARCH.steps[0].work(run, Progress())
    assert len(read_answers(run)) == 2


@pytest.mark.parametrize(
    ("name", "value", "said"),
    [("variant", "x", "there is no variant 'x'"), ("architecture", "none", "none")],
)
def test_answers_with_names_that_do_not_exist_are_refused(tmp_path, name, value, said):
    run, (path, _) = answered(tmp_path)
    path.write_text(json.dumps({**json.loads(path.read_text()), name: value}))
    with pytest.raises(FileError, match=rf"is not what the tables say of .*{said}.*Delete it; `binas search"):
        read_answers(run)


def test_an_answer_to_another_limit_is_refused(tmp_path):
    run, (one, other) = answered(tmp_path)
    one.write_text(other.read_text())
    with pytest.raises(FileError, match=r"30pct\.json is of the limit 'latency=70%', not of 'latency=30%'"):
        ANSWERS.read(run)


def test_a_network_in_the_folder_of_another_is_refused(tmp_path):
    run, _ = answered(tmp_path)
    held = HeldOut(Accuracy(60.0, 20), Accuracy(55.0, 20))
    one, other = (answer.architecture for answer in run.answers)
    for place, architecture in ((one, one), (other, one)):
        NetworkRecord(
            name=run.network_name(place), architecture=architecture, from_scratch=False, settings={}, weights="0" * 16,
            judgement=Judgement(held, held, 1), parameters=1, macs=1, seconds=1.0,
        ).save(network_folder(tmp_path, run.network_name(place)) / "network.json")  # fmt: skip
    with pytest.raises(FileError, match="folders were exchanged"):
        run.networks  # noqa: B018


@pytest.mark.parametrize(("text", "says"), [("a" * 200_000, "not readable CSV"), ("\n" * 5_000_001, "cells")])
def test_a_frontier_that_is_no_csv_or_too_much_of_it_is_refused(tmp_path, text, says):
    run, _ = answered(tmp_path)
    (tmp_path / "frontier.csv").write_text(text)
    with pytest.raises(FileError, match=says):
        run.frontier  # noqa: B018
