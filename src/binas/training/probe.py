"""How fast this machine trains and evaluates networks of a space: a few real steps of each kind, timed.

The phases themselves are started in a temporary folder, in as many processes as they would use, and stopped after a few
seconds, so that what is timed is what a run will do. Nothing of it is kept.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, replace
from math import ceil
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import cast

from binas.data.dataset import ImageData
from binas.data.images import Images, IndexedImages
from binas.space.sampling import sample_many
from binas.space.space import SearchSpace
from binas.supernet.network import Supernet, extract
from binas.training.calibration import recalibrate
from binas.training.config import FinetuneSettings, Phase, TrainSettings
from binas.training.evaluation import (
    accuracy,
    calibration_batches,
    device_of,
    evaluate_architecture,
    multipath_accuracy,
)
from binas.training.loop import make_accelerator
from binas.training.phases import Bench, fine_tune, fresh_supernet, train_heaviest, train_supernet
from binas.training.reporting import Reporter

SECONDS = 2.0  # of training steps that are timed, for each phase
WARM = 3  # steps before them: memory and kernels are prepared in the first
MOST_STEPS = 200
EVALUATED = 0.7  # seconds of evaluating that are timed, about, for each kind
NETWORKS = 3  # drawn; their mean is a network in the middle of the space


@dataclass(frozen=True)
class TrainingRates:
    """Seconds per image; see :class:`binas.tasks.outlook.Rates`."""

    heaviest: float
    supernet: float
    network: float
    heaviest_forward: float
    multipath: float
    forward: float
    recalibrate: float


def probe_training(
    space: SearchSpace, data: ImageData, train: TrainSettings, finetune: FinetuneSettings
) -> TrainingRates:
    """Time training steps of the three phases and evaluations, on these images."""
    supernet = fresh_supernet(space, train.seed).eval()
    with TemporaryDirectory(prefix="binas-probe-") as folder:
        place = _Place(space, data, train, Path(folder))
        heaviest = place.seconds(train.heaviest, lambda bench: train_heaviest(space, bench))
        count = ceil(SECONDS / heaviest)  # as many as the teacher should look at before the steps begin
        taught = place.seconds(train.supernet, lambda bench: train_supernet(supernet, bench), count)
        middle = sample_many(space, NETWORKS, seed=0)[0]
        tuned = place.seconds(
            finetune, lambda bench: fine_tune(supernet, supernet, middle, bench, finetune), count
        )
        supernet = supernet.to(make_accelerator(train).device)
    return TrainingRates(heaviest, taught, tuned, *_evaluating(supernet, data, heaviest))


@dataclass(frozen=True)
class _Place:
    space: SearchSpace
    data: ImageData
    train: TrainSettings
    folder: Path

    def seconds(self, phase: Phase, work: Callable[[Bench], object], count: int | None = None) -> float:
        """Seconds per image of training steps, on about ``count`` images."""
        steps = MOST_STEPS if count is None else ceil(count / phase.batch_size)
        batches = min(len(self.data.train) // phase.batch_size, WARM + max(2, min(steps, MOST_STEPS)))
        data = replace(
            self.data,
            train=some(self.data.train, batches * phase.batch_size),
            validation=some(self.data.validation, 64),
        )
        watch = _Stopwatch(batches)
        with TemporaryDirectory(dir=self.folder) as own, suppress(_EnoughError):
            work(Bench(data, self.train, Path(own), make_accelerator(self.train), watch))
        return watch.step / phase.batch_size


class _EnoughError(Exception):
    """The steps that were timed are enough."""


class _Stopwatch(Reporter):
    """Times the steps of a phase, and stops it after some seconds or at the end of the first epoch."""

    def __init__(self, batches: int) -> None:
        super().__init__()
        self.batches, self.times = batches, [time.perf_counter()]

    def start(self, phase: str, total: int, done: int) -> None:
        """The first step begins."""
        self.times = [time.perf_counter()]

    def advance(self, done: int, **values: float) -> None:
        """A step is done."""
        self.times.append(time.perf_counter())
        timed = self.times[self._warm :]
        known = len(self.times) > WARM + 1 or timed[-1] - self.times[1] > SECONDS
        if done >= self.batches or (known and timed[-1] - timed[0] >= SECONDS):
            raise _EnoughError

    @property
    def _warm(self) -> int:
        """Steps that do not count: the first few, but no more than half of them, and only one where steps are long."""
        long = len(self.times) > 2 and self.times[2] - self.times[1] > SECONDS
        return min(1 if long else WARM, (len(self.times) - 1) // 2)

    @property
    def step(self) -> float:
        """Mean seconds of a step."""
        timed = self.times[self._warm :]
        return (timed[-1] - timed[0]) / (len(timed) - 1)


def some(images: Images, count: int) -> Images:
    """The first of a set, at most ``count``; a stream is left whole."""
    if not images.indexed:
        return images
    return cast(IndexedImages, images).take(range(min(count, len(images))))


def _evaluating(supernet: Supernet, data: ImageData, training: float) -> tuple[float, float, float, float]:
    """Seconds per image of the heaviest network, random paths, single networks, and re-estimating BatchNorm."""
    count = max(32, ceil(3 * EVALUATED / training))  # a training step is about three forward passes
    images, device = some(data.train, count), device_of(supernet)
    largest, drawn = supernet.space.extreme(), sample_many(supernet.space, NETWORKS, seed=0)

    def single() -> None:
        for architecture in drawn:
            evaluate_architecture(supernet, architecture, data, images)

    def statistics() -> None:
        for architecture in drawn:
            recalibrate(extract(supernet, architecture), calibration_batches(data, size, device))

    size, shown = min(256, len(images)), len(images)
    return (
        _timed(lambda: accuracy(lambda x: supernet(x, largest), data, images, device)) / shown,
        _timed(lambda: multipath_accuracy(supernet, data, images)) / shown,
        _timed(single) / (shown * NETWORKS),
        _timed(statistics) / (size * NETWORKS),
    )


def _timed(work: Callable[[], object]) -> float:
    """Seconds of the second of two times: kernels and memory are prepared in the first."""
    work()
    start = time.perf_counter()
    work()
    return time.perf_counter() - start
