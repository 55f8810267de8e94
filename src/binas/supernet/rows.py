"""Rows of a batch in channels_last memory, where each image is one stretch: moved and reshaped without waste."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

Order = NDArray[np.int64]


def as_rows(x: Tensor) -> Tensor:
    """(n, c, h, w) as (n * h * w, c); a view where x is channels_last."""
    return x.permute(0, 2, 3, 1).reshape(-1, x.shape[1])


def as_images(rows: Tensor, n: int, height: int, width: int) -> Tensor:
    """(n * h * w, c) as (n, c, h, w) in channels_last."""
    return rows.view(n, height, width, -1).permute(0, 3, 1, 2)


def side_by_side(x: Tensor) -> Tensor:
    """(n, c, h, w) in channels_last, said so that it is seen: one channel looks the same in any layout.

    Convolutions take grey images for the other layout otherwise, and keep it for all layers that follow.
    """
    last = x.contiguous(memory_format=torch.channels_last)
    height, width = x.shape[2:]
    return last.as_strided(x.shape, (height * width, 1, width, 1)) if x.shape[1] == 1 else last


def parts(x: Tensor, sizes: Sequence[int]) -> Sequence[Tensor]:
    """Neighbouring rows of ``x``, so many each; the gradient of one part that is all of ``x`` costs nothing."""
    return [x] if len(sizes) == 1 else torch.split(x, list(sizes))


def joined(given: Sequence[Tensor]) -> Tensor:
    """Rows of all parts one after another; one part is itself, not a copy."""
    return given[0] if len(given) == 1 else torch.cat(list(given))


def take(x: Tensor, order: Order | None) -> Tensor:
    """Images or vectors of ``x`` in another order, in the same memory layout; None leaves them."""
    if order is None:
        return x
    index = torch.from_numpy(order).to(x.device)
    if not (x.requires_grad and torch.is_grad_enabled()):
        return _gather(x, index)
    inverse = torch.from_numpy(np.argsort(order)).to(x.device)
    moved: Tensor = _Permutation.apply(x, index, inverse)  # type: ignore[no-untyped-call]
    return moved


def _gather(x: Tensor, index: Tensor) -> Tensor:
    if x.ndim != 4:
        return x.index_select(0, index)
    # index_select on the usual view would change the layout, and with it slow down every layer that follows.
    return x.permute(0, 2, 3, 1).index_select(0, index).permute(0, 3, 1, 2)


class _Permutation(torch.autograd.Function):
    """Rows in another order. Its gradient is the inverse order, where that of any selection is a sum into zeros."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, index: Tensor, inverse: Tensor) -> Tensor:
        """Rows ``index`` of ``x``."""
        ctx.save_for_backward(index, inverse)
        return _gather(x, index)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, None, None]:
        """The same with the two orders exchanged, so that it can be differentiated again."""
        index, inverse = ctx.saved_tensors
        return _Permutation.apply(gradient, inverse, index), None, None  # type: ignore[no-untyped-call]
