"""Block strings in the grammar of timm: ``ir_r1_k5_s2_e3_c24_nre_se0.25``.

A network is a list of stages, each a list of such codes::

    [['ds_r1_k3_s1_e1_c16_nre'], ['ir_r1_k5_s2_e3_c24_nre', 'ir_r1_k3_s1_e3_c24_nre_se0.25'], ...]

A code starts with a kind of a block family (:mod:`binas.space.families`): ``ir`` inverted residual, ``ds``
depthwise separable, ``cn`` convolution, ``bt`` bottleneck, ... ``r`` repeats, ``k`` kernel, ``s`` stride, ``e``
expansion, ``c`` channels, ``se`` squeeze-excite ratio, ``n`` activation (``re`` ReLU, ``r6`` ReLU6, ``hs``
h-swish, ``sw`` swish; h-swish when absent).
"""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from typing import Any

from binas.base.errors import ArchitectureError, FileError, SpaceError
from binas.base.files import exists, parse_json, read_json, read_text
from binas.space.architecture import Architecture
from binas.space.codes import ACTIVATIONS, MAX_NUMBER, BlockCode
from binas.space.families import FIELDS, family_of, family_of_kind, known_kinds
from binas.space.space import Config, SearchSpace, Stage

MAX_TEXT = 100_000
MAX_REPEATS = 100
_FIELD = re.compile(r"([a-z]{1,20})([0-9]{1,20}(?:\.[0-9]{1,400})?)")

Blocks = tuple[BlockCode, ...]


def parse_block(text: str) -> BlockCode:
    """Read one block string; unknown codes are errors, never ignored."""
    kind, *fields = text.split("_")
    shown = repr(text[:80])
    try:
        family = family_of_kind(kind)
    except SpaceError as error:
        known = ", ".join(known_kinds())
        raise ArchitectureError(
            f"block string {shown} starts with {kind[:40]!r}; known are {known}."
        ) from error
    names = {**FIELDS, **{field: field for field in family.fields}}
    values: dict[str, Any] = {"kind": kind}
    for item in fields:
        key, value = _parse_field(item, names, shown)
        if key in values:
            raise ArchitectureError(f"block string {shown} gives {key} twice.")
        values[key] = value
    values.setdefault("stride", 1)
    missing = [key for key in ("kernel", "channels") if key not in values]
    if missing:
        raise ArchitectureError(f"block string {shown} does not say {' and '.join(missing)} (k3, c24).")
    extra = tuple((key, values.pop(key)) for key in family.fields if key in values)
    return BlockCode(**values, extra=extra)


def _parse_field(item: str, names: dict[str, str], shown: str) -> tuple[str, Any]:
    if item == "noskip":
        return "skip", False
    if item[:1] == "n" and item[1:] in ACTIVATIONS:
        return "activation", item[1:]
    match = _FIELD.fullmatch(item)
    if match is None or match[1] not in names:
        raise ArchitectureError(
            f"block string {shown} has the unknown part {item[:40]!r}; known are {', '.join(names)} with a "
            "number, n with re, r6, hs or sw, and noskip."
        )
    key, number = match.groups()
    return names[key], _parse_number(key, number, shown)


def _parse_number(key: str, text: str, shown: str) -> float | int:
    value = float(text)
    largest = MAX_REPEATS if key == "r" else MAX_NUMBER
    if value > largest or (value == 0 and key != "se"):
        raise ArchitectureError(
            f"block string {shown}: {key} must be above 0 and at most {largest}, got {text}."
        )
    if key not in ("r", "k", "s", "c"):
        return value
    if "." in text:
        raise ArchitectureError(f"block string {shown}: {key} must be a whole number, got {text}.")
    return int(text)


def parse_network(text: str) -> tuple[Blocks, ...]:
    """Read a whole network: a Python-style list of lists of block strings. Repeats are unrolled."""
    if len(text) > MAX_TEXT:
        raise ArchitectureError("the network string is too long.")
    try:
        data = parse_json(text.strip().replace("'", '"'), "the network string")
    except FileError as error:
        raise ArchitectureError("the network string is not a list of lists of block strings.") from error
    nested = isinstance(data, list) and all(isinstance(stage, list) for stage in data)
    if not nested or not all(isinstance(block, str) for stage in data for block in stage):
        raise ArchitectureError("the network string is not a list of lists of block strings.")
    return tuple(tuple(code for block in stage for code in parse_repeated(block)) for stage in data)


def parse_repeated(text: str) -> Blocks:
    """The blocks of one block string: ``r3`` stands for three, of which only the first has the stride."""
    code = parse_block(text)
    first = replace(code, repeats=1)
    return (first, *(replace(first, stride=1) for _ in range(code.repeats - 1)))


def format_network(stages: tuple[Blocks, ...]) -> str:
    """Write a network as published: ``[['ds_...'], ['ir_...', 'ir_...'], ...]``."""
    return "[" + ", ".join("[" + ", ".join(f"'{code}'" for code in stage) + "]" for stage in stages) + "]"


def block_code(stage: Stage, block: int, config: Config) -> BlockCode:
    """The block string of a config in 0-based ``block`` of ``stage``, as its family writes it."""
    family = family_of(stage)
    if config.get("family", family.name) != family.name:
        raise SpaceError(
            f"config {config.name!r} of stage {stage.name!r} has no block string: its family is not the stage's, "
            f"{family.name}."
        )
    return family.code(stage, block, config)


def _fixed(codes: tuple[str, ...]) -> list[Blocks]:
    return [parse_repeated(code) for code in codes]


