"""Exact costs that need no measuring: MACs, parameters, weight bytes and peak activation memory, per image.

All derive from the layers a block family describes (:mod:`binas.space.families`), step by step:

* MACs: output elements * fan-in, of convolutions and linear layers;
* parameters: output channels * (fan-in + 2 for BatchNorm, or + 1 for a bias);
* weight bytes: what a finished network stores, with BatchNorm folded: fan-in weights and one bias per output
  channel. ``int8`` weights have biases of 4 bytes; scales and zero points of a quantised network are not counted;
* peak activation memory: the largest sum of tensors that live at the same time at batch 1. Steps run one after
  another; a tensor lives from the step that writes it to the last that reads it, the result to the end; during
  a step what it reads and what it writes live together. BatchNorm and activations need no memory of their own.
  A sum or product writes over its first operand unless that is read again. Weights and scratch memory of a
  runtime are not counted.

Either padding (:class:`binas.space.rules.NetworkRules`) lets ceil(size / stride) pixels through, and margins are multiplied
as other pixels are and live inside the convolution, so none of these numbers depends on it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Literal, TypeVar, get_args

from binas.base.errors import SpaceError, UnitError
from binas.costs.graph_work import block_graph_traces, fixed_graph_traces
from binas.space.architecture import Architecture
from binas.space.codes import BlockCode
from binas.space.families import DEFAULT_RULES, ConvShape, NetworkRules, PoolShape, Shape, Trace, describe
from binas.space.families.layers import Step
from binas.space.networks import (
    block_input_shapes,
    codes_of,
    input_shapes,
    network_sizes,
    output_shape,
    stage_codes,
)
from binas.space.space import SearchSpace
from binas.tables.costs import Cost, CostTable
from binas.tables.entries import Column, Provenance
from binas.tables.units import parse_unit

Dtype = Literal["float32", "float16", "int8"]
WEIGHT_BYTES = {"float32": 4, "float16": 2, "int8": 1}
BIAS_BYTES = {"float32": 4, "float16": 2, "int8": 4}

T = TypeVar("T")
PerConfig = list[list[list[T]]]


@dataclass(frozen=True, slots=True)
class Work:
    """MACs of one image and parameters of a layer or block."""

    macs: int = 0
    params: int = 0

    def __add__(self, other: Work) -> Work:
        return Work(self.macs + other.macs, self.params + other.params)


def trace_work(trace: Trace) -> Work:
    """MACs and parameters of all steps."""
    macs = sum(step.writes.elements * step.fan_in for step in trace.steps)
    params = sum(step.writes.channels * (step.fan_in + step.vectors) for step in trace.steps)
    return Work(macs, params)


def trace_weight_bytes(trace: Trace, dtype: Dtype) -> int:
    """Bytes of weights and biases of all steps, BatchNorm folded."""
    per_weight, per_bias = WEIGHT_BYTES[dtype], BIAS_BYTES[dtype]

    def of_channel(step: Step) -> int:
        if step.fan_in or step.in_place:  # a layer with its bias, or BatchNorm, of which a bias is left
            return step.fan_in * per_weight + (per_bias if step.vectors else 0)
        return step.vectors * per_weight  # parameters that nothing folds away

    return sum(step.writes.channels * of_channel(step) for step in trace.steps)


def trace_peak(trace: Trace) -> int:
    """Elements of the largest set of tensors that live at the same time."""
    end = len(trace.steps)
    last = [0] * end + [end]  # the step that reads a tensor last; the result lives to the end
    for i, step in enumerate(trace.steps):
        for tensor in step.reads:
            last[tensor] = max(last[tensor], i)
    live, peak = {0: trace.entering.elements}, trace.entering.elements
    for i, step in enumerate(trace.steps):
        if step.in_place and last[step.reads[0]] == i:
            del live[step.reads[0]]
        live[i + 1] = step.writes.elements
        peak = max(peak, sum(live.values()))
        live = {tensor: elements for tensor, elements in live.items() if last[tensor] > i}
    return peak


def block_trace(code: BlockCode, inputs: int, size: int, rules: NetworkRules = DEFAULT_RULES) -> Trace:
    """The steps of one block on ``size`` x ``size`` inputs with ``inputs`` channels."""
    trace = Trace(Shape(inputs, size))
    trace.run([describe(code, inputs, rules)])
    return trace


def block_work(code: BlockCode, inputs: int, size: int, rules: NetworkRules = DEFAULT_RULES) -> Work:
    """Work of one block on ``size`` x ``size`` inputs with ``inputs`` channels."""
    return trace_work(block_trace(code, inputs, size, rules))


@dataclass(frozen=True, slots=True)
class Shapes:
    """What arrives where: channels and size before each stage; work of the fixed part."""

    stages: tuple[tuple[int, int], ...]
    fixed: Work


def shapes(space: SearchSpace) -> Shapes:
    """Follow an image through the fixed parts and stages of a space."""
    before = tuple((shape.channels, shape.size) for shape in input_shapes(space)[:-1])
    return Shapes(before, sum(map(trace_work, fixed_traces(space)), Work()))


def fixed_traces(space: SearchSpace) -> Iterator[Trace]:
    """The steps of each block of stem and head, and of pooling, features and classifier together."""
    if space.network is not None:
        yield from fixed_graph_traces(space)
        return
    channels, resolution, classes = network_sizes(space)
    yield from _row(codes_of(space.stem), Shape(channels, resolution), space.rules)
    head, shape = codes_of(space.head), input_shapes(space)[-1]
    yield from _row(head, shape, space.rules)
    shape = output_shape(head, shape)
    trace, width = Trace(shape), shape.channels
    layers: list[PoolShape | ConvShape] = [PoolShape()]
    if space.features is not None:  # 1x1 convolution after pooling, as in MobileNetV3
        layers.append(ConvShape(width, space.features, norm=False, bias=space.rules.features_bias))
        width = space.features
    trace.run([*layers, ConvShape(width, classes, norm=False)])
    yield trace


def _row(codes: Iterable[BlockCode], shape: Shape, rules: NetworkRules) -> Iterator[Trace]:
    for code in codes:
        yield block_trace(code, shape.channels, shape.size, rules)
        shape = output_shape([code], shape)


def _per_config(space: SearchSpace, count: Callable[[Trace], T]) -> PerConfig[T]:
    """A number per stage, block and config."""
    if space.network is not None:
        return [[list(map(count, configs)) for configs in blocks] for blocks in block_graph_traces(space)]
    return [
        [
            [count(block_trace(code, shape.channels, shape.size, space.rules)) for code in codes]
            for codes, shape in zip(stage_codes(stage), block_input_shapes(stage, entering), strict=True)
        ]
        for stage, entering in zip(space.stages, input_shapes(space)[:-1], strict=True)
    ]


def config_work(space: SearchSpace) -> PerConfig[Work]:
    """Work per stage, block and config."""
    return _per_config(space, trace_work)


def architecture_work(space: SearchSpace, architecture: Architecture) -> Work:
    """Work of one whole network."""
    space.check(architecture)
    total, table = sum(map(trace_work, fixed_traces(space)), Work()), config_work(space)
    for s, names in enumerate(architecture.stages):
        for b, name in enumerate(names):
            total += table[s][b][space.config_index(s, b, name)]
    return total


def peak_activation(space: SearchSpace, dtype: Dtype = "float32") -> tuple[int, PerConfig[int]]:
    """Peak activation bytes at batch 1 of the fixed part, and per stage, block and config.

    Between blocks only one tensor lives, so the peak of a network is the largest of the fixed part's and its
    blocks': a maximum, not a sum.
    """
    check_dtype(dtype)
    size = WEIGHT_BYTES[dtype]
    fixed = max(trace_peak(trace) for trace in fixed_traces(space))
    return fixed * size, _per_config(space, lambda trace: trace_peak(trace) * size)


def check_dtype(dtype: str) -> None:
    """Refuse a data type whose sizes are not known."""
    if dtype not in get_args(Dtype):
        raise UnitError(f"unknown data type {dtype!r}; known are {', '.join(get_args(Dtype))}.")


def analytic_costs(space: SearchSpace, dtype: Dtype = "float32") -> CostTable:
    """Exact ``macs``, ``params``, ``weight_bytes`` and ``peak_memory`` of every config of a space.

    The last two are bytes of ``dtype``; ``peak_memory`` is that of :func:`peak_activation`, a maximum over blocks.
    """
    check_dtype(dtype)
    origin = Provenance.made("computed from the space, exact")
    stored = origin.model_copy(update={"dtype": dtype})
    counts: dict[str, tuple[str, Callable[[Trace], int], Provenance]] = {
        "macs": ("MACs", lambda trace: trace_work(trace).macs, origin),
        "params": ("params", lambda trace: trace_work(trace).params, origin),
        "weight_bytes": ("B", lambda trace: trace_weight_bytes(trace, dtype), stored),
    }
    costs = {name: _cost(space, name, *parts) for name, parts in counts.items()}
    return CostTable(space, {**costs, "peak_memory": _peak_memory(space, dtype, stored)})


def _peak_memory(space: SearchSpace, dtype: Dtype, provenance: Provenance) -> Cost:
    fixed, table = peak_activation(space, dtype)
    values = Column.build(space, lambda s, i: 0.0, lambda s, b, c: float(table[s][b][c]))
    return Cost("peak_memory", parse_unit("B"), float(fixed), values, provenance=provenance, combine="max")


def _cost(
    space: SearchSpace, name: str, unit: str, count: Callable[[Trace], int], provenance: Provenance
) -> Cost:
    table, fixed = _per_config(space, count), sum(map(count, fixed_traces(space)))
    values = Column.build(space, lambda s, i: 0.0, lambda s, b, c: float(table[s][b][c]))
    return Cost(name, parse_unit(unit), float(fixed), values, provenance=provenance)


def counted_costs(space: SearchSpace) -> dict[str, Cost]:
    """Costs that follow from the space; none for a space that only names its choices."""
    try:
        return dict(analytic_costs(space).costs)
    except SpaceError:
        return {}
