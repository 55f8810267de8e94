"""The space of a graph: its blocks narrowed or removed, so that its heaviest member is the network itself.

The configs of a block are ``off`` where it can be removed, then rising shares of its private widths (``w25``, ``w50``,
``w75``, ``w100``); a block without private widths has ``on`` alone, or ``off`` and ``on``. Every stage has one depth:
removing a block is a config, so that any block may go, not only the last.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import groupby

from binas.base.errors import SpaceError
from binas.space.codes import round_channels
from binas.space.graph_blocks import Channels, GraphBlock, find_blocks
from binas.space.graphs import Graph, Node, graph_from_text
from binas.space.space import Config, SearchSpace, Stage

OFF, ON, WIDTH = "off", "on", "width"
SHARES = (0.25, 0.5, 0.75, 1.0)
FAMILY = "graph"
GRAINS = ((64, 8), (16, 4), (0, 2))  # channels from which widths are multiples of so many


@dataclass(frozen=True)
class Piece:
    """Nodes that are built as one module."""

    entering: str
    nodes: tuple[Node, ...]


@dataclass(frozen=True)
class GraphNetwork:
    """A graph with its blocks: what comes first, blocks (fixed ones between them included), what comes last."""

    graph: Graph

    @cached_property
    def channels(self) -> Channels:
        """Which channels belong together."""
        return Channels(self.graph)

    @cached_property
    def blocks(self) -> list[GraphBlock]:
        """All blocks in a row from the first that can change to the last."""
        found = find_blocks(self.graph)
        if not any(block.removable or block.widths for block in found):
            raise SpaceError(
                "the model has no block that can be narrowed or removed: no residual connection, and no channels that "
                "one part "
                "makes and uses up."
            )
        place = self._places
        rows: list[GraphBlock] = []
        for block in found:
            start = place[rows[-1].leaving] if rows else None
            between = [] if start is None else self._between(start + 1, place[block.entering] + 1)
            if between:
                rows.append(GraphBlock(rows[-1].leaving, tuple(node.name for node in between)))
            rows.append(block)
        return rows

    @cached_property
    def _places(self) -> dict[str, int]:
        return {node.name: k for k, node in enumerate(self.graph.nodes)}

    def _between(self, start: int, stop: int) -> list[Node]:
        return list(self.graph.nodes[start:stop])

    @property
    def stem(self) -> Piece:
        """Everything before the first block."""
        first = self.graph.nodes[0].name
        return Piece(first, self.graph.nodes[1 : self._places[self.blocks[0].entering] + 1])

    @property
    def head(self) -> Piece:
        """Everything after the last block."""
        last = self.blocks[-1].leaving
        return Piece(last, self.graph.nodes[self._places[last] + 1 :])

    def configs(self, block: GraphBlock, shares: Sequence[float] = SHARES) -> tuple[Config, ...]:
        """What a block may be, the whole block last; shares that give the same widths are one."""
        off = [Config(OFF, ((WIDTH, 0.0),))] if block.removable else []
        if not block.widths:
            return (*off, Config(ON, ((WIDTH, 1.0),)))
        distinct = {tuple(self.widths(block, share).items()): share for share in sorted(shares, reverse=True)}
        kept = sorted(distinct.values())
        return (*off, *(Config(f"w{round(100 * share)}", ((WIDTH, share),)) for share in kept))

    def widths(self, block: GraphBlock, share: float) -> dict[int, int]:
        """Channels of each private group of a block at a share of its width."""
        found = {}
        for name in block.widths:
            number = self.channels.group(name)
            assert number is not None
            group = self.channels.all[number]
            found[number] = _width(group.size, group.unit, share)
        return found

    def piece(self, block: GraphBlock, share: float) -> Piece:
        """A block at a share of its width; 0 leaves what follows its sum, and the connection around it."""
        if share == 0.0:
            tail = [self.graph.by_name[name] for name in block.tail]
            renamed = [
                Node(
                    node.name,
                    node.op,
                    (block.entering,) if k == 0 else node.reads,
                    node.options,
                    node.shape,
                    node.path,
                )
                for k, node in enumerate(tail)
            ]
            return Piece(block.entering, tuple(renamed))
        widths = self.widths(block, share)
        nodes = [self.graph.by_name[name] for name in block.nodes]
        return Piece(block.entering, tuple(self._narrowed(node, widths) for node in nodes))

    def _narrowed(self, node: Node, widths: dict[int, int]) -> Node:
        """A node with the channels that are left."""
        own = widths.get(self._group(node.name))
        read = widths.get(self._group(node.reads[0])) if node.reads else None
        if node.op == "attention":
            inner = widths.get(self._group(f"{node.name}.heads"))
            return node if inner is None else node.changed(heads=inner // node.get("width"))
        if node.op == "conv" and node.get("groups") > 1:
            return node if own is None else node.changed(inputs=own, outputs=own, groups=own)
        if node.op in ("conv", "linear"):
            made = {} if own is None else {"outputs": own}
            return node.changed(**made, **({} if read is None else {"inputs": read}))
        if own is None:
            return node
        if node.op == "batch_norm":
            return node.changed(channels=own)
        if node.op == "layer_norm":
            return node.changed(shape=(own,))
        if node.op == "parameter":
            axis = self.channels.axis(node.name) - 1
            return node.changed(shape=tuple(own if k == axis else size for k, size in enumerate(node.shape)))
        return node

    def _group(self, name: str) -> int:
        found = self.channels.group(name)
        return -1 if found is None else found


def share_of(config: Config) -> float:
    """The share of a block's width that a config keeps; 0 leaves the block out."""
    share = config.get(WIDTH) or 0.0
    if isinstance(share, bool | str) or not 0 <= share <= 1:
        raise SpaceError(
            f"config {config.name!r} has the width {str(share)[:40]!r}, not a share from 0 to 1."
        )
    return float(share)


