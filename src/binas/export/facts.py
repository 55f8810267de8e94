"""What is known about a finished network: plain values for its model card and its ``model.json``."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from binas.search.answers import AnswerRecord
from binas.space.architecture import Architecture
from binas.space.space import SearchSpace
from binas.tables.costs import Cost
from binas.training.judgement import Judgement

TO_MS = {"ms": 1.0, "s": 1e3, "us": 1e-3}


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


def accuracy_facts(judged: Judgement, from_scratch: bool = False) -> tuple[AccuracyFact, ...]:
    """The accuracy of a network before and after training, on validation and on test images."""
    shared = "with the supernet's weights, BatchNorm re-estimated"
    how = "trained from scratch" if from_scratch else "fine-tuned"
    facts = []
    for weights, held in ((shared, judged.one_shot), (how, judged.tuned)):
        facts.append(AccuracyFact(weights, "validation", held.validation.percent, held.validation.images))
        facts.append(AccuracyFact(weights, "test", held.test.percent, held.test.images))
    return tuple(facts)


def latency_facts(cost: Cost, answer: AnswerRecord) -> tuple[LatencyFact, ...]:
    """Predicted and measured latency of an answer in ms, where its table is one of time."""
    if cost.unit.name not in TO_MS:
        return ()
    scale, about = TO_MS[cost.unit.name], cost.provenance
    where = about.device or "unknown device", about.runtime or "unknown runtime"
    predicted = LatencyFact("predicted", scale * answer.costs[cost.name].value, *where)
    reading = answer.measured(cost.name)
    return (
        (predicted,)
        if reading is None
        else (predicted, LatencyFact("measured", scale * reading.measured, *where))
    )
