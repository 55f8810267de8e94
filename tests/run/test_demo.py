"""``binas demo``: the run of its own configuration. benchmarks/demo.py runs it for real."""

from pathlib import Path

import pytest
from binas.run.limits import check_questions
from typer.testing import CliRunner

from binas.cli import demo_commands
from binas.cli.main import app
from binas.run.config import load_config
from binas.space import load_space


@pytest.fixture
def called(monkeypatch):
    """What the demo asks ``binas run`` for."""
    found = {}

    def run(out, config, changes, **more):
        found.update(out=out, config=load_config(config, changes), **more)

    monkeypatch.setattr(demo_commands, "run", run)
    return found


def test_without_arguments_it_is_the_packaged_configuration(called):
    assert CliRunner().invoke(app, ["demo"]).exit_code == 0
    config = called["config"]
    assert called["out"] == Path("runs/demo")
    assert config.data.kind == "embedded"
    assert len(config.search.limits) == 3
    assert config.compare.random == 20
    assert config.compare.tune == 0
    check_questions(config, load_space(config.space))


def test_compare_fine_tunes_rivals_and_settings_can_be_changed(called):
    arguments = ["demo", "--compare", "--out", "here", "--set", "training.supernet.epochs=1", "--quiet"]
    assert CliRunner().invoke(app, arguments).exit_code == 0
    assert called["config"].compare.tune == demo_commands.TUNED_RIVALS
    assert called["config"].training.supernet.epochs == 1
    assert called["out"] == Path("here")
    assert called["quiet"]


def test_the_one_in_configs_is_the_same():
    root = Path(__file__).parents[2]
    packaged = root / "src" / "binas" / "run" / "demo.yaml"
    assert (root / "configs" / "demo.yaml").read_bytes() == packaged.read_bytes()
