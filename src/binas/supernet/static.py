"""Finished networks: plain modules of fixed architecture, from a space or from a published block string."""

from __future__ import annotations

from torch import Tensor, nn

from binas.base.errors import ArchitectureError
from binas.space.architecture import Architecture
from binas.space.blockstrings import parse_network, parse_repeated
from binas.space.families import MOBILENET_V3, SqueezeRule
from binas.space.networks import codes_of, network_sizes, stage_codes
from binas.space.space import SearchSpace
from binas.supernet.plain import Head, blocks_in_a_row, initialise


class StaticNetwork(nn.Module):
    """Stem, blocks in a row, head. Holds no elastic code, and nothing of the space it may come from."""

    def __init__(self, channels: int, stem: nn.Module, blocks: nn.Module, head: Head) -> None:
        super().__init__()
        self.channels = channels
        self.stem, self.blocks, self.head = stem, blocks, head

    def forward(self, images: Tensor) -> Tensor:
        """Images (n, channels, h, w) to logits (n, classes)."""
        logits: Tensor = self.head(self.blocks(self.stem(images)))
        return logits

    @classmethod
    def from_string(
        cls,
        text: str,
        *,
        stem: str = "cn_r1_k3_s2_c32_nre",
        channels: int = 3,
        classes: int = 1000,
        features: int | None = None,
        features_activation: str = "hs",
        squeeze: SqueezeRule = MOBILENET_V3,
    ) -> StaticNetwork:
        """Build a network of the block-string grammar with fresh weights.

        ``text`` lists the blocks after the first convolution, which is ``stem``; a convolution before the
        pooling is a last ``cn`` block. ``features`` is MobileNetV3's layer after the pooling; ``squeeze`` says
        how squeeze-excite ratios are meant (:class:`SqueezeRule`). Blocks that name no activation use h-swish.
        """
        for name, number in (("channels", channels), ("classes", classes), ("features", features or 1)):
            if number < 1:
                raise ArchitectureError(f"{name} must be at least 1, got {number}.")
        first, width = blocks_in_a_row(parse_repeated(stem), channels, squeeze)
        codes = [code for stage in parse_network(text) for code in stage]
        body, width = blocks_in_a_row(codes, width, squeeze)
        network = cls(
            channels, first, body, Head(nn.Identity(), width, classes, features, features_activation)
        )
        initialise(network)
        return network

    @classmethod
    def from_architecture(cls, space: SearchSpace, architecture: Architecture) -> StaticNetwork:
        """The network of an architecture with fresh weights."""
        channels, _, classes = network_sizes(space)
        space.check(architecture)
        stem, width = blocks_in_a_row(codes_of(space.stem), channels)
        table = [stage_codes(stage) for stage in space.stages]
        codes = [
            table[s][b][space.config_index(s, b, name)]
            for s, names in enumerate(architecture.stages)
            for b, name in enumerate(names)
        ]
        body, width = blocks_in_a_row(codes, width)
        network = cls(channels, stem, body, head_of(space, width, classes))
        initialise(network)
        return network


def head_of(space: SearchSpace, channels: int, classes: int) -> Head:
    """The head of a space with fresh weights, for ``channels`` that leave the last stage."""
    blocks, channels = blocks_in_a_row(codes_of(space.head), channels)
    return Head(blocks, channels, classes, space.features, bias=space.features_bias)
