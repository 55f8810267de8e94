"""What other libraries call the weights of a network: layouts as data (``*.yaml`` beside this file).

A layout gives, for each layer of each kind of block, the names of its convolution and its BatchNorm. ``{stage}`` and
``{block}`` are places in the network's block strings and ``{place}`` the running number of the block, all from 0;
``{layer}`` is the number of the layer in its block; ``{stage:+1}`` counts from 1.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Literal

from pydantic import Field
from torch import nn

from binas.base.errors import ModelError
from binas.base.files import parse_yaml
from binas.base.settings import Settings
from binas.space.described import NetworkDescription
from binas.space.rules import NetworkRules
from binas.supernet.plain import ConvNorm, PlainBlock, SqueezeExcite
from binas.supernet.static import StaticNetwork

Names = tuple[str, str]
ROLES = {
    "ir": ("expand", "depthwise", "project"),
    "ds": ("depthwise", "project"),
    "dsa": ("depthwise", "project"),
    "er": ("expand", "project"),
    "bt": ("reduce", "middle", "restore"),
    "cn": ("conv",),
    "mp": (),
}


class Variant(Settings):
    """A network of a library: which described network it is, and in which rules it differs."""

    network: str
    rules: NetworkRules = NetworkRules()


class NameLayout(Settings):
    """The names of one class of networks, in the libraries that call their weights so."""

    format: Literal["binas/weight-names"]
    version: Literal[1]
    libraries: tuple[str, ...]
    stem: Names = Field(description="convolution and BatchNorm of the first convolution")
    blocks: dict[str, dict[str, Names]] = Field(
        description="by kind of block and layer; squeeze: its two layers"
    )
    last: Names | None = Field(None, description="the convolution before the pooling, where it stands apart")
    features: str | None = Field(None, description="the layer between pooling and classifier")
    classifier: str
    rules: NetworkRules = Field(NetworkRules(), description="what all networks below have in common")
    networks: dict[str, Variant] = Field({}, description="networks of the library that follow these names")


@dataclass(frozen=True, slots=True)
class Pair:
    """A layer of ours and of theirs by their module names; ``where`` names it for people."""

    ours: str
    theirs: str
    where: str
    norm: bool = False


class _Place(int):
    """A number that a template may count from elsewhere: ``{stage:+1}``."""

    def __format__(self, shift: str) -> str:
        return str(int(self) + int(shift or 0))


@cache
def layouts() -> dict[str, NameLayout]:
    """All layouts by the name of their file."""
    folder = files("binas.supernet.weights")
    found = sorted(item.name for item in folder.iterdir() if item.name.endswith(".yaml"))
    return {
        name[: -len(".yaml")]: NameLayout.model_validate(
            parse_yaml(folder.joinpath(name).read_text(encoding="utf-8"), name).data
        )
        for name in found
    }


def pairs(layout: NameLayout, description: NetworkDescription, network: StaticNetwork) -> list[Pair]:
    """Every layer with weights of a network built from its description, and what the layout calls it."""
    return list(_pairs(layout, description, network))


def _pairs(layout: NameLayout, description: NetworkDescription, network: StaticNetwork) -> Iterator[Pair]:
    yield from _both("stem.0", layout.stem, "the first convolution")
    places = [(s, b, code) for s, stage in enumerate(description.stages) for b, code in enumerate(stage)]
    for place, ((stage, block, code), module) in enumerate(
        zip(places, network.blocks.children(), strict=True)
    ):
        at = {"stage": _Place(stage), "block": _Place(block), "place": _Place(place)}
        where = f"block {block + 1} of stage {stage + 1} ({code})"
        if code.kind == "cn" and layout.last is not None and place == len(places) - 1:
            yield from _both(f"blocks.{place}", _filled(layout.last, at), where)
        else:
            yield from _block(f"blocks.{place}", code.kind, module, layout, at, where)
    if network.head.features is not None:
        if layout.features is None:
            raise ModelError("the layout has no name for the layer between pooling and classifier.")
        yield Pair("head.features.0", layout.features, "the layer after the pooling")
    yield Pair("head.classifier", layout.classifier, "the classifier")


def _block(
    ours: str, kind: str, module: nn.Module, layout: NameLayout, at: dict[str, _Place], where: str
) -> Iterator[Pair]:
    named, roles = layout.blocks.get(kind, {}), iter(ROLES.get(kind, ()))
    for layer, (path, part) in enumerate(_layers(ours, module)):
        role = "squeeze" if isinstance(part, SqueezeExcite) else next(roles, "")
        filled = _filled(_name(named, role, kind), {**at, "layer": _Place(layer)})
        if isinstance(part, SqueezeExcite):
            for own, theirs in zip(("reduce", "excite"), filled, strict=True):
                yield Pair(f"{path}.{own}", theirs, f"{where}, squeeze-excite")
        else:
            yield from _both(path, filled, f"{where}, {role}")
    if isinstance(module, PlainBlock) and isinstance(module.shortcut, ConvNorm):
        yield from _both(
            f"{ours}.shortcut", _filled(_name(named, "shortcut", kind), at), f"{where}, shortcut"
        )


def _layers(path: str, module: nn.Module) -> list[tuple[str, nn.Module]]:
    """The layers with weights of a block, in order, with their names."""
    if isinstance(module, ConvNorm):
        return [(path, module)]
    return [
        (f"{path}.body.{name}", part)
        for name, part in getattr(module, "body", nn.Identity()).named_children()
    ]


def _name(named: dict[str, Names], role: str, kind: str) -> Names:
    if role not in named:
        raise ModelError(f"the layout has no names for the layer {role!r} of {kind!r} blocks.")
    return named[role]


def _filled(templates: Names, at: dict[str, _Place]) -> Names:
    first, second = (template.format(**at) for template in templates)
    return first, second


def _both(ours: str, theirs: Names, where: str) -> Iterator[Pair]:
    yield Pair(f"{ours}.conv", theirs[0], where)
    yield Pair(f"{ours}.norm", theirs[1], where, norm=True)
