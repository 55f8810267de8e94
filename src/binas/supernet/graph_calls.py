"""Layers and functions of torch in the terms of graphs: the operation, its settings, its weights."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, fx, nn

from binas.supernet.graph_kinds import FUNCTIONS, LAYERS, dims_of, pair
from binas.supernet.graph_layers import COUNT, READ, Attention
from binas.supernet.graph_tracer import SKIPPED, call_name

Call = tuple[str, dict[str, Any]]
Layer = tuple[str, dict[str, Any], dict[str, Tensor]]
_WEIGHTS = {"weight", "bias", "running_mean", "running_var", "num_batches_tracked"}


def layer_call(module: nn.Module) -> Layer | str:
    """The operation of a layer, its settings and its weights; or why it has none."""
    if isinstance(module, Attention):
        sizes = {"inputs": module.qkv.in_features, "heads": module.heads, "width": module.width}
        return "attention", {**sizes, "bias": module.qkv.bias is not None}, dict(module.state_dict())
    if type(module).__name__ in SKIPPED:
        return "identity", {}, {}
    plain = LAYERS.get(type(module))
    if plain is not None:
        return plain.op, plain.read(lambda place, name, default: getattr(module, name, default)), {}
    why = _why_not(module)
    return why or _with_weights(module)


def _why_not(module: nn.Module) -> str:
    """What is unusual about a layer of a usual kind."""
    if isinstance(module, nn.MultiheadAttention):
        return "only self-attention is known: batch_first=True, one tensor as query, key and value, without masks"
    if isinstance(module, nn.Conv2d) and module.padding_mode != "zeros":
        return f"padding_mode={module.padding_mode!r} is not known, only 'zeros' is"
    if isinstance(module, _BatchNorm) and module.running_mean is None:
        return "it has no running statistics (track_running_stats=False)"
    if not any(isinstance(module, kind) for kind in _KINDS):
        return f"known are {known_layers()}"
    others = sorted(set(module.state_dict()) - _WEIGHTS)
    return (
        f"its weights are computed from {', '.join(others)}; take such a parametrization off first"
        if others
        else ""
    )


def _with_weights(module: nn.Module) -> Layer:
    kind = next(kind for kind in _KINDS if isinstance(module, kind))
    op, options = _KINDS[kind](module)
    weights = dict(module.state_dict())
    if "weight" in weights and "bias" not in weights and op == "layer_norm":
        weights["bias"] = torch.zeros_like(weights["weight"])  # the same, and can be trained
    return op, options, weights


def _conv(module: nn.Conv2d) -> Call:
    sizes = {name: pair(getattr(module, name)) for name in ("stride", "dilation")}
    about = {"inputs": module.in_channels, "outputs": module.out_channels, "groups": module.groups}
    padding = _conv_padding(module)
    return "conv", {
        **sizes,
        **about,
        "kernel": pair(module.kernel_size),
        "padding": padding,
        "bias": module.bias is not None,
    }


def _conv_padding(module: nn.Conv2d) -> Any:
    """(rows, columns) on both sides; as (left, right, top, bottom) where sides differ."""
    if not isinstance(module.padding, str):
        return pair(module.padding)
    if module.padding == "valid":
        return (0, 0)
    totals = [
        step * (size - 1) for step, size in zip(pair(module.dilation), pair(module.kernel_size), strict=True)
    ]
    (top, bottom), (left, right) = ((total // 2, total - total // 2) for total in totals)
    return (top, left) if (top, left) == (bottom, right) else (left, right, top, bottom)


_KINDS: dict[type[nn.Module], Callable[[Any], Call]] = {
    nn.Conv2d: _conv,
    nn.Linear: lambda m: (
        "linear",
        {"inputs": m.in_features, "outputs": m.out_features, "bias": m.bias is not None},
    ),
    nn.BatchNorm2d: lambda m: _batch_norm(m),
    nn.BatchNorm1d: lambda m: _batch_norm(m),
    nn.SyncBatchNorm: lambda m: _batch_norm(m),  # one machine alone: as any other
    nn.LayerNorm: lambda m: (
        "layer_norm",
        {"shape": tuple(m.normalized_shape), "eps": m.eps, "affine": m.weight is not None},
    ),
    nn.GroupNorm: lambda m: (
        "group_norm",
        {"groups": m.num_groups, "channels": m.num_channels, "eps": m.eps, "affine": m.affine},
    ),
    nn.PReLU: lambda m: ("prelu", {}),
}
_BatchNorm = nn.BatchNorm1d | nn.BatchNorm2d | nn.SyncBatchNorm


def _batch_norm(module: _BatchNorm) -> Call:
    about = {"channels": module.num_features, "eps": module.eps, "momentum": module.momentum}
    return "batch_norm", {**about, "affine": module.affine}


# Functions that are a layer when they are given its weights, and how their arguments are called.
_FUNCTIONAL = {
    "conv2d": ("input", "weight", "bias", "stride", "padding", "dilation", "groups"),
    "linear": ("input", "weight", "bias"),
    "layer_norm": ("input", "normalized_shape", "weight", "bias", "eps"),
    "group_norm": ("input", "num_groups", "weight", "bias", "eps"),
    "prelu": ("input", "weight"),
    "batch_norm": (
        "input",
        "running_mean",
        "running_var",
        "weight",
        "bias",
        "training",
        "momentum",
        "eps",
    ),
}
_TENSORS = ("weight", "bias", "running_mean", "running_var")


def weights_of_call(node: fx.Node) -> dict[str, fx.Node] | None:
    """The weights that a function which is a layer is given; None of any other."""
    names = _FUNCTIONAL.get(call_name(node.target))
    given = None if names is None else _arguments(node, names)
    return (
        None if given is None else {name: item for name, item in given.items() if name in _TENSORS and item}
    )


def _arguments(node: fx.Node, names: tuple[str, ...]) -> dict[str, Any]:
    return {**dict(zip(names, node.args, strict=False)), **node.kwargs}


def functional_layer(node: fx.Node, weights: dict[str, Tensor]) -> nn.Module:
    """The layer that a function is with these weights."""
    name = call_name(node.target)
    given = _arguments(node, _FUNCTIONAL[name])
    with torch.device("meta"):
        made = _BUILT[name](given, weights)
    for key in _TENSORS:
        if key in ("running_mean", "running_var") and hasattr(made, key):
            setattr(made, key, weights.get(key))
        elif hasattr(made, key):
            setattr(made, key, nn.Parameter(weights[key]) if key in weights else None)
    if hasattr(made, "num_batches_tracked"):
        made.num_batches_tracked = torch.tensor(0)
    return made


_BUILT: dict[str, Callable[[dict[str, Any], dict[str, Tensor]], nn.Module]] = {
    "conv2d": lambda given, weights: _built_conv(given, weights["weight"]),
    "linear": lambda given, weights: nn.Linear(weights["weight"].shape[1], weights["weight"].shape[0]),
    "layer_norm": lambda given, weights: nn.LayerNorm(
        list(given["normalized_shape"]), given.get("eps", 1e-5), "weight" in weights
    ),
    "group_norm": lambda given, weights: nn.GroupNorm(
        given["num_groups"], _channels(given), given.get("eps", 1e-5), "weight" in weights
    ),
    "prelu": lambda given, weights: nn.PReLU(weights["weight"].numel()),
    "batch_norm": lambda given, weights: nn.BatchNorm2d(
        _channels(given), given.get("eps", 1e-5), given.get("momentum", 0.1) or 0.1, "weight" in weights
    ),
}


def _built_conv(given: dict[str, Any], weight: Tensor) -> nn.Module:
    groups = given.get("groups", 1)
    padding = given.get("padding", 0)
    sizes = pair(given.get("stride", 1)), padding if isinstance(padding, str) else pair(padding)
    dilation = pair(given.get("dilation", 1))
    kernel = (weight.shape[2], weight.shape[3])
    return nn.Conv2d(weight.shape[1] * groups, weight.shape[0], kernel, *sizes, dilation, groups)


def _channels(given: dict[str, Any]) -> int:
    return int(given["input"].meta["shape"][0])


_BINARY = {
    "add": "add",
    "iadd": "add",
    "sub": "sub",
    "isub": "sub",
    "mul": "mul",
    "imul": "mul",
    "truediv": "div",
    "itruediv": "div",
    "div": "div",
    "floordiv": "floordiv",
    "pow": "pow",
    "ipow": "pow",
}
_POWERS = {"square": 2, "sqrt": 0.5, "rsqrt": -0.5, "reciprocal": -1}
_PRODUCTS = ("matmul", "bmm")
_BY_DIMS = {"reshape": "reshape", "view": "reshape", "expand": "expand", "repeat": "repeat"}
_IN_ORDER = (*_BINARY, *_PRODUCTS, "addcmul", "scaled_dot_product_attention")  # may read one tensor twice


def _name(node: fx.Node) -> str:
    """A call by its name; what changes a tensor in place (``relu_``) is followed by whoever reads it later."""
    return call_name(node.target).rstrip("_")


def known_layers() -> str:
    """The layers that can be written down, as a list for people."""
    kinds = sorted(kind.__name__ for kind in (*_KINDS, *LAYERS, nn.MultiheadAttention))
    return ", ".join((*kinds, *SKIPPED))


def known_calls() -> str:
    """The functions, operators and methods of tensors that can be written down, as a list for people."""
    names = {*_FUNCTIONAL, *FUNCTIONS, *_BINARY, *_POWERS, *_PRODUCTS, *_BY_DIMS, *_CALLS} - {"getattr"}
    return ", ".join(sorted(name for name in names if name[1:] not in _BINARY))  # iadd is add


def inputs_of(node: fx.Node) -> list[fx.Node]:
    """What a call reads, in order; the number of images is known to whom reads images."""
    name = _name(node)
    if name in _IN_ORDER:
        return [item for item in (*node.args, *node.kwargs.values()) if isinstance(item, fx.Node)]
    found = list(node.all_input_nodes)
    if name in _BY_DIMS and found[0].meta["rows"]:
        return [item for item in found if not item.meta["count"]]
    return found


def function_call(node: fx.Node) -> Call | None:
    """The operation of a call, and its settings in the terms of ours; None where there is none."""
    try:
        found = _function_call(_name(node), node)
    except (TypeError, ValueError, IndexError, KeyError, AttributeError):
        return None  # called in a way that is not known
    return None if found is None or not _is_data(list(found[1].values())) else found


def _function_call(name: str, node: fx.Node) -> Call | None:
    if name in FUNCTIONS:
        kind = FUNCTIONS[name]
        return kind.op, kind.read(lambda place, key, default: _given(node, place, key, default))
    if name in _BINARY:
        return _binary(_BINARY[name], node)
    if name in _POWERS:
        return "pow", {"other": _POWERS[name], "first": False}
    if name in _PRODUCTS:
        return "matmul", {}
    if name in _BY_DIMS:
        return _BY_DIMS[name], {"dims": _with_reads(node, _rest(node))}
    made = _CALLS.get(name)
    return None if made is None else made(node)


def _is_data(value: Any) -> bool:
    """Whether a setting can be written down."""
    if isinstance(value, list | tuple):
        return all(map(_is_data, value))
    return (
        value is None
        or isinstance(value, bool | str)
        or (isinstance(value, int | float) and math.isfinite(value))
    )


def _binary(op: str, node: fx.Node) -> Call | None:
    one, two, *more = (*node.args, *node.kwargs.values())
    if more:  # alpha, rounding_mode
        return None
    if isinstance(one, fx.Node) and isinstance(two, fx.Node):
        return op, {}
    constant, first = (two, False) if isinstance(one, fx.Node) else (one, True)
    return (op, {"other": constant, "first": first}) if isinstance(constant, int | float) else None


def _given(node: fx.Node, place: int, name: str, default: Any = None) -> Any:
    return node.args[place] if len(node.args) > place else node.kwargs.get(name, default)


def _rest(node: fx.Node) -> tuple[Any, ...]:
    """What follows the tensor: numbers one by one, or all in one list."""
    rest = node.args[1:] or tuple(node.kwargs.values())
    return tuple(rest[0]) if len(rest) == 1 and isinstance(rest[0], list | tuple) else tuple(rest)


def _with_reads(node: fx.Node, values: tuple[Any, ...]) -> tuple[Any, ...]:
    names = inputs_of(node)

    def written(item: Any) -> Any:
        if not isinstance(item, fx.Node):
            return item
        return f"{READ}{names.index(item)}" if item in names else COUNT

    return tuple(map(written, values))


def _plain_index(index: Any) -> Any:
    if isinstance(index, slice):
        return ("slice", index.start, index.stop, index.step)
    if index is Ellipsis:
        return "..."
    if index is not None and not isinstance(index, int | tuple):
        raise TypeError("an index that is a tensor or a list")
    return tuple(_plain_index(item) for item in index) if isinstance(index, tuple) else index


def _size(node: fx.Node) -> Call | None:
    if call_name(node.target) == "getattr":
        return ("size", {"dim": None}) if node.args[1] == "shape" else None
    return "size", {"dim": _given(node, 1, "dim")}


def _pad(node: fx.Node) -> Call | None:
    if _given(node, 2, "mode", "constant") != "constant":
        return None
    return "pad", {"padding": tuple(_given(node, 1, "pad")), "value": _given(node, 3, "value", 0.0) or 0.0}


def _mixed(node: fx.Node) -> Call | None:
    """torch's attention of queries, keys and values that are there already."""
    if _given(node, 3, "attn_mask") is not None:
        return None
    return "mix", {"causal": bool(_given(node, 5, "is_causal", False)), "scale": node.kwargs.get("scale")}


