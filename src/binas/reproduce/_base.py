"""What an experiment is, what it is given, and what it finds."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import numpy as np
from pydantic import Field, model_validator

from binas.base.errors import FileError
from binas.base.files import exists, move
from binas.base.identity import file_digest, identity_of
from binas.base.interval import Interval
from binas.base.progress import Progress
from binas.base.settings import FileRecord, Settings
from binas.tables.entries import LARGEST
from binas.tables.samples import Samples, load_samples
from binas.training.judgement import Accuracy

if TYPE_CHECKING:
    from binas.run.run import Run
    from binas.space.architecture import Architecture
    from binas.tables.contributions import Contributions

Cell = str | int | float | bool | None
Row = dict[str, Cell]
Drawn = Annotated[float, Field(ge=-LARGEST, le=LARGEST)]
Length = Annotated[float, Field(ge=0, le=LARGEST)]
WEIGHTS = "supernet/weights.json"
# Networks that judge, and networks that predictors learn from, are drawn with seeds of their own.
JUDGED_SEED, LEARNED_SEED = 1_000_003, 2_000_003
# A pass of an experiment is one over all the images of the half that networks to learn from are measured on, whatever the
# run's own settings; a budget or an early stop of the run would end a measurement before the passes that name it.
MEASURED_SO: Mapping[str, Any] = {"half": "first", "images": None, "budget": None, "stability": None}


class Preset(Settings):
    """How much is measured for the paper's tables and figures: ``quick`` or ``full``."""

    judged: int = Field(ge=10, description="networks that predictions are judged by; the paper has 500")
    passes: tuple[int, ...] = Field(description="validation passes that predictors are given")
    repeats: tuple[int, ...] = Field(description="repeats of the paper's own protocol")
    components: tuple[int, ...] = Field(description="numbers of principal components")
    limits: tuple[int, ...] = Field(description="latency limits of the optimizers, in percent of the range")
    seeds: int = Field(ge=1, description="seeds of every optimizer that has one")
    rival_limits: tuple[int, ...] = Field(
        description="limits of the rival search methods, in percent of the range"
    )
    rival_seeds: int = Field(ge=1, description="times that each of them searches")
    time_limit: float = Field(gt=0, description="seconds a solver may take for one answer")
    standalone: int = Field(ge=3, description="networks trained from scratch")
    standalone_epochs: int = Field(ge=1, description="epochs of each")
    published: float = Field(gt=0, description="seconds to measure published networks for")
    resamples: int = Field(ge=1, description="bootstrap resamples behind every interval")


PRESETS: Mapping[str, Preset] = {
    "quick": Preset(
        judged=150,
        passes=(4, 8, 16, 32, 64),
        repeats=(1, 2),
        components=(1, 2, 4, 8, 16, 32),
        limits=(5, 15, 30),
        seeds=5,
        rival_limits=(15,),
        rival_seeds=3,
        time_limit=20.0,
        standalone=10,
        standalone_epochs=2,
        published=60.0,
        resamples=500,
    ),
    "full": Preset(
        judged=500,
        passes=(4, 8, 16, 32, 64, 128, 256, 512, 1000),
        repeats=(1, 3, 10),
        components=(1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 800),
        limits=tuple(range(5, 61, 5)),
        seeds=5,
        rival_limits=(10, 30, 60),
        rival_seeds=3,
        time_limit=100.0,
        standalone=12,
        standalone_epochs=4,
        published=300.0,
        resamples=1000,
    ),
}


class Series(FileRecord):
    """Numbers drawn alike; ``error`` is half the length of each error bar, ``error_x`` of those along x."""

    name: str
    x: tuple[Drawn, ...] | tuple[str, ...]
    y: tuple[Drawn | None, ...]
    error: tuple[Length | None, ...] | None = None
    error_x: tuple[Length | None, ...] | None = None
    kind: Literal["points", "line", "bars"] = "line"

    @model_validator(mode="after")
    def _of_one_length(self) -> Series:
        if any(
            len(values) != len(self.x) for values in (self.y, self.error, self.error_x) if values is not None
        ):
            raise ValueError("x, y and errors are not as many")
        return self


class Panel(FileRecord):
    """One pair of axes; ``equal`` draws the line on which both agree."""

    title: str
    x: str
    y: str
    series: tuple[Series, ...] = Field(max_length=100)
    equal: bool = False
    log: bool = False


class Finding(FileRecord):
    """What one experiment found: a sentence, rows, and what its picture shows."""

    sentence: str
    rows: tuple[Row, ...]
    panels: tuple[Panel, ...] = Field((), max_length=20)


