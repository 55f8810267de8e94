"""Networks as torchvision and timm name their layers, written here from the papers' tables. Nothing of binas in them.

Rows are (expansion, channels, repeats, stride, kernel, squeeze-excite).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

Row = tuple[float, int, int, int, int, bool]
V2: list[Row] = [
    (1, 16, 1, 1, 3, False),
    (6, 24, 2, 2, 3, False),
    (6, 32, 3, 2, 3, False),
    (6, 64, 4, 2, 3, False),
    (6, 96, 3, 1, 3, False),
    (6, 160, 3, 2, 3, False),
    (6, 320, 1, 1, 3, False),
]
MNASNET_B1: list[Row] = [
    (1, 16, 1, 1, 3, False),
    (3, 24, 3, 2, 3, False),
    (3, 40, 3, 2, 5, False),
    (6, 80, 3, 2, 5, False),
    (6, 96, 2, 1, 3, False),
    (6, 192, 4, 2, 5, False),
    (6, 320, 1, 1, 3, False),
]
MNASNET_A1: list[Row] = [
    (1, 16, 1, 1, 3, False),
    (6, 24, 2, 2, 3, False),
    (3, 40, 3, 2, 5, True),
    (6, 80, 4, 2, 3, False),
    (6, 112, 2, 1, 3, True),
    (6, 160, 3, 2, 5, True),
    (6, 320, 1, 1, 3, False),
]
B0: list[Row] = [
    (1, 16, 1, 1, 3, True),
    (6, 24, 2, 2, 3, True),
    (6, 40, 2, 2, 5, True),
    (6, 80, 3, 2, 3, True),
    (6, 112, 3, 1, 5, True),
    (6, 192, 4, 2, 5, True),
    (6, 320, 1, 1, 3, True),
]
# MobileNetV3-Small (table 2 of its paper): (expanded, channels, kernel, stride, squeeze-excite, h-swish), by stage.
V3_SMALL = [
    [(16, 16, 3, 2, True, False)],
    [(72, 24, 3, 2, False, False), (88, 24, 3, 1, False, False)],
    [(96, 40, 5, 2, True, True), (240, 40, 5, 1, True, True), (240, 40, 5, 1, True, True)],
    [(120, 48, 5, 1, True, True), (144, 48, 5, 1, True, True)],
    [(288, 96, 5, 2, True, True), (576, 96, 5, 1, True, True), (576, 96, 5, 1, True, True)],
]


def eighths(number: float) -> int:
    near = max(8, int(number + 4) // 8 * 8)
    return near + 8 if near < 0.9 * number else near


class PaddedConv(nn.Conv2d):
    """TensorFlow's SAME by its documentation: total = max((ceil(n / s) - 1) * s + k - n, 0), the odd one last."""

    def forward(self, x: Tensor) -> Tensor:
        margins: list[int] = []
        for size, kernel, stride in zip(
            x.shape[:1:-1], self.kernel_size[::-1], self.stride[::-1], strict=True
        ):
            total = max((math.ceil(size / stride) - 1) * stride + kernel - size, 0)
            margins += [total // 2, total - total // 2]
        return F.conv2d(F.pad(x, margins), self.weight, self.bias, self.stride, 0, 1, self.groups)


class Squeeze(nn.Module):
    """Pool, reduce, activate, expand, gate, multiply."""

    def __init__(self, names: Sequence[str], channels: int, reduced: int, act: Any, gate: Any) -> None:
        super().__init__()
        self.names = tuple(names)
        self.add_module(names[0], nn.Conv2d(channels, reduced, 1))
        self.add_module(names[1], nn.Conv2d(reduced, channels, 1))
        self.act, self.gate = act(), gate()

    def forward(self, x: Tensor) -> Tensor:
        first, second = (self.get_submodule(name) for name in self.names)
        return x * self.gate(second(self.act(first(F.adaptive_avg_pool2d(x, 1)))))


def cna(
    i: int, o: int, k: int, s: int, g: int, norm: Callable[[int], nn.Module], act: Any, conv: Any = nn.Conv2d
) -> nn.Sequential:
    """torchvision's Conv2dNormActivation: 0 convolution, 1 BatchNorm, 2 activation."""
    parts = [conv(i, o, k, s, 0 if conv is PaddedConv else k // 2, groups=g, bias=False), norm(o)]
    return nn.Sequential(*parts, *([act()] if act else []))


class Residual(nn.Module):
    """x + body(x) where the shape is kept, the body under the library's name."""

    def __init__(self, name: str, body: nn.Module, keeps: bool) -> None:
        super().__init__()
        self.name, self.keeps = name, keeps
        self.add_module(name, body)

    def forward(self, x: Tensor) -> Tensor:
        out: Tensor = self.get_submodule(self.name)(x)
        return out + x if self.keeps else out


class TorchvisionNet(nn.Module):
    """features, mean, classifier."""

    def __init__(self, features: nn.Module, classifier: nn.Module, name: str = "features") -> None:
        super().__init__()
        self.name = name
        self.add_module(name, features)
        self.classifier = classifier

    def forward(self, x: Tensor) -> Tensor:
        out: Tensor = self.classifier(self.get_submodule(self.name)(x).mean((2, 3)))
        return out


def rows(table: Sequence[Row], width: int = 32) -> list[list[tuple[int, int, int, int, int, bool]]]:
    """(inputs, expanded, outputs, kernel, stride, squeeze) of every block, by stage."""
    stages = []
    for expansion, channels, repeats, stride, kernel, squeeze in table:
        stage = []
        for i in range(repeats):
            stage.append((width, int(width * expansion), channels, kernel, stride if i == 0 else 1, squeeze))
            width = channels
        stages.append(stage)
    return stages


def torchvision_mobilenet_v2(classes: int) -> nn.Module:
    act, norm = nn.ReLU6, nn.BatchNorm2d
    features: list[nn.Module] = [cna(3, 32, 3, 2, 1, norm, act)]
    for i, e, o, k, s, _ in (block for stage in rows(V2) for block in stage):
        body = [cna(e, e, k, s, e, norm, act), nn.Conv2d(e, o, 1, bias=False), norm(o)]
        body = body if e == i else [cna(i, e, 1, 1, 1, norm, act), *body]
        features.append(Residual("conv", nn.Sequential(*body), s == 1 and i == o))
    features.append(cna(320, 1280, 1, 1, 1, norm, act))
    classifier = nn.Sequential(nn.Dropout(0.2), nn.Linear(1280, classes))
    return TorchvisionNet(nn.Sequential(*features), classifier)


def torchvision_mobilenet_v3_small(classes: int) -> nn.Module:
    def norm(width: int) -> nn.Module:
        return nn.BatchNorm2d(width, eps=0.001, momentum=0.01)

    features: list[nn.Module] = [cna(3, 16, 3, 2, 1, norm, nn.Hardswish)]
    i = 16
    for e, o, k, s, squeeze, swish in (block for stage in V3_SMALL for block in stage):
        act = nn.Hardswish if swish else nn.ReLU
        body: list[nn.Module] = [] if e == i else [cna(i, e, 1, 1, 1, norm, act)]
        body.append(cna(e, e, k, s, e, norm, act))
        if squeeze:
            body.append(Squeeze(("fc1", "fc2"), e, eighths(e / 4), nn.ReLU, nn.Hardsigmoid))
        body.append(cna(e, o, 1, 1, 1, norm, None))
        features.append(Residual("block", nn.Sequential(*body), s == 1 and i == o))
        i = o
    features.append(cna(96, 576, 1, 1, 1, norm, nn.Hardswish))
    head = nn.Sequential(nn.Linear(576, 1024), nn.Hardswish(), nn.Dropout(0.2), nn.Linear(1024, classes))
    return TorchvisionNet(nn.Sequential(*features), head)


def torchvision_efficientnet_b0(classes: int) -> nn.Module:
    act, norm = nn.SiLU, nn.BatchNorm2d
    features: list[nn.Module] = [cna(3, 32, 3, 2, 1, norm, act)]
    for stage in rows(B0):
        blocks = []
        for i, e, o, k, s, _ in stage:
            body: list[nn.Module] = [] if e == i else [cna(i, e, 1, 1, 1, norm, act)]
            body += [
                cna(e, e, k, s, e, norm, act),
                Squeeze(("fc1", "fc2"), e, max(1, i // 4), act, nn.Sigmoid),
            ]
            body.append(cna(e, o, 1, 1, 1, norm, None))
            blocks.append(Residual("block", nn.Sequential(*body), s == 1 and i == o))
        features.append(nn.Sequential(*blocks))
    features.append(cna(320, 1280, 1, 1, 1, norm, act))
    return TorchvisionNet(nn.Sequential(*features), nn.Sequential(nn.Dropout(0.2), nn.Linear(1280, classes)))


def torchvision_mnasnet(classes: int) -> nn.Module:
    def row(i: int, e: int, o: int, k: int, s: int) -> list[nn.Module]:
        parts = [nn.Conv2d(i, e, 1, bias=False), norm(e), nn.ReLU()] if e != i else []
        parts += [nn.Conv2d(e, e, k, s, k // 2, groups=e, bias=False), norm(e), nn.ReLU()]
        return [*parts, nn.Conv2d(e, o, 1, bias=False), norm(o)]

    def norm(width: int) -> nn.Module:
        return nn.BatchNorm2d(width, momentum=0.0003)

    (first,), *stages = rows(MNASNET_B1)
    layers: list[nn.Module] = [nn.Conv2d(3, 32, 3, 2, 1, bias=False), norm(32), nn.ReLU(), *row(*first[:5])]
    for stage in stages:
        blocks = [
            Residual("layers", nn.Sequential(*row(i, e, o, k, s)), s == 1 and i == o)
            for i, e, o, k, s, _ in stage
        ]
        layers.append(nn.Sequential(*blocks))
    layers += [nn.Conv2d(320, 1280, 1, bias=False), norm(1280), nn.ReLU()]
    head = nn.Sequential(nn.Dropout(0.2), nn.Linear(1280, classes))
    return TorchvisionNet(nn.Sequential(*layers), head, name="layers")


class ResidualBottleneck(nn.Module):
    def __init__(self, i: int, width: int, stride: int) -> None:
        super().__init__()
        o = 4 * width
        self.conv1, self.bn1 = nn.Conv2d(i, width, 1, bias=False), nn.BatchNorm2d(width)
        self.conv2, self.bn2 = nn.Conv2d(width, width, 3, stride, 1, bias=False), nn.BatchNorm2d(width)
        self.conv3, self.bn3 = nn.Conv2d(width, o, 1, bias=False), nn.BatchNorm2d(o)
        changes = stride != 1 or i != o
        down = nn.Sequential(nn.Conv2d(i, o, 1, stride, bias=False), nn.BatchNorm2d(o)) if changes else None
        self.downsample = down

    def forward(self, x: Tensor) -> Tensor:
        out = F.relu(self.bn1(self.conv1(x)))
        out = self.bn3(self.conv3(F.relu(self.bn2(self.conv2(out)))))
        return F.relu(out + (x if self.downsample is None else self.downsample(x)))


class ResNet50(nn.Module):
    def __init__(self, classes: int) -> None:
        super().__init__()
        self.conv1, self.bn1 = nn.Conv2d(3, 64, 7, 2, 3, bias=False), nn.BatchNorm2d(64)
        i = 64
        for number, (width, repeats) in enumerate([(64, 3), (128, 4), (256, 6), (512, 3)], 1):
            blocks = []
            for b in range(repeats):
                blocks.append(ResidualBottleneck(i, width, 2 if number > 1 and b == 0 else 1))
                i = 4 * width
            self.add_module(f"layer{number}", nn.Sequential(*blocks))
        self.fc = nn.Linear(i, classes)

    def forward(self, x: Tensor) -> Tensor:
        x = F.max_pool2d(F.relu(self.bn1(self.conv1(x))), 3, 2, 1)
        for number in range(1, 5):
            x = self.get_submodule(f"layer{number}")(x)
        out: Tensor = self.fc(x.mean((2, 3)))
        return out


class TimmBlock(nn.Module):
    """timm's DepthwiseSeparableConv where nothing is expanded, else its InvertedResidual."""

    def __init__(
        self, i: int, e: int, o: int, k: int, s: int, reduced: int, act: Any, gate: Any, conv: Any, norm: Any
    ) -> None:
        super().__init__()
        margin = 0 if conv is PaddedConv else k // 2
        names = ["conv_dw", "bn1", "conv_pw", "bn2"]
        if e != i:
            self.conv_pw, self.bn1 = nn.Conv2d(i, e, 1, bias=False), norm(e)
            names = ["conv_dw", "bn2", "conv_pwl", "bn3"]
        self.expands, self.tail = e != i, names
        self.add_module(names[0], conv(e, e, k, s, margin, groups=e, bias=False))
        self.add_module(names[1], norm(e))
        self.se = Squeeze(("conv_reduce", "conv_expand"), e, reduced, act[1], gate) if reduced else None
        self.add_module(names[2], nn.Conv2d(e, o, 1, bias=False))
        self.add_module(names[3], norm(o))
        self.act, self.keeps = act[0](), s == 1 and i == o

    def forward(self, x: Tensor) -> Tensor:
        first, norm, last, norm_last = (self.get_submodule(name) for name in self.tail)
        out = self.act(self.bn1(self.conv_pw(x))) if self.expands else x
        out = self.act(norm(first(out)))
        out = out if self.se is None else self.se(out)
        out = norm_last(last(out))
        return out + x if self.keeps else out


class TimmNet(nn.Module):
    """conv_stem, bn1, blocks, conv_head, bn2, classifier."""

    def __init__(
        self, table: Sequence[Row], act: Any, inner: Any, classes: int, tensorflow: bool = False
    ) -> None:
        super().__init__()

        def norm(width: int) -> nn.Module:
            return nn.BatchNorm2d(width, eps=0.001 if tensorflow else 1e-5)

        conv = PaddedConv if tensorflow else nn.Conv2d
        self.conv_stem = conv(3, 32, 3, 2, 0 if tensorflow else 1, bias=False)
        self.bn1, self.bn2, self.act = norm(32), norm(1280), act()
        stages = [
            [
                TimmBlock(i, e, o, k, s, i // 4 if se else 0, (act, inner), nn.Sigmoid, conv, norm)
                for i, e, o, k, s, se in stage
            ]
            for stage in rows(table)
        ]
        self.blocks = nn.Sequential(*(nn.Sequential(*stage) for stage in stages))
        self.conv_head, self.classifier = nn.Conv2d(320, 1280, 1, bias=False), nn.Linear(1280, classes)

    def forward(self, x: Tensor) -> Tensor:
        x = self.blocks(self.act(self.bn1(self.conv_stem(x))))
        out: Tensor = self.classifier(self.act(self.bn2(self.conv_head(x))).mean((2, 3)))
        return out


class TimmMobileNetV3Small(nn.Module):
    """The last convolution is a block; conv_head follows the pooling, with a bias and without BatchNorm."""

    def __init__(self, classes: int) -> None:
        super().__init__()
        self.conv_stem, self.bn1, self.act = (
            nn.Conv2d(3, 16, 3, 2, 1, bias=False),
            nn.BatchNorm2d(16),
            nn.Hardswish(),
        )
        i, stages = 16, []
        for table in V3_SMALL:
            stage: list[nn.Module] = []
            for e, o, k, s, squeeze, swish in table:
                act = (nn.Hardswish if swish else nn.ReLU, nn.ReLU)
                reduced = eighths(e / 4) if squeeze else 0
                stage.append(
                    TimmBlock(i, e, o, k, s, reduced, act, nn.Hardsigmoid, nn.Conv2d, nn.BatchNorm2d)
                )
                i = o
            stages.append(nn.Sequential(*stage))
        last = nn.Module()
        last.conv, last.bn1 = nn.Conv2d(96, 576, 1, bias=False), nn.BatchNorm2d(576)
        self.blocks = nn.ModuleList([*stages, nn.ModuleList([last])])
        self.conv_head, self.classifier = nn.Conv2d(576, 1024, 1), nn.Linear(1024, classes)

    def forward(self, x: Tensor) -> Tensor:
        x = self.act(self.bn1(self.conv_stem(x)))
        *stages, (last,) = self.blocks
        for stage in stages:
            x = stage(x)
        x = self.act(last.bn1(last.conv(x))).mean((2, 3), keepdim=True)
        out: Tensor = self.classifier(self.act(self.conv_head(x)).flatten(1))
        return out


FOREIGN: dict[str, Callable[[int], nn.Module]] = {
    "torchvision/mobilenet_v2": torchvision_mobilenet_v2,
    "torchvision/mobilenet_v3_small": torchvision_mobilenet_v3_small,
    "torchvision/efficientnet_b0": torchvision_efficientnet_b0,
    "torchvision/mnasnet1_0": torchvision_mnasnet,
    "torchvision/resnet50": ResNet50,
    "timm/mobilenetv2_100": lambda classes: TimmNet(V2, nn.ReLU6, nn.ReLU, classes),
    "timm/mnasnet_100": lambda classes: TimmNet(MNASNET_B1, nn.ReLU, nn.ReLU, classes),
    "timm/semnasnet_100": lambda classes: TimmNet(MNASNET_A1, nn.ReLU, nn.ReLU, classes),
    "timm/efficientnet_b0": lambda classes: TimmNet(B0, nn.SiLU, nn.SiLU, classes),
    "timm/tf_efficientnet_b0": lambda classes: TimmNet(B0, nn.SiLU, nn.SiLU, classes, tensorflow=True),
    "timm/mobilenetv3_small_100": TimmMobileNetV3Small,
}


def trained(name: str, classes: int = 10, seed: int = 0) -> nn.Module:
    """A network of a library with weights that keep signals at one size and statistics that are not trivial."""
    torch.manual_seed(seed)
    module, generator = FOREIGN[name](classes), torch.Generator().manual_seed(seed)
    for layer in module.modules():
        if isinstance(layer, nn.BatchNorm2d):
            shape = layer.weight.shape
            layer.weight.data = torch.rand(shape, generator=generator) * 0.5 + 0.5
            layer.bias.data = torch.randn(shape, generator=generator) * 0.1
            layer.running_mean = torch.randn(shape, generator=generator) * 0.05
            layer.running_var = torch.rand(shape, generator=generator) * 0.5 + 0.05
    return module.eval()
