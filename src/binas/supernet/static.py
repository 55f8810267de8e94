"""Finished networks: plain modules of fixed architecture, from a space or from a published block string."""

from __future__ import annotations

from torch import Tensor, nn

from binas.base.errors import ArchitectureError
from binas.space.architecture import Architecture
from binas.space.blockstrings import parse_network, parse_repeated
from binas.space.described import NetworkDescription
from binas.space.families import DEFAULT_RULES, NetworkRules
from binas.space.networks import network_sizes
from binas.space.space import SearchSpace
from binas.supernet.blueprint import blueprint_of
from binas.supernet.plain import Head, blocks_in_a_row, initialise


class StaticNetwork(nn.Module):
    """Stem, blocks in a row, head. Holds no elastic code, and nothing of the space it may come from."""

    def __init__(self, channels: int, stem: nn.Module, blocks: nn.Module, head: nn.Module) -> None:
        super().__init__()
        self.channels = channels
        self.stem, self.blocks, self.head = stem, blocks, head

    def forward(self, images: Tensor) -> Tensor:
        """Images (n, channels, h, w) to logits (n, classes)."""
        logits: Tensor = self.head(self.blocks(self.stem(images)))
        return logits

    def row(self) -> list[nn.Module]:
        """All blocks in order, whether they stand in stem, stages or head."""
        assert isinstance(self.head, Head)
        return [block for part in (self.stem, self.blocks, self.head.blocks) for block in part.children()]

    @classmethod
    def from_string(
        cls,
        text: str,
        *,
        stem: str = "cn_r1_k3_s2_c32_nre",
        channels: int = 3,
        classes: int = 1000,
        features: int | None = None,
        rules: NetworkRules = DEFAULT_RULES,
    ) -> StaticNetwork:
        """Build a network of the block-string grammar with fresh weights.

        ``text`` lists the blocks after the first convolution, which is ``stem``; a convolution before the
        pooling is a last ``cn`` block. ``features`` is MobileNetV3's layer after the pooling; ``rules`` say how it
        is padded and normalised and how squeeze-excite ratios are meant. Blocks that name no activation use h-swish.
        """
        for name, number in (("channels", channels), ("classes", classes), ("features", features or 1)):
            if number < 1:
                raise ArchitectureError(f"{name} must be at least 1, got {number}.")
        first, width = blocks_in_a_row(parse_repeated(stem), channels, rules)
        codes = [code for stage in parse_network(text) for code in stage]
        body, width = blocks_in_a_row(codes, width, rules)
        network = cls(channels, first, body, Head(nn.Sequential(), width, classes, features, rules))
        initialise(network)
        return network

    @classmethod
    def from_description(cls, network: NetworkDescription) -> StaticNetwork:
        """Build a described network with fresh weights."""
        return cls.from_string(
            network.blocks,
            stem=network.stem,
            channels=network.channels,
            classes=network.classes,
            features=network.features,
            rules=network.rules,
        )

    @classmethod
    def from_architecture(cls, space: SearchSpace, architecture: Architecture) -> StaticNetwork:
        """The network of an architecture with fresh weights."""
        channels, _, _ = network_sizes(space)
        space.check(architecture)
        plan = blueprint_of(space)
        stem = plan.stem()
        blocks = [
            plan.plain(s, b, space.config_index(s, b, name))
            for s, names in enumerate(architecture.stages)
            for b, name in enumerate(names)
        ]
        network = cls(channels, stem, nn.Sequential(*blocks), plan.head())
        initialise(network)
        return network
