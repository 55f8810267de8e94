"""A network of block strings: everything from which it is built, without weights."""

from __future__ import annotations

from pydantic import Field

from binas.base.settings import Settings
from binas.space.blockstrings import Blocks, parse_block, parse_network
from binas.space.codes import BlockCode
from binas.space.rules import DEFAULT_RULES, NetworkRules

CLASSES, RESOLUTION, CHANNELS = 1000, 224, 3


class NetworkDescription(Settings):
    """What a network is made of: first convolution, blocks, head, and the rules they follow."""

    name: str
    stem: str = Field("cn_k3_s2_c32_nre", description="the first convolution, as a block string")
    blocks: str = Field(description="all blocks after the first convolution, as block strings")
    features: int | None = Field(None, ge=1, description="width of the layer between pooling and classifier")
    rules: NetworkRules = DEFAULT_RULES
    channels: int = Field(CHANNELS, ge=1, description="channels of an image")
    resolution: int = Field(RESOLUTION, ge=1, description="pixels a side of an image")
    classes: int = Field(CLASSES, ge=1, description="how many classes it tells apart")

    @property
    def first(self) -> BlockCode:
        """The first convolution."""
        return parse_block(self.stem)

    @property
    def stages(self) -> tuple[Blocks, ...]:
        """The blocks after it, in the lists in which they were written."""
        return parse_network(self.blocks)
