"""How long a run will take: what it is going to be, how fast this machine is, and what each step makes of both.

A step declares the seconds it will take as a function of an :class:`Outlook`, and the settings its time grows with
(:class:`Amount`). ``--time``, the bar, ``binas status`` and what ``binas init`` says are views of these
(:mod:`binas.run.plan`).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeVar

from pydantic import Field

from binas.base.settings import FileRecord, Settings
from binas.base.times import Seconds

if TYPE_CHECKING:
    from binas.run.config import RunConfig
    from binas.space.space import SearchSpace
    from binas.training.config import Phase

Part = TypeVar("Part", bound=Settings)


class Images(FileRecord):
    """Numbers of images of a run."""

    train: int = Field(ge=1)
    validation: int = Field(ge=1)
    test: int = Field(ge=1)

    @property
    def total(self) -> int:
        """All of them."""
        return self.train + self.validation + self.test

    def limited(self, limit: int | None) -> Images:
        """About the numbers that ``data.limit`` leaves of these."""
        both = self.train + self.validation
        if limit is None or limit >= both:
            return self
        validation = max(1, round(limit * self.validation / both))
        return Images(train=max(1, limit - validation), validation=validation, test=min(self.test, limit))


class Rates(FileRecord):
    """How fast this machine is for one space and size of images: seconds per image, unless said otherwise.

    Those of training hold for all processes together. ``forward``, ``recalibrate`` and ``network`` are those of a network
    in the middle of the space; ``workers`` of them are done at the same time, each in the time said here.
    """

    heaviest: float = Field(gt=0, description="a training step of the heaviest network")
    supernet: float = Field(gt=0, description="a multi-path training step, taught")
    network: float = Field(gt=0, description="a training step of one network, taught")
    heaviest_forward: float = Field(gt=0, description="evaluating the heaviest network")
    multipath: float = Field(gt=0, description="evaluating, every image on a path of its own")
    forward: float = Field(gt=0, description="evaluating one network")
    recalibrate: float = Field(gt=0, description="re-estimating BatchNorm of one network")
    table: float = Field(ge=0, description="seconds to prepare all blocks of the space for measuring")
    prepare: float = Field(ge=0, description="seconds to prepare a whole network for measuring")
    read: float = Field(0.0, ge=0, description="reading an image, where that is still to be done")
    workers: int = Field(1, ge=1, description="networks that are evaluated or tuned at the same time")

    def times(self, factor: float) -> Rates:
        """Those of networks that compute ``factor`` times as much; reading and measuring stay."""
        computed = {
            "heaviest",
            "supernet",
            "network",
            "heaviest_forward",
            "multipath",
            "forward",
            "recalibrate",
        }
        return self.model_copy(update={name: factor * getattr(self, name) for name in computed})


@dataclass(frozen=True)
class Amount:
    """A setting that a step's time grows with, and how a time budget sets it.

    It is raised from ``least`` to at most ``most``, ``by`` that much at a time, so that what it adds to the run takes
    about its ``share`` of the time; ``unit`` is what is counted. With a share of 0 a budget leaves it alone, and where
    the setting ``unless`` has a value. One that takes much at once is ``within`` its share: never raised beyond it.
    """

    setting: str
    unit: str
    share: float = 0.0
    least: int = 1
    most: int = 1000
    by: int = 1
    within: bool = False
    unless: str | None = None


@dataclass(frozen=True)
class Outlook:
    """What a run is going to be: its settings, its numbers of images, and the speed of the machine."""

    config: RunConfig
    images: Images
    rates: Rates
    classes: int = 2
    size: tuple[int, int] = (0, 0)
    space: str = ""

    def settings(self, kind: type[Part]) -> Part:
        """The settings of one task, by their type."""
        return self.config.part(kind)

    @property
    def questions(self) -> int:
        """Limits, and so networks to find."""
        from binas.tasks.search import SearchSettings

        return len(self.settings(SearchSettings).limits)

    def trained(self, phase: Phase) -> float:
        """Images of one epoch, as many as take the time of it in full size: whole batches."""
        return self.images.train // phase.batch_size * phase.batch_size * phase.mean_area

    def evaluated(self, images: int) -> float:
        """Seconds to evaluate one network on so many images, its BatchNorm re-estimated before."""
        from binas.training.config import FinetuneSettings

        recalibration = min(self.settings(FinetuneSettings).recalibration, self.images.train)
        return images * self.rates.forward + recalibration * self.rates.recalibrate

    def spread(self, items: int, each: float) -> float:
        """Seconds until ``items`` pieces of independent work are done, ``each`` by one of the workers."""
        return math.ceil(items / self.rates.workers) * each


SecondsOf = Callable[[Outlook], Seconds]


def guessed_rates(space: SearchSpace) -> Rates:
    """Rates by the MACs of the heaviest network alone, where nothing was probed: their ratios say how a run divides.

    The factors are those of ``binas demo`` on 2 cores, 2026-11-16 (benchmarks/results/demo.md).
    """
    from binas.costs.analytic import architecture_work

    macs = float(architecture_work(space, space.extreme()).macs)
    return Rates(
        heaviest=4e-10 * macs,
        supernet=4e-10 * macs,
        network=3.5e-10 * macs,
        heaviest_forward=7e-11 * macs,
        multipath=5e-11 * macs,
        forward=4e-11 * macs,
        recalibrate=6e-11 * macs,
        table=0.1 * space.alpha_size,
        prepare=0.3,
    )
