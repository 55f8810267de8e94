"""Train the supernet: read the images, train the heaviest network, then all of them (paper appendix "Overview")."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from binas.base.identity import file_digest
from binas.base.progress import Progress
from binas.base.times import Seconds
from binas.data.config import DataRecord
from binas.tasks._base import Step, Task
from binas.tasks.artefacts import DATA, HEAVIEST, MODEL, SUPERNET
from binas.tasks.outlook import Amount, Outlook, SecondsOf
from binas.training.config import EASING, TrainSettings
from binas.training.judgement import ModelRecord

if TYPE_CHECKING:
    from binas.run.config import Change
    from binas.run.run import Run
    from binas.supernet.network import Supernet
    from binas.training.phases import Bench
    from binas.training.team import Team

EPOCH = 0.1  # seconds of an epoch beside its images: checkpoint and figures
STARTING = 2.0  # seconds before the first step of a phase: processes, packages, figures


def _record_data(run: Run, progress: Progress) -> None:
    """Write what the images are."""
    record = DataRecord.of(run.data)
    DATA.write(run, record)
    progress.say(record.sentence())


def _train_heaviest(run: Run, progress: Progress) -> None:
    """Phase 1."""
    from binas.run.workers import train_shared

    train_shared(run, do_heaviest, (), run.settings(TrainSettings).heaviest.shards, progress)


def do_heaviest(run: Run, team: Team, progress: Progress) -> None:
    """Phase 1 in one process of a team; of a given model it is also written down how good it is."""
    from binas.training.phases import train_heaviest

    where = bench(run, progress, team)
    heaviest = train_heaviest(run.space, where)
    if run.settings(TrainSettings).start is not None:
        _judge_model(run, heaviest, where)


def _judge_model(run: Run, heaviest: Supernet, where: Bench) -> None:
    """Write down what the given model gets right, with a new classifier after that was trained."""
    from binas.supernet.network import extract
    from binas.training.tuned import held_out

    found = held_out(extract(heaviest, run.space.extreme()).eval(), where)
    if where.team.first:
        MODEL.write(run, ModelRecord(judgement=found))


def _train_supernet(run: Run, progress: Progress) -> None:
    """Phase 2, from the weights of phase 1."""
    from binas.run.workers import train_shared

    train_shared(run, do_supernet, (), run.settings(TrainSettings).supernet.shards, progress)


def do_supernet(run: Run, team: Team, progress: Progress) -> None:
    """Phase 2 in one process of a team; phase 1 is read, or where only this is asked for, done."""
    from binas.training.phases import train_heaviest, train_supernet

    where = bench(run, progress, team)
    train_supernet(train_heaviest(run.space, where), where)


def bench(run: Run, progress: Progress | None, team: Team, folder: Path | None = None) -> Bench:
    """Where training happens, in the run's folder or one in it; figures and progress are those of the first process."""
    from binas.contributions.strata import odds_around
    from binas.training.loop import make_accelerator
    from binas.training.phases import Bench
    from binas.training.reporting import Reporter

    settings, place = run.settings(TrainSettings), folder or run.folder
    reporter = Reporter(place, progress) if team.first else Reporter()
    odds = odds_around(run.space, settings.supernet.around)
    return Bench(run.data, settings, place, make_accelerator(settings), reporter, team, odds)


def train_run(
    folder: Path, config: Path | None, changes: Iterable[Change], redo: bool, progress: Progress
) -> Run:
    """Start a run, or open it, and train."""
    from binas.run.engine import advance
    from binas.run.start import around_limits, configure, create_run

    run = create_run(folder, configure(folder, config, changes), redo, progress, [TRAIN])
    run = around_limits(run, progress)
    advance(run, TRAIN.steps, progress)
    return run


def _images(run: Run) -> dict[str, Any]:
    """Space and images by their fingerprints."""
    return {"space": run.space.fingerprint, "images": run.images}


def _beginning(run: Run) -> dict[str, Any]:
    """Space and images, and the weights to start from by their content, wherever the file lies."""
    start = run.settings(TrainSettings).start
    return _images(run) if start is None else {**_images(run), "start": file_digest(start)[:16]}


def _heaviest_seconds(outlook: Outlook) -> Seconds:
    """Epochs, each with a validation that all processes share; a given model as teacher, its BatchNorm, how good it is."""
    settings, rates, images = outlook.settings(TrainSettings), outlook.rates, outlook.images
    phase, adapted = settings.heaviest, settings.start is not None and settings.heaviest.epochs
    judging = (
        (images.validation + images.test) * rates.heaviest_forward / rates.workers
        if settings.start is not None
        else 0.0
    )
    validation = images.validation * rates.heaviest_forward / rates.workers
    taught = rates.heaviest_forward if phase.features else 0.0
    epochs = phase.epochs * (outlook.trained(phase) * (rates.heaviest + taught) + validation + EPOCH)
    again = min(settings.supernet.recalibration, images.train) * rates.heaviest_forward if adapted else 0.0
    return Seconds(epochs + again + judging, STARTING)


def _supernet_seconds(outlook: Outlook) -> Seconds:
    """Epochs, each validated on the heaviest, the lightest and random paths; the teacher's logits; BatchNorm."""
    phase, rates, images = outlook.settings(TrainSettings).supernet, outlook.rates, outlook.images
    validation = images.validation * (rates.heaviest_forward + rates.forward + rates.multipath)
    teacher = images.train * rates.heaviest_forward if phase.distillation.share else 0.0
    epochs = phase.epochs * (outlook.trained(phase) * rates.supernet + validation / rates.workers + EPOCH)
    recalibration = min(phase.recalibration, images.train) * rates.recalibrate
    return Seconds(epochs + teacher / rates.workers + recalibration, STARTING)


def _phase(name: str, does: str, work: Any, seconds: SecondsOf, share: float, **more: Any) -> Step:
    """A phase of training: expensive, its weights in a folder of its own."""
    files = (f"{name}/weights.json", f"{name}/weights-*")
    settings = ("train.seed", "train.mixed_precision", f"train.{name}")
    # A network that starts from weights of one's own is not trained anew because there is time.
    unless = "train.start" if name == HEAVIEST else None
    amounts = (Amount(f"train.{name}.epochs", "epochs", share, unless=unless),)
    easing = tuple(f"train.{name}.{setting}" for setting in EASING)
    more |= {"expensive": True, "easing": easing, "seconds": seconds, "amounts": amounts}
    return Step(f"train.{name}", does, work, files, settings, **more)


TRAIN = Task(
    "train",
    TrainSettings,
    (
        Step(
            "train.data",
            "read and check the images",
            _record_data,
            (DATA.file,),
            ("data",),
            facts=_images,
            seconds=lambda outlook: Seconds(outlook.images.total * outlook.rates.read),
        ),
        _phase(
            HEAVIEST, "train the heaviest network", _train_heaviest, _heaviest_seconds, 0.25, facts=_beginning
        ),
        _phase(
            SUPERNET,
            "train the supernet",
            _train_supernet,
            _supernet_seconds,
            0.38,
            after=("train.heaviest",),
        ),
    ),
    examples=(
        "binas train runs/first --set train.supernet.epochs=12 --redo",
        "binas train runs/first --config configs/demo.yaml",
    ),
)
