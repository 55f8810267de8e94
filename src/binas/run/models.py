"""Where a network to be made smaller comes from: a module of the user's, or a known network with a file of weights.

Either becomes a :class:`Source`: a space whose heaviest member the network is, and that member with its weights.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from binas.base.errors import ConfigError, ModelError, SpaceError, several
from binas.base.files import exists
from binas.space.graph_space import SHARES, space_of_graph
from binas.space.graphs import Graph, Node
from binas.space.rules import NetworkRules
from binas.space.space import SearchSpace
from binas.training.judgement import Accuracy, guesses

if TYPE_CHECKING:
    from torch import Tensor, nn

    from binas.data.dataset import ImageData
    from binas.supernet.static import StaticNetwork
    from binas.supernet.weights import LoadedNetwork


@dataclass(frozen=True, eq=False)
class Source:
    """A space, its heaviest network with weights, and whether its classifier is new and must be trained.

    ``notes`` say what was done to the weights, and what they were compared with.
    """

    space: SearchSpace
    network: StaticNetwork
    new_classifier: bool
    notes: tuple[str, ...] = ()

    def weights(self) -> bytes:
        """The weights as a safetensors file."""
        from safetensors.torch import save

        return bytes(save({name: value.contiguous() for name, value in self.network.state_dict().items()}))

    def sentence(self) -> str:
        """What can be changed in the network."""
        blocks = [configs for stage in self.space.stages for configs in stage.blocks]
        narrow = sum(sum(bool(config.get("width", True)) for config in configs) > 1 for configs in blocks)
        fewest = sum(min(stage.depths) for stage in self.space.stages)
        fewest -= sum(configs[0].get("width") == 0.0 for configs in blocks)
        return (
            f"the model has {len(blocks)} blocks in {len(self.space.stages)} stages: {narrow} can be narrower, "
            f"{len(blocks) - fewest} can be left out; {self.space.count:,} networks in all"
        )

    def judged(self, images: ImageData) -> Accuracy:
        """What the network gets right of the validation images before anything is trained."""
        from binas.training.evaluation import accuracy, device_of

        data, network = images.for_space(self.space), self.network.eval()
        return accuracy(network, data, data.validation, device_of(network))


def about_accuracy(found: Accuracy, classes: int) -> str:
    """How good a model is before it is made smaller, and what to look at where it only guesses."""
    said = f"the model is right on {found.percent:.2f} ± {found.error:.2f} % of {found.images:,} validation images"
    if not guesses(found.percent, classes):
        return said
    return (
        f"{said}, hardly more than guessing among {classes} classes would be. Are these its weights, were images normalised "
        "like that (--mean, --std), and are its classes in the order of the folders' names?"
    )


@dataclass(frozen=True, eq=False)
class Known:
    """A network that is known by name (``efficientnet_lite0``), the file of its weights, and what they are compared with.

    ``original`` is the live module the weights are of, or a file of recorded pairs.
    """

    network: str
    weights: str | Path | Mapping[str, Any]
    original: nn.Module | str | Path | None = None

    @cached_property
    def loaded(self) -> LoadedNetwork:
        """The network with its weights, read once."""
        from binas.supernet.weights import load_network

        return load_network(self.network, self.weights)


@dataclass(frozen=True, eq=False)
class Own:
    """A module of the user's with its weights; ``notes`` say what was done to them."""

    module: nn.Module
    notes: tuple[str, ...] = ()


def known_source(
    known: Known,
    images: ImageData,
    name: str,
    shares: Sequence[float] = SHARES,
    rules: Mapping[str, Any] = MappingProxyType({}),
) -> Source:
    """A known network with its weights, which computes what their source does, as far as that was given.

    ``rules`` are those of its rules that are to be others.
    """
    from binas.space.derived import space_from_network
    from binas.supernet.network import extract
    from binas.training.phases import fresh_supernet

    loaded, classes = known.loaded, len(images.classes)
    own = loaded.description.classes
    notes = (
        *loaded.notes,
        *_sized(known, images.size),
        _compared(loaded, known.original),
        *_replaced(own, classes),
    )
    space = space_from_network(
        loaded.description, name=name, classes=classes, resolution=min(images.size), shares=shares
    )
    space = _ruled(space, rules)
    supernet = fresh_supernet(space, 0)  # a new classifier is the same each time, so that a run knows its own
    supernet.absorb(loaded.network, new_classifier=own != classes)
    return Source(space, extract(supernet, space.extreme()), own != classes, notes)


def _sized(known: Known, size: tuple[int, int]) -> list[str]:
    """A note where images are of another size than the network is described for."""
    side, (height, width) = known.loaded.description.resolution, size
    if size == (side, side):
        return []
    return [
        f"{known.network} is described for images of {side} x {side} pixels, these have {height} x {width}: what it was "
        "trained to see has another size in them, which costs accuracy until it has learned"
    ]


def _compared(loaded: LoadedNetwork, original: nn.Module | str | Path | None) -> str:
    """What was found when logits were compared; a difference is refused."""
    from binas.supernet.weights import check_equal, check_recorded

    if original is None:
        return (
            "names and shapes of all weights fit; logits were not compared with those of their source: give --pairs "
            "(in Python source=) to do so"
        )
    from_file = isinstance(original, str | Path)
    agreement = check_recorded(loaded, original) if from_file else check_equal(loaded, original)  # type: ignore[arg-type]
    return agreement.sentence()


def _replaced(own: int, classes: int) -> list[str]:
    """A note where the model's classifier does not fit the images."""
    if own == classes:
        return []
    return [
        f"the model tells {own} classes apart, the images have {classes}: its classifier is replaced by a new one, which is "
        "trained first. If they should be the same, look for a missing or an additional folder of images"
    ]


