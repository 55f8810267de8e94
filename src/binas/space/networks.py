"""A space as networks: the block of every config, and the shape that arrives at every stage.

What is built and what is counted both start here, so they agree, and refuse the same spaces.
"""

from __future__ import annotations

from collections.abc import Iterable

from binas.base.errors import SpaceError
from binas.space.blockstrings import block_code, parse_repeated
from binas.space.codes import BlockCode
from binas.space.families import Shape
from binas.space.space import SearchSpace, Stage


def network_sizes(space: SearchSpace) -> tuple[int, int, int]:
    """Channels, resolution and classes of a space from which networks can be built."""
    if space.channels is None or space.resolution is None or space.classes is None:
        need = "channels, resolution and classes"
        raise SpaceError(
            f"the space {space.name!r} does not say {need}, so no network of it can be built or counted."
        )
    return space.channels, space.resolution, space.classes


def codes_of(texts: Iterable[str]) -> list[BlockCode]:
    """The blocks of a space's stem or head, repeats unrolled."""
    return [code for text in texts for code in parse_repeated(text)]


def stage_shape(stage: Stage) -> tuple[int, int]:
    """Output channels and stride of a stage."""
    width, stride = stage.get("channels"), stage.get("stride", 1)
    if type(width) is not int or type(stride) is not int or width < 1 or stride < 1:
        raise SpaceError(f"stage {stage.name!r} must say its channels and stride as whole numbers from 1.")
    return width, stride


def stage_codes(stage: Stage) -> list[list[BlockCode]]:
    """The block of every config, ``[block][config]``.

    A config may not change channels or stride: what a block gets must not depend on the config before it.
    """
    width, stride = stage_shape(stage)
    result = []
    for b, configs in enumerate(stage.blocks):
        codes = [block_code(stage, b, config) for config in configs]
        for config, code in zip(configs, codes, strict=True):
            if (code.channels, code.stride) != (width, stride if b == 0 else 1):
                raise SpaceError(
                    f"config {config.name!r} of stage {stage.name!r} changes its channels or stride."
                )
        result.append(codes)
    return result


def output_shape(codes: Iterable[BlockCode], shape: Shape) -> Shape:
    """What leaves a row of blocks that ``shape`` enters."""
    for code in codes:
        shape = Shape(code.channels, -(-shape.size // code.stride))
    return shape


def input_shapes(space: SearchSpace) -> list[Shape]:
    """The shape that arrives at each stage, and last the one that leaves the last stage."""
    channels, resolution, _ = network_sizes(space)
    shapes = [output_shape(codes_of(space.stem), Shape(channels, resolution))]
    for stage in space.stages:
        before, (width, stride) = shapes[-1], stage_shape(stage)
        if 0 in stage.depths and (width != before.channels or stride != 1):
            raise SpaceError(f"stage {stage.name!r} may vanish, so it must keep channels and resolution.")
        shapes.append(Shape(width, -(-before.size // stride)))
    return shapes


def block_input_shapes(stage: Stage, entering: Shape) -> list[Shape]:
    """The shape that arrives at each block of a stage."""
    width, stride = stage_shape(stage)
    inside = Shape(width, -(-entering.size // stride))
    return [entering, *[inside] * (len(stage.blocks) - 1)][: len(stage.blocks)]
