"""Elastic layers: one set of weights for many widths and kernels (paper section 3.1, appendix A).

Each layer has a forward that takes the choice as arguments, and ``static(...)``, the plain layer of that choice
with its weights copied out. A narrower layer is the channel prefix of the widest. Nothing remembers a choice.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from binas.base.errors import SpaceError
from binas.space.families import DEFAULT_RULES, ConvShape, NetworkRules, SqueezeShape
from binas.supernet.depthwise import filter_channels
from binas.supernet.plain import ConvNorm, SqueezeExcite, initialise_convolution, padded
from binas.supernet.rows import as_images, as_rows

SHARED = "shared"
NARROW = 8  # channels up to which matrix products are several times slower than convolutions (measured: AVX2, 1 thread)


class ElasticNorm(nn.Module):
    """BatchNorm over a channel prefix; in training the running statistics of that prefix move."""

    running_mean: Tensor
    running_var: Tensor

    def __init__(self, channels: int, rules: NetworkRules = DEFAULT_RULES) -> None:
        super().__init__()
        self.epsilon, self.momentum = rules.norm_epsilon, rules.norm_momentum
        self.weight = nn.Parameter(torch.ones(channels))
        self.bias = nn.Parameter(torch.zeros(channels))
        self.register_buffer("running_mean", torch.zeros(channels))
        self.register_buffer("running_var", torch.ones(channels))

    def forward(self, x: Tensor) -> Tensor:
        """Normalise with batch statistics in training, else with the running ones.

        One value per channel has no variance; it is normalised with the running statistics too.
        """
        width = x.shape[1]
        batch_statistics = self.training and x.numel() > width
        return F.batch_norm(
            x,
            self.running_mean[:width],
            self.running_var[:width],
            self.weight[:width],
            self.bias[:width],
            batch_statistics,
            self.momentum,
            self.epsilon,
        )

    def take(self, order: Tensor) -> None:
        """Put the channels into another order."""
        for tensor in (self.weight, self.bias, self.running_mean, self.running_var):
            tensor.data.copy_(tensor.detach()[order])

    def copy_to(self, norm: nn.BatchNorm2d) -> None:
        """Give a plain BatchNorm the prefix it needs."""
        width = norm.num_features
        for name in ("weight", "bias", "running_mean", "running_var"):
            getattr(norm, name).data.copy_(getattr(self, name).detach()[:width])

    def copy_from(self, norm: nn.BatchNorm2d) -> None:
        """Take over a plain BatchNorm as a prefix; the inverse of :meth:`copy_to`."""
        width = norm.num_features
        for name in ("weight", "bias", "running_mean", "running_var"):
            getattr(self, name).data[:width] = getattr(norm, name).detach()


def reading_weight(weight: Tensor) -> Tensor:
    """sqrt(sum w^2) of each channel that a layer reads, for weights (outputs, inputs, ...)."""
    squares: Tensor = weight.detach().square().transpose(0, 1).flatten(1).sum(1)
    return torch.sqrt(squares)


def typical_size(norm: ElasticNorm | nn.BatchNorm1d | nn.BatchNorm2d) -> Tensor:
    """sqrt(E[max(z, 0)^2]) of each channel that a norm with scale g and shift b gives, z ~ N(b, g^2).

    E = (b^2 + g^2) P(b / g) + b g p(b / g), with the normal distribution's P and its density p. Times the weight that the
    next layer gives a channel it says how far outputs move when that is left out, as far as activations resemble ReLU.
    """
    given: tuple[Tensor | None, Tensor | None] = norm.weight, norm.bias
    if given[0] is None or given[1] is None:
        assert norm.running_mean is not None
        return torch.full_like(norm.running_mean, math.sqrt(0.5))
    scale, shift = given[0].detach().abs().clamp_min(1e-6), given[1].detach()
    ratio = shift / scale
    density = torch.exp(-(ratio**2) / 2) / math.sqrt(2 * math.pi)
    squared = (shift**2 + scale**2) * torch.special.ndtr(ratio) + shift * scale * density
    return torch.sqrt(squared.clamp_min(0))


def affine(norms: Sequence[ElasticNorm]) -> tuple[Tensor, Tensor]:
    """Scales and shifts that normalise with running statistics, one row per norm, all of one width and epsilon.

    scale = gamma / sqrt(var + eps), shift = beta - mean * scale.
    """
    names = ("weight", "bias", "running_mean", "running_var")
    weight, bias, mean, variance = (torch.stack([getattr(norm, name) for norm in norms]) for name in names)
    scale = weight * torch.rsqrt(variance + norms[0].epsilon)
    return scale, torch.addcmul(bias, mean, scale, value=-1)


class ElasticConv(nn.Module):
    """Convolution and BatchNorm on prefixes of inputs and outputs, with one weight per kernel size.

    ``norms`` names the private BatchNorms; a call says which one it uses. A smaller kernel starts as the
    centre of the next larger one (k5 from k7, k3 from k5). With ``depthwise`` every channel has its own filter.
    """

    def __init__(
        self,
        inputs: int,
        outputs: int,
        kernels: Iterable[int] = (1,),
        norms: Iterable[str] = (SHARED,),
        stride: int = 1,
        depthwise: bool = False,
        rules: NetworkRules = DEFAULT_RULES,
    ) -> None:
        super().__init__()
        self.stride, self.depthwise, self.rules = stride, depthwise, rules
        sizes = sorted(set(kernels))
        if any(kernel % 2 == 0 for kernel in sizes):
            raise SpaceError(f"kernels must be odd so that they have a centre, got {sizes}.")
        shape = (outputs, 1 if depthwise else inputs)
        self.weights = nn.ParameterDict({f"k{k}": nn.Parameter(torch.empty(*shape, k, k)) for k in sizes})
        self.norms = nn.ModuleDict({name: ElasticNorm(outputs, rules) for name in dict.fromkeys(norms)})
        self._initialise(sizes, outputs)

    def _initialise(self, sizes: Sequence[int], outputs: int) -> None:
        initialise_convolution(self.weights[f"k{sizes[-1]}"], outputs if self.depthwise else 1)
        with torch.no_grad():
            for small, large in zip(sizes[-2::-1], sizes[:0:-1], strict=True):
                cut = (large - small) // 2
                centre = self.weights[f"k{large}"][:, :, cut : cut + small, cut : cut + small]
                self.weights[f"k{small}"].copy_(centre)

    def weight(self, inputs: int, outputs: int, kernel: int) -> Tensor:
        """The part of the shared weight that this choice uses, (outputs, inputs or 1, kernel, kernel)."""
        whole: Tensor = self.weights[f"k{kernel}"]
        narrow = whole if outputs == len(whole) else whole[:outputs]
        return narrow if self.depthwise or inputs == whole.shape[1] else narrow[:, :inputs]

    def forward(self, x: Tensor, outputs: int, kernel: int = 1, norm: str = SHARED) -> Tensor:
        """Convolve and normalise with one choice; without gradients BatchNorm is folded into the weights."""
        if self.training or torch.is_grad_enabled():
            normalised: Tensor = self.norms[norm](self.convolve(x, outputs, kernel))
            return normalised
        scale, shift = (rows[0, :outputs] for rows in affine([self.norm(norm)]))
        weight = self.weight(x.shape[1], outputs, kernel)
        return self._convolve(x, weight * scale.view(-1, 1, 1, 1), shift)

    def norm(self, name: str) -> ElasticNorm:
        """One of the private BatchNorms."""
        norm = self.norms[name]
        assert isinstance(norm, ElasticNorm)
        return norm

    def convolve(self, x: Tensor, outputs: int, kernel: int = 1) -> Tensor:
        """Convolve with one choice, without BatchNorm."""
        return self._convolve(x, self.weight(x.shape[1], outputs, kernel))

    def _convolve(self, x: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
        kernel = weight.shape[-1]
        if kernel == 1 and self.stride == 1 and not self.depthwise and min(weight.shape[:2]) > NARROW:
            return pointwise(x, weight, bias)
        x, (rows, columns) = padded(x, kernel, self.stride, self.rules)
        if self.depthwise and rows == columns:
            return filter_channels(x, weight, bias, self.stride, rows)
        return F.conv2d(
            x, weight, bias, self.stride, (rows, columns), 1, len(weight) if self.depthwise else 1
        )

    def start_from(self, kernel: int = 1, norm: str = SHARED) -> None:
        """Give smaller kernels the centre of ``kernel``, and all other norms the values of ``norm``."""
        with torch.no_grad():
            for name, weight in self.weights.items():
                cut = (kernel - int(name[1:])) // 2
                if cut > 0:
                    weight.copy_(self.weights[f"k{kernel}"][:, :, cut:-cut, cut:-cut])
            for other in self.norms.values():
                other.load_state_dict(self.norms[norm].state_dict())

    def reorder(self, outputs: Tensor | None = None, inputs: Tensor | None = None) -> None:
        """Put output channels (with their norms) or input channels into another order."""
        for weight in self.weights.values():
            weight.data.copy_(weight.detach()[outputs] if outputs is not None else weight.detach()[:, inputs])
        if outputs is not None:
            for norm in self.norms.values():
                norm.take(outputs)  # type: ignore[operator]

    def importance_order(self, width: int, read: ElasticNorm) -> Tensor:
        """The first ``width`` input channels, normalised by ``read``, by falling importance; then the others as they are."""
        largest: Tensor = list(self.weights.values())[-1]
        importance = reading_weight(largest) * typical_size(read)
        order = torch.arange(len(importance), device=importance.device)
        order[:width] = importance[:width].argsort(descending=True, stable=True)
        return order

    def static(
        self, inputs: int, outputs: int, kernel: int = 1, norm: str = SHARED, activation: str = ""
    ) -> ConvNorm:
        """The plain layer of one choice with copied weights."""
        groups = outputs if self.depthwise else 1
        plain = ConvNorm(ConvShape(inputs, outputs, kernel, self.stride, groups, activation), self.rules)
        plain.conv.weight.data.copy_(self.weight(inputs, outputs, kernel).detach())  # type: ignore[union-attr, operator]
        self.norm(norm).copy_to(plain.norm)  # type: ignore[arg-type]
        return plain

    def absorb(self, plain: nn.Module, norm: str = SHARED) -> None:
        """Take over the weights of a plain layer as those of a choice; the inverse of :meth:`static`."""
        assert isinstance(plain, ConvNorm)
        weight: Tensor = plain.conv.weight.detach()  # type: ignore[union-attr, operator]
        outputs, inputs, kernel, _ = weight.shape
        self.weights[f"k{kernel}"].data[:outputs, :inputs] = weight
        self.norm(norm).copy_from(plain.norm)  # type: ignore[arg-type]


def pointwise(x: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
    """A 1x1 convolution as a matrix product on (n * h * w, channels).

    Convolution libraries prepare code per input shape, and groups come in ever new sizes; a product needs none.
    """
    n, _, height, width = x.shape
    out = F.linear(as_rows(x), weight.flatten(1), bias)
    return as_images(out, n, height, width)


class ElasticSqueezeExcite(nn.Module):
    """Squeeze-excite on the active channel prefix, with a reduced width per choice."""

    def __init__(self, widest: SqueezeShape) -> None:
        super().__init__()
        self.rule = widest.rule
        self.full = SqueezeExcite(widest)

    def forward(self, x: Tensor, reduced: int) -> Tensor:
        """x * gate, with the first ``reduced`` units and the first x.shape[1] channels of the widest layer."""
        return x * self.gates(x.mean((2, 3)), reduced)

    def gates(self, pooled: Tensor, reduced: int) -> Tensor:
        """Gates (n, width, 1, 1) of rows with these channel means (n, width)."""
        width, full = pooled.shape[1], self.full
        inner = F.linear(pooled, full.reduce.weight[:reduced, :width], full.reduce.bias[:reduced])
        inner = full.activation(inner)
        outer = F.linear(inner, full.excite.weight[:width, :reduced], full.excite.bias[:width])
        gate: Tensor = full.gate(outer)
        return gate[:, :, None, None]

    def reorder(self, order: Tensor) -> None:
        """Put the channels into another order."""
        full = self.full
        full.reduce.weight.data.copy_(full.reduce.weight.detach()[:, order])
        full.excite.weight.data.copy_(full.excite.weight.detach()[order])
        full.excite.bias.data.copy_(full.excite.bias.detach()[order])

    def static(self, channels: int, reduced: int) -> SqueezeExcite:
        """The plain layer of one choice with copied weights."""
        plain = SqueezeExcite(SqueezeShape(channels, reduced, self.rule))
        plain.reduce.weight.data.copy_(self.full.reduce.weight.detach()[:reduced, :channels])
        plain.reduce.bias.data.copy_(self.full.reduce.bias.detach()[:reduced])
        plain.excite.weight.data.copy_(self.full.excite.weight.detach()[:channels, :reduced])
        plain.excite.bias.data.copy_(self.full.excite.bias.detach()[:channels])
        return plain

    def absorb(self, plain: nn.Module) -> None:
        """Take over the weights of a plain layer as those of a choice; the inverse of :meth:`static`."""
        assert isinstance(plain, SqueezeExcite)
        reduced, channels = plain.reduce.weight.shape
        self.full.reduce.weight.data[:reduced, :channels] = plain.reduce.weight.detach()
        self.full.reduce.bias.data[:reduced] = plain.reduce.bias.detach()
        self.full.excite.weight.data[:channels, :reduced] = plain.excite.weight.detach()
        self.full.excite.bias.data[:channels] = plain.excite.bias.detach()
