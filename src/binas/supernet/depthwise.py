"""Depth-wise filters that are differentiated fast on a CPU.

The CPU library takes the gradient of 3 x 3 depth-wise weights quickly and that of larger ones slowly, the more so the
smaller the images (5 x 5 on 4 x 4 pixels: 27 times the forward). The gradient of a k x k weight is made of those of 3 x 3
weights on shifted images: dW[i, j] = sum over images and pixels p, q of x[p s + i, q s + j] g[p, q] needs x and g only.
"""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from binas.supernet.plain import computing

PIECE = 3  # kernel that the library differentiates fast
SMALL = 8  # pixels a side below which pieces are faster than the whole (measured: AVX2, 1 thread, 64 images)


def filter_channels(x: Tensor, weight: Tensor, bias: Tensor | None, stride: int, padding: int) -> Tensor:
    """Every channel of x (n, c, h, w) with its own filter of ``weight`` (c, 1, k, k)."""
    if bias is None and _is_slow(x, weight):
        filtered: Tensor = _InPieces.apply(x, weight, stride, padding)  # type: ignore[no-untyped-call]
        return filtered
    return F.conv2d(x, weight, bias, stride, padding, 1, len(weight))


def _is_slow(x: Tensor, weight: Tensor) -> bool:
    """Whether the library's own gradient of the weight is asked for and slower than that in pieces."""
    small = weight.shape[-1] > PIECE and max(x.shape[-2:]) < SMALL
    plain = x.device.type == "cpu" and not torch.is_autocast_enabled("cpu")
    return small and plain and torch.is_grad_enabled() and weight.requires_grad


def fast_filters(network: nn.Module) -> AbstractContextManager[None]:
    """Let the plain depth-wise layers of a network be differentiated in this way while it is trained."""
    own = [layer for layer in network.modules() if type(layer) is nn.Conv2d and _fits(layer)]
    return computing(own, _filtered)


def _fits(layer: nn.Conv2d) -> bool:
    """Whether a layer filters each channel on its own, in the way of :func:`filter_channels`."""
    kernel = layer.kernel_size[0]
    usual = (kernel, kernel), (layer.stride[0],) * 2, (kernel // 2,) * 2, (1, 1), "zeros"
    own = layer.kernel_size, layer.stride, layer.padding, layer.dilation, layer.padding_mode
    return own == usual and 1 < layer.groups == layer.in_channels == layer.out_channels


def _filtered(layer: nn.Conv2d, x: Tensor) -> Tensor:
    return filter_channels(x, layer.weight, layer.bias, layer.stride[0], layer.kernel_size[0] // 2)


class _InPieces(torch.autograd.Function):
    """A depth-wise convolution; the gradient of its weight is taken in pieces of 3 x 3."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, weight: Tensor, stride: int, padding: int) -> Tensor:
        """As any convolution."""
        ctx.save_for_backward(x, weight)
        ctx.stride, ctx.padding = stride, padding
        return F.conv2d(x, weight, None, stride, padding, 1, len(weight))

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, Tensor | None, None, None]:
        """The library's gradient of the images, and the pieces' of the weight."""
        x, weight = ctx.saved_tensors
        images = weights = None
        if ctx.needs_input_grad[0]:
            images = _gradient(gradient, x, weight, ctx.stride, ctx.padding, 0)
        if ctx.needs_input_grad[1]:
            weights = _weight_gradient(gradient, x, weight, ctx.stride, ctx.padding)
        return images, weights, None, None


def _weight_gradient(gradient: Tensor, x: Tensor, weight: Tensor, stride: int, padding: int) -> Tensor:
    """dW, piece by piece; neighbouring pieces share a row or column, which is then written twice."""
    kernel, whole = weight.shape[-1], torch.empty_like(weight)
    (height, width), (rows, columns) = x.shape[-2:], [(n - 1) * stride + PIECE for n in gradient.shape[-2:]]
    small = weight[..., :PIECE, :PIECE]
    starts = range(0, kernel - 1, PIECE - 1)
    for i in starts:
        for j in starts:
            top, left = padding - i, padding - j
            part = F.pad(x, (left, columns - width - left, top, rows - height - top))
            whole[..., i : i + PIECE, j : j + PIECE] = _gradient(gradient, part, small, stride, 0, 1)
    return whole


def _gradient(gradient: Tensor, x: Tensor, weight: Tensor, stride: int, padding: int, of: int) -> Tensor:
    """What the library gives for the images (0) or the weight (1)."""
    wanted = [of == 0, of == 1, False]
    sizes = [stride, stride], [padding, padding], [1, 1]
    found: tuple[Tensor, ...] = torch.ops.aten.convolution_backward(
        gradient, x, weight, None, *sizes, False, [0, 0], len(weight), wanted
    )
    return found[of]
