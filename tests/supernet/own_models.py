"""Classifiers as users write them: none of them knows anything of binas."""

from __future__ import annotations

import math
from collections import OrderedDict
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


class Permute(nn.Module):
    """Axes in another order."""

    def __init__(self, dims: list[int]) -> None:
        super().__init__()
        self.dims = dims

    def forward(self, x: Tensor) -> Tensor:
        return torch.permute(x, self.dims)


class StochasticDepth(nn.Module):
    """Leaves rows out while training."""

    def forward(self, x: Tensor) -> Tensor:
        if not self.training:
            return x
        return x * (torch.rand(x.shape[0], *[1] * (x.ndim - 1)) > 0.1) / 0.9


class LayerNorm2d(nn.LayerNorm):
    def forward(self, x: Tensor) -> Tensor:
        x = x.permute(0, 2, 3, 1)
        x = F.layer_norm(x, self.normalized_shape, self.weight, self.bias, self.eps)
        return x.permute(0, 3, 1, 2)


class CNBlock(nn.Module):
    """The block of ConvNeXt as published with torchvision."""

    def __init__(self, dim: int) -> None:
        super().__init__()
        self.block = nn.Sequential(
            nn.Conv2d(dim, dim, kernel_size=7, padding=3, groups=dim, bias=True),
            Permute([0, 2, 3, 1]),
            nn.LayerNorm(dim, eps=1e-6),
            nn.Linear(dim, 4 * dim),
            nn.GELU(),
            nn.Linear(4 * dim, dim),
            Permute([0, 3, 1, 2]),
        )
        self.layer_scale = nn.Parameter(torch.ones(dim, 1, 1) * 0.5)
        self.stochastic_depth = StochasticDepth()

    def forward(self, input: Tensor) -> Tensor:
        result = self.layer_scale * self.block(input)
        result = self.stochastic_depth(result)
        result += input
        return result


class PublishedConvNeXt(nn.Module):
    """ConvNeXt from the published structure, with the operations of torchvision's."""

    def __init__(self) -> None:
        super().__init__()
        stem = nn.Sequential(nn.Conv2d(3, 8, 2, 2), LayerNorm2d(8, eps=1e-6))
        shrink = nn.Sequential(LayerNorm2d(8, eps=1e-6), nn.Conv2d(8, 16, 2, 2))
        blocks = [nn.Sequential(CNBlock(dim), CNBlock(dim)) for dim in (8, 16)]
        self.features = nn.Sequential(stem, blocks[0], shrink, blocks[1])
        self.avgpool = nn.AdaptiveAvgPool2d(1)
        self.classifier = nn.Sequential(LayerNorm2d(16, eps=1e-6), nn.Flatten(1), nn.Linear(16, CLASSES))

    def forward(self, x: Tensor) -> Tensor:
        return self.classifier(self.avgpool(self.features(x)))


class EncoderBlock(nn.Module):
    """The block of a vision transformer as published with torchvision."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.ln_1 = nn.LayerNorm(width, eps=1e-6)
        self.self_attention = nn.MultiheadAttention(width, heads, batch_first=True)
        self.dropout = nn.Dropout(0.0)
        self.ln_2 = nn.LayerNorm(width, eps=1e-6)
        self.mlp = nn.Sequential(
            nn.Linear(width, 4 * width),
            nn.GELU(),
            nn.Dropout(0.0),
            nn.Linear(4 * width, width),
            nn.Dropout(0.0),
        )

    def forward(self, input: Tensor) -> Tensor:
        torch._assert(input.dim() == 3, f"Expected (batch, tokens, width) got {input.shape}")
        x = self.ln_1(input)
        x, _ = self.self_attention(x, x, x, need_weights=False)
        x = self.dropout(x)
        x = x + input
        return x + self.mlp(self.ln_2(x))


class Encoder(nn.Module):
    def __init__(self, tokens: int, width: int) -> None:
        super().__init__()
        self.pos_embedding = nn.Parameter(torch.empty(1, tokens, width).normal_(std=0.5))
        self.dropout = nn.Dropout(0.0)
        layers = OrderedDict((f"encoder_layer_{k}", EncoderBlock(width, 4)) for k in range(2))
        self.layers, self.ln = nn.Sequential(layers), nn.LayerNorm(width, eps=1e-6)

    def forward(self, input: Tensor) -> Tensor:
        torch._assert(input.dim() == 3, f"Expected (batch, tokens, width) got {input.shape}")
        input = input + self.pos_embedding
        return self.ln(self.layers(self.dropout(input)))


class PublishedViT(nn.Module):
    """VisionTransformer from the published structure, with the operations of torchvision's."""

    def __init__(self) -> None:
        super().__init__()
        self.image_size, self.patch_size, self.hidden_dim = SIDE, 8, 16
        self.conv_proj = nn.Conv2d(3, 16, 8, 8)
        self.class_token = nn.Parameter(torch.randn(1, 1, 16))
        self.encoder = Encoder(5, 16)
        self.heads = nn.Sequential(OrderedDict(head=nn.Linear(16, CLASSES)))

    def _process_input(self, x: Tensor) -> Tensor:
        n, _, h, w = x.shape
        torch._assert(h == self.image_size, f"Wrong image height! Expected {self.image_size} but got {h}!")
        torch._assert(w == self.image_size, f"Wrong image width! Expected {self.image_size} but got {w}!")
        n_h, n_w = h // self.patch_size, w // self.patch_size
        x = self.conv_proj(x).reshape(n, self.hidden_dim, n_h * n_w)
        return x.permute(0, 2, 1)

    def forward(self, x: Tensor) -> Tensor:
        x = self._process_input(x)
        batch_class_token = self.class_token.expand(x.shape[0], -1, -1)
        x = self.encoder(torch.cat([batch_class_token, x], dim=1))
        return self.heads(x[:, 0])


