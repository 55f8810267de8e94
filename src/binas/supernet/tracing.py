"""A module of any user as a graph: traced, written down as plain operations, and held against the module itself.

``torch.fx`` follows the calls of a module once. What it cannot follow (decisions that depend on the images, a module with
weights that is called twice) is answered with the name of the module and the reason. Attention is recognised by its parts
(a layer that makes queries, keys and values, and one that puts heads together) and believed only because the logits of the
graph are compared with the module's.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, fx, nn

from binas.base.errors import SpaceError
from binas.space.graphs import INPUT, Graph, Node
from binas.supernet.graph_layers import READ, Attention, Piece, whole

CLOSE = 1e-4  # largest difference of logits, as a share of the largest logit where that is above 1
SKIPPED = (
    "DropPath",
    "StochasticDepth",
    "DropBlock",
)  # only act while training, on blocks that may vanish anyway


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

    The module is left as it was, and is looked at in eval mode.
    """
    was_training, module = module.training, module.eval()
    try:
        _check_weights(module)
        _check_runs(module, image)
        traced = _written(module, image)
        _compare(module, traced, image, tolerance)
    finally:
        module.train(was_training)
    return traced


def _check_weights(module: nn.Module) -> None:
    """Refuse weights of other precision than float32, and those that are not finite."""
    for name, value in module.named_parameters():
        if value.dtype != torch.float32:
            raise SpaceError(
                f"the weight {name} is {str(value.dtype).removeprefix('torch.')}; call .float() on the model first, as "
                f"it is "
                "trained further here."
            )
        if not bool(value.isfinite().all()):
            raise SpaceError(
                f"the weight {name} holds values that are not finite; its training must have gone wrong."
            )


@torch.no_grad()
def _check_runs(module: nn.Module, image: tuple[int, int, int]) -> None:
    """Refuse a model that cannot take these images, or gives something else than a row of logits for each."""
    try:
        found = module(torch.zeros(2, *image))
    except Exception as error:
        size = " x ".join(map(str, image))
        raise SpaceError(
            f"the model cannot run on images of {size}: {_reason(error)}. Give the size it was trained with (data.size)."
        ) from error
    if not isinstance(found, Tensor) or found.ndim != 2:
        kind = "no row of logits" if isinstance(found, Tensor) else f"a {type(found).__name__}"
        raise SpaceError(f"the model gives {kind} for an image; it must give logits (n, classes) alone.")


