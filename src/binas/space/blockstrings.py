"""Block strings in the grammar of timm: ``ir_r1_k5_s2_e3_c24_nre_se0.25``.

A network is a list of stages, each a list of such codes::

    [['ds_r1_k3_s1_e1_c16_nre'], ['ir_r1_k5_s2_e3_c24_nre', 'ir_r1_k3_s1_e3_c24_nre_se0.25'], ...]

``ir`` inverted residual, ``ds`` depthwise separable, ``cn`` convolution; ``r`` repeats, ``k`` kernel,
``s`` stride, ``e`` expansion, ``c`` channels, ``se`` squeeze-excite ratio, ``n`` activation
(``re`` ReLU, ``r6`` ReLU6, ``hs`` h-swish, ``sw`` swish; h-swish when absent).
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import Any

from binas.errors import ArchitectureError, FileError, SpaceError
from binas.files import parse_json
from binas.space.architecture import Architecture
from binas.space.space import Config, SearchSpace, Stage

KINDS = ("ir", "ds", "dsa", "cn", "er")
ACTIVATIONS = ("re", "r6", "hs", "sw")
DEFAULT_ACTIVATION = "hs"
MAX_TEXT = 100_000
_FIELD = re.compile(r"(se|r|k|s|e|c)(\d+(?:\.\d+)?)")


@dataclass(frozen=True, slots=True)
class BlockCode:
    """One block string, parsed. ``channels`` are output channels; ``se`` is a ratio of the expanded channels."""

    kind: str
    kernel: int
    stride: int
    channels: int
    expansion: float = 1.0
    se: float = 0.0
    activation: str = DEFAULT_ACTIVATION
    repeats: int = 1
    skip: bool = True

    def __str__(self) -> str:
        parts = [self.kind, f"r{self.repeats}", f"k{self.kernel}", f"s{self.stride}"]
        if self.kind != "cn":
            parts.append(f"e{self.expansion:g}")
        parts.append(f"c{self.channels}")
        if self.activation != DEFAULT_ACTIVATION:
            parts.append(f"n{self.activation}")
        if self.se:
            parts.append(f"se{self.se:g}")
        if not self.skip:
            parts.append("noskip")
        return "_".join(parts)


def parse_block(text: str) -> BlockCode:
    """Read one block string; unknown codes are errors, never ignored."""
    kind, *fields = text.split("_")
    if kind not in KINDS:
        raise ArchitectureError(f"block string {text[:80]!r} starts with {kind!r}; known are {', '.join(KINDS)}.")
    values: dict[str, Any] = {"kind": kind}
    for item in fields:
        key, value = _parse_field(item, text)
        if key in values:
            raise ArchitectureError(f"block string {text[:80]!r} gives {key} twice.")
        values[key] = value
    values.setdefault("stride", 1)
    missing = [key for key in ("kernel", "channels") if key not in values]
    if missing:
        raise ArchitectureError(f"block string {text[:80]!r} does not say {' and '.join(missing)} (k3, c24).")
    return BlockCode(**values)


_FIELDS = {"r": "repeats", "k": "kernel", "s": "stride", "e": "expansion", "c": "channels", "se": "se"}


def _parse_field(item: str, text: str) -> tuple[str, Any]:
    if item == "noskip":
        return "skip", False
    if item[:1] == "n" and item[1:] in ACTIVATIONS:
        return "activation", item[1:]
    match = _FIELD.fullmatch(item)
    if match is None:
        raise ArchitectureError(
            f"block string {text[:80]!r} has the unknown part {item[:40]!r}; known are r, k, s, e, c, se with a number, "
            "n with re, r6, hs or sw, and noskip."
        )
    key, number = match.groups()
    if key in ("e", "se"):
        return _FIELDS[key], float(number)
    if "." in number or int(number) < 1:
        raise ArchitectureError(f"block string {text[:80]!r}: {key} must be a whole number from 1, got {number}.")
    return _FIELDS[key], int(number)


def parse_network(text: str) -> tuple[tuple[BlockCode, ...], ...]:
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
    return tuple(tuple(code for block in stage for code in _unroll(parse_block(block))) for stage in data)


def _unroll(code: BlockCode) -> list[BlockCode]:
    first = replace(code, repeats=1)
    return [first, *[replace(first, stride=1)] * (code.repeats - 1)]


def format_network(stages: tuple[tuple[BlockCode, ...], ...]) -> str:
    """Write a network as published: ``[['ds_...'], ['ir_...', 'ir_...'], ...]``."""
    return "[" + ", ".join("[" + ", ".join(f"'{code}'" for code in stage) + "]" for stage in stages) + "]"


def block_code(stage: Stage, block: int, config: Config) -> BlockCode:
    """The block string of a config in 0-based ``block`` of ``stage``; needs MBConv options."""
    options = stage.block_options(block, config)
    if options.get("family", "mbconv") != "mbconv" or options.get("channels") is None or options.get("op"):
        raise SpaceError(
            f"config {config.name!r} of stage {stage.name!r} has no block string: it needs family mbconv and the "
            "keys channels, stride, kernel and expansion."
        )
    ratio = float(options.get("se_ratio", 0.25)) if options.get("se") else 0.0
    return BlockCode(
        kind="ir",
        kernel=int(options.get("kernel", 3)),
        stride=int(options.get("stride", 1)),
        channels=int(options["channels"]),
        expansion=float(options.get("expansion", 1)),
        se=ratio,
        activation=str(options.get("activation", DEFAULT_ACTIVATION)),
    )


def to_blocks(space: SearchSpace, architecture: Architecture) -> tuple[tuple[BlockCode, ...], ...]:
    """All stages of a network: stem blocks after the first convolution, searched stages, head blocks."""
    space.check(architecture)
    searched = tuple(
        tuple(
            block_code(stage, b, stage.blocks[b][space.config_index(s, b, name)]) for b, name in enumerate(names)
        )
        for s, (stage, names) in enumerate(zip(space.stages, architecture.stages, strict=True))
    )
    before = tuple((parse_block(code),) for code in space.stem[1:])
    after = tuple((parse_block(code),) for code in space.head)
    return before + tuple(stage for stage in searched if stage) + after


def to_block_string(space: SearchSpace, architecture: Architecture) -> str:
    """The architecture as a timm-style network string."""
    return format_network(to_blocks(space, architecture))


def from_block_string(space: SearchSpace, text: str) -> Architecture:
    """Read a timm-style network string as an architecture of ``space``."""
    stages = list(parse_network(text))
    before = [(parse_block(code),) for code in space.stem[1:]]
    after = [(parse_block(code),) for code in space.head]
    if stages[: len(before)] != before or stages[len(stages) - len(after) :] != after:
        expected = format_network(tuple(before + after))
        raise ArchitectureError(f"the fixed parts of the network string differ from the space's: {expected}.")
    searched = stages[len(before) : len(stages) - len(after)]
    result: list[tuple[str, ...]] = []
    for s, stage in enumerate(space.stages):
        result.append(_match_stage(space, s, stage, searched))
    if searched:
        raise ArchitectureError(f"the network string has {len(searched)} more stages than the space {space.name!r}.")
    architecture = Architecture(tuple(result))
    space.check(architecture)
    return architecture


def _match_stage(space: SearchSpace, s: int, stage: Stage, searched: list[tuple[BlockCode, ...]]) -> tuple[str, ...]:
    """Names of the configs of the next searched stage, which is taken off the list."""
    if 0 in stage.depths and (not searched or searched[0][0].channels != stage.get("channels")):
        return ()
    if not searched:
        raise ArchitectureError(f"the network string ends before stage {stage.name!r}.")
    codes = searched.pop(0)
    if len(codes) not in stage.depths:
        allowed = ", ".join(map(str, stage.depths))
        raise ArchitectureError(f"stage {stage.name!r} has {len(codes)} blocks in the string; allowed are {allowed}.")
    return tuple(_match_block(stage, b, code) for b, code in enumerate(codes))


def _match_block(stage: Stage, block: int, code: BlockCode) -> str:
    for config in stage.blocks[block]:
        if block_code(stage, block, config) == code:
            return config.name
    raise ArchitectureError(f"block {block + 1} of stage {stage.name!r} cannot be '{code}' in this space.")