def to_blocks(space: SearchSpace, architecture: Architecture) -> tuple[Blocks, ...]:
    """All stages of a network: stem blocks after the first convolution, searched stages, head blocks."""
    return tuple(stage for stage in _all_blocks(space, architecture) if stage)


def _all_blocks(space: SearchSpace, architecture: Architecture) -> tuple[Blocks, ...]:
    """The stages of :func:`to_blocks`, with an empty one for each stage of depth zero."""
    space.check(architecture)
    searched = []
    for s, (stage, names) in enumerate(zip(space.stages, architecture.stages, strict=True)):
        chosen = [stage.blocks[b][space.config_index(s, b, name)] for b, name in enumerate(names)]
        searched.append(tuple(block_code(stage, b, config) for b, config in enumerate(chosen)))
    return (*_fixed(space.stem[1:]), *searched, *_fixed(space.head))


def to_block_string(space: SearchSpace, architecture: Architecture) -> str:
    """The architecture as a timm-style network string that :func:`from_block_string` reads back.

    A stage of depth zero is left out; where that could be read as another architecture it is written
    ``[]``. Configs that differ only in options that block strings do not know are refused.
    """
    for stages in (to_blocks(space, architecture), _all_blocks(space, architecture)):
        text = format_network(stages)
        if _read_or_none(space, text) == architecture:
            return text
    raise ArchitectureError(
        f"{architecture} has no block string of its own: two configs of a block give the same one, or it is "
        "too long. Use the compact string or JSON."
    )


def _read_or_none(space: SearchSpace, text: str) -> Architecture | None:
    try:
        return from_block_string(space, text)
    except ArchitectureError:
        return None


def from_block_string(space: SearchSpace, text: str) -> Architecture:
    """Read a timm-style network string as an architecture of ``space``.

    A stage that may vanish can be missing from the string or be ``[]``.
    """
    stages = list(parse_network(text))
    before, after = _fixed(space.stem[1:]), _fixed(space.head)
    end = len(stages) - len(after)
    if end < len(before) or stages[: len(before)] != before or stages[end:] != after:
        expected = format_network(tuple(before + after))
        raise ArchitectureError(f"the fixed parts of the network string differ from the space's: {expected}.")
    searched = stages[len(before) : end]
    spare = len(space.stages) - len(searched)
    names = [_match_stage(stage, searched, spare > 0) for stage in space.stages]
    if searched:
        more = f"{len(searched)} more stages than the space {space.name!r}"
        raise ArchitectureError(f"the network string has {more}, or in another order.")
    architecture = Architecture(tuple(names))
    space.check(architecture)
    return architecture


def _match_stage(stage: Stage, searched: list[Blocks], may_skip: bool) -> tuple[str, ...]:
    """Names of the configs of the next searched stage, which is taken off the list unless it is skipped."""
    if may_skip and 0 in stage.depths and not (searched and _fits(stage, searched[0])):
        return ()
    if not searched:
        raise ArchitectureError(f"the network string ends before stage {stage.name!r}.")
    codes = searched.pop(0)
    if len(codes) not in stage.depths:
        allowed = ", ".join(map(str, stage.depths))
        raise ArchitectureError(
            f"stage {stage.name!r} has {len(codes)} blocks in the string; allowed are {allowed}."
        )
    return tuple(_match_block(stage, b, code) for b, code in enumerate(codes))


def _fits(stage: Stage, codes: Blocks) -> bool:
    return len(codes) in stage.depths and all(_candidates(stage, b, code) for b, code in enumerate(codes))


def _candidates(stage: Stage, block: int, code: BlockCode) -> list[str]:
    return [name for name, known in _block_codes(stage, block) if known == code]


def _block_codes(stage: Stage, block: int) -> list[tuple[str, BlockCode]]:
    """Names and block strings of the configs that have one; an error where none has."""
    result, problem = [], None
    for config in stage.blocks[block]:
        try:
            result.append((config.name, block_code(stage, block, config)))
        except SpaceError as error:
            problem = error
    if problem is not None and not result:
        raise problem
    return result


def _match_block(stage: Stage, block: int, code: BlockCode) -> str:
    names = _candidates(stage, block, code)
    if names:
        return names[0]
    allowed = ", ".join(str(known) for _, known in _block_codes(stage, block))
    raise ArchitectureError(
        f"block {block + 1} of stage {stage.name!r} cannot be '{code}' in this space; allowed are {allowed}."
    )


def read_architecture(space: SearchSpace, text: str) -> Architecture:
    """An architecture of ``space`` in whichever form a user has it: compact string, timm-style block string or JSON."""
    text = text.strip()
    if text.startswith("["):
        return from_block_string(space, text)
    if text.startswith("{"):
        architecture = Architecture.from_json(text)
        space.check(architecture)
        return architecture
    return space.parse(text)


def read_choice(space: SearchSpace, text: str) -> Architecture:
    """An architecture as a user names it: ``heaviest``, ``lightest``, in any written form, or a file.

    A file holds an architecture in a written form, or a JSON object that says its ``architecture``, such as
    ``binas search --json`` prints.
    """
    named = {"heaviest": True, "lightest": False}
    if text in named:
        return space.extreme(named[text])
    path = Path(text)
    if not exists(path):
        return read_architecture(space, text)
    content = read_text(path).strip()
    data = read_json(path) if content.startswith("{") else None
    if isinstance(data, dict) and isinstance(data.get("architecture"), str):
        content = data["architecture"]
    return read_architecture(space, content)
