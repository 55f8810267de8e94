"""What is known about a finished network: plain values for its model card and its ``model.json``."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from binas.space.architecture import Architecture
from binas.space.space import SearchSpace


@dataclass(frozen=True, slots=True)
class AccuracyFact:
    """Accuracy in percent of ``weights`` (such as "fine-tuned") on ``images`` images of one part of the data."""

    weights: str
    part: Literal["validation", "test"]
    percent: float
    images: int


@dataclass(frozen=True, slots=True)
class LatencyFact:
    """Milliseconds of one run, predicted by a table or measured; ``device`` and ``runtime`` say where and how."""

    kind: Literal["predicted", "measured"]
    ms: float
    device: str
    runtime: str


@dataclass(frozen=True)
class ModelFacts:
    """Everything a card says about a network besides what follows from its weights.

    ``mean`` and ``std`` per channel of images in 0..1 are those the network was trained with; ``limits`` are what was
    asked for, such as ``latency=45ms``; ``command`` is what made the network.
    """

    name: str
    space: SearchSpace
    architecture: Architecture
    mean: tuple[float, ...]
    std: tuple[float, ...]
    classes: tuple[str, ...] = ()
    data: str = ""
    data_licence: str = ""
    limits: tuple[str, ...] = ()
    accuracy: tuple[AccuracyFact, ...] = ()
    latency: tuple[LatencyFact, ...] = ()
    command: str = ""
