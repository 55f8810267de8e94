"""Operations that torch has as layers and as functions, each declared once: how both are called, and their settings."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, NamedTuple

from torch import nn


def pair(value: Any) -> Any:
    """A setting for height and width, given once or for each."""
    return tuple(value) if isinstance(value, list | tuple) else (value, value)


def dims_of(value: Any) -> tuple[int, ...]:
    """One axis or several, as several."""
    return tuple(value) if isinstance(value, list | tuple) else (int(value),)


class Setting(NamedTuple):
    """What torch calls a setting, what it is where it is not given, and how it is written down."""

    argument: str
    default: Any = None
    written: Callable[[Any], Any] = lambda value: value


class Kind(NamedTuple):
    """An operation that torch has as layers and as functions.

    ``settings`` are by our name, in the order in which the function takes them after the tensor; the layer keeps them under
    the function's names.
    """

    op: str
    layers: tuple[type[nn.Module], ...] = ()
    calls: tuple[str, ...] = ()
    settings: Mapping[str, Setting] = MappingProxyType({})

    def read(self, given: Callable[[int, str, Any], Any]) -> dict[str, Any]:
        """Its settings, each found by the place and the name of its argument."""
        items = enumerate(self.settings.items(), 1)
        found = {key: item.written(given(place, item.argument, item.default)) for place, (key, item) in items}
        return {**found, "stride": found["kernel"]} if found.get("stride", 1) in (None, []) else found


_ALPHA = {"alpha": Setting("alpha", 1.0)}
_LAST = {"dim": Setting("dim", -1, lambda dim: -1 if dim is None else dim)}
_SIZE = {"size": Setting("output_size", None, pair)}
_REDUCED = {"dims": Setting("dim", None, dims_of), "keep": Setting("keepdim", False, bool)}
_WINDOW = {
    "kernel": Setting("kernel_size"),
    "stride": Setting("stride"),
    "padding": Setting("padding", 0),
}
_LOW, _HIGH = {"low": Setting("min")}, {"high": Setting("max")}
_CEIL = {"ceil": Setting("ceil_mode", False, bool)}
_SIMPLE = (
    Kind("relu", (nn.ReLU,), ("relu",)),
    Kind("relu6", (nn.ReLU6,), ("relu6",)),
    Kind("leaky_relu", (nn.LeakyReLU,), ("leaky_relu",), {"slope": Setting("negative_slope", 0.01)}),
    Kind("elu", (nn.ELU,), ("elu",), _ALPHA),
    Kind("celu", (nn.CELU,), ("celu",), _ALPHA),
    Kind("selu", (nn.SELU,), ("selu",)),
    Kind("gelu", (nn.GELU,), ("gelu",), {"approximate": Setting("approximate", "none")}),
    Kind("silu", (nn.SiLU,), ("silu",)),
    Kind("mish", (nn.Mish,), ("mish",)),
    Kind(
        "softplus",
        (nn.Softplus,),
        ("softplus",),
        {"beta": Setting("beta", 1.0), "threshold": Setting("threshold", 20.0)},
    ),
    Kind("hardswish", (nn.Hardswish,), ("hardswish",)),
    Kind("hardsigmoid", (nn.Hardsigmoid,), ("hardsigmoid",)),
    Kind(
        "clamp",
        (nn.Hardtanh,),
        ("hardtanh",),
        {"low": Setting("min_val", -1.0), "high": Setting("max_val", 1.0)},
    ),
    Kind("clamp", (), ("clamp", "clip"), {**_LOW, **_HIGH}),
    Kind("clamp", (), ("clamp_min",), _LOW),
    Kind("clamp", (), ("clamp_max",), _HIGH),
    Kind("sigmoid", (nn.Sigmoid,), ("sigmoid",)),
    Kind("tanh", (nn.Tanh,), ("tanh",)),
    Kind("exp", (), ("exp",)),
    Kind("neg", (), ("neg",)),
    Kind("abs", (), ("abs",)),
    Kind("softmax", (nn.Softmax,), ("softmax",), _LAST),
    Kind("log_softmax", (nn.LogSoftmax,), ("log_softmax",), _LAST),
    Kind("identity", (nn.Identity,), ("clone",)),
    Kind("contiguous", (), ("contiguous",)),
    Kind("dropout", (nn.Dropout, nn.Dropout2d), ("dropout", "dropout2d"), {"p": Setting("p", 0.5)}),
    Kind(
        "flatten",
        (nn.Flatten,),
        ("flatten",),
        {"start": Setting("start_dim", 0), "end": Setting("end_dim", -1)},
    ),
    Kind("adaptive_avg_pool", (nn.AdaptiveAvgPool2d,), ("adaptive_avg_pool2d",), _SIZE),
    Kind("adaptive_max_pool", (nn.AdaptiveMaxPool2d,), ("adaptive_max_pool2d",), _SIZE),
    Kind(
        "avg_pool",
        (nn.AvgPool2d,),
        ("avg_pool2d",),
        {**_WINDOW, **_CEIL, "include": Setting("count_include_pad", True, bool)},
    ),
    Kind(
        "max_pool",
        (nn.MaxPool2d,),
        ("max_pool2d",),
        {**_WINDOW, "dilation": Setting("dilation", 1), **_CEIL},
    ),
    Kind(
        "upsample",
        (nn.Upsample,),
        ("interpolate",),
        {
            "size": Setting("size"),
            "scale": Setting("scale_factor"),
            "mode": Setting("mode", "nearest"),
            "align": Setting("align_corners"),
        },
    ),
    Kind(
        "pad",
        (nn.ZeroPad2d, nn.ConstantPad2d),
        (),
        {"padding": Setting("padding", None, tuple), "value": Setting("value", 0.0)},
    ),
    Kind("unsqueeze", (), ("unsqueeze",), {"dim": Setting("dim")}),
    Kind(
        "squeeze",
        (),
        ("squeeze",),
        {"dims": Setting("dim", (), lambda dim: () if dim is None else dims_of(dim))},
    ),
    Kind("mean", (), ("mean",), _REDUCED),
    Kind("sum", (), ("sum",), _REDUCED),
    Kind("amax", (), ("amax",), _REDUCED),
    Kind("unbind", (), ("unbind",), {"dim": Setting("dim", 0)}),
    Kind("chunk", (), ("chunk",), {"count": Setting("chunks"), "dim": Setting("dim", 0)}),
)
LAYERS = {layer: kind for kind in _SIMPLE for layer in kind.layers}
FUNCTIONS = {name: kind for kind in _SIMPLE for name in kind.calls}
