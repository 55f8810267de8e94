"""Layers without weights: what a block computes, as shapes.

A family describes its block with these; from the description come the plain network (:mod:`binas.supernet.plain`)
and every analytic cost (:mod:`binas.costs.analytic`). A :class:`Trace` is the description unrolled for one
image: tensors in the order in which they are written, and the operation that writes each.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from binas.base.errors import SpaceError
from binas.space.rules import DEFAULT_RULES, SqueezeRule


@dataclass(frozen=True, slots=True)
class Shape:
    """A tensor of one image: channels x size x size."""

    channels: int
    size: int

    @property
    def elements(self) -> int:
        """How many numbers it holds."""
        return self.channels * self.size * self.size


@dataclass(frozen=True, slots=True)
class Step:
    """One operation: the tensors it reads (by number) and the shape it writes.

    ``fan_in`` weights meet in each output element (inputs / groups * kernel^2; 0 without weights), and each
    output channel has ``vectors`` further numbers (2 with BatchNorm, 1 with a bias). An operation ``in_place``
    may write over the first tensor it reads.
    """

    reads: tuple[int, ...]
    writes: Shape
    fan_in: int = 0
    vectors: int = 0
    in_place: bool = False


class Trace:
    """The operations of a block on one image. Tensor 0 comes in; ``steps[i]`` writes tensor i + 1."""

    def __init__(self, entering: Shape) -> None:
        self.entering = entering
        self.steps: list[Step] = []

    def shape(self, tensor: int) -> Shape:
        """The shape of a tensor by its number."""
        return self.steps[tensor - 1].writes if tensor else self.entering

    def add(
        self, reads: Sequence[int], writes: Shape, fan_in: int = 0, vectors: int = 0, in_place: bool = False
    ) -> int:
        """Record one operation; returns the number of the tensor it writes."""
        self.steps.append(Step(tuple(reads), writes, fan_in, vectors, in_place))
        return len(self.steps)

    def run(self, layers: Iterable[Layer], tensor: int = 0) -> int:
        """Record layers one after another; returns the last tensor."""
        for layer in layers:
            tensor = layer.record(self, tensor)
        return tensor


class Layer(ABC):
    """A layer as a shape."""

    @abstractmethod
    def record(self, trace: Trace, tensor: int) -> int:
        """Add what the layer does to ``tensor``; returns the tensor it gives.

        Activations work in place and count nothing, so they are not recorded.
        """


@dataclass(frozen=True, slots=True)
class ConvShape(Layer):
    """A square convolution that keeps the size (up to its stride), then BatchNorm, or without ``norm`` a ``bias`` if any."""

    inputs: int
    outputs: int
    kernel: int = 1
    stride: int = 1
    groups: int = 1
    activation: str = ""
    norm: bool = True
    bias: bool = True

    def __post_init__(self) -> None:
        if self.kernel % 2 == 0:
            raise SpaceError(f"a kernel must be odd so that it has a centre, got {self.kernel}.")
        if self.inputs % self.groups or self.outputs % self.groups:
            raise SpaceError(
                f"{self.inputs} and {self.outputs} channels do not split into {self.groups} groups."
            )

    def record(self, trace: Trace, tensor: int) -> int:
        """One operation; ceil(size / stride) because kernels are odd."""
        entering = trace.shape(tensor)
        if entering.channels != self.inputs:
            raise SpaceError(f"a convolution of {self.inputs} channels is given {entering.channels}.")
        leaving = Shape(self.outputs, -(-entering.size // self.stride))
        fan_in = self.inputs // self.groups * self.kernel**2
        return trace.add([tensor], leaving, fan_in, 2 if self.norm else int(self.bias))


@dataclass(frozen=True, slots=True)
class PoolShape(Layer):
    """The mean over height and width; a linear layer after it is a 1x1 convolution with a bias."""

    def record(self, trace: Trace, tensor: int) -> int:
        """One operation."""
        return trace.add([tensor], Shape(trace.shape(tensor).channels, 1))


@dataclass(frozen=True, slots=True)
class MaxPoolShape(Layer):
    """The largest of k x k values, ceil(size / stride) a side."""

    kernel: int
    stride: int

    def record(self, trace: Trace, tensor: int) -> int:
        """One operation without weights."""
        entering = trace.shape(tensor)
        return trace.add([tensor], Shape(entering.channels, -(-entering.size // self.stride)))


@dataclass(frozen=True, slots=True)
class SqueezeShape(Layer):
    """Squeeze-excite: pool, two linear layers with bias, multiply."""

    channels: int
    reduced: int
    rule: SqueezeRule = DEFAULT_RULES.squeeze

    def record(self, trace: Trace, tensor: int) -> int:
        """The gates are computed from the pooled vector and multiplied into the tensor."""
        inner = ConvShape(self.channels, self.reduced, norm=False)
        outer = ConvShape(self.reduced, self.channels, norm=False)
        gates = trace.run([PoolShape(), inner, outer], tensor)
        return trace.add([tensor, gates], trace.shape(tensor), in_place=True)


@dataclass(frozen=True, slots=True)
class BlockShape(Layer):
    """act(body(x) + shortcut(x)): ``shortcut`` is None for no residual connection, () for the input itself."""

    body: tuple[Layer, ...]
    shortcut: tuple[Layer, ...] | None = None
    activation: str = ""

    def record(self, trace: Trace, tensor: int) -> int:
        """The body, then the shortcut, then the sum in the body's memory."""
        out = trace.run(self.body, tensor)
        if self.shortcut is None:
            return out
        beside = trace.run(self.shortcut, tensor)
        shapes = trace.shape(out), trace.shape(beside)
        if shapes[0] != shapes[1]:
            raise SpaceError(f"a residual connection adds {shapes[1]} to {shapes[0]}.")
        return trace.add([out, beside], shapes[0], in_place=True)
