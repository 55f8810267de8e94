"""How the networks of a space are built: from block strings, or from the graph of a model of one's own."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Protocol

from torch import Tensor, nn

from binas.base.errors import SpaceError
from binas.space.families import family_of
from binas.space.graph_blocks import GraphBlock
from binas.space.graph_space import GraphNetwork, block_number, network_of, share_of
from binas.space.networks import block_input_shapes, codes_of, input_shapes, network_sizes, stage_codes
from binas.space.space import SearchSpace
from binas.supernet.families import ElasticBlock
from binas.supernet.graph_block import ElasticGraphBlock
from binas.supernet.graph_layers import Piece
from binas.supernet.plain import Head, blocks_in_a_row, plain_block


class Blueprint(Protocol):
    """Builds the parts of a space's networks; whoever puts them together gives them fresh weights."""

    def stem(self) -> nn.Module:
        """What comes before the stages."""

    def elastic(self, stage: int, block: int) -> ElasticBlock:
        """The shared weights of all configs of a block."""

    def plain(self, stage: int, block: int, config: int) -> nn.Module:
        """One config of a block alone."""

    def head(self) -> nn.Module:
        """What comes after the stages, logits last."""


def blueprint_of(space: SearchSpace) -> Blueprint:
    """How the networks of this space are built."""
    return CodeBlueprint(space) if space.network is None else GraphBlueprint(space)


@dataclass(frozen=True)
class CodeBlueprint:
    """Block strings and families of blocks."""

    space: SearchSpace

    @cached_property
    def _shapes(self) -> list[list[int]]:
        """Channels that arrive at each block of each stage."""
        entering = input_shapes(self.space)
        stages = zip(self.space.stages, entering[:-1], strict=True)
        return [[shape.channels for shape in block_input_shapes(stage, first)] for stage, first in stages]

    def stem(self) -> nn.Module:
        """The convolutions before the stages."""
        channels, _, _ = network_sizes(self.space)
        return blocks_in_a_row(codes_of(self.space.stem), channels, self.space.rules)[0]

    def elastic(self, stage: int, block: int) -> ElasticBlock:
        """As the stage's family builds it."""
        item = self.space.stages[stage]
        return family_of(item).build_elastic(
            stage_codes(item)[block], self._shapes[stage][block], self.space.rules
        )

    def plain(self, stage: int, block: int, config: int) -> nn.Module:
        """The block of one config."""
        code = stage_codes(self.space.stages[stage])[block][config]
        return plain_block(code, self._shapes[stage][block], self.space.rules)

    def head(self) -> nn.Module:
        """Fixed blocks, pooling, features, classifier."""
        _, _, classes = network_sizes(self.space)
        entering, rules = input_shapes(self.space)[-1].channels, self.space.rules
        blocks, channels = blocks_in_a_row(codes_of(self.space.head), entering, rules)
        return Head(blocks, channels, classes, self.space.features, rules)


@dataclass(frozen=True)
class GraphBlueprint:
    """The pieces of a graph."""

    space: SearchSpace

    @cached_property
    def network(self) -> GraphNetwork:
        """The graph with its blocks; an error where the space does not fit it."""
        assert self.space.network is not None
        network = network_of(self.space.network)
        if len(network.blocks) != sum(len(stage.blocks) for stage in self.space.stages):
            raise SpaceError(f"the space {self.space.name!r} has another number of blocks than its network.")
        return network

    def _block(self, stage: int, block: int) -> GraphBlock:
        return self.network.blocks[block_number(self.space.stages, stage, block)]

    def _shares(self, stage: int, block: int) -> list[float]:
        return [share_of(config) for config in self.space.stages[stage].blocks[block]]

    def stem(self) -> nn.Module:
        """What comes before the first block that can change."""
        return Piece(self.network.stem.entering, self.network.stem.nodes)

    def elastic(self, stage: int, block: int) -> ElasticBlock:
        """All shares of a block's width."""
        return ElasticGraphBlock(self.network, self._block(stage, block), self._shares(stage, block))

    def plain(self, stage: int, block: int, config: int) -> nn.Module:
        """One share of a block's width."""
        piece = self.network.piece(self._block(stage, block), self._shares(stage, block)[config])
        return Piece(piece.entering, piece.nodes)

    def head(self) -> nn.Module:
        """What comes after the last block that can change."""
        return Piece(self.network.head.entering, self.network.head.nodes)


def fill(weights: dict[str, Tensor], *parts: nn.Module) -> None:
    """Give the modules of a graph's parts the weights of a traced model, by the names of their nodes."""
    for part in parts:
        for module in part.modules():
            if isinstance(module, Piece):
                own = {
                    f"layers.{name}": value
                    for name, value in weights.items()
                    if name.split(".", 1)[0] in module.layers
                }
                module.load_state_dict(own)
