"""``binas demo``: the run of its own configuration. benchmarks/demo.py runs it for real."""

from pathlib import Path

import pytest
from typer.testing import CliRunner

from binas.base.progress import Progress
from binas.cli import run_commands
from binas.cli.main import app
from binas.run.config import load_config
from binas.run.run import Run
from binas.space import load_space
from binas.tasks.search import check_questions


@pytest.fixture
def called(monkeypatch):
    """What the demo asks ``binas run`` for."""
    found = {}

    def run(out, config, changes, redo, budget, progress):
        found.update(out=out, config=load_config(config, changes), budget=budget, progress=progress)

    monkeypatch.setattr(run_commands, "_whole_run", run)
    return found


def test_without_arguments_it_is_the_packaged_configuration(called):
    assert CliRunner().invoke(app, ["demo"]).exit_code == 0
    config = called["config"]
    assert called["out"] == Path("runs/demo")
    assert config.data.kind == "embedded"
    assert len(config.search.limits) == 3
    assert config.compare.random == 20
    assert config.compare.tune == 0
    assert called["budget"] is None
    check_questions(Run(Path("nowhere"), config, load_space(config.space)))


def test_rivals_are_fine_tuned_on_request_and_settings_can_be_changed(called):
    arguments = ["demo", "--tune-rivals", "--out", "here", "--set", "train.supernet.epochs=1", "--quiet"]
    assert CliRunner().invoke(app, arguments).exit_code == 0
    assert called["config"].compare.tune == run_commands.TUNED_RIVALS
    assert called["config"].train.supernet.epochs == 1
    assert called["out"] == Path("here")
    assert type(called["progress"]) is Progress  # nobody is told


def test_a_time_leaves_only_what_was_typed_as_given(called):
    arguments = ["demo", "--time", "15min", "--set", "finetune.epochs=2"]
    assert CliRunner().invoke(app, arguments).exit_code == 0
    assert called["budget"].seconds == 900
    assert called["budget"].given == {
        "finetune.epochs"
    }  # the demo's own numbers of epochs are the plan's to choose
    assert CliRunner().invoke(app, [*arguments, "--tune-rivals"]).exit_code == 0
    assert called["budget"].given == {"finetune.epochs", "compare.tune"}


def test_the_one_in_configs_is_the_same():
    root = Path(__file__).parents[2]
    packaged = root / "src" / "binas" / "run" / "demo.yaml"
    assert (root / "configs" / "demo.yaml").read_bytes() == packaged.read_bytes()
