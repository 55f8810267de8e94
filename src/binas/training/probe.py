"""How fast this machine trains and evaluates networks: a few real steps and evaluations, timed.

The phases themselves are run on a few images, so that what is timed is what a run will do.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from math import ceil
from typing import cast

from binas.data.images import Images, IndexedImages
from binas.space.sampling import sample_many
from binas.supernet.network import Supernet, extract
from binas.training.calibration import recalibrate
from binas.training.evaluation import (
    accuracy,
    calibration_batches,
    device_of,
    evaluate_architecture,
    multipath_accuracy,
)
from binas.training.phases import Bench
from binas.training.reporting import Reporter

WARM = 3  # steps that do not count: memory and kernels are prepared in the first
EVALUATED = 0.7  # seconds of evaluating that are timed, about, for each kind
NETWORKS = 3  # drawn; their mean is a network in the middle of the space


def step_seconds(bench: Bench, work: Callable[[Bench], object]) -> float:
    """Mean seconds of the training steps of a phase that ``work`` does, without the first ones."""
    watch = Stopwatch()
    work(replace(bench, reporter=watch))
    return watch.step


class Stopwatch(Reporter):
    """Notes when each step of the first epoch of a phase was done."""

    def __init__(self) -> None:
        super().__init__()
        self.times: list[float] = []

    def start(self, phase: str, total: int, done: int) -> None:
        """The first step begins."""
        self.times = [time.perf_counter()]

    def advance(self, done: int, **values: float) -> None:
        """A step is done."""
        self.times.append(time.perf_counter())

    @property
    def step(self) -> float:
        """Mean seconds of a step; the first few, but no more than half of them, are left out."""
        timed = self.times[min(WARM, (len(self.times) - 1) // 2) :]
        return (timed[-1] - timed[0]) / (len(timed) - 1)


def evaluating_seconds(supernet: Supernet, bench: Bench, training: float) -> list[float]:
    """Seconds per image of the heaviest network, random paths, single networks, and re-estimating BatchNorm.

    ``training`` are those of training steps, which are about three forward passes.
    """
    data, device = bench.data, device_of(supernet)
    images = _some(data.train, max(32, ceil(3 * EVALUATED / training)))
    largest, drawn = supernet.space.extreme(), sample_many(supernet.space, NETWORKS, seed=0)
    size, count = min(256, len(images)), len(images)

    def single() -> None:
        for architecture in drawn:
            evaluate_architecture(supernet, architecture, data, images)

    def statistics() -> None:
        for architecture in drawn:
            recalibrate(extract(supernet, architecture), calibration_batches(data, size, device))

    return [
        _seconds(lambda: accuracy(lambda x: supernet(x, largest), data, images, device)) / count,
        _seconds(lambda: multipath_accuracy(supernet, data, images)) / count,
        _seconds(single) / (count * NETWORKS),
        _seconds(statistics) / (size * NETWORKS),
    ]


def _some(images: Images, count: int) -> Images:
    """The first of a set, at most ``count``."""
    return cast(IndexedImages, images).take(range(min(count, len(images))))


def _seconds(work: Callable[[], object]) -> float:
    """Of the second of two times: kernels and memory are prepared in the first."""
    work()
    start = time.perf_counter()
    work()
    return time.perf_counter() - start
