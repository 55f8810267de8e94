"""The blocks of a graph: where one tensor alone carries everything on, and which channels are private to a block.

A cut is a place in the order at which a single tensor is still to be read. Between two cuts lies a piece. A piece that ends
with a sum is a residual block; where one of the summands is what entered, the block can be removed. A row of channels that
one piece makes and uses up (the expansion of MBConv, the middle of a bottleneck, the hidden units of an MLP, heads) is
private: its width can change and nobody else notices, so costs stay sums over blocks (paper 3.4) and the search stays exact.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from functools import cached_property
from itertools import pairwise

from binas.base.errors import SpaceError
from binas.space.graphs import ELEMENTWISE, POOLS, PRODUCTS, SUMS, Graph, Node

LEAST = 8  # channels of a group that is worth narrowing
Axis = int


@dataclass
class Group:
    """Channels that must be kept or dropped together, ``size`` of them, in units of ``unit`` (a head's channels).

    ``makers`` write them, ``users`` read and end them, ``members`` (norms, depth-wise filters, parameters) pass them on.
    """

    size: int
    unit: int = 1
    fixed: bool = False
    makers: list[str] = field(default_factory=list)
    users: list[str] = field(default_factory=list)
    members: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class GraphBlock:
    """A run of nodes with one tensor in and one out.

    ``nodes`` are names in order; ``widths`` the private groups that may be narrowed, by the name of their first maker;
    ``tail`` are the nodes after the sum, which also run when the block is removed.
    """

    entering: str
    nodes: tuple[str, ...]
    widths: tuple[str, ...] = ()
    removable: bool = False
    tail: tuple[str, ...] = ()
    path: str = ""

    @property
    def leaving(self) -> str:
        """The node whose tensor goes on."""
        return self.nodes[-1]


class Channels:
    """Which group the channels of every node belong to, and on which axis they stand (0 is the batch)."""

    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self.groups: list[Group] = []
        self._parents: list[int] = []
        self.at: dict[str, tuple[int, Axis]] = {}
        for node in graph.nodes:
            self._visit(node)
        last = self.at.get(graph.nodes[-1].name)
        if last is not None:
            self._fix(last[0])

    def group(self, name: str) -> int | None:
        """The number of a node's group; None where its channels cannot be followed."""
        found = self.at.get(name)
        return None if found is None else self._root(found[0])

    def axis(self, name: str) -> Axis:
        """Where a node's channels stand."""
        return self.at[name][1]

    @cached_property
    def all(self) -> dict[int, Group]:
        """Groups by number, members of joined ones together."""
        found: dict[int, Group] = {}
        for number, group in enumerate(self.groups):
            root = self._root(number)
            whole = found.setdefault(root, Group(group.size, group.unit))
            whole.fixed |= group.fixed
            whole.makers += group.makers
            whole.users += group.users
            whole.members += group.members
        return found

    def _new(self, size: int, unit: int = 1, fixed: bool = False) -> int:
        self.groups.append(Group(size, unit, fixed))
        self._parents.append(len(self.groups) - 1)
        return len(self.groups) - 1

    def _root(self, number: int) -> int:
        while self._parents[number] != number:
            number = self._parents[number]
        return number

    def _join(self, one: int, two: int) -> int:
        one, two = self._root(one), self._root(two)
        self._parents[max(one, two)] = min(one, two)
        return min(one, two)

    def _fix(self, number: int) -> None:
        self.groups[self._root(number)].fixed = True

    def _lost(self, node: Node) -> None:
        """Channels that cannot be followed any further stay as they are."""
        for name in node.reads:
            if name in self.at:
                self._fix(self.at[name][0])

    def _visit(self, node: Node) -> None:
        """Follow the channels through one node."""
        handler = getattr(self, f"_of_{node.op}", None)
        if not node.get("rows", True):  # its first axis is not the images
            self._lost(node)
        elif handler is not None:
            handler(node)
        elif node.op in (*ELEMENTWISE, *POOLS):
            self._pass(node)
        elif node.op in (*SUMS, *PRODUCTS):
            self._combine(node)
        else:
            self._lost(node)

    def _pass(self, node: Node) -> None:
        if node.reads and node.reads[0] in self.at:
            self.at[node.name] = self.at[node.reads[0]]

    def _of_input(self, node: Node) -> None:
        self.at[node.name] = self._new(node.shape[0], fixed=True), 1

    def _of_parameter(self, node: Node) -> None:
        """Followed where it meets other channels."""

    def _of_batch_norm(self, node: Node) -> None:
        self._pass(node)
        self._anew(node)
        self._member(node)

    def _of_group_norm(self, node: Node) -> None:
        self._lost(node)
        self._pass(node)
        self._anew(node)

    def _anew(self, node: Node) -> None:
        """Channels that were lost before a norm are counted from there, as they are."""
        if node.name not in self.at:
            self.at[node.name] = self._new(node.shape[0], fixed=True), 1

    def _of_size(self, node: Node) -> None:
        """The number of images is the same whatever the channels; other sizes are not followed."""
        if node.get("dim") != 0:
            self._lost(node)

    def _of_layer_norm(self, node: Node) -> None:
        known = self.at.get(node.reads[0])
        if known is None or known[1] != len(node.shape) or len(node.get("shape")) != 1:
            self._lost(node)
            return
        self._pass(node)
        self._member(node)

    def _member(self, node: Node) -> None:
        if node.name in self.at:
            self.groups[self.at[node.name][0]].members.append(node.name)

    def _of_conv(self, node: Node) -> None:
        known, groups = self.at.get(node.reads[0]), int(node.get("groups"))
        if groups > 1 and groups == node.get("inputs") == node.get("outputs") and known is not None:
            self.at[node.name] = known
            self._member(node)
            return
        self._made(node, 1, fixed=groups > 1, ends=groups == 1)

    def _of_linear(self, node: Node) -> None:
        known = self.at.get(node.reads[0])
        self._made(node, len(node.shape), ends=known is not None and known[1] == len(node.shape))

    def _made(self, node: Node, axis: int, fixed: bool = False, ends: bool = True) -> None:
        """New channels; those that were read end here."""
        known = self.at.get(node.reads[0])
        if known is not None and ends:
            self.groups[known[0]].users.append(node.name)
        elif known is not None:
            self._fix(known[0])
        number = self._new(node.shape[axis - 1], fixed=fixed)
        self.groups[number].makers.append(node.name)
        self.at[node.name] = number, axis

    def _of_attention(self, node: Node) -> None:
        self._made(node, len(node.shape))
        inner = self._new(node.get("heads") * node.get("width"), node.get("width"))
        self.groups[inner].makers.append(node.name)
        self.groups[inner].users.append(node.name)
        self.at[f"{node.name}.heads"] = inner, 0

    def _combine(self, node: Node) -> None:
        """Sums and products tie what they combine; a parameter or a gate with the same channels belongs to them."""
        tensors = [name for name in node.reads if self.graph.by_name[name].shape]
        followed = [name for name in tensors if name in self.at]
        if not followed:
            return
        lead = max(followed, key=lambda name: len(self.graph.by_name[name].shape))
        number, axis = self.at[lead]
        for name in tensors:
            other = self.graph.by_name[name]
            if name == lead:
                continue
            if name in self.at and self._same_channels(name, lead):
                number = self._join(number, self.at[name][0])
            elif other.op == "parameter" and self._fits(other, lead):
                self.groups[self._root(number)].members.append(name)
                self.at[name] = number, len(other.shape) - (len(self.graph.by_name[lead].shape) - axis)
            else:
                self._lost(node)
                return
        self.at[node.name] = number, axis

    def _same_channels(self, one: str, two: str) -> bool:
        first, second = self.graph.by_name[one], self.graph.by_name[two]
        sizes = [node.shape[self.at[node.name][1] - 1] for node in (first, second)]
        from_end = [len(node.shape) - self.at[node.name][1] for node in (first, second)]
        return sizes[0] == sizes[1] and from_end[0] == from_end[1]

    def _fits(self, parameter: Node, lead: str) -> bool:
        """Whether a parameter has one number per channel, and nothing else."""
        _, axis = self.at[lead]
        shape = self.graph.by_name[lead].shape
        place = len(parameter.shape) - 1 - (len(shape) - axis)
        return (
            0 <= place < len(parameter.shape)
            and parameter.shape[place] == shape[axis - 1]
            and all(size == 1 for k, size in enumerate(parameter.shape) if k != place)
        )

    def _of_mean(self, node: Node) -> None:
        known, before = self.at.get(node.reads[0]), self.graph.by_name[node.reads[0]]
        if known is None:
            return
        rank = len(before.shape) + 1
        dims = {dim % rank for dim in node.get("dims")}
        if known[1] in dims or 0 in dims:
            self._lost(node)
            return
        gone = 0 if node.get("keep") else sum(dim < known[1] for dim in dims)
        self.at[node.name] = known[0], known[1] - gone

    def _of_flatten(self, node: Node) -> None:
        known = self.at.get(node.reads[0])
        size = None if known is None else self.graph.by_name[node.reads[0]].shape[known[1] - 1]
        if known is None or known[1] != 1 or node.shape != (size,):
            self._lost(node)
            return
        self.at[node.name] = known[0], 1

    _of_reshape = _of_flatten

    def _of_squeeze(self, node: Node) -> None:
        self._of_flatten(node)

    def _of_permute(self, node: Node) -> None:
        known, rank = self.at.get(node.reads[0]), len(node.shape) + 1
        if known is not None:
            self.at[node.name] = known[0], [dim % rank for dim in node.get("dims")].index(known[1])

    def _of_transpose(self, node: Node) -> None:
        known, rank = self.at.get(node.reads[0]), len(node.shape) + 1
        if known is not None:
            one, two = (dim % rank for dim in node.get("dims"))
            self.at[node.name] = known[0], {one: two, two: one}.get(known[1], known[1])


def cuts(graph: Graph) -> list[int]:
    """Positions after which one tensor alone is still to be read; parameters are there whenever they are needed."""
    place = {node.name: k for k, node in enumerate(graph.nodes)}
    last = {
        node.name: max((place[reader] for reader in graph.readers[node.name]), default=place[node.name])
        for node in graph.nodes
        if node.op != "parameter"
    }
    found, live = [], set[str]()
    for k, node in enumerate(graph.nodes):
        if node.op != "parameter":
            live.add(node.name)
        live = {name for name in live if last[name] > k}
        if live == {node.name} and node.shape and node.get("rows", True):
            found.append(k)
    return found


def pieces(graph: Graph) -> list[tuple[str, list[Node]]]:
    """What entered, and the nodes, between each cut and the next; the last ends with the logits."""
    edges = [*cuts(graph), len(graph.nodes) - 1]
    edges = sorted(set(edges))
    return [
        (graph.nodes[before].name, list(graph.nodes[before + 1 : after + 1]))
        for before, after in pairwise(edges)
    ]


def find_blocks(graph: Graph) -> list[GraphBlock]:
    """The blocks of a graph in order, disjoint: residual ones, and runs of pieces with private channels; or those named."""
    parts, channels = pieces(graph), Channels(graph)
    taken = _named(graph, parts) if graph.named_blocks else _found(graph, parts, channels)
    return [_block(graph, channels, parts, span) for span in _with_tails(parts, sorted(taken))]


def _found(
    graph: Graph, parts: Sequence[tuple[str, list[Node]]], channels: Channels
) -> list[tuple[int, int]]:
    """First and last piece of each block."""
    taken = [(k, k) for k, (_, nodes) in enumerate(parts) if _is_residual(graph, nodes)]
    where = {node.name: k for k, (_, nodes) in enumerate(parts) for node in nodes}
    for group in sorted(_private(channels), key=lambda group: -group.size):
        inside = [where[name] for name in (*group.makers, *group.users)]
        span = min(inside), max(inside)
        if all(span[1] < low or span[0] > high for low, high in taken):
            taken.append(span)
    return taken


def _named(graph: Graph, parts: Sequence[tuple[str, list[Node]]]) -> list[tuple[int, int]]:
    """The same for modules named by hand; an error where a name fits none, or two of them share a piece."""
    spans: dict[str, tuple[int, int]] = {}
    paths = [(k, node.path) for k, (_, nodes) in enumerate(parts) for node in nodes if node.path]
    for pattern in graph.named_blocks:
        fitting = [(k, module) for k, path in paths if (module := _module(path, pattern))]
        if not fitting:
            known = dict.fromkeys(path.partition(".")[0] for _, path in paths)
            raise SpaceError(
                f"no module between the first layer and the last is called {pattern[:60]!r}; at the top there are "
                f"{', '.join(known)}. A * stands for one part of a name: layers.*.*"
            )
        for k, module in fitting:
            first, last = spans.get(module, (k, k))
            spans[module] = min(first, k), max(last, k)
    rows = sorted(spans.items(), key=lambda item: item[1])
    for (one, (_, end)), (two, (start, _)) in pairwise(rows):
        if start <= end:
            raise SpaceError(
                f"{one!r} and {two!r} cannot be two blocks: a connection goes around both, or one is part of the other. "
                "Name the module that holds them."
            )
    return [(first, _without_tail(parts, first, last)) for first, last in spans.values()]


def _without_tail(parts: Sequence[tuple[str, list[Node]]], first: int, last: int) -> int:
    """The last piece that does more than a tail would."""
    return next((k for k in range(last, first, -1) if not _is_tail(parts[k][1])), first)


def _module(path: str, pattern: str) -> str:
    """The module of a path that a pattern names, each part of it by itself; empty where it names none."""
    wanted, parts = pattern.split("."), path.split(".")
    fits = len(parts) >= len(wanted) and all(map(fnmatchcase, parts, wanted))
    return ".".join(parts[: len(wanted)]) if fits else ""


def _private(channels: Channels) -> Iterator[Group]:
    """Groups that may be narrowed: made and used up somewhere, and wide enough."""
    for group in channels.all.values():
        wide = group.size >= 2 * group.unit if group.unit > 1 else group.size >= LEAST
        if wide and not group.fixed and group.makers and group.users:
            yield group


def _is_residual(graph: Graph, nodes: Sequence[Node]) -> bool:
    """Whether nodes end with the sum of two things that were computed."""
    summands = [graph.by_name[name].op for name in nodes[-1].reads]
    return nodes[-1].op in SUMS and len(summands) == 2 and "parameter" not in summands


def _with_tails(
    parts: Sequence[tuple[str, list[Node]]], spans: Sequence[tuple[int, int]]
) -> Iterator[tuple[int, int, int]]:
    """(first, last, end): what follows a block and acts on each number or channel alone belongs to it."""
    starts = {first for first, _ in spans}
    for first, last in spans:
        end = last
        while end + 1 < len(parts) - 1 and end + 1 not in starts and _is_tail(parts[end + 1][1]):
            end += 1
        yield first, last, end


def _is_tail(nodes: Sequence[Node]) -> bool:
    return len(nodes) == 1 and nodes[0].op in (*ELEMENTWISE, "batch_norm")


def _block(
    graph: Graph, channels: Channels, parts: Sequence[tuple[str, list[Node]]], span: tuple[int, int, int]
) -> GraphBlock:
    first, last, end = span
    entering = parts[first][0]
    body = [node for _, nodes in parts[first : last + 1] for node in nodes]
    tail = [node.name for _, nodes in parts[last + 1 : end + 1] for node in nodes]
    names = {node.name for node in body}
    inner = [
        group.makers[0] if group.unit == 1 else f"{group.makers[0]}.heads"
        for group in _private(channels)
        if {*group.makers, *group.users, *group.members} <= names
    ]
    identity = first == last and _is_residual(graph, parts[first][1]) and entering in body[-1].reads
    return GraphBlock(
        entering,
        (*(node.name for node in body), *tail),
        tuple(inner),
        identity,
        tuple(tail),
        common_path(node.path for node in body if node.path),
    )


def common_path(paths: Iterable[str]) -> str:
    """The module that all of these are parts of: ``layers.3`` for ``layers.3.conv1`` and ``layers.3.bn1``."""
    split = [path.split(".") for path in paths]
    shared: list[str] = []
    for parts in zip(*split, strict=False):
        if len(set(parts)) > 1:
            break
        shared.append(parts[0])
    return ".".join(shared)
