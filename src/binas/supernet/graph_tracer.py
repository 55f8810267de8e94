"""Following the calls of a user's module, each one run as it is met, on two numbers of images.

``torch.fx`` records calls; running them beside the record tells what depends on the images and what does not. A size that
is the same for two and for three images is a number, so that asserts, paddings and loops over sizes of a module written for
any size of image are simply done. What differs only with the number of images stays in the graph; what differs with the
images themselves and is decided by cannot be followed, and is said so with the name of the module.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator
from typing import Any, NoReturn

import torch
from torch import Tensor, fx, nn

from binas.base.errors import SpaceError
from binas.supernet.graph_layers import Attention

SKIPPED = (
    "DropPath",
    "StochasticDepth",
    "DropBlock",
)  # only act while training, on blocks that may vanish anyway
OF_THE_IMAGES = ("item", "tolist", "numpy", "equal", "allclose", "is_nonzero")  # tensors made into numbers
_NUMBERS = (int, float, str, type(None), torch.dtype, torch.device, torch.layout, torch.memory_format)
_SOME = 2, 3  # images of the two runs


class Followed(fx.Proxy):
    """What depends on the images, with its value in each of the two runs."""

    tracer: Follower
    values: tuple[Any, Any]

    def __getattr__(self, k: str) -> Any:
        """A method, or a size or another property: a number where it is the same in both runs."""
        if callable(getattr(self.values[0], k)):
            return super().__getattr__(k)
        return self.tracer.create_proxy("call_function", getattr, (self, k), {})

    def __iter__(self) -> Iterator[Any]:
        """Along the first axis, where that is not the images."""
        return iter([self.part(k) for k in range(len(self))])

    def part(self, number: int) -> Any:
        """One of the things that it is a row of."""
        return self.tracer.create_proxy("call_function", operator.getitem, (self, number), {})

    def __len__(self) -> int:
        """Size of the first axis, where that is not the images."""
        first, second = map(len, self.values)
        if first != second:
            self.tracer.refuse("goes through the images one by one; such loops")
        return first

    def __bool__(self) -> bool:
        """A decision."""
        return bool(self.tracer.decides(self))

    def __int__(self) -> int:
        """A decision."""
        return self.tracer.decides(self)

    __index__ = __int__

    def __float__(self) -> float:
        """A decision."""
        return self.tracer.decides(self)


class Follower(fx.Tracer):
    """Records the calls of one module, and knows at each which module it is in.

    Nodes have in ``meta``: ``where``, the name of the module that makes the call; ``shape`` of what it gives
    without its first axis; ``rows``, whether that axis is the images; ``count``, whether it is their number;
    ``same``, the node that it gives back as it was.
    """

    def __init__(self, image: tuple[int, int, int]) -> None:
        super().__init__()
        drawn = torch.Generator().manual_seed(0)
        self.images = tuple(torch.randn(count, *image, generator=drawn) for count in _SOME)
        self.attentions: dict[str, Attention] = {}
        self.inside: list[str] = [""]
        self._running = self._started = False

    def named(self, path: str) -> str:
        """How a module is called in an error."""
        kind = type(self.root.get_submodule(path)).__name__
        return f"{path!r} ({kind})" if path else f"the model itself ({kind})"

    def decides(self, proxy: Followed) -> NoReturn:
        """Refuse a decision, by what it depends on."""
        what = "the images" if isinstance(proxy.values[0], Tensor) else "the number of images"
        self.refuse(f"decides by {what} what to compute; such decisions")

    def refuse(self, what: str) -> NoReturn:
        """An error that names the module."""
        raise SpaceError(
            f"the model cannot be followed: {self.named(self.inside[-1])} {what} cannot be part of a network that is "
            "searched. Rewrite that part without them."
        )

    def is_leaf_module(self, m: nn.Module, module_qualified_name: str) -> bool:
        """Layers of torch and what only acts while training are not looked into; what torch puts together is."""
        if isinstance(m, nn.MultiheadAttention) or type(m).__name__ in SKIPPED:
            return True
        return not any(m.children()) and super().is_leaf_module(m, module_qualified_name)

    def call_module(
        self, m: nn.Module, forward: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> Any:
        """Follow a module, knowing its name; what is an attention is not looked into."""
        if self._running:
            return forward(*args, **kwargs)
        path = self.path_of_module(m)
        self.inside.append(path)
        made = self._attention(m, args, kwargs)
        if made is None:
            result = super().call_module(m, forward, args, kwargs)
        else:
            self.attentions[path] = made
            result = self.create_proxy("call_module", path, args, kwargs)
            if isinstance(result, tuple):  # torch's gives its result in a pair
                result[0].node.args[0].meta.update(result[0].node.meta)
        self.inside.pop()
        return result

    def getattr(self, attr: str, attr_val: Any, parameter_proxy_cache: dict[str, Any]) -> Any:
        """Weights are looked at as they are while a call is run."""
        return attr_val if self._running else super().getattr(attr, attr_val, parameter_proxy_cache)

    def proxy(self, node: fx.Node) -> Followed:
        """How a node is seen by the module."""
        return Followed(node, self)

    def create_proxy(
        self, kind: str, target: Any, args: tuple[Any, ...], kwargs: dict[str, Any], *more: Any, **named: Any
    ) -> Any:
        """Run a call; a number where it does not depend on the images, otherwise a node."""
        if kind == "placeholder" and self._started:
            return _default(target, args)
        self._started = True
        if kind.startswith("call_") and call_name(target) in OF_THE_IMAGES:
            self.refuse(f"takes numbers out of the images ({call_name(target)!r}); such numbers")
        before = [(item, item.values[0]._version) for item in _tensors((args, kwargs))]
        values = self._run(0, kind, target, args, kwargs), self._run(1, kind, target, args, kwargs)
        if _is_number(values[0]) and values[0] == values[1]:
            return values[0]
        made = super().create_proxy(kind, target, args, kwargs, *more, **named)
        assert isinstance(made, Followed)
        made.values = values
        made.node.meta.update(_about(values), where=self.inside[-1], same=_same(values[0], before))
        for item, version in before:
            if item.values[0] is values[0] and values[0]._version != version:
                item.node = made.node  # changed in place: who reads it from now on reads this
        return _unpacked(made)

    def _run(self, number: int, kind: str, target: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """One call in one of the runs."""
        if kind == "placeholder":
            return self.images[number].clone()
        given, named = (_values(item, number) for item in (args, kwargs))
        self._running = True
        try:
            if kind == "get_attr":
                return operator.attrgetter(target)(self.root)
            if kind == "call_module":
                return self.root.get_submodule(target)(*given, **named)
            if kind == "call_method":
                return getattr(given[0], target)(*given[1:], **named)
            return target(*given, **named)
        finally:
            self._running = False

    def _attention(
        self, module: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> Attention | None:
        """The attention that a module is, if it gives what that gives."""
        self._running = True
        try:
            made = attention_of(module)
            if made is None or not isinstance(args[0], Followed):
                return None
            entering = args[0].values[0]
            found = module(*_values(args, 0), **_values(kwargs, 0))
            found = found[0] if isinstance(found, tuple) else found
            return made if torch.allclose(made(entering), found, atol=1e-4, rtol=1e-4) else None
        except (ValueError, RuntimeError, IndexError):
            return None  # it takes something else than rows of tokens
        finally:
            self._running = False


def call_name(target: Any) -> str:
    """A function as it is called."""
    return target if isinstance(target, str) else getattr(target, "__name__", str(target))


def _default(name: str, default: tuple[Any, ...]) -> Any:
    """What a model is given beside images: what it says itself."""
    if name.startswith("*"):
        return {} if name.startswith("**") else ()
    if not default:
        raise SpaceError(
            f"the model takes {name!r} beside images; wrap it in a module that takes images alone."
        )
    return default[0]


def _values(items: Any, number: int) -> Any:
    """Arguments as they are in one of the runs."""
    return fx.node.map_aggregate(
        items, lambda item: item.values[number] if isinstance(item, Followed) else item
    )


def _tensors(items: Any) -> list[Followed]:
    """All tensors among arguments."""
    found: list[Followed] = []
    fx.node.map_aggregate(items, lambda item: found.append(item) if isinstance(item, Followed) else None)
    return [item for item in found if isinstance(item.values[0], Tensor)]


def _is_number(value: Any) -> bool:
    if isinstance(value, tuple | list):
        return all(map(_is_number, value))
    return isinstance(value, _NUMBERS)


def _about(values: tuple[Any, Any]) -> dict[str, Any]:
    first, second = values
    if not isinstance(first, Tensor):
        return {"shape": (), "rows": False, "count": values == _SOME}
    sizes = first.shape[:1], second.shape[:1]
    return {
        "shape": tuple(first.shape[1:]),
        "rows": sizes == tuple((some,) for some in _SOME),
        "count": False,
    }


def _same(value: Any, before: list[tuple[Followed, int]]) -> fx.Node | None:
    """The node whose tensor a call gave back untouched."""
    found = (item.node for item, version in before if item.values[0] is value and value._version == version)
    return next(found, None)


def _unpacked(proxy: Followed) -> Any:
    """A row of things as a row, so that it can be taken apart as usual."""
    value = proxy.values[0]
    if not isinstance(value, tuple | list) or len(value) != len(proxy.values[1]):
        return proxy
    items = [proxy.part(k) for k in range(len(value))]
    if isinstance(value, torch.Size | list):
        return tuple(items) if isinstance(value, torch.Size) else items
    return type(value)(*items) if hasattr(value, "_fields") else type(value)(items)


def attention_of(module: nn.Module) -> Attention | None:
    """The attention of a module that has the parts of one: torch's own, or ``qkv``, ``proj`` and a number of heads."""
    if isinstance(module, nn.MultiheadAttention):
        return _of_torch(module)
    qkv, proj = getattr(module, "qkv", None), getattr(module, "proj", getattr(module, "out", None))
    heads = getattr(module, "num_heads", getattr(module, "heads", None))
    if not (isinstance(qkv, nn.Linear) and isinstance(proj, nn.Linear) and isinstance(heads, int)):
        return None
    if {id(item) for item in module.parameters()} != {
        id(item) for part in (qkv, proj) for item in part.parameters()
    }:
        return None
    if qkv.out_features != 3 * proj.in_features or proj.in_features % heads:
        return None
    return _made(heads, proj.in_features // heads, qkv.weight, qkv.bias, proj.weight, proj.bias)


def _of_torch(module: nn.MultiheadAttention) -> Attention | None:
    if not module.batch_first or module.in_proj_weight is None or module.bias_k is not None:
        return None
    out = module.out_proj
    return _made(
        module.num_heads, module.head_dim, module.in_proj_weight, module.in_proj_bias, out.weight, out.bias
    )


def _made(
    heads: int, width: int, qkv: Tensor, qkv_bias: Tensor | None, out: Tensor, out_bias: Tensor | None
) -> Attention | None:
    """An attention with these weights; where only one of its layers has a bias, the other's is zero."""
    if qkv.shape[1] != out.shape[0]:
        return None
    bias = qkv_bias is not None or out_bias is not None
    made, state = Attention(qkv.shape[1], heads, width, bias), {"qkv.weight": qkv, "out.weight": out}
    if bias:
        state["qkv.bias"] = torch.zeros(len(qkv)) if qkv_bias is None else qkv_bias
        state["out.bias"] = torch.zeros(len(out)) if out_bias is None else out_bias
    made.load_state_dict(state)
    return made
