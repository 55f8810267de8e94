"""The elastic block of a graph: every share of its width from one set of weights, each with norms of its own."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from binas.space.graph_blocks import GraphBlock, Group
from binas.space.graph_space import GraphNetwork
from binas.space.graphs import LAYERS, Node
from binas.supernet.families import ElasticBlock
from binas.supernet.graph_layers import Attention, Piece, attend, layer_of, run_nodes
from binas.supernet.layers import reading_weight, typical_size

NORM = "batch_norm"


class ElasticGraphBlock(ElasticBlock):
    """Shared weights of all configs of a block of a graph; ``shares`` of its width, 0 for its removal, the largest last.

    A narrower config uses the first channels of each private group, so these are sorted by importance first
    (:meth:`start_from`).
    """

    def __init__(self, network: GraphNetwork, block: GraphBlock, shares: Sequence[float]) -> None:
        super().__init__()
        self.network, self.block, self.shares = network, block, tuple(shares)
        self.configs = len(shares)
        self.pieces = [network.piece(block, share) for share in shares]
        self.full = Piece(self.pieces[-1].entering, self.pieces[-1].nodes)
        self.norms = nn.ModuleList(
            nn.ModuleDict({node.name: layer_of(node) for node in piece.nodes if node.op == NORM})
            for piece in self.pieces[:-1]
        )

    def forward(self, x: Tensor, config: int) -> Tensor:
        """One config for all rows."""
        piece = self.pieces[config]

        def call(node: Node, read: list[Any]) -> Any:
            return self._call(node, read, config)

        result: Tensor = run_nodes(piece.nodes, piece.entering, x, call)
        return result

    def _call(self, node: Node, read: list[Any], config: int) -> Any:
        """A node of a narrowed block: a layer on the part of the weights that is left."""
        if node.op not in LAYERS or config == self.configs - 1:
            return self.full.call(node, read)
        if node.op == NORM:
            return self.norms[config][node.name](*read)  # type: ignore[index]
        layer, part = self.full.layers[node.name], _parts(node, self.full.layers[node.name])
        if node.op == "conv":
            sizes = node.get("stride"), node.get("padding"), node.get("dilation"), node.get("groups")
            return F.conv2d(read[0], part["weight"], part.get("bias"), *sizes)
        if node.op == "linear":
            return F.linear(read[0], part["weight"], part.get("bias"))
        if node.op == "attention":
            sliced = part["qkv.weight"], part.get("qkv.bias"), part["out.weight"], part.get("out.bias")
            return attend(read[0], *sliced, node.get("width"))
        if node.op == "layer_norm":
            return F.layer_norm(
                read[0], node.get("shape"), part.get("weight"), part.get("bias"), node.get("eps")
            )
        return part["value"] if node.op == "parameter" else layer(*read)

    def static(self, config: int) -> nn.Module:
        """The plain block of one config with copied weights."""
        piece = self.pieces[config]
        plain = Piece(piece.entering, piece.nodes)
        for node in piece.nodes:
            if node.op in LAYERS:
                plain.layers[node.name].load_state_dict(self._state(node, config))
        return plain

    def absorb(self, plain: nn.Module, config: int) -> None:
        """Take over the weights of the whole block."""
        self.full.load_state_dict(plain.state_dict())

    def _state(self, node: Node, config: int) -> dict[str, Tensor]:
        """The weights of one layer of a config."""
        if node.op == NORM and config < self.configs - 1:
            return dict(self.norms[config][node.name].state_dict())  # type: ignore[index]
        layer = self.full.layers[node.name]
        if node.op == NORM:
            return dict(layer.state_dict())
        return {name: value.detach() for name, value in _parts(node, layer).items()}

    @torch.no_grad()
    def start_from(self, config: int) -> None:
        """Sort the channels of every private group by what leaving them out would change; copy norms."""
        for name in self.block.widths:
            self._sort(name)
        for number, piece in enumerate(self.pieces[:-1]):
            for node in piece.nodes:
                if node.op == NORM:
                    self._copy_norm(node, self.norms[number][node.name])  # type: ignore[index]

    def _copy_norm(self, node: Node, norm: nn.Module) -> None:
        full = self.full.layers[node.name].state_dict()
        count = node.get("channels")
        norm.load_state_dict({key: value[:count] if value.ndim else value for key, value in full.items()})

    def _sort(self, name: str) -> None:
        number = self.network.channels.group(name)
        assert number is not None
        group = self.network.channels.all[number]
        nodes = {node.name: node for node in self.pieces[-1].nodes}
        if group.unit > 1:
            _sort_heads(self.full.layers[group.makers[0]])
            return
        order = self._importance(group).argsort(descending=True, stable=True)
        for maker in (*group.makers, *group.members):
            axis = self.network.channels.axis(maker) - 1 if nodes[maker].op == "parameter" else 0
            for value in self.full.layers[maker].state_dict().values():
                if value.ndim > axis and value.shape[axis] == len(order):
                    value.copy_(value.index_select(axis, order))
        for user in group.users:
            weight = self.full.layers[user].weight
            weight.copy_(weight.index_select(1, order))  # type: ignore[operator]

    def _importance(self, group: Group) -> Tensor:
        """Of each channel of a group: the weight it is read with, times its size after the last norm on its way."""
        weights = [reading_weight(self.full.layers[user].weight) for user in group.users]  # type: ignore[arg-type]
        passed = [self.full.layers[node.name] for node in self.pieces[-1].nodes if node.name in group.members]
        norms = [layer for layer in passed if isinstance(layer, nn.BatchNorm1d | nn.BatchNorm2d)]
        read = torch.stack(weights).sum(0)
        return read * typical_size(norms[-1]) if norms else read


def _sort_heads(layer: nn.Module) -> None:
    """Put the heads of an attention in falling order of the weight that their outputs are given."""
    assert isinstance(layer, Attention)
    inputs = layer.qkv.in_features
    importance = layer.out.weight.abs().reshape(inputs, layer.heads, layer.width).sum((0, 2))
    order = importance.argsort(descending=True, stable=True)
    out = layer.out.weight.reshape(inputs, layer.heads, layer.width)[:, order]
    layer.out.weight.copy_(out.reshape(inputs, -1))
    for value in (layer.qkv.weight, layer.qkv.bias):
        if value is not None:
            heads = value.reshape(3, layer.heads, layer.width, *value.shape[1:])[:, order]
            value.copy_(heads.reshape(value.shape))


def _parts(node: Node, layer: nn.Module) -> dict[str, Tensor]:
    """The part of a layer's weights that a narrowed node uses, by name."""
    weights: dict[str, Tensor] = dict(layer.named_parameters())
    if node.op in ("conv", "linear"):
        inputs = node.get("inputs") // (node.get("groups") if node.op == "conv" else 1)
        found = {"weight": weights["weight"][: node.get("outputs"), :inputs]}
        return {**found, **({"bias": weights["bias"][: node.get("outputs")]} if node.get("bias") else {})}
    if node.op == "layer_norm":
        sizes = tuple(slice(0, size) for size in node.get("shape"))
        return {name: value[sizes] for name, value in weights.items()}
    if node.op == "parameter":
        return {"value": weights["value"][tuple(slice(0, size) for size in node.get("shape"))]}
    if node.op == "attention":
        assert isinstance(layer, Attention)
        return _attention_parts(layer, node.get("heads"))
    return weights


def _attention_parts(layer: Attention, heads: int) -> dict[str, Tensor]:
    """The first heads of an attention."""
    found = {"out.weight": layer.out.weight[:, : heads * layer.width]}
    for name, value in (("qkv.weight", layer.qkv.weight), ("qkv.bias", layer.qkv.bias)):
        if value is not None:
            split = value.reshape(3, layer.heads, layer.width, *value.shape[1:])[:, :heads]
            found[name] = split.reshape(-1, *value.shape[1:])
    return found if layer.out.bias is None else {**found, "out.bias": layer.out.bias}
