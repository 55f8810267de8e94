"""A module of any user as a graph: followed, written down as plain operations, and held against the module itself.

What cannot be followed (decisions that depend on the images, a module with weights that is called twice) is answered with
the name of the module and the reason. Attention is recognised by its parts (a layer that makes queries, keys and values,
and one that puts heads together) and believed only because it gives what the module gives; so is the whole graph.
"""

from __future__ import annotations

import copy
import operator
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, NoReturn

import torch
from torch import Tensor, fx, nn
from torch.nn.parameter import is_lazy
from torch.nn.utils.parametrize import is_parametrized

from binas.base.errors import SpaceError
from binas.space.graph_blocks import pieces
from binas.space.graphs import INPUT, Graph, Node
from binas.supernet.graph_calls import (
    function_call,
    functional_layer,
    inputs_of,
    known_calls,
    layer_call,
    weights_of_call,
)
from binas.supernet.graph_layers import Attention, Piece, whole
from binas.supernet.graph_tracer import Follower, attention_of, call_name
from binas.supernet.plain import in_mode

CLOSE = 1e-4  # largest difference of logits, as a share of the largest logit where that is above 1
# Modules around a model that hide its calls, by the name of their class, and what to give instead.
WRAPPED = {
    "ScriptModule": "TorchScript cannot be looked into; give the Python module that it was made from",
    "OptimizedModule": "torch.compile hides its calls; give the module as it was before",
    "Parametrized": "its weights are computed; call torch.nn.utils.parametrize.remove_parametrizations",
    "DataParallel": "give the module inside it (.module)",
    "DistributedDataParallel": "give the module inside it (.module)",
}


@dataclass(frozen=True)
class Traced:
    """A graph and its weights by ``node.weight``."""

    graph: Graph
    weights: dict[str, Tensor]

    def build(self) -> Piece:
        """The network with its weights."""
        network = whole(self.graph.nodes)
        network.load_state_dict({f"layers.{name}": value for name, value in self.weights.items()})
        return network.eval()


def trace(module: nn.Module, image: tuple[int, int, int], tolerance: float = CLOSE) -> Traced:
    """The graph of a module for images of this shape; an error unless it gives the module's logits.

    The module is left as it was, and is looked at in eval mode; of one on another device a copy is.
    """
    _check_plain(module)
    _check_weights(module)
    module = _on_cpu(module)
    with torch.no_grad(), _as_it_was(module):
        _check_runs(module, image)
        traced = _written(module, image)
        _compare(module, traced, image, tolerance)
    return traced


@contextmanager
def _as_it_was(module: nn.Module) -> Iterator[None]:
    """Look at a module in eval mode; each part goes back to its own, and what following it left there is taken away."""
    before = set(vars(module))
    try:
        with in_mode(module, training=False):
            yield
    finally:
        for name in set(vars(module)) - before:
            delattr(module, name)


def _check_plain(module: nn.Module) -> None:
    """Refuse what is not made of Python modules that can be followed."""
    for name, part in module.named_modules():
        kinds = [kind.__name__ for kind in type(part).__mro__]
        kinds += ["Parametrized"] if is_parametrized(part) else []
        for kind in kinds:
            if kind in WRAPPED:
                where = repr(name) if name else "the model itself"
                raise SpaceError(
                    f"the model cannot be followed: {where} is of the kind {kind}: {WRAPPED[kind]}."
                )


@torch.no_grad()
def _check_weights(module: nn.Module) -> None:
    """Refuse weights that are not there, of other precision than float32, or not finite; and such buffers.

    A buffer that is no statistic of a norm may be infinite: masks are.
    """
    for name, weight in module.named_parameters():
        _check_there(name, weight)
        if weight.dtype != torch.float32:
            raise SpaceError(
                f"the weight {name} is {str(weight.dtype).removeprefix('torch.')}; call .float() on the model first, as "
                "it is trained further here."
            )
        _check_finite(f"the weight {name}", weight.isfinite())
    for name, buffer in module.named_buffers():
        _check_there(name, buffer)
        statistic = name.endswith(("running_mean", "running_var"))
        _check_finite(f"the buffer {name}", buffer.isfinite() if statistic else ~buffer.isnan())


def _check_finite(what: str, fine: Tensor) -> None:
    if not bool(fine.all()):
        raise SpaceError(f"{what} holds values that are not finite; its training must have gone wrong.")


