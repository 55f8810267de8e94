"""Weights that were given teach features: while a new classifier learns, what it reads stays near what it was.

    loss = loss of the labels + weight * mean_i |f_i - g_i|^2 / mean_i |g_i|^2

f_i is what the last linear layer reads of image i, g_i the same of the network as it was given, which stays as it is.
Few images would otherwise undo what many others once taught.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

from binas.base.errors import TrainingError


class Features:
    """What the last linear layer of a network's head read when the network was called last."""

    def __init__(self, head: nn.Module) -> None:
        layers = [layer for layer in head.modules() if isinstance(layer, nn.Linear)]
        if not layers:
            raise TrainingError(
                "train.heaviest.features keeps what a linear classifier reads, and this network ends with none. Set it to 0."
            )
        self.seen = torch.empty(0)
        layers[-1].register_forward_pre_hook(self._keep)

    def _keep(self, layer: nn.Module, given: tuple[Any, ...]) -> None:
        self.seen = given[0]


class FeatureTeacher:
    """A network as it was given, and what keeps the features of one that is being trained near its own."""

    def __init__(self, original: nn.Module, head: nn.Module, own: nn.Module, weight: float) -> None:
        self.original, self.weight = original.eval().requires_grad_(False), weight
        self.given, self.own = Features(head), Features(own)

    def loss(self, images: Tensor) -> Tensor:
        """For images that the network in training was just called with."""
        with torch.no_grad():
            self.original(images)
        given, own = self.given.seen.flatten(1), self.own.seen.flatten(1)
        return self.weight * (own - given).square().sum(1).mean() / given.square().sum(1).mean()
