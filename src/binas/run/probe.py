"""The speed of this machine for one space and size of images: a tiny run in a temporary folder, timed and thrown away.

Its training is shared out to the same processes as that of a run, and so are its evaluations, so the rates are those of all
cores at work. Only speed matters: labels are invented, and images repeated where there are few.
"""

from __future__ import annotations

import time
from dataclasses import replace
from math import ceil
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

import numpy as np

from binas.base.progress import Progress
from binas.costs.table import MeasureSettings
from binas.data.config import DataConfig
from binas.run.config import RunConfig
from binas.run.run import Run
from binas.run.workers import map_shared, train_shared
from binas.space.files import save_space
from binas.space.space import SearchSpace
from binas.tasks.artefacts import SPACE
from binas.tasks.outlook import Rates
from binas.tasks.train import bench
from binas.training.config import FinetuneSettings, Phase, TrainSettings

if TYPE_CHECKING:
    from binas.base.workers import Work
    from binas.data.dataset import ImageData
    from binas.data.images import Images
    from binas.training.team import Team

SECONDS = 2.0  # of training steps that are timed, for each phase
MOST_STEPS, FEWEST_STEPS = 60, 5
PIXELS = 2**25  # of all images of the tiny run, at most, but for the fewest steps
CLASSES = 10
VALIDATION_SHARE = 0.1
READ = 128  # images that are read to learn how long that takes


