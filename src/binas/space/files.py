"""Space files: YAML (or plain data) to :class:`SearchSpace` and back, with errors that name line and key."""

from __future__ import annotations

import itertools
from functools import cache
from importlib import resources
from pathlib import Path
from typing import Annotated, Any, Literal

import yaml
from pydantic import BaseModel, ConfigDict, Field, StringConstraints, ValidationError, model_validator

from binas.errors import BinasError, SpaceError, several
from binas.files import YamlDocument, parse_yaml, read_yaml, write_text
from binas.space.architecture import EMPTY_STAGE
from binas.space.blockstrings import parse_block
from binas.space.space import Config, OptionValue, SearchSpace, Stage, make_options

FORMAT = "binas/space"
ABBREVIATIONS = {"expansion": "e", "kernel": "k", "width": "w", "activation": ""}
MAX_CONFIGS = 10_000

Name = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9.+]{1,60}$")]
Value = Annotated[bool | int | float | str, Field(union_mode="smart")]


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", allow_inf_nan=False)


class ConfigEntry(BaseModel):
    """One config: a name and any options (expansion, kernel, se, activation, or your own keys)."""

    model_config = ConfigDict(extra="allow", allow_inf_nan=False)
    __pydantic_extra__: dict[str, Value] = Field(init=False)
    name: Name


Product = dict[str, Annotated[list[Value], Field(min_length=1)]]
ConfigList = Annotated[list[ConfigEntry], Field(min_length=1)] | Product


class BlockEntry(_Strict):
    """One block with its own configs."""

    configs: ConfigList


class StageEntry(BaseModel):
    """One stage. Unlisted keys are attributes shared by its blocks (channels, stride, activation, ...)."""

    model_config = ConfigDict(extra="allow", allow_inf_nan=False)
    __pydantic_extra__: dict[str, Value] = Field(init=False)
    name: Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9.+-]{1,60}$")]
    depths: Annotated[list[Annotated[int, Field(ge=0, le=1000, strict=True)]], Field(min_length=1)]
    configs: ConfigList | None = None
    blocks: list[BlockEntry] | None = None

    @model_validator(mode="after")
    def _consistent(self) -> StageEntry:
        if sorted(set(self.depths)) != self.depths:
            raise ValueError(f"depths must increase without repeats, got {self.depths}")
        if (self.configs is None) == (self.blocks is None):
            raise ValueError("give either 'configs' (the same for every block) or 'blocks' (one entry per block)")
        if self.blocks is not None and len(self.blocks) != self.depths[-1]:
            raise ValueError(f"the largest depth is {self.depths[-1]} but {len(self.blocks)} blocks are listed")
        return self


class SpaceFile(_Strict):
    """A binas search space, version 1."""

    format: Literal["binas/space"]
    version: Literal[1]
    name: Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9._-]{1,80}$")]
    description: str = ""
    channels: Annotated[int, Field(ge=1, le=10_000)] | None = None
    resolution: Annotated[int, Field(ge=1, le=100_000)] | None = None
    stem: list[str] = []
    stages: Annotated[list[StageEntry], Field(min_length=1)]
    head: list[str] = []
    features: Annotated[int, Field(ge=1)] | None = None
    classes: Annotated[int, Field(ge=1)] | None = None


def space_schema() -> dict[str, Any]:
    """JSON Schema of a space file."""
    return SpaceFile.model_json_schema()


def load_space(source: str | Path) -> SearchSpace:
    """A built-in space by name, or a space from a YAML file."""
    if isinstance(source, str) and source in builtin_names():
        return load_builtin(source)
    path = Path(source)
    if not path.exists() and path.suffix not in (".yaml", ".yml", ".json"):
        known = ", ".join(builtin_names())
        raise SpaceError(f"{source!r} is neither a built-in space ({known}) nor a YAML file.")
    return _from_document(read_yaml(path), str(path))


@cache
def load_builtin(name: str) -> SearchSpace:
    """One of the spaces that come with binas."""
    text = (resources.files("binas.space") / "builtin" / f"{name}.yaml").read_text(encoding="utf-8")
    return _from_document(parse_yaml(text, f"built-in space {name}"), f"built-in space {name}")


@cache
def builtin_names() -> tuple[str, ...]:
    """Names of the spaces that come with binas."""
    folder = resources.files("binas.space") / "builtin"
    return tuple(sorted(item.name[: -len(".yaml")] for item in folder.iterdir() if item.name.endswith(".yaml")))


def space_from_yaml(text: str) -> SearchSpace:
    """A space from YAML text."""
    return _from_document(parse_yaml(text, "space text"), "space text")


