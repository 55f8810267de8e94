"""One sub-network as an immutable value: a depth per stage and a config per active block.

The compact string joins the blocks of a stage with ``-`` and stages with ``_``; a stage of depth
zero is written ``0``::

    e3k5-e3k3se_e4k5se-e4k3_0_e6k3
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from binas.base.errors import ArchitectureError
from binas.base.files import parse_json

CONFIG_NAME = re.compile(r"[A-Za-z0-9.+]{1,60}")
EMPTY_STAGE = "0"
FORMAT = "binas/architecture"
MAX_TEXT = 100_000


@dataclass(frozen=True, slots=True, order=True)
class Architecture:
    """Config names of the active blocks, stage by stage; the depth of a stage is their number."""

    stages: tuple[tuple[str, ...], ...]

    @classmethod
    def of(cls, stages: Iterable[Iterable[str]]) -> Architecture:
        """Build from any nesting of config names."""
        return cls(tuple(tuple(stage) for stage in stages))

    @property
    def depths(self) -> tuple[int, ...]:
        """Number of active blocks per stage (d^s in the paper)."""
        return tuple(len(stage) for stage in self.stages)

    def __str__(self) -> str:
        return "_".join("-".join(stage) or EMPTY_STAGE for stage in self.stages)

    @classmethod
    def parse(cls, text: str) -> Architecture:
        """Read the compact string; whether it belongs to a space is checked by the space."""
        text = text.strip()
        if not text or len(text) > MAX_TEXT:
            example = "e3k5-e3k3se_e4k5-e4k3"
            raise ArchitectureError(f"an architecture string is empty or too long; write e.g. {example}.")
        return cls(tuple(_parse_stage(stage, i, text) for i, stage in enumerate(text.split("_"), 1)))

    def to_json(self) -> dict[str, Any]:
        """A JSON object that says what it is."""
        return {"format": FORMAT, "version": 1, "stages": [list(stage) for stage in self.stages]}

    @classmethod
    def from_json(cls, data: Any) -> Architecture:
        """Read what :meth:`to_json` wrote, as an object or as JSON text."""
        if isinstance(data, str):
            data = parse_json(data, "architecture JSON")
        if not isinstance(data, dict) or data.get("format") != FORMAT or data.get("version") != 1:
            raise ArchitectureError(f'architecture JSON must have "format": "{FORMAT}" and "version": 1.')
        stages = data.get("stages")
        if not isinstance(stages, list) or not all(_is_names(stage) for stage in stages):
            raise ArchitectureError('architecture JSON must have "stages": a list of lists of config names.')
        return cls.of(stages)


def _is_names(stage: Any) -> bool:
    return isinstance(stage, list) and all(isinstance(n, str) and CONFIG_NAME.fullmatch(n) for n in stage)


def _parse_stage(text: str, number: int, whole: str) -> tuple[str, ...]:
    if text == EMPTY_STAGE:
        return ()
    names = tuple(text.split("-"))
    for name in names:
        if not CONFIG_NAME.fullmatch(name) or name == EMPTY_STAGE:
            raise ArchitectureError(
                f"stage {number} of the architecture string {whole[:80]!r} has the block {name[:40]!r}, "
                "which is not a config name. Join blocks with '-', stages with '_', and write '0' for a "
                "stage of depth zero."
            )
    return names
