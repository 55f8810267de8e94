"""A task is declared once: its configuration part, its command and its module have its name."""

import importlib
import re
from typing import get_args

import pytest
from pydantic import BaseModel
from typer.main import get_command

from binas.base.settings import Settings
from binas.cli.main import app
from binas.run.config import config_model, load_config
from binas.run.records import settings_of
from binas.run.run import Run
from binas.space import load_space
from binas.tasks import BUILTIN, all_steps, all_tasks
from binas.tasks._base import Task

TASKS = list(all_tasks().values())
by_name = pytest.mark.parametrize("task", TASKS, ids=lambda task: task.name)


def settings_named(model, prefix=""):
    """Every setting of a model with its dotted name."""
    for name, field in model.model_fields.items():
        kind = field.annotation
        yield f"{prefix}{name}", field
        if isinstance(kind, type) and issubclass(kind, BaseModel):
            yield from settings_named(kind, f"{prefix}{name}.")


@by_name
def test_the_settings_are_a_part_of_the_configuration(task):
    field = config_model().model_fields[task.name]
    assert field.annotation is task.settings
    assert issubclass(task.settings, Settings)
    assert field.description == task.does
    assert isinstance(load_config().part(task.settings), task.settings)


@by_name
def test_a_command_of_that_name_offers_every_plain_setting(task):
    command = get_command(app).commands[task.name]
    offered = {name for parameter in command.params for name in parameter.opts}
    for name, field in task.settings.model_fields.items():
        kinds = (field.annotation, *get_args(field.annotation))
        if not any(isinstance(kind, type) and issubclass(kind, BaseModel) for kind in kinds):
            assert f"--{name.replace('_', '-')}" in offered
    assert {"--set", "--redo", "--json"} <= offered
    assert ("--out" in offered) >= (task.ask is not None)  # export has one too: a folder for one network


@by_name
def test_a_command_shows_examples_that_it_has(task):
    """Nobody copies an example whose options do not exist."""
    commands = get_command(app).commands
    for example in task.examples:
        name = example.split()[1]
        known = {
            option
            for parameter in commands[name].params
            for option in (*parameter.opts, *parameter.secondary_opts)
        }
        assert set(re.findall(r"(?<= )--?[a-z][a-z0-9-]*", example)) <= known, example


@pytest.mark.parametrize("task", BUILTIN, ids=lambda task: task.name)
def test_a_module_of_that_name_holds_it(task):
    module = importlib.import_module(f"binas.tasks.{task.name}")
    assert [value for value in vars(module).values() if isinstance(value, Task)] == [task]
    assert getattr(module, task.name.upper()) is task


@by_name
def test_steps_have_the_tasks_name(task):
    names = [step.name for step in task.steps]
    assert names == [task.name] or all(name.startswith(f"{task.name}.") for name in names)


def test_the_configuration_has_the_tasks_and_nothing_else():
    assert list(config_model().model_fields) == ["space", "data", *all_tasks()]
    assert [*all_tasks()][: len(BUILTIN)] == [task.name for task in BUILTIN]


def test_every_setting_says_what_it_is():
    missing = [name for name, field in settings_named(config_model()) if not field.description]
    assert missing == []


def test_steps_follow_steps_that_come_before_them():
    steps = all_steps()
    names = [step.name for step in steps]
    assert len(set(names)) == len(names)
    for number, step in enumerate(steps):
        assert {*step.after, *step.order} <= set(names[:number]), step.name


def test_steps_depend_on_settings_that_exist(tmp_path):
    """A name misspelt there would make a change of the setting go unnoticed."""
    run = Run(tmp_path, load_config(), load_space("small-28"))
    known = [name for name, _ in settings_named(config_model())]
    for step in all_steps():
        assert set(step.settings) <= set(known), step.name
        assert {item.setting for item in step.amounts} <= set(settings_of(run)), step.name


def test_files_belong_to_one_step():
    patterns = [pattern for step in all_steps() for pattern in step.files]
    assert len(set(patterns)) == len(patterns)


def test_every_setting_matters_to_some_step_or_is_only_about_speed():
    """Whatever can be set, changing it makes a step stale, or is declared not to."""
    depends = [name for step in all_steps() for name in (*step.settings, *_facts(step))]
    unused = [
        name
        for name in settings_of(Run(None, load_config(), load_space("small-28")))
        if not any(name == used or name.startswith(f"{used}.") for used in depends)
    ]
    assert unused == [
        "space",
        "train.recipe",
    ]  # space counts by its fingerprint; a recipe only fills in values


def _facts(step):
    """Settings that count through the facts of a step: of measuring without a table, of a file by its content."""
    return {"measure": ("measure",), "train.heaviest": ("train.start",)}.get(step.name, ())
