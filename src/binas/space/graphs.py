"""A network as a graph: plain data that says what is computed, so that no code of others is needed to build it again.

Nodes are operations of a fixed list (:data:`LAYERS` have weights, :data:`FUNCTIONS` have none), in an order in which each
reads only what stands before it. A graph is written as one JSON text inside a space's file; weights are kept apart.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from binas.base.errors import FileError, SpaceError
from binas.base.files import parse_json
from binas.space.codes import MAX_NUMBER

INPUT = "input"
LAYERS = ("conv", "linear", "batch_norm", "layer_norm", "group_norm", "attention", "parameter")
ELEMENTWISE = (
    "relu",
    "relu6",
    "leaky_relu",
    "elu",
    "celu",
    "selu",
    "gelu",
    "silu",
    "mish",
    "softplus",
    "hardswish",
    "hardsigmoid",
    "sigmoid",
    "tanh",
    "clamp",
    "exp",
    "neg",
    "abs",
    "dropout",
    "identity",
    "contiguous",
)
POOLS = ("max_pool", "avg_pool", "adaptive_avg_pool", "adaptive_max_pool", "upsample", "pad")
SUMS = ("add", "sub")
PRODUCTS = (
    "mul",
    "div",
    "pow",
    "addcmul",
    "prelu",
)  # number by number as well; prelu reads a slope per channel
SHAPES = ("flatten", "reshape", "permute", "transpose", "squeeze", "unsqueeze", "expand", "repeat", "mean")
PARTS = ("cat", "stack", "unbind", "chunk", "split", "getitem")
OTHERS = ("matmul", "mix", "softmax", "log_softmax", "sum", "amax", "norm", "size", "floordiv")
FUNCTIONS = (*ELEMENTWISE, *POOLS, *SUMS, *PRODUCTS, *SHAPES, *PARTS, *OTHERS)
MOST_NODES = 20_000
# Settings that blocks and costs are worked out from: whole numbers from 1, switches, and lists of whole numbers.
_SIZES, _SWITCH, _LIST = "size", "switch", "list"
_SETTINGS: dict[str, dict[str, str]] = {
    "conv": {
        **dict.fromkeys(("inputs", "outputs", "groups"), _SIZES),
        **dict.fromkeys(("kernel", "stride", "dilation"), _LIST),
        "bias": _SWITCH,
    },
    "linear": {"inputs": _SIZES, "outputs": _SIZES, "bias": _SWITCH},
    "batch_norm": {"channels": _SIZES},
    "layer_norm": {"shape": _LIST},
    "attention": {"inputs": _SIZES, "heads": _SIZES, "width": _SIZES, "bias": _SWITCH},
    "parameter": {"shape": _LIST},
    "mean": {"dims": _LIST},
    "permute": {"dims": _LIST},
    "transpose": {"dims": _LIST},
}

Value = bool | int | float | str | None | list["Value"]


@dataclass(frozen=True)
class Node:
    """One operation: what it reads (nodes by name), its settings, and the shape it gives for one image.

    ``path`` is the name of the module it comes from; the shape is empty where the result is a number.
    """

    name: str
    op: str
    reads: tuple[str, ...] = ()
    options: tuple[tuple[str, Any], ...] = ()
    shape: tuple[int, ...] = ()
    path: str = ""

    def get(self, key: str, default: Any = None) -> Any:
        """One setting."""
        return dict(self.options).get(key, default)

    def changed(self, **options: Any) -> Node:
        """The same with some settings changed."""
        new = {**dict(self.options), **options}
        return Node(self.name, self.op, self.reads, tuple(sorted(new.items())), self.shape, self.path)

    def to_data(self) -> list[Any]:
        """As JSON."""
        return [
            self.name,
            self.op,
            list(self.reads),
            dict(self.options),
            list(self.shape),
            self.path,
        ]


@dataclass(frozen=True)
class Graph:
    """Nodes in order; the first is the image, the last the logits.

    Where a user has named the blocks, the image's settings hold the patterns: ``layers.*`` for ``layers.0``, ``layers.1``.
    """

    nodes: tuple[Node, ...]

    def __post_init__(self) -> None:
        _check(self.nodes)

    @cached_property
    def by_name(self) -> dict[str, Node]:
        """Nodes by name."""
        return {node.name: node for node in self.nodes}

    @cached_property
    def readers(self) -> dict[str, list[str]]:
        """Who reads each node."""
        found: dict[str, list[str]] = {node.name: [] for node in self.nodes}
        for node in self.nodes:
            for name in node.reads:
                found[name].append(node.name)
        return found

    @property
    def named_blocks(self) -> tuple[str, ...]:
        """Patterns of the modules that are blocks; none where blocks are to be found."""
        return tuple(self.nodes[0].get("blocks", ()))

    def with_blocks(self, patterns: Iterable[str]) -> Graph:
        """The same with blocks named by hand."""
        return Graph((self.nodes[0].changed(blocks=tuple(patterns)), *self.nodes[1:]))

    @property
    def classes(self) -> int:
        """Numbers it gives for an image."""
        return self.nodes[-1].shape[-1]

    def to_text(self) -> str:
        """One line of JSON."""
        return json.dumps([node.to_data() for node in self.nodes], separators=(",", ":"), sort_keys=True)


def graph_from_text(text: str) -> Graph:
    """Read a graph; anything that is not one is refused."""
    try:
        rows = parse_json(text, "the graph")
        nodes = tuple(_node(row) for row in rows)
    except (FileError, ValueError, TypeError) as error:
        raise SpaceError(
            f"the network of a space is no graph: {error}. Make the space again with `binas shrink`."
        ) from error
    return Graph(nodes)


def _node(row: Any) -> Node:
    name, op, reads, options, shape, path = row
    if not isinstance(options, Mapping) or not all(
        isinstance(item, str) for item in (name, op, path, *reads)
    ):
        raise TypeError(f"{str(row)[:80]} is no node")
    if not all(type(size) is int and 0 <= size <= MAX_NUMBER for size in shape):
        raise TypeError(f"{str(row)[:80]} has no shape")
    known = tuple(sorted((str(key), _plain(value)) for key, value in options.items()))
    return Node(name, op, tuple(reads), known, tuple(shape), path)


def _plain(value: Any) -> Any:
    """Lists as tuples, so that nodes can be compared."""
    return tuple(_plain(item) for item in value) if isinstance(value, list | tuple) else value


def _fits(value: Any, kind: str) -> bool:
    """Whether a setting is of its kind."""
    if kind == _SWITCH:
        return type(value) is bool
    if kind == _SIZES:
        return type(value) is int and 1 <= value <= MAX_NUMBER
    return isinstance(value, tuple) and all(type(item) is int and abs(item) <= MAX_NUMBER for item in value)


def _check(nodes: Iterable[Node]) -> None:
    """Refuse an operation that is not known, a name that stands there twice, and reading what comes later."""
    seen: set[str] = set()
    for number, node in enumerate(nodes):
        if (node.op == INPUT) != (number == 0):
            raise SpaceError("a graph begins with its image, and has one only.")
        if number and node.op not in (*LAYERS, *FUNCTIONS):
            raise SpaceError(f"the node {node.name[:60]!r} has the unknown operation {node.op[:40]!r}.")
        if node.name in seen or not set(node.reads) <= seen or number > MOST_NODES:
            raise SpaceError(f"the node {node.name[:60]!r} is there twice or reads what comes after it.")
        for key, kind in _SETTINGS.get(node.op, {}).items():
            if not _fits(node.get(key), kind):
                raise SpaceError(f"the node {node.name[:60]!r} ({node.op}) has no {key} that can be used.")
        seen.add(node.name)
    if not seen:
        raise SpaceError("a graph needs at least one node.")
