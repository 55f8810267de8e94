"""Plain layers: what a finished network is made of, without anything elastic."""

from __future__ import annotations

import math
from collections import OrderedDict
from collections.abc import Callable, Iterable

import torch
from torch import Tensor, nn

from binas.base.errors import SpaceError
from binas.space.codes import BlockCode
from binas.space.families import (
    MOBILENET_V3,
    BlockShape,
    ConvShape,
    Layer,
    SqueezeRule,
    SqueezeShape,
    describe,
    family_of_kind,
)

NORM_EPS = 1e-5
NORM_MOMENTUM = 0.1

_ACTIVATIONS: dict[str, Callable[[], nn.Module]] = {
    "re": lambda: nn.ReLU(inplace=True),
    "r6": lambda: nn.ReLU6(inplace=True),
    "hs": lambda: nn.Hardswish(inplace=True),
    "sw": lambda: nn.SiLU(inplace=True),
}


def activation_layer(code: str) -> nn.Module:
    """The activation of a block-string code: ``re`` ReLU, ``r6`` ReLU6, ``hs`` h-swish, ``sw`` swish."""
    if code not in _ACTIVATIONS:
        raise SpaceError(f"unknown activation {code!r}; known are {', '.join(_ACTIVATIONS)}.")
    return _ACTIVATIONS[code]()


def norm_layer(channels: int) -> nn.BatchNorm2d:
    """BatchNorm with the settings all networks here share."""
    return nn.BatchNorm2d(channels, eps=NORM_EPS, momentum=NORM_MOMENTUM)


class ConvNorm(nn.Sequential):
    """Convolution and BatchNorm, or convolution with a bias, and an optional activation."""

    def __init__(self, shape: ConvShape) -> None:
        convolution = nn.Conv2d(
            shape.inputs,
            shape.outputs,
            shape.kernel,
            shape.stride,
            shape.kernel // 2,
            groups=shape.groups,
            bias=not shape.norm,
        )
        layers: list[tuple[str, nn.Module]] = [("conv", convolution)]
        if shape.norm:
            layers.append(("norm", norm_layer(shape.outputs)))
        if shape.activation:
            layers.append(("activation", activation_layer(shape.activation)))
        super().__init__(OrderedDict(layers))


class SqueezeExcite(nn.Module):
    """x * gate(W2 act(W1 mean(x) + b1) + b2), the mean over height and width."""

    def __init__(self, shape: SqueezeShape) -> None:
        super().__init__()
        self.reduce = nn.Linear(shape.channels, shape.reduced)
        self.activation = activation_layer(shape.rule.activation)
        self.excite = nn.Linear(shape.reduced, shape.channels)
        self.gate = nn.Hardsigmoid() if shape.rule.gate == "hard" else nn.Sigmoid()

    def forward(self, x: Tensor) -> Tensor:
        """(n, channels, h, w) to the same shape."""
        pooled = self.activation(self.reduce(x.mean((2, 3))))
        gate: Tensor = self.gate(self.excite(pooled))
        return x * gate[:, :, None, None]


class PlainBlock(nn.Module):
    """act(body(x) + shortcut(x)): every block of a finished network.

    ``shortcut`` is None for no residual connection; ``activation`` (after the sum) is empty for MBConv.
    """

    def __init__(self, body: nn.Module, shortcut: nn.Module | None = None, activation: str = "") -> None:
        super().__init__()
        self.body = body
        self.shortcut = shortcut
        self.activation = activation_layer(activation) if activation else None

    def forward(self, x: Tensor) -> Tensor:
        """(n, inputs, h, w) to (n, outputs, h / stride, w / stride)."""
        out: Tensor = self.body(x)
        if self.shortcut is not None:
            out = out + self.shortcut(x)
        return out if self.activation is None else self.activation(out)


def module_of(layer: Layer) -> nn.Module:
    """The module of a described layer, with fresh weights."""
    if isinstance(layer, ConvShape):
        return ConvNorm(layer)
    if isinstance(layer, SqueezeShape):
        return SqueezeExcite(layer)
    if isinstance(layer, BlockShape):
        shortcut = None if layer.shortcut is None else _row(layer.shortcut)
        return PlainBlock(nn.Sequential(*map(module_of, layer.body)), shortcut, layer.activation)
    raise SpaceError(
        f"no module is known for the layer {layer!r}; give its family a function that builds the plain block."
    )


def _row(layers: tuple[Layer, ...]) -> nn.Module:
    """One layer as itself, none as the identity."""
    modules = [module_of(layer) for layer in layers]
    return modules[0] if len(modules) == 1 else nn.Sequential(*modules) if modules else nn.Identity()


def described_block(code: BlockCode, inputs: int, rule: SqueezeRule) -> nn.Module:
    """A block with fresh weights, built from the description of its layers."""
    return module_of(describe(code, inputs, rule))


def plain_block(code: BlockCode, inputs: int, rule: SqueezeRule = MOBILENET_V3) -> nn.Module:
    """The block of a block string of any family, on ``inputs`` channels, with fresh weights."""
    return family_of_kind(code.kind).build_plain(code, inputs, rule)


def blocks_in_a_row(
    codes: Iterable[BlockCode], channels: int, squeeze: SqueezeRule = MOBILENET_V3
) -> tuple[nn.Sequential, int]:
    """Plain blocks one after another, and the channels that leave the last."""
    blocks = []
    for code in codes:
        blocks.append(plain_block(code, channels, squeeze))
        channels = code.channels
    return nn.Sequential(*blocks), channels


class Head(nn.Module):
    """What follows the stages: fixed blocks, global pooling, optional features, classifier.

    ``features`` is a 1x1 convolution on the pooled vector (a linear layer), then h-swish, as in MobileNetV3; ``bias`` says
    whether it has one.
    """

    def __init__(
        self,
        blocks: nn.Module,
        channels: int,
        classes: int,
        features: int | None = None,
        activation: str = "hs",
        bias: bool = True,
    ) -> None:
        super().__init__()
        self.blocks = blocks
        self.features: nn.Module | None = None
        if features is not None:
            self.features = nn.Sequential(nn.Linear(channels, features, bias), activation_layer(activation))
        self.classifier = nn.Linear(features or channels, classes)

    def forward(self, x: Tensor) -> Tensor:
        """(n, channels, h, w) to logits (n, classes)."""
        pooled: Tensor = self.blocks(x).mean((2, 3))
        if self.features is not None:
            pooled = self.features(pooled)
        logits: Tensor = self.classifier(pooled)
        return logits


def initialise(module: nn.Module) -> None:
    """Fresh weights: convolutions N(0, 2 / fan_out), linear layers small, BatchNorm the identity."""
    for layer in module.modules():
        if isinstance(layer, nn.Conv2d):
            initialise_convolution(layer.weight, layer.groups)
        elif isinstance(layer, nn.Linear):
            nn.init.trunc_normal_(layer.weight, std=layer.in_features**-0.5)
            if layer.bias is not None:
                nn.init.zeros_(layer.bias)


def initialise_convolution(weight: Tensor, groups: int = 1) -> None:
    """N(0, 2 / fan_out) with fan_out = outputs * kernel^2 / groups."""
    outputs, _, kernel, _ = weight.shape
    with torch.no_grad():
        weight.normal_(0.0, math.sqrt(2.0 / (outputs * kernel * kernel / groups)))
