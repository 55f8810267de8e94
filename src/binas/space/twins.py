"""Architectures of different names that are the same network.

Widths are rounded to multiples of 8, so on few channels two configs may build the same layers: a quarter of 16 channels is
8, as is a half. Both are right on the same images, so measuring both, or counting both as different networks, is waste.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import lru_cache
from typing import TypeVar

from binas.base.errors import SpaceError
from binas.space.architecture import Architecture
from binas.space.families import describe
from binas.space.networks import block_input_shapes, input_shapes, stage_codes
from binas.space.space import SearchSpace

T = TypeVar("T")
First = tuple[tuple[dict[str, str], ...], ...]


@lru_cache(maxsize=16)
def first_twins(space: SearchSpace) -> First:
    """For each block of each stage, the first config with the same layers, by name: itself where there is no other.

    Where configs are no blocks that could be built, nothing is known of their layers, and each is its own.
    """
    try:
        entering, codes = input_shapes(space), [stage_codes(stage) for stage in space.stages]
    except SpaceError:
        names = [[[config.name for config in block] for block in stage.blocks] for stage in space.stages]
        return tuple(tuple({name: name for name in block} for block in stage) for stage in names)

    def block(s: int, b: int, inputs: int) -> dict[str, str]:
        names, first = [config.name for config in space.stages[s].blocks[b]], dict[object, str]()
        layers = [describe(code, inputs, space.rules) for code in codes[s][b]]
        return {name: first.setdefault(layer, name) for name, layer in zip(names, layers, strict=True)}

    return tuple(
        tuple(block(s, b, shape.channels) for b, shape in enumerate(block_input_shapes(stage, entering[s])))
        for s, stage in enumerate(space.stages)
    )


def plainest(space: SearchSpace, architecture: Architecture) -> Architecture:
    """The same network by the first of its names."""
    first = first_twins(space)
    return Architecture.of(
        [first[s][b][name] for b, name in enumerate(stage)] for s, stage in enumerate(architecture.stages)
    )


def distinct(space: SearchSpace, items: Iterable[T], of: Callable[[T], Architecture]) -> Iterator[T]:
    """Items whose architectures, given by ``of``, are no network of an item before them."""
    seen = set[Architecture]()
    for item in items:
        known = plainest(space, of(item))
        if known not in seen:
            seen.add(known)
            yield item