def _ruled(space: SearchSpace, rules: Mapping[str, Any]) -> SearchSpace:
    """The space with some of its rules others."""
    if not rules:
        return space
    return replace(space, rules=NetworkRules.model_validate({**space.rules.model_dump(), **rules}))


def own_source(
    own: Own,
    images: ImageData,
    name: str,
    shares: Sequence[float] = SHARES,
    rules: Mapping[str, Any] = MappingProxyType({}),
    blocks: Sequence[str] = (),
) -> Source:
    """A module of the user's; ``rules`` may say what images are normalised with, ``blocks`` which modules may change."""
    from binas.supernet.blueprint import fill
    from binas.supernet.static import StaticNetwork

    graph, weights, classes = traced(own.module, images)
    graph = graph.with_blocks(blocks) if blocks else graph
    space = _ruled(space_of_graph(graph, name, shares), rules)
    network = StaticNetwork.from_architecture(space, space.extreme())
    fill(weights, network)
    notes = _replaced(classes, len(images.classes))
    return Source(space, network, bool(notes), (*own.notes, *notes))


def built(model: nn.Module | str, weights: str | Path | Mapping[str, Any] | None = None) -> Own:
    """The user's module with its weights; code of a file is run because the user names it, never because a file does."""
    made = _from_file(model) if isinstance(model, str) else model
    return Own(made, () if weights is None else _load(made, weights))


def _from_file(text: str) -> nn.Module:
    import runpy

    from torch import nn

    name, _, function = text.partition(":")
    path = Path(name)
    if path.suffix != ".py" or not function or not exists(path):
        raise ConfigError(
            f"{text!r} is no model: give FILE.py:FUNCTION, a function without arguments that builds it."
        )
    sys.path.insert(0, str(path.parent.absolute()))  # as python does: it may import what lies beside it
    found = _called(partial(runpy.run_path, str(path)), f"{path} cannot be run").get(function)
    if not callable(found):
        raise ConfigError(f"{path} has no function {function!r}.")
    made = _called(found, f"{text} cannot be called, without arguments as it is")
    if not isinstance(made, nn.Module):
        raise ConfigError(f"{text} gives {type(made).__name__}, not a torch.nn.Module.")
    return made


def _called(function: Callable[[], Any], what: str) -> Any:
    """What code of the user gives; whatever it raises is told with ``what`` could not be done."""
    try:
        return function()
    except Exception as error:
        raise ConfigError(f"{what}: {type(error).__name__}: {error}") from error


def _load(module: nn.Module, weights: str | Path | Mapping[str, Any]) -> tuple[str, ...]:
    """Weights of a file or state dict into the user's module, with notes; both must have the same names and shapes.

    Prefixes of wrappers are those of the module, whatever the file's; counts and indices stay as the module has them.
    """
    from torch.nn.parameter import is_lazy

    from binas.supernet.weights import read_weights
    from binas.supernet.weights.files import without_prefix

    state = module.state_dict()
    names, own = [*state], without_prefix(state)
    counted = [name for name, value in own.items() if not value.is_floating_point()]
    file = read_weights(weights, counted)
    kept = {name: value for name, value in own.items() if name not in counted}
    problems = [f"{name} is missing" for name in kept if name not in file.tensors]
    problems += [f"{name} is not part of the model" for name in file.tensors if name not in kept]
    problems += [
        f"{name} is {tuple(file.tensors[name].shape)} instead of {tuple(value.shape)}"
        for name, value in kept.items()
        if name in file.tensors and not is_lazy(value) and file.tensors[name].shape != value.shape
    ]
    if problems:
        advice = "Name the file of this model's weights, or build the model they were trained as."
        raise ModelError(
            several(f"the weights in {file.where} are not those of this model", problems, advice, most=6)
        )
    given = {full: file.tensors[name] for full, name in zip(names, own, strict=True) if name in kept}
    module.load_state_dict(given, strict=False)
    return file.notes


def traced(module: nn.Module, images: ImageData) -> tuple[Graph, dict[str, Tensor], int]:
    """The model as a graph for these images, its weights, and how many classes it tells apart itself."""
    from binas.supernet.tracing import trace

    found = trace(module, (images.channels, *images.size))
    own, classes = found.graph.classes, len(images.classes)
    if found.graph.nodes[-1].op == "softmax":
        raise SpaceError(
            "the model ends in softmax: it gives probabilities, and is trained further by logits. Build it without that "
            "layer; it chooses the same classes."
        )
    if own == classes:
        return found.graph, found.weights, own
    return (*_new_classifier(found.graph, found.weights, classes), own)


def _new_classifier(
    graph: Graph, weights: dict[str, Tensor], classes: int
) -> tuple[Graph, dict[str, Tensor]]:
    """The same with a last layer for another number of classes."""
    import torch

    last = graph.nodes[-1]
    if last.op != "linear":
        raise SpaceError(
            f"the model has {graph.classes} classes, the images {classes}, and its last layer is {last.op}, no linear "
            "layer that could be replaced."
        )
    changed = last.changed(outputs=classes)
    nodes = (
        *graph.nodes[:-1],
        Node(changed.name, changed.op, changed.reads, changed.options, (classes,), changed.path),
    )
    drawn = torch.Generator().manual_seed(0)
    inputs = int(last.get("inputs"))
    fresh = {f"{last.name}.weight": torch.randn(classes, inputs, generator=drawn) * inputs**-0.5}
    if last.get("bias"):
        fresh[f"{last.name}.bias"] = torch.zeros(classes)
    return Graph(nodes), {**weights, **fresh}
