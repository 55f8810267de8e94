"""Space files: YAML (or plain data) to :class:`SearchSpace` and back, with errors that name line and key."""

from __future__ import annotations

import itertools
import math
import re
from functools import cache
from importlib import resources
from pathlib import Path
from typing import Annotated, Any, Literal

import yaml
from pydantic import BaseModel, ConfigDict, Field, StringConstraints, ValidationError, model_validator
from pydantic_core import ErrorDetails

from binas.base.errors import ArchitectureError, SpaceError, several
from binas.base.files import YamlDocument, dump_json, exists, parse_yaml, read_json, read_yaml, write_text
from binas.base.typed import found_problems
from binas.space.blockstrings import parse_block
from binas.space.checks import MAX_CONFIGS, MAX_DEPTH, SPACE_NAME, STAGE_NAME, check_choices
from binas.space.codes import MAX_NUMBER
from binas.space.rules import DEFAULT_RULES, NetworkRules
from binas.space.space import Config, OptionValue, SearchSpace, Stage, make_options

FORMAT = "binas/space"
ABBREVIATIONS = {"expansion": "e", "kernel": "k", "width": "w", "activation": ""}

Name = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9.+]{1,60}$")]
Value = Annotated[bool | int | float | str, Field(union_mode="smart")]
Size = Annotated[int, Field(ge=1, le=MAX_NUMBER, strict=True)]


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
    name: Annotated[str, StringConstraints(pattern=f"^{STAGE_NAME}$")]
    depths: Annotated[list[Annotated[int, Field(ge=0, le=MAX_DEPTH, strict=True)]], Field(min_length=1)]
    configs: ConfigList | None = None
    blocks: list[BlockEntry] | None = None

    @model_validator(mode="after")
    def _consistent(self) -> StageEntry:
        if sorted(set(self.depths)) != self.depths:
            raise ValueError(f"depths must increase without repeats, got {self.depths}")
        if (self.configs is None) == (self.blocks is None):
            raise ValueError(
                "give either 'configs' (the same for every block) or 'blocks' (one entry per block)"
            )
        if self.blocks is not None and len(self.blocks) != self.depths[-1]:
            raise ValueError(
                f"the largest depth is {self.depths[-1]} but {len(self.blocks)} blocks are listed"
            )
        return self


class SpaceFile(_Strict):
    """A binas search space, version 1."""

    format: Literal["binas/space"]
    version: Literal[1]
    name: Annotated[str, StringConstraints(pattern=f"^{SPACE_NAME}$")]
    description: str = ""
    channels: Size | None = None
    resolution: Size | None = None
    stem: list[str] = []
    stages: Annotated[list[StageEntry], Field(min_length=1)]
    head: list[str] = []
    features: Size | None = None
    classes: Size | None = None
    network: str | None = None
    rules: NetworkRules = DEFAULT_RULES


def space_schema() -> dict[str, Any]:
    """JSON Schema of a space file."""
    return SpaceFile.model_json_schema()


def load_space(source: str | Path) -> SearchSpace:
    """A built-in space by name, or a space from a YAML (or ``.json``) file."""
    if isinstance(source, str) and source in builtin_names():
        return load_builtin(source)
    path = Path(source)
    if not exists(path) and path.suffix not in (".yaml", ".yml", ".json"):
        known = ", ".join(builtin_names())
        raise SpaceError(f"{str(source)[:200]!r} is neither a built-in space ({known}) nor a YAML file.")
    document = YamlDocument(read_json(path), {}) if path.suffix == ".json" else read_yaml(path)
    return _from_document(document, str(path))


@cache
def load_builtin(name: str) -> SearchSpace:
    """One of the spaces that come with binas."""
    text = (resources.files("binas.space") / "builtin" / f"{name}.yaml").read_text(encoding="utf-8")
    return _from_document(parse_yaml(text, f"built-in space {name}"), f"built-in space {name}")


@cache
def builtin_names() -> tuple[str, ...]:
    """Names of the spaces that come with binas."""
    folder = resources.files("binas.space") / "builtin"
    return tuple(
        sorted(item.name[: -len(".yaml")] for item in folder.iterdir() if item.name.endswith(".yaml"))
    )


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
    return yaml.dump(
        space_to_data(space),
        Dumper=_Dumper,
        sort_keys=False,
        allow_unicode=True,
        default_flow_style=None,
        width=100,
    )


class _Dumper(yaml.SafeDumper):
    """PyYAML's writer, but text with line breaks or control characters is always escaped: it loses some."""


def _represent_text(dumper: yaml.SafeDumper, text: str) -> yaml.ScalarNode:
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style=None if text.isprintable() else '"')


_Dumper.add_representer(str, _represent_text)


def save_space(space: SearchSpace, path: Path) -> None:
    """Write a space as YAML (or as JSON where the name ends in ``.json``), atomically."""
    write_text(path, dump_json(space_to_data(space)) if path.suffix == ".json" else space_to_yaml(space))


