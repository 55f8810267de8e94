"""Elastic layers: one set of weights for many widths and kernels (paper section 3.1, appendix A).

Each layer has a forward that takes the choice as arguments, and ``static(...)``, the plain layer of that choice
with its weights copied out. A narrower layer is the channel prefix of the widest. Nothing remembers a choice.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from binas.errors import SpaceError
from binas.space.families import ConvShape, SqueezeShape
from binas.supernet.plain import NORM_EPS, NORM_MOMENTUM, ConvNorm, SqueezeExcite, initialise_convolution

SHARED = "shared"
Layer = Callable[[Tensor], Tensor]


class ElasticNorm(nn.Module):
    """BatchNorm over a channel prefix; in training the running statistics of that prefix move."""

    running_mean: Tensor
    running_var: Tensor

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(channels))
        self.bias = nn.Parameter(torch.zeros(channels))
        self.register_buffer("running_mean", torch.zeros(channels))
        self.register_buffer("running_var", torch.ones(channels))

    def forward(self, x: Tensor) -> Tensor:
        """Normalise with batch statistics.

        One value per channel has no variance; it is normalised with the running statistics instead.
        """
        width = x.shape[1]
        batch_statistics = x.numel() > width
        return F.batch_norm(
            x,
            self.running_mean[:width],
            self.running_var[:width],
            self.weight[:width],
            self.bias[:width],
            batch_statistics,
            NORM_MOMENTUM,
            NORM_EPS,
        )

    def affine(self, width: int) -> tuple[Tensor, Tensor]:
        """Scale and shift that normalise with running statistics: gamma / sqrt(var + eps), beta - mean * scale."""
        scale = self.weight * torch.rsqrt(self.running_var + NORM_EPS)
        shift = torch.addcmul(self.bias, self.running_mean, scale, value=-1)
        return (scale, shift) if width == len(scale) else (scale[:width], shift[:width])

    def take(self, order: Tensor) -> None:
        """Put the channels into another order."""
        for tensor in (self.weight, self.bias, self.running_mean, self.running_var):
            tensor.data.copy_(tensor.detach()[order])

    def copy_to(self, norm: nn.BatchNorm2d) -> None:
        """Give a plain BatchNorm the prefix it needs."""
        width = norm.num_features
        for name in ("weight", "bias", "running_mean", "running_var"):
            getattr(norm, name).data.copy_(getattr(self, name).detach()[:width])


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
    ) -> None:
        super().__init__()
        self.stride, self.depthwise = stride, depthwise
        sizes = sorted(set(kernels))
        if any(kernel % 2 == 0 for kernel in sizes):
            raise SpaceError(f"kernels must be odd so that they have a centre, got {sizes}.")
        shape = (outputs, 1 if depthwise else inputs)
        self.weights = nn.ParameterDict({f"k{k}": nn.Parameter(torch.empty(*shape, k, k)) for k in sizes})
        self.norms = nn.ModuleDict({name: ElasticNorm(outputs) for name in dict.fromkeys(norms)})
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
        """Convolve and normalise with one choice."""
        return self.chosen(x.shape[1], outputs, kernel, norm)(x)

    def chosen(self, inputs: int, outputs: int, kernel: int = 1, norm: str = SHARED) -> Layer:
        """The layer of one choice as a function, for several groups of rows.

        In eval BatchNorm is folded into the weights, here and once: one pass over memory less.
        """
        weight, batch_norm = self.weight(inputs, outputs, kernel), self.norms[norm]
        assert isinstance(batch_norm, ElasticNorm)
        settings = (self.stride, kernel // 2, 1, outputs if self.depthwise else 1)
        if self.training:
            return lambda x: batch_norm(F.conv2d(x, weight, None, *settings))
        scale, shift = batch_norm.affine(outputs)
        folded = weight * scale.view(-1, 1, 1, 1)
        if kernel == 1 and self.stride == 1 and not self.depthwise:
            return lambda x: _pointwise(x, folded, shift)
        return lambda x: F.conv2d(x, folded, shift, *settings)

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

    def importance(self) -> Tensor:
        """Sum of absolute weights per input channel: what leaving the channel out would cost, roughly."""
        largest: Tensor = list(self.weights.values())[-1]
        return largest.detach().abs().sum((0, 2, 3))

    def importance_order(self, width: int) -> Tensor:
        """The first ``width`` input channels by falling importance, then the others where they are."""
        importance = self.importance()
        order = torch.arange(len(importance), device=importance.device)
        order[:width] = importance[:width].argsort(descending=True, stable=True)
        return order

    def static(
        self, inputs: int, outputs: int, kernel: int = 1, norm: str = SHARED, activation: str = ""
    ) -> ConvNorm:
        """The plain layer of one choice with copied weights."""
        groups = outputs if self.depthwise else 1
        plain = ConvNorm(ConvShape(inputs, outputs, kernel, self.stride, groups, activation))
        plain.conv.weight.data.copy_(self.weight(inputs, outputs, kernel).detach())  # type: ignore[union-attr, operator]
        self.norms[norm].copy_to(plain.norm)  # type: ignore[operator]
        return plain


def _pointwise(x: Tensor, weight: Tensor, shift: Tensor) -> Tensor:
    """A 1x1 convolution as a matrix product on (n * h * w, channels).

    Convolution libraries prepare code per input shape, and groups come in ever new sizes; a product needs none.
    """
    n, channels, height, width = x.shape
    rows = x.permute(0, 2, 3, 1).reshape(-1, channels)
    out = torch.addmm(shift, rows, weight.flatten(1).t())
    return out.view(n, height, width, len(weight)).permute(0, 3, 1, 2)


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
