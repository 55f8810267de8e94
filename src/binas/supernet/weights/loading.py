"""A network with the weights of a file, matched by name and shape."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import torch
from torch import Tensor

from binas.base.errors import ModelError, several
from binas.space.described import NetworkDescription
from binas.supernet.static import StaticNetwork
from binas.supernet.weights.files import WeightFile, read_weights
from binas.supernet.weights.known import KnownNetwork, networks_called
from binas.supernet.weights.names import Pair, layouts, pairs

NORM = ("weight", "bias", "running_mean", "running_var")
LAYER = ("weight", "bias")


@dataclass(frozen=True, eq=False)
class LoadedNetwork:
    """A network with weights that were trained elsewhere, in eval mode.

    ``pairs`` are its layers and what the source calls them; ``notes`` says what was changed on the way. That it
    computes what the source computes is shown by :func:`binas.supernet.weights.check_equal`.
    """

    network: StaticNetwork
    description: NetworkDescription
    layout: str
    pairs: tuple[Pair, ...]
    notes: tuple[str, ...] = ()


@dataclass(eq=False)
class _Match:
    """How weights fit a network under a layout: what is ours by name, and every problem."""

    known: KnownNetwork
    pairs: Sequence[Pair] = ()
    tensors: dict[str, Tensor] = field(default_factory=dict)
    problems: list[str] = field(default_factory=list)


def load_network(
    network: str | NetworkDescription,
    weights: str | Path | WeightFile | Mapping[str, Tensor],
    *,
    layout: str | None = None,
    classes: int | None = None,
) -> LoadedNetwork:
    """The network with the weights of a file (or of a state dict).

    ``network`` is a name (``efficientnet_lite0``, ``torchvision/mobilenet_v2``) or a description of one's own;
    ``layout`` names the layout of its weights (default: the one that fits). The number of classes is that of the
    weights; where ``classes`` is given they must agree. Half precision becomes float32, with a note.
    """
    file = _weight_file(weights)
    matches = [_match(known, file) for known in _candidates(network, layout)]
    fitting = [match for match in matches if not match.problems]
    if isinstance(network, str):  # a library's own name before that of the structure, which several may share
        fitting = [match for match in fitting if match.known.called(network)] or fitting
    if any(match.known.description != fitting[0].known.description for match in fitting):
        names = ", ".join(match.known.name for match in fitting)
        raise ModelError(
            f"the weights of {file.where} fit several networks that differ in their rules: name one of {names}."
        )
    if not fitting:
        closest = min(matches, key=lambda match: len(match.problems))
        raise ModelError(_refusal(closest, file))
    return _built(fitting[0], file, classes)


def _weight_file(weights: str | Path | WeightFile | Mapping[str, Tensor]) -> WeightFile:
    return weights if isinstance(weights, WeightFile) else read_weights(weights)


def _candidates(network: str | NetworkDescription, layout: str | None) -> list[KnownNetwork]:
    if layout is not None and layout not in layouts():
        raise ModelError(f"there is no layout of weights {layout[:60]!r}; known are {', '.join(layouts())}.")
    if isinstance(network, str):
        return [known for known in networks_called(network) if layout in (None, known.layout)]
    chosen = [layout] if layout else list(layouts())
    return [KnownNetwork(f"{network.name} as {name}", network, name) for name in chosen]


def _match(known: KnownNetwork, file: WeightFile) -> _Match:
    """Every tensor of the network with the one of the file that has its name and shape."""
    match = _Match(known)
    description = known.description.model_copy(update={"classes": _classes(known, file)})
    match.known = KnownNetwork(known.name, description, known.layout)
    with torch.device("meta"):
        shapes = StaticNetwork.from_description(description)
    try:
        match.pairs = pairs(known.names, description, shapes)
    except ModelError as error:
        match.problems = [str(error), *file.tensors]
        return match
    own, left = shapes.state_dict(), dict(file.tensors)
    for pair in match.pairs:
        for part in NORM if pair.norm else LAYER:
            ours, theirs = f"{pair.ours}.{part}", f"{pair.theirs}.{part}"
            if ours in own:
                _take(match, left.pop(theirs, None), own[ours], ours, theirs, pair.where)
    match.problems += [f"{name} {tuple(value.shape)} is not part of it" for name, value in left.items()]
    return match


def _classes(known: KnownNetwork, file: WeightFile) -> int:
    classifier = file.tensors.get(f"{known.names.classifier}.weight")
    return known.description.classes if classifier is None or not classifier.ndim else len(classifier)


def _take(match: _Match, given: Tensor | None, own: Tensor, ours: str, theirs: str, where: str) -> None:
    if given is None:
        match.problems.append(f"{theirs} is missing ({where})")
    elif _shape(given) != _shape(own):
        match.problems.append(f"{theirs} is {tuple(given.shape)} instead of {tuple(own.shape)} ({where})")
    else:
        match.tensors[ours] = given.reshape(own.shape).clone()


def _shape(tensor: Tensor) -> tuple[int, ...]:
    """A linear layer and a 1x1 convolution are the same."""
    shape = tuple(tensor.shape)
    return shape[:2] if shape[2:] == (1, 1) else shape


def _refusal(match: _Match, file: WeightFile) -> str:
    headline = (
        f"the weights of {file.where} are not those of {match.known.name}, the closest of what was asked for"
    )
    advice = "Name the network they were trained as, or describe its blocks."
    return several(headline, match.problems, advice, most=6)


def _built(match: _Match, file: WeightFile, classes: int | None) -> LoadedNetwork:
    description = match.known.description
    if classes not in (None, description.classes):
        raise ModelError(
            f"the weights of {file.where} tell {description.classes} classes apart, not {classes}. Load them as they "
            "are and give the space the other number: it gets a new classifier."
        )
    with torch.device("meta"):
        network = StaticNetwork.from_description(description)
    counts = {
        name: torch.zeros((), dtype=torch.int64) for name in network.state_dict() if name not in match.tensors
    }
    network.load_state_dict({**match.tensors, **counts}, assign=True)
    return LoadedNetwork(network.eval(), description, match.known.layout, tuple(match.pairs), file.notes)
