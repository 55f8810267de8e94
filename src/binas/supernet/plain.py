"""Plain layers: what a finished network is made of, without anything elastic."""

from __future__ import annotations

import math
from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import TypeVar, cast

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.nn.utils.fusion import fuse_conv_bn_eval

from binas.base.errors import SpaceError
from binas.space.codes import BlockCode
from binas.space.families import (
    DEFAULT_RULES,
    BlockShape,
    ConvShape,
    Layer,
    MaxPoolShape,
    NetworkRules,
    SqueezeShape,
    describe,
    family_of_kind,
)

ModuleT = TypeVar("ModuleT", bound=nn.Module)

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


def padded(
    x: Tensor, kernel: int, stride: int, rules: NetworkRules, value: float = 0.0
) -> tuple[Tensor, tuple[int, int]]:
    """What a k x k filter runs over: ``x``, with margins where they differ, and the padding left to the filter."""
    if rules.padding == "torch" or stride == 1:
        return x, (kernel // 2, kernel // 2)
    rows, columns = (rules.margins(int(size), kernel, stride) for size in x.shape[-2:])
    if rows[0] == rows[1] and columns[0] == columns[1]:
        return x, (rows[0], columns[0])
    return F.pad(x, (*columns, *rows), value=value), (0, 0)


class SameConv2d(nn.Conv2d):
    """A convolution with stride that is padded as TensorFlow does, from the size of what arrives."""

    def forward(self, x: Tensor) -> Tensor:
        """(n, inputs, h, w) to (n, outputs, ceil(h / stride), ceil(w / stride))."""
        x, padding = padded(x, self.kernel_size[0], self.stride[0], SAME)
        return F.conv2d(x, self.weight, self.bias, self.stride, padding, 1, self.groups)


class MaxPool(nn.Module):
    """The largest of k x k values; margins count as smaller than anything."""

    def __init__(self, shape: MaxPoolShape, rules: NetworkRules) -> None:
        super().__init__()
        self.kernel, self.stride, self.rules = shape.kernel, shape.stride, rules

    def extra_repr(self) -> str:
        """What makes two of them the same."""
        return f"kernel={self.kernel}, stride={self.stride}, padding={self.rules.padding}"

    def forward(self, x: Tensor) -> Tensor:
        """(n, channels, h, w) to (n, channels, ceil(h / stride), ceil(w / stride))."""
        x, padding = padded(x, self.kernel, self.stride, self.rules, value=-math.inf)
        return F.max_pool2d(x, self.kernel, self.stride, padding)


SAME = NetworkRules(padding="same")


class ConvNorm(nn.Sequential):
    """Convolution and BatchNorm, or convolution with a bias, and an optional activation."""

    def __init__(self, shape: ConvShape, rules: NetworkRules = DEFAULT_RULES) -> None:
        same = rules.padding == "same" and shape.stride > 1
        convolution = (SameConv2d if same else nn.Conv2d)(
            shape.inputs,
            shape.outputs,
            shape.kernel,
            shape.stride,
            0 if same else shape.kernel // 2,
            groups=shape.groups,
            bias=not shape.norm,
        )
        layers: list[tuple[str, nn.Module]] = [("conv", convolution)]
        if shape.norm:
            norm = nn.BatchNorm2d(shape.outputs, eps=rules.norm_epsilon, momentum=rules.norm_momentum)
            layers.append(("norm", norm))
        if shape.activation:
            layers.append(("activation", activation_layer(shape.activation)))
        super().__init__(OrderedDict(layers))


def fold_norms(network: nn.Module) -> None:
    """Make every BatchNorm in eval mode part of the convolution before it: w g / s and b - m g / s, s = sqrt(v + eps).

    The network computes the same with fewer passes over what its layers hand on; it is no longer for training.
    """
    for part in network.modules():
        if isinstance(part, ConvNorm) and hasattr(part, "norm"):
            part.conv = fuse_conv_bn_eval(cast(nn.Conv2d, part.conv), cast(nn.BatchNorm2d, part.norm))
            del part.norm


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


def module_of(layer: Layer, rules: NetworkRules = DEFAULT_RULES) -> nn.Module:
    """The module of a described layer, with fresh weights."""
    if isinstance(layer, ConvShape):
        return ConvNorm(layer, rules)
    if isinstance(layer, MaxPoolShape):
        return MaxPool(layer, rules)
    if isinstance(layer, SqueezeShape):
        return SqueezeExcite(layer)
    if isinstance(layer, BlockShape):
        shortcut = None if layer.shortcut is None else _row(layer.shortcut, rules)
        body = nn.Sequential(*(module_of(part, rules) for part in layer.body))
        return PlainBlock(body, shortcut, layer.activation)
    raise SpaceError(
        f"no module is known for the layer {layer!r}; give its family a function that builds the plain block."
    )


def _row(layers: tuple[Layer, ...], rules: NetworkRules) -> nn.Module:
    """One layer as itself, none as the identity."""
    modules = [module_of(layer, rules) for layer in layers]
    return modules[0] if len(modules) == 1 else nn.Sequential(*modules) if modules else nn.Identity()


def described_block(code: BlockCode, inputs: int, rules: NetworkRules) -> nn.Module:
    """A block with fresh weights, built from the description of its layers."""
    return module_of(describe(code, inputs, rules), rules)


def plain_block(code: BlockCode, inputs: int, rules: NetworkRules = DEFAULT_RULES) -> nn.Module:
    """The block of a block string of any family, on ``inputs`` channels, with fresh weights."""
    return family_of_kind(code.kind).build_plain(code, inputs, rules)


def blocks_in_a_row(
    codes: Iterable[BlockCode], channels: int, rules: NetworkRules = DEFAULT_RULES
) -> tuple[nn.Sequential, int]:
    """Plain blocks one after another, and the channels that leave the last."""
    blocks = []
    for code in codes:
        blocks.append(plain_block(code, channels, rules))
        channels = code.channels
    return nn.Sequential(*blocks), channels


class Head(nn.Module):
    """What follows the stages: fixed blocks, global pooling, optional features, classifier.

    ``features`` is a 1x1 convolution on the pooled vector (a linear layer), then an activation, h-swish in
    MobileNetV3.
    """

    def __init__(
        self,
        blocks: nn.Module,
        channels: int,
        classes: int,
        features: int | None = None,
        rules: NetworkRules = DEFAULT_RULES,
    ) -> None:
        super().__init__()
        self.blocks = blocks
        self.features: nn.Module | None = None
        if features is not None:
            activation = activation_layer(rules.features_activation)
            self.features = nn.Sequential(nn.Linear(channels, features, rules.features_bias), activation)
        self.classifier = nn.Linear(features or channels, classes)

    def forward(self, x: Tensor) -> Tensor:
        """(n, channels, h, w) to logits (n, classes)."""
        pooled: Tensor = self.blocks(x).mean((2, 3))
        if self.features is not None:
            pooled = self.features(pooled)
        logits: Tensor = self.classifier(pooled)
        return logits


@contextmanager
def in_mode(module: nn.Module, *, training: bool) -> Iterator[None]:
    """The module in training or eval mode, and every part of it back in its own afterwards."""
    modes = [(part, part.training) for part in module.modules()]
    module.train(training)
    try:
        yield
    finally:
        for part, own in modes:
            part.training = own


@contextmanager
def computing(modules: Iterable[ModuleT], function: Callable[[ModuleT, Tensor], Tensor]) -> Iterator[None]:
    """Modules that compute ``function(module, x)`` for a while, and what they are made for afterwards."""
    changed = list(modules)
    for module in changed:
        module.forward = partial(function, module)
    try:
        yield
    finally:
        for module in changed:
            del module.forward


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