def _from_document(document: YamlDocument, where: str) -> SearchSpace:
    try:
        parsed = SpaceFile.model_validate(document.data)
    except ValidationError as error:
        raise SpaceError(
            several(f"{where} is not a valid search space", _describe(error, document))
        ) from error
    try:
        space = _build(parsed)
    except SpaceError as error:
        raise SpaceError(f"{where}: {error}") from error
    _check_codes(space, document, where)
    return space


def _describe(error: ValidationError, document: YamlDocument) -> list[str]:
    """Each wrong key once, as 'stages.2.depths (line 14): message'."""
    items = [(_location(item["loc"]), str(item["type"]), _message(item)) for item in found_problems(error)]
    holders = {location[:end] for location, _, _ in items for end in range(len(location))}
    messages: dict[str, str] = {}
    for location, kind, message in items:
        if kind in ("list_type", "dict_type") and location in holders:
            continue  # the branch of a union that the file does not use
        line = document.line(location)
        key = ".".join(str(part) for part in location) or "the whole file"
        messages.setdefault(f"{key} (line {line})" if line else key, message)
    return [f"{key}: {message}" for key, message in messages.items()]


def _location(parts: tuple[str | int, ...]) -> tuple[str | int, ...]:
    """The key of a pydantic error without the names of the union branches it tried."""
    kept = tuple(part for part in parts if not (isinstance(part, str) and "[" in part))
    return kept[:-1] if _is_option(parts) else kept


def _message(item: ErrorDetails) -> str:
    if _is_option(item["loc"]):
        return f"must be a finite number, text, or on or off, got {str(item['input'])[:60]}"
    if item["type"] == "model_type":
        return "must be a mapping of keys to values"
    return item["msg"].removeprefix("Value error, ")


def _is_option(parts: tuple[str | int, ...]) -> bool:
    return bool(parts) and parts[-1] in ("bool", "int", "float", "str")


def _check_codes(space: SearchSpace, document: YamlDocument, where: str) -> None:
    for key, codes in (("stem", space.stem), ("head", space.head)):
        for i, code in enumerate(codes):
            try:
                parse_block(code)
            except ArchitectureError as error:
                line = document.line((key, i))
                place = f"{key}.{i} (line {line})" if line else f"{key}.{i}"
                raise SpaceError(f"{where} is not a valid search space: {place}: {error}") from error


def _build(parsed: SpaceFile) -> SearchSpace:
    check_choices(sum(_choices(stage) for stage in parsed.stages))  # before they are written out
    plain = parsed.model_dump(exclude={"format", "version", "stages", "stem", "head", "rules"})
    stages = tuple(_build_stage(stage) for stage in parsed.stages)
    return SearchSpace(
        stages=stages, stem=tuple(parsed.stem), head=tuple(parsed.head), rules=parsed.rules, **plain
    )


def _build_stage(entry: StageEntry) -> Stage:
    if entry.blocks is not None:
        blocks = tuple(_expand(block.configs) for block in entry.blocks)
    else:
        blocks = (_expand(entry.configs),) * entry.depths[-1]
    return Stage(entry.name, tuple(entry.depths), blocks, make_options(entry.__pydantic_extra__ or {}))


def _choices(entry: StageEntry) -> int:
    """Configs of all blocks of a stage."""
    if entry.blocks is not None:
        return sum(_width(block.configs) for block in entry.blocks)
    return entry.depths[-1] * _width(entry.configs)


def _width(configs: ConfigList | None) -> int:
    """Configs of one block."""
    return math.prod(map(len, configs.values())) if isinstance(configs, dict) else len(configs or ())


def _expand(configs: ConfigList | None) -> tuple[Config, ...]:
    """Configs from a list, or from the product of option lists (the last option varies fastest)."""
    assert configs is not None
    if isinstance(configs, dict):
        # one more than is allowed, so that the check of the space sees that there are too many
        combinations = itertools.islice(itertools.product(*configs.values()), MAX_CONFIGS + 1)
        options = [dict(zip(configs, values, strict=True)) for values in combinations]
        return tuple(Config(config_name(choice), make_options(choice)) for choice in options)
    return tuple(Config(c.name, make_options(c.__pydantic_extra__ or {})) for c in configs)


def config_name(options: dict[str, OptionValue]) -> str:
    """Name of a config made from options: expansion 3, kernel 5, se on -> ``e3k5se``."""
    name = "".join(_option_name(key, value) for key, value in options.items())
    return name or "plain"


def _option_name(key: str, value: OptionValue) -> str:
    """Short text of one option; a key such as ``se_ratio`` loses what a config name cannot hold."""
    short = ABBREVIATIONS.get(key, re.sub("[^A-Za-z0-9.+]", "", key))
    if isinstance(value, bool):
        return short if value else ""
    return short + (f"{value:g}" if isinstance(value, float) else str(value))
