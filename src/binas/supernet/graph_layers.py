"""Graphs as modules: each node by the layer or function it names, run one after the other; no code is generated."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from binas.space.graphs import INPUT, LAYERS, Node

READ = "$"  # "$1" in an option stands for the second thing that a node reads
COUNT = "#"  # in a shape, the number of images of what a node reads


class Attention(nn.Module):
    """Self-attention: out(softmax(q k' / sqrt(width)) v) for ``heads`` of ``width`` channels each."""

    def __init__(self, inputs: int, heads: int, width: int, bias: bool = True) -> None:
        super().__init__()
        self.heads, self.width = heads, width
        self.qkv = nn.Linear(inputs, 3 * heads * width, bias)
        self.out = nn.Linear(heads * width, inputs, bias)

    def forward(self, x: Tensor) -> Tensor:
        """(n, tokens, inputs) to the same shape."""
        return attend(x, self.qkv.weight, self.qkv.bias, self.out.weight, self.out.bias, self.width)


def attend(
    x: Tensor, qkv: Tensor, qkv_bias: Tensor | None, out: Tensor, out_bias: Tensor | None, width: int
) -> Tensor:
    """Self-attention with given weights; as many heads as the weights have."""
    n, tokens, _ = x.shape
    query, key, value = (
        F.linear(x, qkv, qkv_bias).reshape(n, tokens, 3, -1, width).permute(2, 0, 3, 1, 4).unbind(0)
    )
    mixed = F.scaled_dot_product_attention(query, key, value)
    return F.linear(mixed.transpose(1, 2).reshape(n, tokens, -1), out, out_bias)


class Parameter(nn.Module):
    """A tensor of weights that takes part in the computation by itself."""

    def __init__(self, shape: Sequence[int]) -> None:
        super().__init__()
        self.value = nn.Parameter(torch.zeros(*shape))

    def forward(self) -> Tensor:
        """The tensor, with a first axis for the batch where it needs one."""
        return self.value


def layer_of(node: Node) -> nn.Module:
    """The module of a node with weights, fresh."""
    get = node.get
    if node.op == "conv":
        sizes = get("kernel"), get("stride"), get("padding"), get("dilation")
        return nn.Conv2d(get("inputs"), get("outputs"), *sizes, get("groups"), get("bias"))
    if node.op == "linear":
        return nn.Linear(get("inputs"), get("outputs"), get("bias"))
    if node.op == "batch_norm":
        kind = nn.BatchNorm2d if len(node.shape) == 3 else nn.BatchNorm1d
        return kind(get("channels"), get("eps"), get("momentum"), get("affine"))
    if node.op == "layer_norm":
        return nn.LayerNorm(get("shape"), get("eps"), get("affine"))
    if node.op == "group_norm":
        return nn.GroupNorm(get("groups"), get("channels"), get("eps"), get("affine"))
    if node.op == "attention":
        return Attention(get("inputs"), get("heads"), get("width"), get("bias"))
    return Parameter(get("shape"))


def _binary(function: Callable[[Any, Any], Any]) -> Callable[..., Any]:
    def call(node: Node, *read: Any) -> Any:
        if len(read) == 2:
            return function(*read)
        other = node.get("other")
        return function(other, read[0]) if node.get("first") else function(read[0], other)

    return call


def _filled(values: Iterable[Any], read: Sequence[Any]) -> list[Any]:
    def of(value: Any) -> Any:
        if value == COUNT:
            return read[0].shape[0]
        return read[int(value[1:])] if isinstance(value, str) and value.startswith(READ) else value

    return [of(value) for value in values]


FUNCTIONS: Mapping[str, Callable[..., Any]] = {
    "relu": lambda node, x: F.relu(x),
    "relu6": lambda node, x: F.relu6(x),
    "leaky_relu": lambda node, x: F.leaky_relu(x, node.get("slope")),
    "elu": lambda node, x: F.elu(x, node.get("alpha")),
    "celu": lambda node, x: F.celu(x, node.get("alpha")),
    "selu": lambda node, x: F.selu(x),
    "gelu": lambda node, x: F.gelu(x, approximate=node.get("approximate", "none")),
    "silu": lambda node, x: F.silu(x),
    "mish": lambda node, x: F.mish(x),
    "softplus": lambda node, x: F.softplus(x, node.get("beta"), node.get("threshold")),
    "hardswish": lambda node, x: F.hardswish(x),
    "hardsigmoid": lambda node, x: F.hardsigmoid(x),
    "sigmoid": lambda node, x: torch.sigmoid(x),
    "tanh": lambda node, x: torch.tanh(x),
    "clamp": lambda node, x: torch.clamp(x, node.get("low"), node.get("high")),
    "exp": lambda node, x: torch.exp(x),
    "neg": lambda node, x: -x,
    "abs": lambda node, x: torch.abs(x),
    "identity": lambda node, x: x,
    "contiguous": lambda node, x: x.contiguous(),
    "max_pool": lambda node, x: F.max_pool2d(
        x, node.get("kernel"), node.get("stride"), node.get("padding"), node.get("dilation"), node.get("ceil")
    ),
    "avg_pool": lambda node, x: F.avg_pool2d(
        x,
        node.get("kernel"),
        node.get("stride"),
        node.get("padding"),
        node.get("ceil"),
        node.get("include", True),
    ),
    "adaptive_avg_pool": lambda node, x: F.adaptive_avg_pool2d(x, node.get("size")),
    "adaptive_max_pool": lambda node, x: F.adaptive_max_pool2d(x, node.get("size")),
    "upsample": lambda node, x: F.interpolate(
        x, node.get("size"), node.get("scale"), node.get("mode"), node.get("align")
    ),
    "pad": lambda node, x: F.pad(x, node.get("padding"), value=node.get("value", 0.0)),
    "add": _binary(lambda one, two: one + two),
    "sub": _binary(lambda one, two: one - two),
    "mul": _binary(lambda one, two: one * two),
    "div": _binary(lambda one, two: one / two),
    "pow": _binary(lambda one, two: one**two),
    "addcmul": lambda node, x, one, two: torch.addcmul(x, one, two),
    "prelu": lambda node, x, slopes: F.prelu(x, slopes.flatten()),
    "floordiv": _binary(lambda one, two: one // two),
    "matmul": lambda node, one, two: one @ two,
    "softmax": lambda node, x: torch.softmax(x, node.get("dim")),
    "log_softmax": lambda node, x: torch.log_softmax(x, node.get("dim")),
    "cat": lambda node, *read: torch.cat(_filled(node.get("parts"), read), node.get("dim")),
    "stack": lambda node, *read: torch.stack(_filled(node.get("parts"), read), node.get("dim")),
    "unbind": lambda node, x: x.unbind(node.get("dim")),
    "chunk": lambda node, x: x.chunk(node.get("count"), node.get("dim")),
    "split": lambda node, x: x.split(node.get("size"), node.get("dim")),
    "mix": lambda node, query, key, value: F.scaled_dot_product_attention(
        query, key, value, is_causal=node.get("causal"), scale=node.get("scale")
    ),
    "flatten": lambda node, x: torch.flatten(x, node.get("start"), node.get("end")),
    "reshape": lambda node, x, *read: x.reshape(_filled(node.get("dims"), (x, *read))),
    "expand": lambda node, x, *read: x.expand(_filled(node.get("dims"), (x, *read))),
    "repeat": lambda node, x, *read: x.repeat(_filled(node.get("dims"), (x, *read))),
    "permute": lambda node, x: x.permute(node.get("dims")),
    "transpose": lambda node, x: x.transpose(*node.get("dims")),
    "squeeze": lambda node, x: x.squeeze(node.get("dims")) if node.get("dims") else x.squeeze(),
    "unsqueeze": lambda node, x: x.unsqueeze(node.get("dim")),
    "mean": lambda node, x: x.mean(node.get("dims"), keepdim=node.get("keep")),
    "sum": lambda node, x: x.sum(node.get("dims"), keepdim=node.get("keep")),
    "amax": lambda node, x: x.amax(node.get("dims"), keepdim=node.get("keep")),
    "norm": lambda node, x: torch.linalg.vector_norm(
        x, node.get("order"), node.get("dims"), keepdim=node.get("keep")
    ),
    "getitem": lambda node, x: x[_index(node.get("index"))],
    "size": lambda node, x: x.shape if node.get("dim") is None else x.shape[node.get("dim")],
}


def _index(index: Any) -> Any:
    """Slices are written as ("slice", start, stop, step), all other axes as "..."."""
    if isinstance(index, str) and index == "...":
        return Ellipsis
    if isinstance(index, tuple) and index and index[0] == "slice":
        return slice(*index[1:])
    return tuple(_index(item) for item in index) if isinstance(index, tuple) else index


Call = Callable[[Node, list[Any]], Any]


def run_nodes(nodes: Iterable[Node], entering: str, x: Tensor, call: Call) -> Any:
    """The value of the last node, ``x`` being that of ``entering``."""
    values: dict[str, Any] = {entering: x}
    last: Any = x
    for node in nodes:
        last = values[node.name] = call(node, [values[name] for name in node.reads])
    return last


class Piece(nn.Module):
    """Nodes of a graph as a module: one tensor in, one out."""

    def __init__(self, entering: str, nodes: Sequence[Node]) -> None:
        super().__init__()
        self.entering, self.nodes = entering, tuple(nodes)
        self.layers = nn.ModuleDict({node.name: layer_of(node) for node in nodes if node.op in LAYERS})

    def forward(self, x: Tensor) -> Tensor:
        """All nodes in order."""
        result: Tensor = run_nodes(self.nodes, self.entering, x, self.call)
        return result

    def call(self, node: Node, read: list[Any]) -> Any:
        """One node."""
        if node.op in LAYERS:
            return self.layers[node.name](*read)
        if node.op == "dropout":
            return F.dropout(read[0], node.get("p"), self.training)
        return FUNCTIONS[node.op](node, *read)


def whole(nodes: Sequence[Node]) -> Piece:
    """A whole graph as one module."""
    assert nodes[0].op == INPUT
    return Piece(nodes[0].name, nodes[1:])
