"""Exact costs that need no measuring: multiply-accumulates (MACs) and parameters of MBConv networks.

Counted are convolutions and the classifier (MACs, parameters), biases and BatchNorm scale and shift
(parameters only). Squeeze-excite reduces the expanded channels by its ratio, rounded to a multiple of 8 as
in MobileNetV3. MACs are per image.
"""

from __future__ import annotations

from dataclasses import dataclass
from operator import attrgetter

from binas.errors import SpaceError
from binas.space.architecture import Architecture
from binas.space.blockstrings import BlockCode, block_code, parse_repeated
from binas.space.rounding import round_channels
from binas.space.space import SearchSpace, Stage
from binas.tables.costs import Cost, CostTable
from binas.tables.entries import Column, Provenance, today
from binas.tables.units import parse_unit
from binas.version import __version__


@dataclass(frozen=True, slots=True)
class Work:
    """MACs of one image and parameters of a layer or block."""

    macs: int = 0
    params: int = 0

    def __add__(self, other: Work) -> Work:
        return Work(self.macs + other.macs, self.params + other.params)


def convolution(
    size: int, inputs: int, outputs: int, kernel: int, groups: int = 1, norm: bool = True
) -> Work:
    """A square convolution with ``size`` x ``size`` outputs, followed by BatchNorm or with a bias."""
    weights = kernel * kernel * inputs // groups * outputs
    return Work(size * size * weights, weights + (2 * outputs if norm else outputs))


def squeeze_excite(channels: int, ratio: float) -> Work:
    """Two 1x1 convolutions with bias on the pooled channels."""
    reduced = round_channels(channels * ratio)
    return convolution(1, channels, reduced, 1, norm=False) + convolution(1, reduced, channels, 1, norm=False)


def block_work(code: BlockCode, inputs: int, size: int) -> Work:
    """Work of one block on ``size`` x ``size`` inputs with ``inputs`` channels."""
    out = -(-size // code.stride)
    if code.kind == "cn":
        return convolution(out, inputs, code.channels, code.kernel)
    if code.kind not in ("ir", "ds", "dsa"):
        raise SpaceError(f"the work of a block of kind {code.kind!r} is not known ({code}).")
    work, middle = Work(), inputs
    if code.kind == "ir":
        middle = round_channels(inputs * code.expansion)
        work += convolution(size, inputs, middle, 1)
    work += convolution(out, middle, middle, code.kernel, groups=middle)
    if code.se:
        work += squeeze_excite(middle, code.se)
    return work + convolution(out, middle, code.channels, 1)


@dataclass(frozen=True, slots=True)
class Shapes:
    """What arrives where: channels and size before each stage; work of the fixed part."""

    stages: tuple[tuple[int, int], ...]
    fixed: Work


def shapes(space: SearchSpace) -> Shapes:
    """Follow an image through the fixed parts and stages of a space."""
    if space.channels is None or space.resolution is None or space.classes is None:
        need = "channels, resolution and classes"
        raise SpaceError(f"the space {space.name!r} does not say {need}, so its work is unknown.")
    channels, size, fixed = space.channels, space.resolution, Work()
    for text in space.stem:
        fixed, channels, size = _through(text, fixed, channels, size)
    before = []
    for stage in space.stages:
        before.append((channels, size))
        width, stride = _shape(stage)
        if 0 in stage.depths and (width != channels or stride != 1):
            raise SpaceError(f"stage {stage.name!r} may vanish, so it must keep channels and resolution.")
        channels, size = width, -(-size // stride)
    for text in space.head:
        fixed, channels, size = _through(text, fixed, channels, size)
    if space.features is not None:  # 1x1 convolution with bias after pooling, as in MobileNetV3
        fixed, channels = fixed + convolution(1, channels, space.features, 1, norm=False), space.features
    return Shapes(tuple(before), fixed + convolution(1, channels, space.classes, 1, norm=False))


def _shape(stage: Stage) -> tuple[int, int]:
    """Output channels and stride of a stage."""
    width, stride = stage.get("channels"), stage.get("stride", 1)
    if type(width) is not int or type(stride) is not int or width < 1 or stride < 1:
        raise SpaceError(f"stage {stage.name!r} must say its channels and stride as whole numbers from 1.")
    return width, stride


def _through(text: str, fixed: Work, channels: int, size: int) -> tuple[Work, int, int]:
    """What a block string of the stem or head (with its repeats) adds, and what leaves it."""
    for code in parse_repeated(text):
        fixed += block_work(code, channels, size)
        channels, size = code.channels, -(-size // code.stride)
    return fixed, channels, size


def config_work(space: SearchSpace) -> list[list[list[Work]]]:
    """Work per stage, block and config."""
    result = []
    for stage, (inputs, size) in zip(space.stages, shapes(space).stages, strict=True):
        blocks, (width, stride) = [], _shape(stage)
        for b, configs in enumerate(stage.blocks):
            codes = [block_code(stage, b, config) for config in configs]
            _check_shape(codes, stage, width, stride)
            blocks.append([block_work(code, inputs, size) for code in codes])
            inputs, size, stride = width, -(-size // stride), 1
        result.append(blocks)
    return result


def _check_shape(codes: list[BlockCode], stage: Stage, width: int, stride: int) -> None:
    """Work is a table only if what a block gets does not depend on the config before it."""
    if any(code.channels != width or code.stride != stride for code in codes):
        raise SpaceError(
            f"a config of stage {stage.name!r} changes its channels or stride, so work is not additive."
        )


def architecture_work(space: SearchSpace, architecture: Architecture) -> Work:
    """Work of one whole network."""
    space.check(architecture)
    total, table = shapes(space).fixed, config_work(space)
    for s, names in enumerate(architecture.stages):
        for b, name in enumerate(names):
            total += table[s][b][space.config_index(s, b, name)]
    return total


def analytic_costs(space: SearchSpace) -> CostTable:
    """Exact ``macs`` and ``params`` of every config of a space."""
    work, fixed = config_work(space), shapes(space).fixed
    provenance = Provenance(
        source="computed from the space, exact", date=today(), tool=f"binas {__version__}"
    )
    costs = {}
    for name, unit in (("macs", "MACs"), ("params", "params")):
        count = attrgetter(name)
        values = Column.build(space, lambda s, i: 0.0, lambda s, b, c, n=count: float(n(work[s][b][c])))  # type: ignore[misc]
        costs[name] = Cost(name, parse_unit(unit), float(count(fixed)), values, provenance=provenance)
    return CostTable(space, costs)
