"""What the pieces of a graph compute, as steps that analytic costs are counted from."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

from binas.base.errors import SpaceError
from binas.space.families import Shape, Trace
from binas.space.graph_space import GraphNetwork, Piece, network_of, share_of
from binas.space.graphs import ELEMENTWISE, PRODUCTS, SUMS, Node
from binas.space.space import SearchSpace

IN_PLACE = (*ELEMENTWISE, *SUMS, *PRODUCTS, "batch_norm")


@dataclass(frozen=True, slots=True)
class Numbers(Shape):
    """A tensor of any shape: ``count`` numbers, of which each of ``channels`` has weights of its own."""

    count: int = 0

    @property
    def elements(self) -> int:
        """How many numbers it holds."""
        return self.count


def fixed_graph_traces(space: SearchSpace) -> Iterator[Trace]:
    """The steps before the first block and after the last."""
    network = _network(space)
    yield piece_trace(network, network.stem, {})
    yield piece_trace(network, network.head, {})


def block_graph_traces(space: SearchSpace) -> list[list[list[Trace]]]:
    """The steps of every config, ``[stage][block][config]``."""
    network, blocks = _network(space), iter(_network(space).blocks)
    found = []
    for stage in space.stages:
        row = []
        for configs in stage.blocks:
            block = next(blocks, None)
            if block is None:
                raise SpaceError(f"the space {space.name!r} has more blocks than the network it was made of.")
            shares = [share_of(config) for config in configs]
            row.append(
                [
                    piece_trace(
                        network, network.piece(block, share), network.widths(block, share) if share else {}
                    )
                    for share in shares
                ]
            )
        found.append(row)
    return found


def _network(space: SearchSpace) -> GraphNetwork:
    assert space.network is not None
    return network_of(space.network)


def piece_trace(network: GraphNetwork, piece: Piece, widths: dict[int, int]) -> Trace:
    """The steps of one piece; ``widths`` are the channels of groups that were narrowed."""

    def shape(name: str) -> Numbers:
        node, number = network.graph.by_name[name], network.channels.group(name)
        full = math.prod(node.shape)
        if number is None:
            return Numbers(node.shape[-1] if node.shape else 0, 0, full)
        size = network.channels.all[number].size
        left = widths.get(number, size)
        return Numbers(left, 0, full // size * left)

    trace = Trace(shape(piece.entering))
    places = {piece.entering: 0}
    for node in piece.nodes:
        reads = [places[name] for name in node.reads if name in places]
        if node.op == "parameter":
            count = math.prod(node.get("shape"))
            places[node.name] = trace.add([], Numbers(count, 0, 0), 0, 1)
        elif node.op == "attention":
            places[node.name] = _attention(trace, node, reads[0], shape(node.name))
        elif node.shape:
            places[node.name] = trace.add(
                reads, shape(node.name), _fan_in(node), _vectors(node), node.op in IN_PLACE
            )
    return trace


def _fan_in(node: Node) -> int:
    """Weights that meet in each output element."""
    if node.op == "conv":
        inputs: int = node.get("inputs") // node.get("groups") * math.prod(node.get("kernel"))
        return inputs
    return int(node.get("inputs")) if node.op == "linear" else 0


def _vectors(node: Node) -> int:
    """Further numbers of each output channel."""
    if node.op in ("conv", "linear"):
        return int(node.get("bias"))
    return 2 * int(node.get("affine", True)) if node.op.endswith("_norm") else 0


def _attention(trace: Trace, node: Node, read: int, leaving: Numbers) -> int:
    """Queries, keys and values; scores; their mixture; the layer that puts heads together."""
    tokens, heads, width = node.shape[0], int(node.get("heads")), int(node.get("width"))
    bias, inner = int(node.get("bias")), heads * width
    made = trace.add([read], Numbers(3 * inner, 0, 3 * tokens * inner), int(node.get("inputs")), bias)
    scores = trace.add([made], Numbers(0, 0, heads * tokens * tokens), width)
    mixed = trace.add([scores, made], Numbers(0, 0, tokens * inner), tokens)
    return trace.add([mixed], leaving, inner, bias)
