"""The network as it is deployed: bytes of an image in, logits out.

The normalisation of the training images is part of the graph by default. Forgetting it is the usual mistake, and it is
a silent one; an input of bytes cannot be confused with one of numbers in 0..1, and a wrong type is refused by every
runtime. It costs about 2 microseconds for 28 x 28 grey images.
"""

from __future__ import annotations

import copy
from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor, nn

from binas.data.augment import normalise
from binas.export.facts import ModelFacts
from binas.space.networks import network_sizes
from binas.supernet.static import StaticNetwork

InputKind = Literal["bytes", "normalised"]
INPUT, OUTPUT = "images", "logits"


class Deployed(nn.Module):
    """logits = network((x / 255 - mean) / std) of bytes x, or network(x) of images that are normalised already."""

    scale: Tensor
    offset: Tensor

    def __init__(self, network: StaticNetwork, facts: ModelFacts, kind: InputKind) -> None:
        super().__init__()
        self.network = network
        self.from_bytes = kind == "bytes"
        scale = torch.tensor([1 / (255 * s) for s in facts.std])
        offset = torch.tensor([-m / s for m, s in zip(facts.mean, facts.std, strict=True)])
        self.register_buffer("scale", scale.view(1, -1, 1, 1))
        self.register_buffer("offset", offset.view(1, -1, 1, 1))

    def forward(self, images: Tensor) -> Tensor:
        """Images (n, channels, h, w) to logits (n, classes)."""
        if self.from_bytes:
            images = images.to(torch.float32) * self.scale + self.offset
        logits: Tensor = self.network(images)
        return logits


@dataclass(frozen=True, eq=False)
class Graph:
    """A module to be deployed, and what it is fed."""

    module: Deployed
    kind: InputKind
    facts: ModelFacts

    @classmethod
    def of(cls, network: StaticNetwork, facts: ModelFacts, kind: InputKind) -> Graph:
        """A copy of the network on the CPU in eval mode, with its normalisation."""
        return cls(Deployed(copy.deepcopy(network).cpu(), facts, kind).eval(), kind, facts)

    def example(self, batch: int, seed: int = 0) -> Tensor:
        """Random images from a fixed seed. Never the user's: files hold the inputs they were traced with."""
        channels, side, _ = network_sizes(self.facts.space)
        generator = torch.Generator().manual_seed(seed)
        drawn = torch.randint(256, (batch, channels, side, side), generator=generator, dtype=torch.uint8)
        return self.feed(drawn)

    def feed(self, images: Tensor) -> Tensor:
        """What the graph takes for images of bytes (n, channels, h, w)."""
        if self.kind == "bytes":
            return images
        return normalise(images, self.facts.mean, self.facts.std).contiguous()