@dataclass(frozen=True)
class Study:
    """What experiments look at: a run that has been through, how much may be measured, and where results are kept.

    Networks measured for several of them are measured once, in ``folder``.
    """

    run: Run
    folder: Path
    preset: Preset
    progress: Progress

    @property
    def cost(self) -> str:
        """The cost that the first of the run's limits is on."""
        folder, answers = self.run.folder, self.run.answers
        if not answers:
            raise FileError(f"{folder} has no answers yet. `binas search {folder}` finds them.")
        return answers[0].limits[0].cost

    def judged(self) -> Samples:
        """Networks that predictions are judged by, on the half of the images that contributions did not see.

        None of them is among the run's own samples, which estimators may have learned from.
        """
        known = set() if self.run.tables.samples is None else set(self.run.tables.samples.architectures)
        return self._sampled("judged", self.preset.judged, "second", JUDGED_SEED, known)

    def unseen(self) -> Samples:
        """The networks of :meth:`judged` on test images: no choice of the run was made by these networks or images.

        As many images as those networks were measured on, of all classes alike, always the same ones.
        """
        from binas.contributions.sampling import image_halves, sample_of
        from binas.tasks.outcomes import correct_outcomes
        from binas.training.config import FinetuneSettings

        judged, recalibration = self.judged(), self.run.settings(FinetuneSettings).recalibration
        items, most = judged.architectures, int(judged.provenance.to_data()["images"])
        about = {**self._weights(), "networks": [str(item) for item in items], "most": most}
        path = self.folder / "measured" / f"unseen-{identity_of({**about, 'on': recalibration})[:8]}.json"
        if not exists(path):
            part = self.progress.part(0, 1)
            found = [row for (row,) in correct_outcomes(self.run, items, ["test"], recalibration, part, most)]
            halves = image_halves(len(found[0]))
            rows = (sample_of(item, row, halves) for item, row in zip(items, found, strict=True))
            Samples(self.run.space, tuple(rows)).save(path)
        return load_samples(path, self.run.space)

    def _weights(self) -> dict[str, str]:
        """What every measured accuracy depends on."""
        return {"weights": file_digest(self.run.folder / WEIGHTS), "images": self.run.images}

    def learned(self) -> Samples:
        """Networks to learn from, measured on the half that contributions are measured on; none of them judges."""
        judging = set(self.judged().architectures)
        return self._sampled("learned", max(self.preset.passes), "first", LEARNED_SEED, judging)

    def contributions(self, **settings: Any) -> Contributions:
        """Contributions measured with settings of ``estimate`` changed; passes that the run recorded are used again.

        Tables on the way to the last one have another name, so that an interrupted measurement goes on. What it depends on
        (weights, images, settings) is in the name: neither another run nor another training finds it.
        """
        from binas.tables.contributions import load_contributions
        from binas.tasks.estimate import ESTIMATE, EstimateSettings

        changed = {**MEASURED_SO, **settings}
        about = {
            "estimate": self.run.settings(EstimateSettings)
            .model_copy(update=changed)
            .model_dump(mode="json"),
            **self._weights(),
        }
        name = "-".join([*(f"{key}-{value}" for key, value in settings.items()), identity_of(about)[:8]])
        path = self.folder / "measured" / f"contributions-{name}.json"
        if not exists(path):
            unfinished = path.with_suffix(".unfinished.json")
            self._ask(ESTIMATE, unfinished, changed)
            move(unfinished, path)
        return load_contributions(path, self.run.space)

    def _sampled(
        self, name: str, count: int, half: str, seed: int, without: Collection[Architecture]
    ) -> Samples:
        """``count`` networks that are none of ``without``, or half the space where that is less."""
        from binas.contributions.sampling import architectures_to_measure
        from binas.tasks.sample import SAMPLE, SampleSettings

        space, around = self.run.space, self.run.settings(SampleSettings).around
        most, path = min(count, space.count // 2), self.folder / "measured" / f"{name}.json"
        drawn = architectures_to_measure(space, most + len(without), "uniform", seed, around)
        new = [k for k, item in enumerate(drawn) if item not in without][:most]
        settings = {"count": 1 + (new[-1] if new else 1), "half": half, "seed": seed, "strata": "uniform"}
        self._ask(SAMPLE, path, settings)
        measured = load_samples(path, space)
        return measured.take(
            [k for k, item in enumerate(measured.architectures) if item not in without][:most]
        )

    def _ask(self, task: Any, path: Path, settings: Mapping[str, Any]) -> None:
        from binas.run.start import ask

        changes = [(f"{task.name}.{key}", value) for key, value in settings.items()]
        ask(self.run.folder, task, path, changes, self.progress.part(0, 1))


@dataclass(frozen=True)
class Experiment:
    """A table or figure of the paper: its name here, which one it is, what the paper found, and how it is made.

    ``reads`` are patterns of the run's files that it depends on; ``holds`` says which images and networks judge, what they
    had a part in before, and what error bars are.
    """

    name: str
    item: str
    claim: str
    make: Callable[[Study], Finding]
    reads: tuple[str, ...]
    holds: str


def rounded(value: float | None, digits: int = 4) -> float | None:
    """A number for a table; None where it is not defined."""
    return None if value is None or value != value else round(float(value), digits)


def counted(number: int, what: str) -> str:
    """``1 limit``, ``3 limits``."""
    return f"{number} {what}{'' if number == 1 else 's'}"


def seed_error(values: Sequence[float]) -> float | None:
    """Standard error of a mean over seeds, s / sqrt(k) with k - 1 in s; None for one seed, which says nothing of it."""
    return float(np.std(values, ddof=1) / math.sqrt(len(values))) if len(values) > 1 else None


def accuracy_error(percents: Sequence[float], images: int) -> float:
    """Standard error in points of the mean accuracy over seeds, sqrt(s^2 / k + p (1 - p) / n).

    The n images are the same for all k seeds, so more seeds do not lower their part. Of one seed it is all there is.
    """
    mean = Accuracy(float(np.mean(percents)), images)
    return math.hypot(seed_error(percents) or 0.0, mean.error)


def half_length(interval: Interval) -> float:
    """Half the length of an interval: what an error bar shows of it."""
    return (interval.high - interval.low) / 2
