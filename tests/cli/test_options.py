"""Options made of settings: what a task declares is what its command offers."""

import re
from pathlib import Path
from typing import Literal

import pytest
import typer
import yaml
from calling import answer, contents, refusal, said
from pydantic import BaseModel, Field
from typer.testing import CliRunner

from binas.base.errors import BinasError
from binas.base.settings import OneOrMore, Settings
from binas.cli.main import app
from binas.cli.options import with_settings
from binas.run.config import config_model
from binas.tasks import all_tasks
from binas.tasks._base import Task
from binas.training.config import Phase


def plain_settings():
    """Task, name and field of every setting that has no settings of its own."""
    for task in all_tasks().values():
        for name, field in task.settings.model_fields.items():
            if not re.search(r"Phase|MultiPath|Distillation|AugmentConfig", str(field.annotation)):
                yield pytest.param(task.name, name, field, id=f"{task.name}.{name}")


def set_in(run: Path, name: str):
    """A setting as the run's configuration has it."""
    value = yaml.safe_load((run / "config.yaml").read_text())
    for part in name.split("."):
        value = value[part]
    return value


@pytest.fixture(scope="module")
def helps():
    """What ``--help`` shows of each task, on one line."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("COLUMNS", "1000")
        return {name: " ".join(re.sub("[│╭╮╰╯─]", " ", said(name, "--help")).split()) for name in all_tasks()}


@pytest.mark.parametrize(("task", "name", "field"), list(plain_settings()))
def test_every_plain_setting_has_an_option_that_says_what_it_is(helps, task, name, field):
    text = helps[task]
    flag = f"--{name.replace('_', '-')}"
    assert re.search(rf"{flag}(?![-\w])", text)
    assert field.description, "a setting without a description"
    assert " ".join(field.description[1:].replace("`", "").split()) in text
    if not field.is_required():
        value = field.default
        shown = (
            "none"
            if value is None
            else ", ".join(map(str, value))
            if isinstance(value, tuple)
            else str(value)
        )
        assert f"[{shown}]" in text[text.index(flag) :]


def test_settings_with_parts_are_reached_by_set(helps):
    assert "--heaviest" not in helps["train"]
    assert "--set" in helps["train"]
    assert set(all_tasks()) <= set(config_model().model_fields)


class Inner(Settings):
    depth: int = 1


class ToySettings(Settings):
    """Toys."""

    count: int = Field(3, ge=1, description="how many")
    most: float | None = Field(None, gt=0, description="at most; none = any")
    loud: bool = Field(False, description="noise")
    maybe: bool | None = Field(None, description="none = as it comes")
    kind: Literal["bear", "none"] = Field("bear", description="which")
    names: tuple[str, ...] = Field(("a", "b"), description="their names")
    sizes: OneOrMore[int] = Field((1,), description="their sizes")
    box: Path | None = Field(None, description="where they are")
    inner: Inner = Inner()


class Recorded(BaseModel):
    changes: list = []


@pytest.fixture
def toys():
    """A command of its own, and what it was given."""
    task, record, toy = Task("toys", ToySettings, ()), Recorded(), typer.Typer()

    def command(name: str = "x", changes=()) -> None:
        """Play."""
        record.changes = list(changes)

    toy.command()(with_settings(task)(command))

    def call(*arguments: str):
        result = CliRunner().invoke(toy, list(arguments))
        if isinstance(result.exception, BinasError):
            raise result.exception
        assert result.exit_code == 0, result.output
        return record.changes

    return call


@pytest.mark.parametrize(
    ("typed", "change"),
    [
        (["--count", "5"], ("toys.count", 5)),
        (["--count", "many"], ("toys.count", "many")),  # the configuration refuses it
        (["--most", "2.5"], ("toys.most", 2.5)),
        (["--most", "none"], ("toys.most", None)),
        (["--loud"], ("toys.loud", True)),
        (["--no-loud"], ("toys.loud", False)),
        (["--maybe", "true"], ("toys.maybe", True)),
        (["--maybe", "none"], ("toys.maybe", None)),
        (["--kind", "none"], ("toys.kind", "none")),
        (["--names", "1", "--names", "yes"], ("toys.names", ["1", "yes"])),
        (["--sizes", "2"], ("toys.sizes", [2])),
        (["--sizes", "2", "--sizes", "4"], ("toys.sizes", [2, 4])),
        (["--box", "none"], ("toys.box", None)),
        (["--box", "12"], ("toys.box", "12")),
    ],
)
def test_what_is_typed_is_the_value_of_the_setting(toys, typed, change):
    assert toys(*typed) == [change]


def test_what_is_not_typed_is_as_the_run_has_it(toys):
    assert toys() == []
    assert toys("--name", "y") == []


def test_set_comes_last_so_that_it_wins(toys):
    assert toys("--set", "toys.inner.depth=3", "--count", "2") == [("toys.count", 2), "toys.inner.depth=3"]


def test_an_unreadable_value_is_answered_with_the_setting_s_name(toys):
    with pytest.raises(BinasError, match=r"toys\.count"):
        toys("--count", "[1")


WRONG = [
    ("train", ["--seed", "-1"], "train.seed"),
    ("train", ["--recipe", "large"], "train.recipe"),
    ("measure", ["--threads", "two"], "measure.threads"),
    ("measure", ["--threads", "0"], "measure.threads: must be greater than or equal to 1"),
    ("measure", ["--backend", "tpu"], "measure.backend: must be of"),
    ("measure", ["--quantity", "heat"], "measure.quantity"),
    ("estimate", ["--passes", "1"], "estimate.passes: must be greater than or equal to 2"),
    ("estimate", ["--passes", "many"], "estimate.passes"),
    ("estimate", ["--passes", "none"], "estimate.passes"),
    ("estimate", ["--passes", "[1"], "estimate.passes"),
    ("estimate", ["--stability", "nan"], "estimate.stability"),
    ("sample", ["--count", "1"], "sample.count"),
    ("check", ["--folds", "1"], "check.folds"),
    ("search", ["--limits", "latency"], "search.limits"),
    ("search", ["--time-limit", "0"], "search.time_limit"),
    ("finetune", ["--epochs", "0"], "finetune.epochs"),
    ("compare", ["--random", "-1"], "compare.random"),
    ("export", ["--formats", "exe"], "export.formats"),
]


@pytest.mark.parametrize(
    ("task", "typed", "words"), WRONG, ids=[f"{task} {' '.join(typed)}" for task, typed, _ in WRONG]
)
def test_wrong_values_are_answered_with_the_setting_s_name(finished_once, task, typed, words):
    before = contents(finished_once)
    assert words in refusal(task, finished_once, *typed)
    assert contents(finished_once) == before


def test_the_line_of_the_file_is_not_blamed_for_what_was_typed(finished_once):
    assert "line" not in refusal("estimate", finished_once, "--passes", 1)


def test_an_option_changes_the_run_as_set_would(finished):
    answer("check", finished, "--resamples", 12)
    assert set_in(finished, "check.resamples") == 12
    answer("check", finished, "--set", "check.resamples=14")
    assert set_in(finished, "check.resamples") == 14


def test_none_clears_an_optional_setting(finished):
    answer("search", finished, "--time-limit", 50)
    assert set_in(finished, "search.time_limit") == 50
    answer("search", finished, "--time-limit", "none")
    assert set_in(finished, "search.time_limit") is None


def test_lists_are_repeatable(finished):
    answer("search", finished, "--limits", "latency=40%", "--limits", "macs=50% and latency=90%")
    assert set_in(finished, "search.limits") == ["latency=40%", "macs=50% and latency=90%"]


def test_phases_have_no_option_of_their_own():
    assert not [
        p for p in typer.main.get_command(app).commands["train"].params if p.name in Phase.model_fields
    ]