def space_from_data(data: Any) -> SearchSpace:
    """A space from plain Python data of the same form as the YAML file."""
    return _from_document(YamlDocument(data, {}), "space data")


def space_to_data(space: SearchSpace) -> dict[str, Any]:
    """Plain data from which :func:`space_from_data` gives the same space again."""
    head = {"format": FORMAT, "version": 1, "name": space.name}
    if space.description:
        head["description"] = space.description
    return {**head, **space.to_data()}


def space_to_yaml(space: SearchSpace) -> str:
    """YAML from which :func:`space_from_yaml` gives the same space again."""
    return yaml.safe_dump(space_to_data(space), sort_keys=False, allow_unicode=True, default_flow_style=None, width=100)


def save_space(space: SearchSpace, path: Path) -> None:
    """Write a space as YAML, atomically."""
    write_text(path, space_to_yaml(space))


def _from_document(document: YamlDocument, where: str) -> SearchSpace:
    try:
        parsed = SpaceFile.model_validate(document.data)
    except ValidationError as error:
        problems = [_describe(item, document) for item in error.errors()]
        raise SpaceError(several(f"{where} is not a valid search space", list(dict.fromkeys(problems)))) from error
    try:
        space = _build(parsed)
        for code in (*space.stem, *space.head):
            parse_block(code)
    except (ValueError, BinasError) as error:
        raise SpaceError(f"{where} is not a valid search space: {error}") from error
    return space


def _describe(item: Any, document: YamlDocument) -> str:
    """One pydantic error as 'stages.2.depths (line 14): message'; union branches are not shown."""
    location = tuple(part for part in item["loc"] if not (isinstance(part, str) and "[" in part))
    key = ".".join(str(part) for part in location) or "the whole file"
    line = document.line(location)
    message = str(item["msg"]).removeprefix("Value error, ")
    return f"{key}{f' (line {line})' if line else ''}: {message}"


def _build(parsed: SpaceFile) -> SearchSpace:
    names = [stage.name for stage in parsed.stages]
    if len(set(names)) != len(names):
        raise ValueError(f"stage names must differ, got {', '.join(names)}")
    plain = parsed.model_dump(exclude={"format", "version", "stages", "stem", "head"})
    stages = tuple(_build_stage(stage) for stage in parsed.stages)
    return SearchSpace(stages=stages, stem=tuple(parsed.stem), head=tuple(parsed.head), **plain)


def _build_stage(entry: StageEntry) -> Stage:
    largest = entry.depths[-1]
    lists = [block.configs for block in entry.blocks] if entry.blocks is not None else [entry.configs] * largest
    blocks = tuple(_expand(configs, entry.name) for configs in lists)
    attributes = {key: value for key, value in (entry.__pydantic_extra__ or {}).items()}
    return Stage(entry.name, tuple(entry.depths), blocks, make_options(attributes))


def _expand(configs: ConfigList | None, stage: str) -> tuple[Config, ...]:
    """Configs from a list, or from the product of option lists (the last option varies fastest)."""
    assert configs is not None
    if isinstance(configs, dict):
        combinations = itertools.islice(itertools.product(*configs.values()), MAX_CONFIGS + 1)
        options = [dict(zip(configs, values, strict=True)) for values in combinations]
        built = tuple(Config(config_name(choice), make_options(choice)) for choice in options)
    else:
        built = tuple(Config(c.name, make_options(c.__pydantic_extra__ or {})) for c in configs)
    _check_names(built, stage)
    return built


def _check_names(configs: tuple[Config, ...], stage: str) -> None:
    names = [config.name for config in configs]
    if len(names) > MAX_CONFIGS:
        raise ValueError(f"a block of stage {stage!r} has more than {MAX_CONFIGS} configs")
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise ValueError(f"stage {stage!r} has two configs called {', '.join(twice)}; list them with 'name:'")
    if EMPTY_STAGE in names:
        raise ValueError(f"a config of stage {stage!r} is called {EMPTY_STAGE!r}, which means an empty stage")


def config_name(options: dict[str, OptionValue]) -> str:
    """Name of a config made from options: expansion 3, kernel 5, se on -> ``e3k5se``."""
    name = "".join(_option_name(key, value) for key, value in options.items())
    return name or "plain"


def _option_name(key: str, value: OptionValue) -> str:
    if isinstance(value, bool):
        return key if value else ""
    text = f"{value:g}" if isinstance(value, float) else str(value)
    return ABBREVIATIONS.get(key, key) + text
