"""Plain layers: what a finished network is made of, without anything elastic."""

from __future__ import annotations

import math
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor, nn

from binas.errors import SpaceError
from binas.space.rounding import round_channels

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


@dataclass(frozen=True, slots=True)
class SqueezeRule:
    """How a squeeze-excite ratio becomes a layer.

    The reduced width is ratio * (expanded or input channels of the block), rounded to ``divisor`` by the
    MobileNet rule. The default is MobileNetV3's; MnasNet and EfficientNet take input channels, divisor 1 and
    a sigmoid gate.
    """

    of: Literal["expanded", "input"] = "expanded"
    divisor: int = 8
    gate: Literal["hard", "sigmoid"] = "hard"
    activation: str = "re"

    def reduced(self, ratio: float, expanded: int, inputs: int) -> int:
        """Channels between the two layers; 0 when there is no squeeze-excite."""
        return (
            round_channels(ratio * (expanded if self.of == "expanded" else inputs), self.divisor)
            if ratio
            else 0
        )


MOBILENET_V3 = SqueezeRule()


def norm_layer(channels: int) -> nn.BatchNorm2d:
    """BatchNorm with the settings all networks here share."""
    return nn.BatchNorm2d(channels, eps=NORM_EPS, momentum=NORM_MOMENTUM)


class ConvNorm(nn.Sequential):
    """Convolution without bias, BatchNorm and an optional activation; odd kernels keep the size."""

    def __init__(
        self,
        inputs: int,
        outputs: int,
        kernel: int = 1,
        stride: int = 1,
        groups: int = 1,
        activation: str = "",
    ) -> None:
        if kernel % 2 == 0:
            raise SpaceError(f"a kernel must be odd so that it has a centre, got {kernel}.")
        convolution = nn.Conv2d(inputs, outputs, kernel, stride, kernel // 2, groups=groups, bias=False)
        layers: list[tuple[str, nn.Module]] = [("conv", convolution), ("norm", norm_layer(outputs))]
        if activation:
            layers.append(("activation", activation_layer(activation)))
        super().__init__(OrderedDict(layers))


class SqueezeExcite(nn.Module):
    """x * gate(W2 act(W1 mean(x) + b1) + b2), the mean over height and width."""

    def __init__(self, channels: int, reduced: int, rule: SqueezeRule = MOBILENET_V3) -> None:
        super().__init__()
        self.reduce = nn.Linear(channels, reduced)
        self.activation = activation_layer(rule.activation)
        self.excite = nn.Linear(reduced, channels)
        self.gate = nn.Hardsigmoid() if rule.gate == "hard" else nn.Sigmoid()

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


class Head(nn.Module):
    """What follows the stages: fixed blocks, global pooling, optional features, classifier.

    ``features`` is a 1x1 convolution with bias on the pooled vector (a linear layer), then h-swish, as in
    MobileNetV3.
    """

    def __init__(
        self,
        blocks: nn.Module,
        channels: int,
        classes: int,
        features: int | None = None,
        activation: str = "hs",
    ) -> None:
        super().__init__()
        self.blocks = blocks
        self.features: nn.Module | None = None
        if features is not None:
            self.features = nn.Sequential(nn.Linear(channels, features), activation_layer(activation))
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
            nn.init.zeros_(layer.bias)


def initialise_convolution(weight: Tensor, groups: int = 1) -> None:
    """N(0, 2 / fan_out) with fan_out = outputs * kernel^2 / groups."""
    outputs, _, kernel, _ = weight.shape
    with torch.no_grad():
        weight.normal_(0.0, math.sqrt(2.0 / (outputs * kernel * kernel / groups)))