class _Tracer(fx.Tracer):
    """Remembers which module is being followed, so that an error can name it."""

    def __init__(self, attentions: Mapping[str, Attention]) -> None:
        super().__init__()
        self.attentions = attentions
        self.inside: list[str] = []

    def is_leaf_module(self, m: nn.Module, module_qualified_name: str) -> bool:
        """Layers of torch, attention and what only acts while training are not looked into."""
        if type(m).__name__ in SKIPPED or module_qualified_name in self.attentions:
            return True
        return super().is_leaf_module(m, module_qualified_name)

    def call_module(
        self, m: nn.Module, forward: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> Any:
        """Follow a module, knowing its name."""
        self.inside.append(self.path_of_module(m))
        result = super().call_module(m, forward, args, kwargs)
        self.inside.pop()
        return result


def _written(module: nn.Module, image: tuple[int, int, int]) -> Traced:
    known = ((name, attention_of(item)) for name, item in module.named_modules())
    attentions = {name: made for name, made in known if made is not None}
    tracer = _Tracer(attentions)
    try:
        graph = tracer.trace(module)
    except Exception as error:
        where = tracer.inside[-1] if tracer.inside else type(module).__name__
        raise SpaceError(
            f"the model cannot be followed: in {where!r}: {_reason(error)}. Decisions that depend on the images cannot "
            f"be part "
            "of a network that is searched; rewrite that part without them."
        ) from error
    with torch.no_grad():
        return _Writer(module, image, attentions).write(graph)


def _reason(error: Exception) -> str:
    return " ".join(str(error).split())[:200] or type(error).__name__


def _compare(module: nn.Module, traced: Traced, image: tuple[int, int, int], tolerance: float) -> None:
    """Refuse a graph whose logits are not those of the module."""
    images = torch.randn(2, *image, generator=torch.Generator().manual_seed(0))
    with torch.no_grad():
        expected, found = module(images), traced.build()(images)
    apart = float((expected - found).abs().max() / max(1.0, float(expected.abs().max())))
    if not apart <= tolerance:
        raise SpaceError(
            f"the model was followed, but what was written down gives other logits (largest difference {apart:.2g}, allowed "
            f"{tolerance:g}), so it is not used. A part with a state of its own, or an attention of an unusual kind, "
            f"may be why."
        )


class _Writer:
    """Writes the nodes of fx as nodes of ours, running them on one image to know the shapes."""

    def __init__(
        self, module: nn.Module, image: tuple[int, int, int], attentions: Mapping[str, Attention]
    ) -> None:
        self.modules = {**dict(module.named_modules()), **attentions}
        self.attentions = attentions
        self.module = module
        self.values: dict[str, Any] = {}
        self.names: dict[str, str] = {}  # of fx to ours, where a node is only passed on
        self.nodes: list[Node] = []
        self.weights: dict[str, Tensor] = {}
        self.used: dict[str, str] = {}
        self.image = torch.zeros(2, *image)

    def write(self, graph: fx.Graph) -> Traced:
        """All nodes."""
        for node in graph.nodes:
            self._visit(node)
        return Traced(Graph(tuple(self.nodes)), self.weights)

    def _visit(self, node: fx.Node) -> None:
        if node.op == "placeholder":
            if self.nodes:
                raise SpaceError(
                    f"the model takes {node.name!r} beside images; wrap it in a module that takes images alone."
                )
            self._add(node.name, INPUT, (), {}, self.image)
        elif node.op == "get_attr":
            value = operator.attrgetter(str(node.target))(self.module)
            self._add(node.name, "parameter", (), {"shape": tuple(value.shape)}, value, str(node.target))
            self.weights[f"{node.name}.value"] = value.detach().clone()
        elif node.op == "call_module":
            self._module(node, str(node.target), self.modules[str(node.target)])
        elif node.op in ("call_function", "call_method"):
            self._function(node)
        elif node.op == "output":
            self._output(node)

    def _output(self, node: fx.Node) -> None:
        result = node.args[0]
        assert isinstance(result, fx.Node)  # a tensor, as was checked
        last = self.names[result.name]
        place = next(k for k, item in enumerate(self.nodes) if item.name == last)
        self.nodes = self.nodes[: place + 1]

    def _add(
        self,
        name: str,
        op: str,
        reads: tuple[str, ...],
        options: Mapping[str, Any],
        value: Any,
        path: str = "",
    ) -> None:
        shape = tuple(value.shape[1:]) if isinstance(value, Tensor) and op != "parameter" else ()
        shape = tuple(value.shape) if op == "parameter" else shape
        self.nodes.append(Node(name, op, reads, tuple(sorted(options.items())), shape, path))
        self.values[name], self.names[name] = value, name

    def _read(self, node: fx.Node) -> tuple[str, ...]:
        return tuple(self.names[item.name] for item in node.all_input_nodes)

    def _module(self, node: fx.Node, path: str, module: nn.Module) -> None:
        """A layer of torch."""
        first = node.all_input_nodes[0]
        read, source = self.values[first.name], (self.names[first.name],)
        found = _layer(module, read)
        if found is None:
            raise SpaceError(
                f"the layer {path!r} ({type(module).__name__}) is not one that can be written down; known are "
                f"convolutions, linear "
                "layers, norms, attention, pooling and the usual activations."
            )
        op, options, weights = found
        if (
            op == "identity"
        ):  # passed on, so that a block whose connection is nn.Identity() is seen to have one
            self.names[node.name], self.values[node.name] = source[0], read
            return
        if weights:
            if path in self.used:
                raise SpaceError(
                    f"the layer {path!r} is called twice, so its weights are shared between two places; such a network "
                    f"cannot be "
                    "narrowed block by block."
                )
            self.used[path] = node.name
        for name, value in weights.items():
            self.weights[f"{node.name}.{name}"] = value.detach().clone()
        self._add(node.name, op, source, options, module(read), path)

    def _function(self, node: fx.Node) -> None:
        """A function of torch, a method of a tensor, or arithmetic."""
        first = node.args[0] if node.args else None
        if node.target is operator.getitem and isinstance(first, fx.Node) and self._is_pair(first):
            self.names[node.name], self.values[node.name] = self.names[first.name], self.values[first.name]
            return
        value = self._evaluate(node)
        found = _operation(node, [self.values[item.name] for item in node.all_input_nodes], value)
        if found is None:
            where = node.meta.get("stack_trace", "") or str(node.target)
            raise SpaceError(
                f"the model calls {_name(node.target)!r}, which cannot be written down (near {_reason(Exception(where))})."
            )
        op, options = found
        self._add(node.name, op, self._read(node), options, value)

    def _is_pair(self, node: fx.Node) -> bool:
        """Whether a node is torch's attention, which gives its result together with weights that nobody reads."""
        return node.op == "call_module" and isinstance(
            operator.attrgetter(str(node.target))(self.module), nn.MultiheadAttention
        )

    def _evaluate(self, node: fx.Node) -> Any:
        def filled(item: Any) -> Any:
            return fx.node.map_arg(item, lambda arg: self.values[arg.name])

        args, kwargs = filled(node.args), filled(node.kwargs)
        if node.op == "call_method":
            return getattr(args[0], str(node.target))(*args[1:], **kwargs)
        assert callable(node.target)
        return node.target(*args, **kwargs)


def attention_of(module: nn.Module) -> Attention | None:
    """The attention of a module that has the parts of one: torch's own, or ``qkv``, ``proj`` and a number of heads."""
    if isinstance(module, nn.MultiheadAttention):
        return _of_torch(module)
    qkv, proj = getattr(module, "qkv", None), getattr(module, "proj", getattr(module, "out", None))
    heads = getattr(module, "num_heads", getattr(module, "heads", None))
    if not (isinstance(qkv, nn.Linear) and isinstance(proj, nn.Linear) and isinstance(heads, int)):
        return None
    known = [
        item
        for item in module.modules()
        if not list(item.children()) and next(item.parameters(), None) is not None
    ]
    if (
        set(known) != {qkv, proj}
        or qkv.out_features != 3 * proj.in_features
        or (qkv.bias is None) != (proj.bias is None)
    ):
        return None
    made = Attention(qkv.in_features, heads, proj.in_features // heads, qkv.bias is not None)
    made.qkv.load_state_dict(qkv.state_dict())
    made.out.load_state_dict(proj.state_dict())
    return made


def _of_torch(module: nn.MultiheadAttention) -> Attention | None:
    if not module.batch_first or module.in_proj_weight is None or module.bias_k is not None:
        return None
    bias = module.in_proj_bias is not None
    made = Attention(module.embed_dim, module.num_heads, module.head_dim, bias)
    state = {"qkv.weight": module.in_proj_weight, "out.weight": module.out_proj.weight}
    if bias:
        state |= {"qkv.bias": module.in_proj_bias, "out.bias": module.out_proj.bias}
    made.load_state_dict(state)
    return made


Found = tuple[str, dict[str, Any], dict[str, Tensor]]


def _layer(module: nn.Module, read: Any) -> Found | None:
    """The operation of a layer, its settings and its weights."""
    weights = dict(module.state_dict())
    about: dict[str, Any]
    sizes: dict[str, Any]
    if isinstance(module, Attention):
        sizes = {"inputs": module.qkv.in_features, "heads": module.heads, "width": module.width}
        return "attention", {**sizes, "bias": module.qkv.bias is not None}, weights
    if (
        isinstance(module, nn.Conv2d)
        and module.padding_mode == "zeros"
        and not isinstance(module.padding, str)
    ):
        names = ("kernel_size", "stride", "padding", "dilation")
        sizes = {name.removesuffix("_size"): tuple(getattr(module, name)) for name in names}
        about = {"inputs": module.in_channels, "outputs": module.out_channels, "groups": module.groups}
        return "conv", {**sizes, **about, "bias": module.bias is not None}, weights
    if isinstance(module, nn.Linear):
        about = {"inputs": module.in_features, "outputs": module.out_features}
        return "linear", {**about, "bias": module.bias is not None}, weights
    if isinstance(module, nn.BatchNorm2d | nn.BatchNorm1d):
        about = {"channels": module.num_features, "eps": module.eps, "momentum": module.momentum}
        return "batch_norm", {**about, "affine": module.affine}, weights
    if isinstance(module, nn.LayerNorm):
        about = {"shape": tuple(module.normalized_shape), "eps": module.eps}
        return "layer_norm", {**about, "affine": module.elementwise_affine}, weights
    if isinstance(module, nn.GroupNorm):
        about = {"groups": module.num_groups, "channels": module.num_channels, "eps": module.eps}
        return "group_norm", {**about, "affine": module.affine}, weights
    if type(module).__name__ in SKIPPED:
        return "identity", {}, {}
    found = _WITHOUT_WEIGHTS.get(type(module))
    return None if found is None else (*found(module), {})


def _pair(value: Any) -> Any:
    return tuple(value) if isinstance(value, list | tuple) else (value, value)


_WITHOUT_WEIGHTS: dict[type[nn.Module], Callable[[Any], tuple[str, dict[str, Any]]]] = {
    nn.ReLU: lambda m: ("relu", {}),
    nn.ReLU6: lambda m: ("relu6", {}),
    nn.LeakyReLU: lambda m: ("leaky_relu", {"slope": m.negative_slope}),
    nn.ELU: lambda m: ("elu", {"alpha": m.alpha}),
    nn.GELU: lambda m: ("gelu", {"approximate": m.approximate}),
    nn.SiLU: lambda m: ("silu", {}),
    nn.Hardswish: lambda m: ("hardswish", {}),
    nn.Hardsigmoid: lambda m: ("hardsigmoid", {}),
    nn.Sigmoid: lambda m: ("sigmoid", {}),
    nn.Tanh: lambda m: ("tanh", {}),
    nn.Identity: lambda m: ("identity", {}),
    nn.Dropout: lambda m: ("dropout", {"p": m.p}),
    nn.Dropout2d: lambda m: ("dropout", {"p": m.p}),
    nn.Flatten: lambda m: ("flatten", {"start": m.start_dim, "end": m.end_dim}),
    nn.AdaptiveAvgPool2d: lambda m: ("adaptive_avg_pool", {"size": _pair(m.output_size)}),
    nn.AvgPool2d: lambda m: (
        "avg_pool",
        {"kernel": m.kernel_size, "stride": m.stride, "padding": m.padding, "ceil": m.ceil_mode},
    ),
    nn.MaxPool2d: lambda m: (
        "max_pool",
        {
            "kernel": m.kernel_size,
            "stride": m.stride,
            "padding": m.padding,
            "dilation": m.dilation,
            "ceil": m.ceil_mode,
        },
    ),
    nn.ZeroPad2d: lambda m: ("pad", {"padding": tuple(m.padding), "value": 0.0}),
}

_PLAIN = {
    "relu": "relu",
    "relu_": "relu",
    "relu6": "relu6",
    "silu": "silu",
    "gelu": "gelu",
    "hardswish": "hardswish",
    "hardsigmoid": "hardsigmoid",
    "sigmoid": "sigmoid",
    "tanh": "tanh",
    "contiguous": "contiguous",
    "matmul": "matmul",
}
_BINARY = {
    "add": "add",
    "iadd": "add",
    "add_": "add",
    "sub": "sub",
    "mul": "mul",
    "imul": "mul",
    "mul_": "mul",
}
_BINARY |= {"truediv": "div", "div": "div", "floordiv": "floordiv"}


def _name(target: Any) -> str:
    return target if isinstance(target, str) else getattr(target, "__name__", str(target))


def _operation(node: fx.Node, read: list[Any], value: Any) -> tuple[str, dict[str, Any]] | None:
    """The operation of a call, and its settings in the terms of ours."""
    name = _name(node.target)
    if name in _PLAIN:
        return _PLAIN[name], {"approximate": node.kwargs.get("approximate", "none")} if name == "gelu" else {}
    if name in _BINARY:
        return _binary(_BINARY[name], node)
    made = _CALLS.get(name)
    return None if made is None else made(node, read)


def _binary(op: str, node: fx.Node) -> tuple[str, dict[str, Any]] | None:
    one, two = (*node.args, *node.kwargs.values())[:2]
    both = isinstance(one, fx.Node) and isinstance(two, fx.Node)
    if both and one is not two:
        return op, {}
    if both:
        return None
    constant, first = (two, False) if isinstance(one, fx.Node) else (one, True)
    return (op, {"other": constant, "first": first}) if isinstance(constant, int | float) else None


def _given(node: fx.Node, place: int, name: str, default: Any = None) -> Any:
    return node.args[place] if len(node.args) > place else node.kwargs.get(name, default)


def _rest(node: fx.Node) -> tuple[Any, ...]:
    """What follows the tensor: numbers one by one, or all in one list."""
    rest = node.args[1:]
    return (
        tuple(rest[0]) if len(rest) == 1 and isinstance(rest[0], list | tuple | torch.Size) else tuple(rest)
    )


def _with_reads(node: fx.Node, values: tuple[Any, ...]) -> tuple[Any, ...]:
    names = list(node.all_input_nodes)
    return tuple(f"{READ}{names.index(item)}" if isinstance(item, fx.Node) else item for item in values)


def _dims(value: Any) -> tuple[int, ...]:
    return tuple(value) if isinstance(value, list | tuple) else (int(value),)


def _plain_index(index: Any) -> Any:
    if isinstance(index, slice):
        return ("slice", index.start, index.stop, index.step)
    return tuple(_plain_index(item) for item in index) if isinstance(index, tuple) else index


def _size(node: fx.Node, read: list[Any]) -> tuple[str, dict[str, Any]] | None:
    if _name(node.target) == "getattr":
        return ("size", {"dim": None}) if node.args[1] == "shape" else None
    return "size", {"dim": _given(node, 1, "dim")}


_CALLS: dict[str, Callable[[fx.Node, list[Any]], tuple[str, dict[str, Any]] | None]] = {
    "flatten": lambda node, _: (
        "flatten",
        {"start": _given(node, 1, "start_dim", 0), "end": _given(node, 2, "end_dim", -1)},
    ),
    "reshape": lambda node, _: ("reshape", {"dims": _with_reads(node, _rest(node))}),
    "view": lambda node, _: ("reshape", {"dims": _with_reads(node, _rest(node))}),
    "expand": lambda node, _: ("expand", {"dims": _with_reads(node, _rest(node))}),
    "permute": lambda node, _: ("permute", {"dims": _rest(node)}),
    "transpose": lambda node, _: ("transpose", {"dims": tuple(node.args[1:3])}),
    "unsqueeze": lambda node, _: ("unsqueeze", {"dim": _given(node, 1, "dim")}),
    "squeeze": lambda node, _: ("squeeze", {"dims": _dims(node.args[1]) if len(node.args) > 1 else ()}),
    "mean": lambda node, _: (
        "mean",
        {"dims": _dims(_given(node, 1, "dim")), "keep": bool(_given(node, 2, "keepdim", False))},
    ),
    "softmax": lambda node, _: ("softmax", {"dim": _given(node, 1, "dim", -1)}),
    "dropout": lambda node, _: ("dropout", {"p": _given(node, 1, "p", 0.5)}),
    "adaptive_avg_pool2d": lambda node, _: (
        "adaptive_avg_pool",
        {"size": _pair(_given(node, 1, "output_size"))},
    ),
    "avg_pool2d": lambda node, _: (
        "avg_pool",
        {
            "kernel": _given(node, 1, "kernel_size"),
            "stride": _given(node, 2, "stride") or _given(node, 1, "kernel_size"),
            "padding": _given(node, 3, "padding", 0),
            "ceil": bool(_given(node, 4, "ceil_mode", False)),
        },
    ),
    "max_pool2d": lambda node, _: (
        "max_pool",
        {
            "kernel": _given(node, 1, "kernel_size"),
            "stride": _given(node, 2, "stride") or _given(node, 1, "kernel_size"),
            "padding": _given(node, 3, "padding", 0),
            "dilation": _given(node, 4, "dilation", 1),
            "ceil": bool(_given(node, 5, "ceil_mode", False)),
        },
    ),
    "boolean_dispatch": lambda node, read: _CALLS["max_pool2d"](node, read),
    "pad": lambda node, _: (
        "pad",
        {"padding": tuple(_given(node, 1, "pad")), "value": _given(node, 3, "value", 0.0) or 0.0},
    ),
    "cat": lambda node, _: (
        "cat",
        {"parts": _with_reads(node, tuple(node.args[0])), "dim": _given(node, 1, "dim", 0)},  # type: ignore[arg-type]
    ),
    "getitem": lambda node, _: ("getitem", {"index": _plain_index(node.args[1])}),
    "getattr": _size,
    "size": _size,
}

__all__ = ["CLOSE", "Traced", "attention_of", "trace"]