def _check_there(name: str, value: Tensor) -> None:
    """Refuse a tensor that has no numbers yet."""
    if is_lazy(value):
        raise SpaceError(
            f"{name} has no size yet: a lazy layer that was never run has no weights. Run the model once on an image, and "
            "load the weights it was trained to."
        )
    if value.is_meta:
        raise SpaceError(
            f"{name} is on the device 'meta', which keeps shapes and no numbers. Build the model without it "
            "(model.to_empty(device='cpu') makes room), and load the weights it was trained to."
        )


def _on_cpu(module: nn.Module) -> nn.Module:
    """The module, or a copy of it where some of it is on another device."""
    tensors = (*module.parameters(), *module.buffers())
    return module if all(value.device.type == "cpu" for value in tensors) else copy.deepcopy(module).cpu()


@torch.no_grad()
def _check_runs(module: nn.Module, image: tuple[int, int, int]) -> None:
    """Refuse a model that cannot take these images, or gives something else than a row of logits for each."""
    try:
        found = module(torch.zeros(2, *image))
    except Exception as error:
        raise SpaceError(_why_not_run(module, image, error)) from error
    if not isinstance(found, Tensor) or found.ndim != 2:
        kind = "no row of logits" if isinstance(found, Tensor) else f"a {type(found).__name__}"
        raise SpaceError(f"the model gives {kind} for an image; it must give logits (n, classes) alone.")


def _why_not_run(module: nn.Module, image: tuple[int, int, int], error: Exception) -> str:
    """What a model that failed is told: other channels first, as any other advice would be wrong then."""
    taken = input_channels(module)
    if taken not in (None, image[0]):
        return (
            f"the model takes {taken} channel{'' if taken == 1 else 's'}, the images have {image[0]}: give images with as "
            "many as it takes (a folder is read so; a grey array can be repeated for each channel), or a model for these."
        )
    advice = (
        "It must take images alone"
        if isinstance(error, TypeError)
        else "Give the size it was trained with: --size for images of a folder; arrays must have it"
    )
    return f"the model cannot run on images of {' x '.join(map(str, image))}: {_reason(error)}. {advice}."


def input_channels(module: nn.Module) -> int | None:
    """Channels that the first convolution takes; None where there is none."""
    first = next((layer for layer in module.modules() if isinstance(layer, nn.Conv2d)), None)
    return None if first is None else first.in_channels


def _written(module: nn.Module, image: tuple[int, int, int]) -> Traced:
    follower = Follower(image)
    try:
        graph = follower.trace(module)
    except SpaceError:
        raise
    except Exception as error:
        raise SpaceError(
            f"the model cannot be followed: in {follower.named(follower.inside[-1])}: {_reason(error)}. Its calls must be "
            "those of torch, on tensors; rewrite that part with such calls alone."
        ) from error
    return _Writer(follower).write(graph)


def _reason(error: Exception) -> str:
    return " ".join(str(error).split())[:200] or type(error).__name__


def _compare(module: nn.Module, traced: Traced, image: tuple[int, int, int], tolerance: float) -> None:
    """Refuse a graph whose logits are not those of the module."""
    images = torch.randn(2, *image, generator=torch.Generator().manual_seed(0))
    expected, found = module(images), _run(traced, images)
    if not bool(expected.isfinite().all()):
        raise SpaceError(
            "the model gives logits that are not finite for random images; its training must have gone wrong, or a layer "
            "divides by nothing."
        )
    apart = float((expected - found).abs().max() / max(1.0, float(expected.abs().max())))
    if not apart <= tolerance:
        raise SpaceError(
            f"the model was followed, but what was written down gives other logits (largest difference {apart:.2g}, allowed "
            f"{tolerance:g}), so it is not used. A part with a state of its own, or an attention of an unusual kind, "
            f"may be why."
        )


def _run(traced: Traced, images: Tensor) -> Tensor:
    """The logits of what was written down."""
    try:
        found: Tensor = traced.build()(images)
    except Exception as error:
        raise SpaceError(
            f"the model was followed, but what was written down cannot be run: {_reason(error)}. A layer or call of an "
            "unusual kind (such as return_indices=True) may be why."
        ) from error
    return found


