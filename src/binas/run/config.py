"""A run's configuration: one YAML file with a part for each task; everything has a default.

The parts are the settings of the tasks (:mod:`binas.tasks`), beside ``space`` and ``data``.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any, TypeVar, get_args

import yaml
from pydantic import BaseModel, Field, ValidationError, create_model, model_validator
from pydantic_core import ErrorDetails

from binas.base.errors import ConfigError, several
from binas.base.files import YamlDocument, exists, parse_yaml, read_yaml, write_text
from binas.base.identity import flattened
from binas.base.settings import Settings
from binas.base.typed import found_problems
from binas.data.config import DataConfig
from binas.report.assemble import CONFIG
from binas.space.files import builtin_names
from binas.tasks import all_tasks
from binas.training.config import fill_from_recipe

FILE = CONFIG
Part = TypeVar("Part", bound=Settings)
Change = str | tuple[str, Any]


class RunConfig(Settings):
    """Everything a run depends on; :func:`config_model` adds a part for each task."""

    space: str = Field(
        "fused-28", description="name of a built-in space, or a YAML file beside the configuration"
    )
    data: DataConfig = Field(DataConfig(), description="the images")

    @model_validator(mode="before")
    @classmethod
    def _fill_in(cls, given: Any) -> Any:
        return fill_from_recipe(given) if isinstance(given, Mapping) else given

    def part(self, kind: type[Part]) -> Part:
        """The settings of one task, by their type."""
        return next(value for value in self.__dict__.values() if isinstance(value, kind))


@cache
def config_model() -> type[RunConfig]:
    """The configuration with the settings of every task, those of installed packages included."""
    parts: dict[str, Any] = {
        task.name: (task.settings, Field(default_factory=task.settings, description=task.does))
        for task in all_tasks().values()
    }
    return create_model("RunConfig", __base__=RunConfig, __doc__=RunConfig.__doc__, **parts)


def load_config(path: Path | None = None, changes: Iterable[Change] = ()) -> RunConfig:
    """Read a configuration; ``changes`` such as ``train.heaviest.epochs=3`` override single values.

    Paths are relative to the file; without a file all values are defaults, and paths relative to the working folder.
    """
    document = read_yaml(path) if path else YamlDocument({}, {})
    data = {} if document.data is None else document.data
    if not isinstance(data, dict):
        raise ConfigError(f"{path} must hold keys and values, such as 'space: demo'.")
    typed = [read_change(change) if isinstance(change, str) else change for change in changes]
    for name, value in typed:
        set_value(data, name, value)
    try:
        config = config_model().model_validate(data)
    except ValidationError as error:
        where = str(path) if path else "the configuration"
        problems = [_describe(item, document, [name for name, _ in typed]) for item in found_problems(error)]
        raise ConfigError(
            several(where, list(dict.fromkeys(problems)), "See docs/reference/settings.md.")
        ) from error
    return _resolve(config, path.parent if path else Path())


def given_settings(path: Path | None, changes: Iterable[Change] = ()) -> frozenset[str]:
    """Dotted names of the settings that a file and ``changes`` set; what they leave out has its default."""
    data = None if path is None else read_yaml(path).data
    written = flattened(data) if isinstance(data, dict) else {}
    typed = dict(read_change(change) if isinstance(change, str) else change for change in changes)
    return frozenset({*written, *flattened(typed)})


def save_config(config: RunConfig, path: Path) -> None:
    """Write the configuration with all its values; files beside it by their names, so that the folder can be moved."""
    values = values_of(config)
    for name in _path_settings():
        _make_relative(values, name, path.parent.absolute())
    write_text(path, yaml.safe_dump(values, sort_keys=False))


def _make_relative(values: dict[str, Any], name: str, folder: Path) -> None:
    """Write the path of one setting from ``folder``, where it lies in it."""
    *parents, last = name.split(".")
    for part in parents:
        values = values[part]
    value = values.get(last)
    if isinstance(value, str) and Path(value).is_absolute() and Path(value).is_relative_to(folder):
        values[last] = Path(value).relative_to(folder).as_posix()


def values_of(config: RunConfig) -> dict[str, Any]:
    """All values of a configuration as plain ones; what the data's kind does not use is left out."""
    values = config.model_dump(mode="json")
    values["data"] = config.data.model_dump(mode="json", exclude_unset=True)
    return values


def read_change(text: str) -> tuple[str, Any]:
    """``key.key=value`` as a name and a value."""
    name, sign, value = text.partition("=")
    if not sign or not all(name.strip().split(".")):
        raise ConfigError(f"--set {text!r} is not of the form key.key=value, e.g. train.heaviest.epochs=3.")
    return name.strip(), parse_yaml(value, f"--set {name.strip()}").data


def set_value(data: dict[str, Any], name: str, value: Any) -> None:
    """Set one value named by its dotted path."""
    *parents, last = name.split(".")
    if name in _path_settings() and isinstance(value, str | Path) and exists(Path(value)):
        value = str(Path(value).absolute())  # typed here, so meant from here
    for part in parents:
        inner = data.setdefault(part, {})
        if not isinstance(inner, dict):
            raise ConfigError(f"--set {name}: {part!r} is a single value, it has no keys.")
        data = inner
    data[last] = value


def _describe(item: ErrorDetails, document: YamlDocument, typed: list[str]) -> str:
    """One problem with its key and line: what is allowed, and what was there. What was typed stands on no line."""
    key = tuple(part for part in item["loc"] if not str(part).startswith("function-"))
    name = ".".join(map(str, key))
    line = None if any(f"{name}.".startswith(f"{known}.") for known in typed) else document.line(key)
    place = name + (f" (line {line})" if line else "")
    if item["type"] == "extra_forbidden":
        return f"{place} is not a setting; allowed here are {', '.join(_allowed(key[:-1]))}"
    if item["type"] == "missing":
        return f"{place} is missing"
    shown = "" if isinstance(item["input"], Mapping) else f", got {str(item['input'])[:60]!r}"
    message = item["msg"].removeprefix("Value error, ").replace("Input should be", "must be")
    return f"{place}: {message}{shown}"


def _allowed(key: tuple[str | int, ...]) -> list[str]:
    """Names of the settings at a place of the configuration."""
    model: type[BaseModel] = config_model()
    for part in key:
        kind = model.model_fields[str(part)].annotation
        options = [kind, *get_args(kind)]
        model = next(item for item in options if isinstance(item, type) and issubclass(item, BaseModel))
    return list(model.model_fields)


@cache
def _path_settings() -> frozenset[str]:
    """Settings that name files: ``space``, and those whose type is a path."""

    def walk(model: type[BaseModel], prefix: str) -> Iterator[str]:
        for name, field in model.model_fields.items():
            kinds = (field.annotation, *get_args(field.annotation))
            if Path in kinds:
                yield prefix + name
            elif isinstance(field.annotation, type) and issubclass(field.annotation, BaseModel):
                yield from walk(field.annotation, f"{prefix}{name}.")

    return frozenset({"space", *walk(config_model(), "")})


def _resolve(config: RunConfig, folder: Path) -> RunConfig:
    """Paths, relative to the configuration file, become absolute, so that they mean the same from everywhere."""
    changes: dict[str, Any] = {}
    if config.space not in builtin_names() and exists(folder / config.space):
        changes["space"] = str((folder / config.space).absolute())
    for name, part in config:
        if isinstance(part, Settings):
            paths = {key: (folder / value).absolute() for key, value in part if isinstance(value, Path)}
            changes |= {name: part.model_copy(update=paths)} if paths else {}
    return config.model_copy(update=changes)
