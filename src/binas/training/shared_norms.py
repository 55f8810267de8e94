"""BatchNorm statistics of a whole batch, whichever process has which of its images (``statistics: batch``).

Every process sends n m and n (v + m^2) of its own n values per channel, with their mean m and variance v; the mean of the
batch is the sum of the first over N = sum n, its variance that of the second over N minus the mean squared. Gradients of
the statistics go the same way back.
"""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import Any

import torch
from torch import Tensor, distributed, nn

from binas.supernet.layers import ElasticNorm
from binas.supernet.plain import computing
from binas.training.calibration import Norm
from binas.training.team import Team


def shared_statistics(network: nn.Module, team: Team) -> AbstractContextManager[None]:
    """Within it the norms of ``network`` that train take the statistics of what all processes of a team give them.

    All processes must call the same norms in the same order.
    """
    norms = [item for item in network.modules() if isinstance(item, nn.BatchNorm2d | ElasticNorm)]
    return computing(norms if team.size > 1 else [], _normalised)


class _Sum(torch.autograd.Function):
    """The sum over all processes, of values and of their gradients."""

    @staticmethod
    def forward(_: Any, mine: Tensor) -> Tensor:
        total = mine.clone()
        distributed.all_reduce(total)
        return total

    @staticmethod
    def backward(_: Any, gradient: Tensor) -> Tensor:
        total = gradient.clone()
        distributed.all_reduce(total)
        return total


def _normalised(norm: Norm, x: Tensor) -> Tensor:
    """What ``norm`` makes of this process's part of a batch."""
    if not norm.training:
        plain: Tensor = type(norm).forward(norm, x)  # type: ignore[arg-type]
        return plain
    width = x.shape[1]
    variance, mean = torch.var_mean(x.float(), (0, 2, 3), correction=0)
    count = torch.full((1, width), x.numel() / width, dtype=torch.float64, device=x.device)
    own = torch.cat([count, count * torch.stack([mean, variance + mean.square()])])
    counts, sums, squares = _Sum.apply(own)  # type: ignore[no-untyped-call]
    mean = sums / counts
    variance = (squares / counts - mean.square()).clamp_min(0)
    _move(norm, mean, variance * counts / (counts - 1).clamp_min(1))
    epsilon = norm.epsilon if isinstance(norm, ElasticNorm) else norm.eps
    scale = norm.weight[:width] * torch.rsqrt(variance + epsilon).to(x.dtype)
    shift = norm.bias[:width] - mean.to(x.dtype) * scale
    normalised: Tensor = x * scale.view(1, -1, 1, 1) + shift.view(1, -1, 1, 1)
    return normalised


@torch.no_grad()
def _move(norm: Norm, mean: Tensor, variance: Tensor) -> None:
    """Running statistics: r <- (1 - momentum) r + momentum * s."""
    assert norm.momentum is not None
    for running, new in ((norm.running_mean, mean), (norm.running_var, variance)):
        assert running is not None
        running[: len(new)].lerp_(new.to(running.dtype), norm.momentum)
    if isinstance(norm, nn.BatchNorm2d) and norm.num_batches_tracked is not None:
        norm.num_batches_tracked += 1