class _Writer:
    """Writes the nodes of fx as nodes of ours."""

    def __init__(self, follower: Follower) -> None:
        self.follower, self.module = follower, follower.root
        self.names: dict[str, str] = {}  # of fx to ours, where a node is only passed on
        self.nodes: list[Node] = []
        self.weights: dict[str, Tensor] = {}
        self.used: dict[int, str] = {}  # which layer has a weight, by where its numbers are

    def write(self, graph: fx.Graph) -> Traced:
        """All nodes that the logits are computed from."""
        *nodes, last = _needed(graph)
        for node in nodes:
            self._visit(node)
        found = Graph(_kept(self.nodes, self.names[last.all_input_nodes[0].name]))
        self._check_places(found)
        kept = {node.name for node in found.nodes}
        return Traced(
            found, {name: value for name, value in self.weights.items() if name.split(".")[0] in kept}
        )

    def _visit(self, node: fx.Node) -> None:
        if node.op == "placeholder":
            self._add(node, INPUT, (), {})
        elif node.op == "call_module":
            path = str(node.target)
            self._layer(node, path, self.follower.attentions.get(path) or self.module.get_submodule(path))
        elif node.op in ("call_function", "call_method"):
            self._function(node)

    def _add(
        self, node: fx.Node, op: str, reads: tuple[str, ...], options: Mapping[str, Any], path: str = ""
    ) -> None:
        """One node of ours; one whose first axis is not the images says so."""
        shape = node.meta["shape"]
        rows = {} if node.meta["rows"] or not shape else {"rows": False}
        self._append(Node(node.name, op, reads, tuple(sorted({**options, **rows}.items())), shape, path))

    def _append(self, node: Node) -> None:
        self.nodes.append(node)
        self.names[node.name] = node.name

    def _pass(self, node: fx.Node, source: fx.Node) -> None:
        """A node that gives on what it reads, so that a connection of nn.Identity() is seen to be one."""
        self.names[node.name] = self._name_of(source)

    def _read(self, nodes: Iterable[fx.Node]) -> tuple[str, ...]:
        return tuple(self._name_of(item) for item in nodes)

    def _name_of(self, node: fx.Node) -> str:
        if node.name not in self.names and node.op == "get_attr":
            self._parameter(node, str(node.target))
        return self.names[node.name]

    def _parameter(self, node: fx.Node, path: str) -> None:
        """A tensor of weights that takes part by itself."""
        value = operator.attrgetter(path)(self.module)
        if value.dtype != torch.float32:
            raise SpaceError(
                f"the tensor {path!r} holds {str(value.dtype).removeprefix('torch.')}, and only weights (float32) can be "
                "written down; rewrite that part without looking things up in a table."
            )
        if isinstance(value, nn.Parameter):
            self._claim({"value": value}, path)
        self._append(
            Node(node.name, "parameter", (), (("shape", tuple(value.shape)),), tuple(value.shape), path)
        )
        self.weights[f"{node.name}.value"] = value.detach().clone()

    def _claim(self, weights: Mapping[str, Tensor], path: str) -> None:
        """Refuse weights that another layer has, or the same layer at another place."""
        for name, value in weights.items():
            other = self.used.get(value.data_ptr()) if value.numel() else None
            if other == path:
                raise SpaceError(
                    f"the layer {path!r} is called twice, so its weights are shared between two places; such a network "
                    "cannot be narrowed block by block."
                )
            if other is not None:
                raise SpaceError(
                    f"{other!r} and {path!r} share one tensor of weights ({name}); such a network cannot be narrowed block "
                    "by block. Give each its own copy."
                )
            self.used[value.data_ptr()] = path

    def _layer(self, node: fx.Node, path: str, module: nn.Module) -> None:
        """A layer of torch, or a function that is one."""
        found = layer_call(module)
        if isinstance(found, str):
            raise SpaceError(
                f"the layer {self.follower.named(path)} is not one that can be written down: {found}."
            )
        op, options, weights = found
        source = node.all_input_nodes[0]
        if op == "identity":
            self._pass(node, source)
            return
        original = self.module.get_submodule(path) if isinstance(module, Attention) else module
        self._claim({name: value for name, value in original.state_dict().items() if value.ndim}, path)
        reads = self._read([source])
        if op == "conv":
            reads = self._padded(node, options, reads, path)
        elif op == "prelu":
            reads = (*reads, self._slopes(node, weights.pop("weight"), path))
        for name, value in weights.items():
            self.weights[f"{node.name}.{name}"] = value.detach().clone()
        self._add(node, op, reads, options, path)

    def _slopes(self, node: fx.Node, weight: Tensor, path: str) -> str:
        """The parameter that a PReLU reads: a slope for each channel, so that it is narrowed with them.

        One slope for all becomes one for each: the same, and can be trained.
        """
        channels, *rest = node.all_input_nodes[0].meta["shape"]
        value = weight.detach().expand(channels).reshape(channels, *(1 for _ in rest)).clone()
        name, shape = f"{node.name}_slopes", tuple(value.shape)
        self._append(Node(name, "parameter", (), (("shape", shape),), shape, path))
        self.weights[f"{name}.value"] = value
        return name

    def _padded(
        self, node: fx.Node, options: dict[str, Any], reads: tuple[str, ...], path: str
    ) -> tuple[str, ...]:
        """What a convolution reads; another node pads it where the sides differ."""
        padding = options["padding"]
        if len(padding) != 4:
            return reads
        options["padding"] = (0, 0)
        name, before = f"{node.name}.pad", node.all_input_nodes[0].meta["shape"]
        left, right, top, bottom = padding
        shape = (before[0], before[1] + top + bottom, before[2] + left + right)
        self._append(Node(name, "pad", reads, (("padding", padding), ("value", 0.0)), shape, path))
        return (name,)

    def _function(self, node: fx.Node) -> None:
        """A function of torch, a method of a tensor, or arithmetic."""
        name, weights = call_name(node.target), weights_of_call(node)
        if (source := self._passed_on(node)) is not None and not name.startswith("dropout"):
            self._pass(node, source)
        elif node.meta["count"] and (source := _images_of(node)) is not None:
            self._add(node, "size", self._read([source]), {"dim": 0})
        elif weights is not None:
            self._functional(node, weights)
        else:
            op, options = function_call(node) or self._refuse(
                node, f"Rewrite that part with layers of torch and the calls that are known: {known_calls()}"
            )
            self._add(node, op, self._read(inputs_of(node)), options)

    def _passed_on(self, node: fx.Node) -> fx.Node | None:
        """What a call gives back as it was, or takes out of the pair that torch's attention gives."""
        first: Any = node.args[0] if node.args else None
        if call_name(node.target) == "getitem" and first.op == "call_module" and node.args[1] == 0:
            module = self.module.get_submodule(str(first.target))
            return first if isinstance(module, nn.MultiheadAttention) else None
        same: fx.Node | None = node.meta["same"]
        return same

    def _functional(self, node: fx.Node, weights: dict[str, fx.Node]) -> None:
        """A function of torch that is given the weights of a layer."""
        for name, item in weights.items():
            if item.op != "get_attr":
                self._refuse(
                    node, f"Its {name} is computed, and only a tensor of weights as it is can be narrowed"
                )
        values = {name: operator.attrgetter(str(item.target))(self.module) for name, item in weights.items()}
        self._layer(node, node.meta["where"], functional_layer(node, values))

    def _refuse(self, node: fx.Node, why: str) -> NoReturn:
        name = call_name(node.target)
        name = str(node.args[1]) if name == "getattr" else name
        raise SpaceError(
            f"{self.follower.named(node.meta['where'])} calls {name!r} in a way that cannot be written down. {why}."
        )

    def _check_places(self, graph: Graph) -> None:
        """Refuse a parameter that is read in two blocks, as it would be narrowed or removed with one of them."""
        where = {node.name: k for k, (_, nodes) in enumerate(pieces(graph)) for node in nodes}
        for node in graph.nodes:
            readers = graph.readers[node.name] if node.op == "parameter" else []
            if len({where.get(name) for name in readers}) > 1:
                raise SpaceError(
                    f"the weights {node.path!r} are used in {len(readers)} places; such a network cannot be narrowed block "
                    "by block. Give each place its own copy."
                )


def _needed(graph: fx.Graph) -> list[fx.Node]:
    """Nodes in order that the result, or the image, depends on."""
    wanted: set[fx.Node] = set()
    for node in reversed(graph.nodes):
        if node in wanted or node.op in ("placeholder", "output"):
            wanted |= {node, *node.all_input_nodes}
    return [node for node in graph.nodes if node in wanted]


def _kept(nodes: Sequence[Node], last: str) -> tuple[Node, ...]:
    """Nodes up to the last that it depends on."""
    wanted = {last, nodes[0].name}
    for node in reversed(nodes):
        if node.name in wanted:
            wanted |= set(node.reads)
    return tuple(node for node in nodes if node.name in wanted)


def _images_of(node: fx.Node) -> fx.Node | None:
    """The tensor whose number of images a number is."""
    source: Any = node
    while isinstance(source, fx.Node) and not source.meta.get("rows"):
        source = source.args[0] if source.args else None
    return source if isinstance(source, fx.Node) else None


__all__ = ["CLOSE", "Traced", "attention_of", "trace"]