class FusedAttention(nn.Module):
    """Attention as timm writes it: no bias of queries, keys and values, torch's own product, places for norms."""

    def __init__(self, dim: int, heads: int) -> None:
        super().__init__()
        assert dim % heads == 0
        self.num_heads, self.head_dim = heads, dim // heads
        self.qkv, self.proj = nn.Linear(dim, 3 * dim, bias=False), nn.Linear(dim, dim)
        self.q_norm, self.k_norm = nn.Identity(), nn.Identity()

    def forward(self, x: Tensor) -> Tensor:
        B, N, C = x.shape
        qkv = self.qkv(x).reshape(B, N, 3, self.num_heads, self.head_dim).permute(2, 0, 3, 1, 4)
        q, k, v = qkv.unbind(0)
        x = F.scaled_dot_product_attention(self.q_norm(q), self.k_norm(k), v, dropout_p=0.0)
        return self.proj(x.transpose(1, 2).reshape(B, N, C))


class SplitAttention(nn.Module):
    """Attention with a layer each for queries, keys and values."""

    def __init__(self, dim: int, heads: int) -> None:
        super().__init__()
        self.heads, self.size = heads, dim // heads
        self.query, self.key, self.value = nn.Linear(dim, dim), nn.Linear(dim, dim), nn.Linear(dim, dim)
        self.last = nn.Linear(dim, dim)

    def forward(self, x: Tensor) -> Tensor:
        shape = x.size()[:-1] + (self.heads, self.size)  # noqa: RUF005 (as others write it)
        q, k, v = (part(x).view(shape).transpose(1, 2) for part in (self.query, self.key, self.value))
        weights = F.softmax(torch.matmul(q, k.transpose(-1, -2)) / self.size**0.5, dim=-1)
        return self.last((weights @ v).permute(0, 2, 1, 3).contiguous().flatten(2))


class BatchNormAct(nn.BatchNorm2d):
    """A norm and an activation in one, as timm has them."""

    def forward(self, x: Tensor) -> Tensor:
        torch._assert(x.ndim == 4, f"expected 4D input (got {x.ndim}D input)")
        x = F.batch_norm(
            x, self.running_mean, self.running_var, self.weight, self.bias, self.training, 0.1, self.eps
        )
        return F.relu(x, inplace=True)


class SameConv(nn.Conv2d):
    """Pads by the size of what it is given, as TensorFlow does."""

    def forward(self, x: Tensor) -> Tensor:
        (high, wide), (size, _), (step, _) = x.shape[-2:], self.kernel_size, self.stride
        down, right = (max((math.ceil(side / step) - 1) * step + size - side, 0) for side in (high, wide))
        if down > 0 or right > 0:
            x = F.pad(x, [right // 2, right - right // 2, down // 2, down - down // 2])
        return F.conv2d(x, self.weight, self.bias, self.stride, (0, 0), self.dilation, self.groups)


class SameBlock(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.drop_path = nn.Identity()
        self.conv1, self.bn1 = nn.Conv2d(16, 32, 2, padding="same", bias=False), BatchNormAct(32)
        self.conv2 = nn.Conv2d(32, 32, 3, padding="same", dilation=2, groups=32)
        self.conv3 = SameConv(32, 16, 1)

    def forward(self, x: Tensor) -> Tensor:
        assert x.shape[1] == 16, "channels"
        return self.drop_path(self.conv3(F.gelu(self.conv2(self.bn1(self.conv1(x)))))) + x


class SameNet(nn.Module):
    """Paddings by size, functions with weights, and the number of images taken first and used last."""

    def __init__(self) -> None:
        super().__init__()
        self.stem, self.bn = SameConv(3, 16, 3, 2, bias=False), BatchNormAct(16)
        self.blocks = nn.ModuleList([SameBlock(), SameBlock()])
        self.fc = nn.Linear(16, CLASSES)

    def forward(self, x: Tensor, mask: Tensor | None = None) -> Tensor:
        bs = x.size(0)
        x = self.bn(self.stem(x))
        for block in self.blocks:
            x = block(x)
        return self.fc(F.adaptive_avg_pool2d(x, 1).view(bs, -1))


MODELS: dict[str, Callable[[], nn.Module]] = {
    "resnet": lambda: ResNet([Basic(16, 16, 1), Basic(16, 32, 2), Basic(32, 32, 1)], 32),
    "bottleneck": lambda: ResNet([Bottleneck(16, 8), Bottleneck(16, 8)], 16),
    "mobilenet": lambda: MobileNet(False),
    "efficientnet": lambda: MobileNet(True),
    "convnext": ConvNeXt,
    "vit": lambda: ViT(OwnAttention),
    "vit of torch": lambda: ViT(TorchAttention),
    "published convnext": PublishedConvNeXt,
    "published vit": PublishedViT,
    "vit with fused attention": lambda: ViT(FusedAttention),
    "vit with split attention": lambda: ViT(SplitAttention),
    "paddings by size": SameNet,
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
