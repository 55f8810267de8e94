"""Building published networks, and counting what a network computes by running it once."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch import nn

from binas.space.described import CHANNELS, CLASSES, NetworkDescription
from binas.supernet import StaticNetwork

Shape = tuple[int, ...]


def build(network: NetworkDescription, channels: int = CHANNELS, classes: int = CLASSES) -> StaticNetwork:
    """The network with fresh weights, in eval mode."""
    chosen = network.model_copy(update={"channels": channels, "classes": classes})
    return StaticNetwork.from_description(chosen).eval()


@dataclass(slots=True)
class Counts:
    """What one image costs: parameters, multiply-accumulates, outputs of layers, normalised elements."""

    params: int
    macs: int = 0
    activations: int = 0
    normalised: int = 0


def count(module: nn.Module, shape: Shape) -> Counts:
    """Count convolutions, linear layers and BatchNorm of a module on one input of ``shape`` (without batch)."""
    counts = Counts(sum(parameter.numel() for parameter in module.parameters()))

    def add(layer: nn.Module, _: Any, output: torch.Tensor) -> None:
        if isinstance(layer, nn.BatchNorm2d):
            counts.normalised += output.numel()
        elif isinstance(layer, nn.Conv2d | nn.Linear):
            counts.macs += output.numel() * layer.weight[0].numel()
            counts.activations += output.numel()

    handles = [layer.register_forward_hook(add) for layer in module.modules()]
    try:
        with torch.inference_mode():
            module(torch.zeros(1, *shape))
    finally:
        for handle in handles:
            handle.remove()
    return counts
