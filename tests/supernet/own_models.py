"""Classifiers as users write them: none of them knows anything of binas."""

from __future__ import annotations

from collections.abc import Callable

import torch
import torch.nn.functional as F
from torch import Tensor, nn

SIDE, CLASSES = 16, 5


class Basic(nn.Module):
    """The basic block of a ResNet."""

    def __init__(self, inputs: int, outputs: int, stride: int) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(inputs, outputs, 3, stride, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(outputs)
        self.conv2 = nn.Conv2d(outputs, outputs, 3, 1, 1, bias=False)
        self.bn2 = nn.BatchNorm2d(outputs)
        self.relu = nn.ReLU(inplace=True)
        self.downsample: nn.Module | None = None
        if stride > 1 or inputs != outputs:
            self.downsample = nn.Sequential(
                nn.Conv2d(inputs, outputs, 1, stride, bias=False), nn.BatchNorm2d(outputs)
            )

    def forward(self, x: Tensor) -> Tensor:
        out = self.bn2(self.conv2(self.relu(self.bn1(self.conv1(x)))))
        out += x if self.downsample is None else self.downsample(x)
        return self.relu(out)


class Bottleneck(nn.Module):
    """The bottleneck block of a ResNet."""

    def __init__(self, channels: int, inner: int) -> None:
        super().__init__()
        self.conv1, self.bn1 = nn.Conv2d(channels, inner, 1, bias=False), nn.BatchNorm2d(inner)
        self.conv2, self.bn2 = nn.Conv2d(inner, inner, 3, 1, 1, bias=False), nn.BatchNorm2d(inner)
        self.conv3, self.bn3 = nn.Conv2d(inner, channels, 1, bias=False), nn.BatchNorm2d(channels)

    def forward(self, x: Tensor) -> Tensor:
        out = F.relu(self.bn2(self.conv2(F.relu(self.bn1(self.conv1(x))))))
        return F.relu(self.bn3(self.conv3(out)) + x)


class ResNet(nn.Module):
    def __init__(self, blocks: list[nn.Module], channels: int) -> None:
        super().__init__()
        self.stem = nn.Sequential(nn.Conv2d(3, 16, 3, 1, 1, bias=False), nn.BatchNorm2d(16), nn.ReLU())
        self.layers = nn.Sequential(*blocks)
        self.fc = nn.Linear(channels, CLASSES)

    def forward(self, x: Tensor) -> Tensor:
        pooled = F.adaptive_avg_pool2d(self.layers(self.stem(x)), 1)
        return self.fc(torch.flatten(pooled, 1))


class Inverted(nn.Module):
    """The block of MobileNetV2 and of EfficientNet (with a gate)."""

    def __init__(self, inputs: int, outputs: int, stride: int, gate: bool = False) -> None:
        super().__init__()
        width = 4 * inputs
        self.skip = stride == 1 and inputs == outputs
        self.expand = nn.Sequential(
            nn.Conv2d(inputs, width, 1, bias=False), nn.BatchNorm2d(width), nn.ReLU6()
        )
        self.depthwise = nn.Sequential(
            nn.Conv2d(width, width, 3, stride, 1, groups=width, bias=False), nn.BatchNorm2d(width), nn.ReLU6()
        )
        self.gate = (
            nn.Sequential(
                nn.AdaptiveAvgPool2d(1),
                nn.Conv2d(width, width // 4, 1),
                nn.SiLU(),
                nn.Conv2d(width // 4, width, 1),
                nn.Sigmoid(),
            )
            if gate
            else None
        )
        self.project = nn.Sequential(nn.Conv2d(width, outputs, 1, bias=False), nn.BatchNorm2d(outputs))

    def forward(self, x: Tensor) -> Tensor:
        out = self.depthwise(self.expand(x))
        if self.gate is not None:
            out = out * self.gate(out)
        out = self.project(out)
        return x + out if self.skip else out


class MobileNet(nn.Module):
    def __init__(self, gate: bool) -> None:
        super().__init__()
        self.stem = nn.Sequential(nn.Conv2d(3, 8, 3, 1, 1, bias=False), nn.BatchNorm2d(8), nn.ReLU6())
        self.features = nn.Sequential(
            Inverted(8, 16, 2, gate),
            Inverted(16, 16, 1, gate),
            Inverted(16, 24, 2, gate),
            Inverted(24, 24, 1, gate),
        )
        self.classifier = nn.Sequential(nn.Dropout(0.2), nn.Linear(24, CLASSES))

    def forward(self, x: Tensor) -> Tensor:
        return self.classifier(self.features(self.stem(x)).mean((2, 3)))


class NextBlock(nn.Module):
    """The block of ConvNeXt, with its layer scale."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.depthwise = nn.Conv2d(channels, channels, 7, 1, 3, groups=channels)
        self.norm = nn.LayerNorm(channels)
        self.up, self.down = nn.Linear(channels, 4 * channels), nn.Linear(4 * channels, channels)
        self.gamma = nn.Parameter(torch.full((channels,), 0.5))

    def forward(self, x: Tensor) -> Tensor:
        out = self.norm(self.depthwise(x).permute(0, 2, 3, 1))
        return x + (self.gamma * self.down(F.gelu(self.up(out)))).permute(0, 3, 1, 2)


class ConvNeXt(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.stem = nn.Conv2d(3, 8, 2, 2)
        self.first = nn.Sequential(NextBlock(8), NextBlock(8))
        self.shrink = nn.Conv2d(8, 16, 2, 2)
        self.second = nn.Sequential(NextBlock(16), NextBlock(16))
        self.norm, self.head = nn.LayerNorm(16), nn.Linear(16, CLASSES)

    def forward(self, x: Tensor) -> Tensor:
        return self.head(self.norm(self.second(self.shrink(self.first(self.stem(x)))).mean([-2, -1])))


class OwnAttention(nn.Module):
    """Attention as vision transformers write it."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.num_heads, self.head_dim = heads, width // heads
        self.qkv, self.proj = nn.Linear(width, 3 * width), nn.Linear(width, width)

    def forward(self, x: Tensor) -> Tensor:
        n, tokens, width = x.shape
        q, k, v = (
            self.qkv(x).reshape(n, tokens, 3, self.num_heads, self.head_dim).permute(2, 0, 3, 1, 4).unbind(0)
        )
        weights = (q @ k.transpose(-2, -1) * self.head_dim**-0.5).softmax(-1)
        return self.proj((weights @ v).transpose(1, 2).reshape(n, tokens, width))


class TorchAttention(nn.Module):
    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.inner = nn.MultiheadAttention(width, heads, batch_first=True)

    def forward(self, x: Tensor) -> Tensor:
        return self.inner(x, x, x, need_weights=False)[0]


class TransformerBlock(nn.Module):
    def __init__(self, attention: Callable[[int, int], nn.Module]) -> None:
        super().__init__()
        self.norm1, self.attention, self.norm2 = nn.LayerNorm(16), attention(16, 4), nn.LayerNorm(16)
        self.mlp = nn.Sequential(nn.Linear(16, 64), nn.GELU(), nn.Linear(64, 16))

    def forward(self, x: Tensor) -> Tensor:
        x = x + self.attention(self.norm1(x))
        return x + self.mlp(self.norm2(x))


class ViT(nn.Module):
    def __init__(self, attention: Callable[[int, int], nn.Module]) -> None:
        super().__init__()
        self.patch = nn.Conv2d(3, 16, 8, 8)
        self.token = nn.Parameter(torch.randn(1, 1, 16))
        self.place = nn.Parameter(torch.randn(1, 5, 16))
        self.blocks = nn.Sequential(TransformerBlock(attention), TransformerBlock(attention))
        self.norm, self.head = nn.LayerNorm(16), nn.Linear(16, CLASSES)

    def forward(self, x: Tensor) -> Tensor:
        tokens = self.patch(x).flatten(2).transpose(1, 2)
        tokens = torch.cat([self.token.expand(x.shape[0], -1, -1), tokens], 1) + self.place
        return self.head(self.norm(self.blocks(tokens))[:, 0])


MODELS: dict[str, Callable[[], nn.Module]] = {
    "resnet": lambda: ResNet([Basic(16, 16, 1), Basic(16, 32, 2), Basic(32, 32, 1)], 32),
    "bottleneck": lambda: ResNet([Bottleneck(16, 8), Bottleneck(16, 8)], 16),
    "mobilenet": lambda: MobileNet(False),
    "efficientnet": lambda: MobileNet(True),
    "convnext": ConvNeXt,
    "vit": lambda: ViT(OwnAttention),
    "vit of torch": lambda: ViT(TorchAttention),
}


def own_model(name: str, seed: int = 0) -> nn.Module:
    """A model that looks trained: norms have statistics of their own."""
    torch.manual_seed(seed)
    model = MODELS[name]()
    for module in model.modules():
        if isinstance(module, nn.BatchNorm2d):
            module.running_mean.normal_(std=0.1)
            module.running_var.uniform_(0.5, 2.0)
            module.weight.data.uniform_(0.5, 1.5)
    return model.eval()