def _width(size: int, unit: int, share: float) -> int:
    """A share of a width, in whole units, or rounded to what devices like; never more than there is."""
    if unit > 1:
        return unit * max(1, round(share * size / unit))
    grain = next(grain for least, grain in GRAINS if size >= least)
    return size if share == 1.0 else min(size, round_channels(share * size, grain))


@lru_cache(maxsize=8)
def network_of(text: str) -> GraphNetwork:
    """The network of a space's graph."""
    return GraphNetwork(graph_from_text(text))


def space_of_graph(
    graph: Graph, name: str, shares: Sequence[float] = SHARES, description: str = ""
) -> SearchSpace:
    """The space whose heaviest member is the graph; stages are blocks in a row that give tensors of one shape."""
    network, (channels, resolution, _) = GraphNetwork(graph), graph.nodes[0].shape
    rows = [(graph.by_name[block.leaving].shape, block) for block in network.blocks]
    stages = [
        _stage(f"s{number}", [block for _, block in alike], network, shares)
        for number, (_, alike) in enumerate(groupby(rows, key=lambda row: row[0]), 1)
    ]
    return SearchSpace(
        name=name,
        stages=tuple(stages),
        description=description or "a model of one's own: blocks narrowed or removed",
        channels=channels,
        resolution=resolution,
        classes=graph.classes,
        network=graph.to_text(),
    )


def _stage(name: str, blocks: Sequence[GraphBlock], network: GraphNetwork, shares: Sequence[float]) -> Stage:
    configs = tuple(network.configs(block, shares) for block in blocks)
    return Stage(name, (len(blocks),), configs, (("family", FAMILY),))


def block_number(stages: Iterable[Stage], stage: int, block: int) -> int:
    """Which block of the graph stands at a place of the space."""
    return sum(len(item.blocks) for item in list(stages)[:stage]) + block