def probe(space: SearchSpace, data: ImageData, config: RunConfig) -> Rates:
    """Time a few steps of everything; some seconds of work that leave nothing behind."""
    from binas.training.team import processes_of

    measuring, settings = config.part(MeasureSettings), config.part(TrainSettings)
    workers, reading = processes_of(settings), reading_seconds(data.train)
    with TemporaryDirectory(prefix="binas-probe-") as folder:
        tiny = _tiny_run(Path(folder), space, data, config)
        heaviest = _step(tiny, time_heaviest, settings.heaviest, FEWEST_STEPS)
        steps = min(MOST_STEPS, ceil(SECONDS / heaviest))
        if steps > FEWEST_STEPS:
            heaviest = _step(tiny, time_heaviest, settings.heaviest, steps)
        supernet = _step(tiny, time_supernet, settings.supernet, max(FEWEST_STEPS, steps))
        each = heaviest / settings.heaviest.batch_size * workers
        tiny = _limited(tiny, config.part(FinetuneSettings), max(FEWEST_STEPS, steps // workers))
        found = np.mean(list(map_shared(tiny, timer, [each], list(range(workers)))), axis=0).tolist()
    names = ("heaviest_forward", "multipath", "forward", "recalibrate", "network")
    rates = dict(zip(names, found, strict=True))
    rates["network"] += reading
    how = next(iter(measuring.variants.values())) if measuring.measures else None
    table, prepare = (0.0, 0.0) if how is None else _preparing(space, how)
    return Rates(
        heaviest=heaviest / settings.heaviest.batch_size + reading,
        supernet=supernet / settings.supernet.batch_size + reading,
        table=table,
        prepare=prepare,
        workers=workers,
        **rates,
    )


def _preparing(space: SearchSpace, how: Any) -> tuple[float, float]:
    from binas.costs.measure import seconds_to_prepare

    return seconds_to_prepare(space, how)


def reading_seconds(images: Images) -> float:
    """Seconds to read an image each time it is used; 0 where all there is of them is held in memory."""
    from binas.data.images import ArrayImages

    if isinstance(images, ArrayImages):
        return 0.0
    start, seen = time.perf_counter(), 0
    for batch in images.batches(32, seed=0):
        seen += len(batch)
        if seen >= READ:
            break
    return (time.perf_counter() - start) / max(1, seen)


def _tiny_run(folder: Path, space: SearchSpace, data: ImageData, config: RunConfig) -> Run:
    """A run of some of the images; with fewer classes, where there are many, so that few images are enough."""
    classes = min(CLASSES, space.classes or CLASSES)
    small = replace(space, classes=classes)
    train = config.part(TrainSettings)
    batch = max(phase.batch_size for phase in (train.heaviest, train.supernet, config.part(FinetuneSettings)))
    height, width = data.size
    most = max(PIXELS // (height * width), _images(FEWEST_STEPS, batch))
    rows = np.arange(min(most, _images(MOST_STEPS, batch)))
    images = _pixels(data.train, len(rows))
    np.savez(folder / "images.npz", images=images, labels=rows % classes)
    save_space(small, folder / SPACE.file)
    source = DataConfig(kind="arrays", path=folder / "images.npz", validation_share=VALIDATION_SHARE)
    phases = {name: _plain(getattr(train, name)) for name in ("heaviest", "supernet")}
    parts = {"train": train.model_copy(update=phases), "finetune": _plain(config.part(FinetuneSettings))}
    return Run(folder, config.model_copy(update={"data": source, **parts}), small)


def _plain(phase: Phase) -> Phase:
    """One epoch of images in full size."""
    return phase.model_copy(update={"epochs": 1, "first_size": 1.0})


def _pixels(images: Images, count: int) -> Any:
    """``count`` images (n, c, h, w), those there are again and again, with their number in the first pixels.

    Without it they would be copies, and parts of a dataset that share images are refused.
    """
    batch = next(iter(images.batches(min(count, READ))))
    pixels = np.resize(batch.images.numpy(), (count, *batch.images.shape[1:]))
    for place in range(2):
        pixels[:, 0, 0, place] = np.arange(count) // 256**place % 256
    return pixels


def _images(steps: int, batch: int) -> int:
    """How many images of the tiny run are needed for so many training steps: a fifth tests, a tenth validates."""
    return ceil(steps * batch / 0.8 / (1 - VALIDATION_SHARE)) + 2 * CLASSES


def _limited(run: Run, phase: Phase, steps: int) -> Run:
    """The tiny run with images for about so many steps."""
    count = ceil(steps * phase.batch_size / (1 - VALIDATION_SHARE)) + CLASSES
    return run.changed(
        run.config.model_copy(update={"data": run.config.data.model_copy(update={"limit": count})})
    )


def _step(run: Run, work: Any, phase: Phase, steps: int) -> float:
    """Seconds of a training step, in the processes that would do it."""
    seconds: float = train_shared(_limited(run, phase, steps), work, [steps], phase.shards)
    return seconds


def time_heaviest(run: Run, team: Team, progress: Progress, steps: int) -> float:
    """Seconds of a step of phase 1, in one process of a team."""
    from binas.training.phases import train_heaviest
    from binas.training.probe import step_seconds

    where = bench(run, None, team, run.folder / f"steps-{steps}")
    return step_seconds(where, lambda bench: train_heaviest(run.space, bench))


def time_supernet(run: Run, team: Team, progress: Progress, steps: int) -> float:
    """Seconds of a step of phase 2, in one process of a team."""
    from binas.training.phases import fresh_supernet, train_supernet
    from binas.training.probe import step_seconds

    heaviest = fresh_supernet(run.space, 0).eval()
    where = bench(run, None, team, run.folder / f"steps-{steps}")
    return step_seconds(where, lambda bench: train_supernet(heaviest, bench))


def timer(run: Run, training: float) -> Work:
    """What times evaluations, and training steps of one network, in one process, while others do the same."""
    from binas.space.sampling import sample_many
    from binas.training.phases import fine_tune, fresh_supernet
    from binas.training.probe import evaluating_seconds, step_seconds
    from binas.training.team import Team

    supernet, phase = fresh_supernet(run.space, 0).eval(), run.settings(FinetuneSettings)
    middle = sample_many(run.space, 1, seed=0)[0]

    def timed(number: int, progress: Progress) -> list[float]:
        where = bench(run, None, Team(), run.folder / f"networks-{number}")
        network = supernet.to(where.accelerator.device)
        found = evaluating_seconds(network, where, training)
        step = step_seconds(where, lambda bench: fine_tune(network, network, middle, bench, phase))
        return [*found, step / phase.batch_size]

    return timed
