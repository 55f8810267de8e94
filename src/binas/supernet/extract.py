"""From shared weights to a network of its own."""

from __future__ import annotations

import copy

from torch import nn

from binas.space.architecture import Architecture
from binas.supernet.network import Supernet
from binas.supernet.static import StaticNetwork


def extract(supernet: Supernet, architecture: Architecture) -> StaticNetwork:
    """The plain network of one architecture with copies of its weights and BatchNorm statistics.

    It gives what ``supernet(images, architecture)`` gives in eval mode, shares no memory with the supernet, and
    is in train or eval mode as the supernet is.
    """
    space = supernet.space
    space.check(architecture)
    assert space.channels is not None
    blocks = [
        supernet.block(s, b).static(space.config_index(s, b, name))
        for s, names in enumerate(architecture.stages)
        for b, name in enumerate(names)
    ]
    stem, head = copy.deepcopy(supernet.stem), copy.deepcopy(supernet.head)
    weight = head.classifier.weight
    network = StaticNetwork(space.channels, stem, nn.Sequential(*blocks), head)
    return network.to(device=weight.device, dtype=weight.dtype).train(supernet.training)
