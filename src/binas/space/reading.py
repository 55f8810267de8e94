"""Reading an architecture in whichever form a user has it."""

from __future__ import annotations

from binas.space.architecture import Architecture
from binas.space.blockstrings import from_block_string
from binas.space.space import SearchSpace


def read_architecture(space: SearchSpace, text: str) -> Architecture:
    """An architecture of ``space`` from a compact string, a timm-style block string or JSON."""
    text = text.strip()
    if text.startswith("["):
        return from_block_string(space, text)
    if text.startswith("{"):
        architecture = Architecture.from_json(text)
        space.check(architecture)
        return architecture
    return space.parse(text)
