"""BatchNorm of a sub-network: statistics re-estimated on its own activations.

A supernet's running statistics are averages over many architectures; a network of its own has others. Measured
effect: up to 1 point of accuracy. Statistics are pooled over all images given: mean = sum / count,
variance = (sum of squares / count - mean^2) * count / (count - 1), per channel, in float64. Those of one pass are what a
norm has computed itself: with a momentum of 1 its running statistics are the batch's.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn

from binas.supernet.layers import ElasticNorm
from binas.supernet.plain import in_mode
from binas.training.team import ALONE, Team

Norm = nn.BatchNorm1d | nn.BatchNorm2d | ElasticNorm

BRISK = 0.1  # share of a batch in running statistics, torch's own, that short phases are brought up to
LOOKED_BACK = 0.1  # share of a phase's batches that running statistics look back at, at most


class _Sums:
    """Count, sum and sum of squares per channel of what entered one norm; narrower inputs fill a prefix.

    ``now`` are those of the pass under way, ``total`` those of all passes before it.
    """

    def __init__(self, channels: int, device: torch.device) -> None:
        self.total = torch.zeros(3, channels, dtype=torch.float64, device=device)
        self.now = torch.zeros_like(self.total)

    def add(self, norm: Norm, x: Tensor) -> None:
        """What entered a norm that has just moved its running statistics to those of ``x``; one value moves none."""
        width, count = x.shape[1], x.numel() // x.shape[1]
        assert norm.running_mean is not None
        assert norm.running_var is not None
        mean = (norm.running_mean[:width] if count > 1 else x.detach().reshape(width)).double()
        variance = norm.running_var[:width].double() * (1 - 1 / count)
        self.now[0, :width] += count
        self.now[1, :width] += count * mean
        self.now[2, :width] += count * (variance + mean.square())

    def write(self, norm: Norm) -> None:
        count, total, squares = self.total
        seen = count > 1
        mean = total / count.clamp_min(1)
        variance = (
            (squares / count.clamp_min(1) - mean.square()).clamp_min(0) * count / (count - 1).clamp_min(1)
        )
        assert norm.running_mean is not None
        assert norm.running_var is not None
        norm.running_mean.copy_(torch.where(seen, mean.to(norm.running_mean.dtype), norm.running_mean))
        norm.running_var.copy_(torch.where(seen, variance.to(norm.running_var.dtype), norm.running_var))


def norms_of(network: nn.Module) -> list[Norm]:
    """Every norm with running statistics."""
    found = [module for module in network.modules() if isinstance(module, Norm)]
    return [norm for norm in found if norm.running_mean is not None]


@contextmanager
def brisk_statistics(network: nn.Module, batches: int) -> Iterator[None]:
    """Running statistics that keep up with a phase of so many batches: r <- (1 - m) r + m s, m >= min(0.1, 10 / batches).

    They remember about 1 / m batches. Weights of others often come with m = 0.01, made for hundreds of thousands of steps:
    after a hundred, a third of what a network is judged by would still be statistics of the one it was made of.
    """
    least = min(BRISK, 1 / (LOOKED_BACK * max(1, batches)))
    own = [(norm, norm.momentum) for norm in norms_of(network) if norm.momentum is not None]
    with _momenta((norm, max(momentum, least)) for norm, momentum in own):
        yield


@contextmanager
def _momenta(new: Iterable[tuple[Norm, float]]) -> Iterator[None]:
    """Norms whose running statistics move with another momentum for a while."""
    before = []
    for norm, momentum in new:
        before.append((norm, norm.momentum))
        norm.momentum = momentum
    try:
        yield
    finally:
        for norm, known in before:
            norm.momentum = known


def recalibrate(network: nn.Module, images: Iterable[Tensor | None], team: Team = ALONE) -> None:
    """Re-estimate all BatchNorm statistics of a plain network on batches of normalised images.

    Weights, mode and gradients stay as they are. The passes normalise with batch statistics, as in training.
    """
    passes = (None if batch is None else partial(network, batch) for batch in images)
    recalibrate_supernet(network, passes, team)


def recalibrate_supernet(
    network: nn.Module, passes: Iterable[Callable[[], Any] | None], team: Team = ALONE
) -> None:
    """The same for the shared and private norms of a supernet; each pass runs it on images and paths.

    Channels and private norms that no pass uses keep their statistics. Each process of a ``team`` does its passes, or None
    where only others have one; sums are added up in the order of passes, so they do not depend on the team.
    """
    with torch.no_grad(), _observe(network) as sums:
        for run in passes:
            if run is not None:
                run()
            _add_up(sums, team)


def _add_up(sums: list[_Sums], team: Team) -> None:
    """Add the pass under way of every process to the totals, in the order of processes."""
    if not sums:
        return
    gathered = team.gather(torch.cat([own.now.reshape(-1) for own in sums]))
    for row in gathered:
        for own, part in zip(sums, row.split([own.now.numel() for own in sums]), strict=True):
            own.total += part.view_as(own.total)
    for own in sums:
        own.now.zero_()


@contextmanager
def _observe(network: nn.Module) -> Iterator[list[_Sums]]:
    """Train mode with hooks on every norm; on leaving, the pooled statistics are written and the mode restored."""
    norms = norms_of(network)
    before = [(norm.running_mean.clone(), norm.running_var.clone()) for norm in norms]  # type: ignore[union-attr]
    sums = [_Sums(len(mean), mean.device) for mean, _ in before]
    hooks = [
        norm.register_forward_hook(lambda norm, inputs, _, own=own: own.add(norm, inputs[0]))
        for norm, own in zip(norms, sums, strict=True)
    ]
    try:
        with in_mode(network, training=True), _momenta((norm, 1.0) for norm in norms):
            yield sums
    finally:
        for hook in hooks:
            hook.remove()
        for norm, own, (mean, variance) in zip(norms, sums, before, strict=True):
            norm.running_mean.copy_(mean)  # type: ignore[union-attr]
            norm.running_var.copy_(variance)  # type: ignore[union-attr]
            own.write(norm)
