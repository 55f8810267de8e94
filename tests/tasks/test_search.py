"""The search of a run: what it refuses, and that percent mean the same as in a question where there are variants."""

import pytest

from binas.base.errors import ConfigError
from binas.base.progress import Progress
from binas.costs.analytic import counted_costs
from binas.run.config import load_config
from binas.run.engine import redo
from binas.run.run import Run
from binas.tables import Column, Contributions, CostTable
from binas.tasks.artefacts import ANSWERS, CONTRIBUTIONS, COSTS, SPACE
from binas.tasks.measure import MEASURE
from binas.tasks.search import SEARCH
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