def _joined(op: str, node: fx.Node) -> Call:
    parts: Any = _given(node, 0, "tensors")
    return op, {"parts": _with_reads(node, tuple(parts)), "dim": _given(node, 1, "dim", 0)}


def _addcmul(node: fx.Node) -> Call | None:
    return None if _given(node, 3, "value", 1) != 1 else ("addcmul", {})


def _norm(node: fx.Node, order: str) -> Call | None:
    """The norm of the numbers along some axes, its order called so; linalg.norm has one of matrices under the same name."""
    given, dims = _given(node, 1, order), dims_of(_given(node, 2, "dim"))
    if _name(node) == "linalg_norm" and given is not None and len(dims) > 1:
        return None
    number = 2.0 if given in (None, "fro") else float(given)
    return "norm", {"order": number, "dims": dims, "keep": bool(_given(node, 3, "keepdim", False))}


_CALLS: dict[str, Callable[[fx.Node], Call | None]] = {
    "permute": lambda node: ("permute", {"dims": _rest(node)}),
    "transpose": lambda node: (
        "transpose",
        {"dims": (_given(node, 1, "dim0"), _given(node, 2, "dim1"))},
    ),
    "scaled_dot_product_attention": _mixed,
    "addcmul": _addcmul,
    "norm": lambda node: _norm(node, "p"),
    "linalg_norm": lambda node: _norm(node, "ord"),
    "linalg_vector_norm": lambda node: _norm(node, "ord"),
    "pad": _pad,
    "cat": lambda node: _joined("cat", node),
    "concat": lambda node: _joined("cat", node),
    "stack": lambda node: _joined("stack", node),
    "split": lambda node: (
        "split",
        {
            "size": _given(node, 1, "split_size_or_sections", node.kwargs.get("split_size")),
            "dim": _given(node, 2, "dim", 0),
        },
    ),
    "getitem": lambda node: ("getitem", {"index": _plain_index(node.args[1])}),
    "getattr": _size,
    "size": _size,
}
