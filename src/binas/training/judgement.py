"""How good a network is: plain values, read without torch."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Annotated, Any, Literal

from pydantic import Field, NonNegativeInt, PositiveInt

from binas.base.settings import FileRecord


@dataclass(frozen=True, slots=True)
class Accuracy:
    """Share of ``images`` classified rightly, in percent, with its standard error sqrt(p (1 - p) / n)."""

    percent: Annotated[float, Field(ge=0, le=100)]
    images: PositiveInt

    @property
    def error(self) -> float:
        """Standard error in points."""
        share = self.percent / 100
        return 100 * math.sqrt(share * (1 - share) / self.images)


LEARNED = 0.1  # share of the way from guessing to 100 % below which a network knows next to nothing


def guesses(percent: float, classes: int) -> bool:
    """Whether an accuracy lies below ``LEARNED`` of the way from guessing, 100 / classes, to 100 %."""
    chance = 100 / classes
    return percent - chance < LEARNED * (100 - chance)


@dataclass(frozen=True, slots=True)
class HeldOut:
    """Accuracy on the validation images, by which the epoch was chosen, and on the test images, which chose nothing."""

    validation: Accuracy
    test: Accuracy


@dataclass(frozen=True, slots=True)
class Judgement:
    """A network before (the supernet's weights, BatchNorm re-estimated) and after fine-tuning.

    ``epoch`` is the one that was kept; 0 is the start.
    """

    one_shot: HeldOut
    tuned: HeldOut
    epoch: int


class ModelRecord(FileRecord):
    """A model that was trained before, as it is: what it gets right of the images that a run holds out."""

    format: Literal["binas/given-model"] = "binas/given-model"
    version: Literal[1] = 1
    judgement: HeldOut


class NetworkRecord(FileRecord):
    """A fine-tuned network of a run.

    ``judgement`` holds the accuracies with the supernet's weights and after fine-tuning; ``seconds`` is the time of
    the call that finished it. ``settings`` are those of ``finetune``, one level of dotted names. ``weights`` is
    a short hash of what the figures belong to.
    """

    format: Literal["binas/network"] = "binas/network"
    version: Literal[1] = 1
    name: str
    architecture: str
    from_scratch: bool
    settings: dict[str, Any]
    weights: str
    judgement: Judgement
    parameters: NonNegativeInt
    macs: NonNegativeInt
    seconds: float
