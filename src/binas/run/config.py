"""A run's configuration: one YAML file with a part for each thing a run does; everything has a default."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import yaml
from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator
from pydantic_core import ErrorDetails

from binas.base.errors import ConfigError, several
from binas.base.files import YamlDocument, exists, parse_yaml, read_yaml, write_text
from binas.data.config import DataConfig
from binas.run.sections import (
    CheckConfig,
    CompareConfig,
    ContributionsConfig,
    ExportConfig,
    MeasuringConfig,
    SearchConfig,
)
from binas.space.files import builtin_names
from binas.training.config import TrainingConfig

FILE = "config.yaml"
PATHS = ("space", "data.path", "measuring.table")


class RunConfig(BaseModel):
    """Everything a run depends on."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    space: str = Field(
        "demo", description="name of a built-in space, or a YAML file beside the configuration"
    )
    data: DataConfig = Field(DataConfig(), description="the images")
    training: TrainingConfig = Field(
        default_factory=TrainingConfig.from_recipe,
        description="how supernet and found networks are trained; values not given are those of the recipe",
    )
    measuring: MeasuringConfig = Field(MeasuringConfig(), description="what networks cost on a device")
    contributions: ContributionsConfig = Field(
        ContributionsConfig(), description="what each choice contributes to accuracy"
    )
    check: CheckConfig = Field(CheckConfig(), description="how the accuracy estimator is judged")
    search: SearchConfig = Field(SearchConfig(), description="the limits to search for")
    compare: CompareConfig = Field(CompareConfig(), description="what the search bought")
    export: ExportConfig = Field(ExportConfig(), description="the files of a finished network")

    @field_validator("training", mode="before")
    @classmethod
    def _fill_in(cls, given: Any) -> Any:
        return TrainingConfig.with_defaults(given) if isinstance(given, Mapping) else given


def load_config(path: Path | None, changes: Iterable[str] = ()) -> RunConfig:
    """Read a configuration; ``changes`` such as ``training.heaviest.epochs=3`` override single values.

    Paths are relative to the file; without a file all values are defaults, and paths relative to the working folder.
    """
    document = read_yaml(path) if path else YamlDocument({}, {})
    data = {} if document.data is None else document.data
    if not isinstance(data, dict):
        raise ConfigError(f"{path} must hold keys and values, such as 'space: demo'.")
    for change in changes:
        _apply(data, change)
    try:
        config = RunConfig.model_validate(data)
    except ValidationError as error:
        where = str(path) if path else "the configuration"
        problems = [_described(item, document) for item in error.errors()]
        raise ConfigError(several(where, list(dict.fromkeys(problems)), "See docs/running.md.")) from error
    return _resolved(config, path.parent if path else Path())


def save_config(config: RunConfig, path: Path) -> None:
    """Write the configuration with all its values; what the data's kind does not use is left out."""
    values = config.model_dump(mode="json")
    values["data"] = config.data.model_dump(mode="json", exclude_unset=True)
    write_text(path, yaml.safe_dump(values, sort_keys=False))


def _apply(data: dict[str, Any], change: str) -> None:
    """Set one value named by its dotted path."""
    name, sign, text = change.partition("=")
    parts = name.strip().split(".")
    if not sign or not all(parts):
        raise ConfigError(
            f"--set {change!r} is not of the form key.key=value, e.g. training.heaviest.epochs=3."
        )
    for part in parts[:-1]:
        inner = data.setdefault(part, {})
        if not isinstance(inner, dict):
            raise ConfigError(f"--set {change!r}: {part!r} is a single value, it has no keys.")
        data = inner
    value = parse_yaml(text, f"--set {name.strip()}").data
    if name.strip() in PATHS and isinstance(value, str) and exists(Path(value)):
        value = str(Path(value).absolute())  # typed here, so meant from here
    data[parts[-1]] = value


def _described(item: ErrorDetails, document: YamlDocument) -> str:
    """One problem with its key and line: what is allowed, and what was there."""
    key = tuple(part for part in item["loc"] if not str(part).startswith("function-"))
    line = document.line(key)
    place = ".".join(map(str, key)) + (f" (line {line})" if line else "")
    if item["type"] == "extra_forbidden":
        return f"{place} is not a setting; allowed here are {', '.join(_allowed(key[:-1]))}"
    if item["type"] == "missing":
        return f"{place} is missing"
    shown = "" if isinstance(item["input"], Mapping) else f", got {item['input']!r}"
    message = item["msg"].removeprefix("Value error, ").replace("Input should be", "must be")
    return f"{place}: {message}{shown}"


def _allowed(key: tuple[str | int, ...]) -> list[str]:
    """Names of the settings at a place of the configuration."""
    model: type[BaseModel] = RunConfig
    for part in key:
        kind = model.model_fields[str(part)].annotation
        options = [kind, *getattr(kind, "__args__", ())]
        model = next(
            option for option in options if isinstance(option, type) and issubclass(option, BaseModel)
        )
    return list(model.model_fields)


def _resolved(config: RunConfig, folder: Path) -> RunConfig:
    """Paths, relative to the configuration file, become absolute, so that they mean the same from everywhere."""
    changes: dict[str, Any] = {}
    if config.space not in builtin_names() and exists(folder / config.space):
        changes["space"] = str((folder / config.space).absolute())
    if config.data.path is not None:
        path = (folder / config.data.path).absolute()
        changes["data"] = config.data.model_copy(update={"path": path})
    if config.measuring.table is not None:
        table = (folder / config.measuring.table).absolute()
        changes["measuring"] = config.measuring.model_copy(update={"table": table})
    return config.model_copy(update=changes)
