"""The three phases (paper appendix "Overview"): the heaviest network, the supernet, a network of its own.

Each function builds one :class:`Job` (what is a step's loss, what is shown after an epoch), lets the loop run it,
and keeps the weights. A phase that is finished is read back instead.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TypeVar, cast

import torch
from accelerate import Accelerator
from torch import Tensor, nn

from binas.base.cores import no_bf16
from binas.base.errors import DataError, ExplodedError, TrainingError
from binas.base.identity import flattened
from binas.base.workers import launched
from binas.data.augment import Augmentation
from binas.data.dataset import ImageData
from binas.space.architecture import Architecture
from binas.space.odds import Odds
from binas.space.space import SearchSpace
from binas.supernet.network import Supernet, extract
from binas.supernet.paths import nearer_heaviest, sample_paths, with_extremes
from binas.supernet.static import StaticNetwork
from binas.training.calibration import recalibrate, recalibrate_supernet
from binas.training.checkpoint import (
    first_not_finite,
    has_checkpoint,
    load_checkpoint,
    load_weights,
    read_tensors,
    remove_checkpoint,
    remove_orphans,
    save_checkpoint,
    weights_digest,
)
from binas.training.config import (
    Distillation,
    FinetuneSettings,
    HeaviestPhase,
    MultiPath,
    Phase,
    TrainSettings,
)
from binas.training.evaluation import (
    accuracy,
    calibrate_multipath,
    calibration_batches,
    device_of,
    multipath_accuracy,
)
from binas.training.features import FeatureTeacher
from binas.training.loop import UNFINISHED, WEIGHTS, Job, LossOf, Metrics, Step, check_identity, fit
from binas.training.losses import Teacher, distillation_loss, soft_cross_entropy, targets
from binas.training.randomness import derived_seed, generator
from binas.training.reporting import Reporter
from binas.training.team import ALONE, Team, on_cpu

Network = TypeVar("Network", bound=nn.Module)
FINETUNE = "finetune"  # folder of phase 3 in that of a network


@dataclass(frozen=True)
class Bench:
    """Where training happens: data, settings, a folder for checkpoints, device and reports."""

    data: ImageData
    config: TrainSettings
    folder: Path
    accelerator: Accelerator
    reporter: Reporter = field(default_factory=Reporter)
    team: Team = ALONE
    odds: tuple[Odds, ...] = ()


def check_training(config: TrainSettings, finetune: FinetuneSettings, data: ImageData) -> None:
    """Before hours of training: refuse phases that cannot run on these images, in as many processes as were launched."""
    if config.mixed_precision == "fp16" and on_cpu(config):
        raise TrainingError(
            "train.mixed_precision is fp16, which needs a GPU, and there is none to be used. Set it to bf16 or no."
        )
    reason = no_bf16() if config.mixed_precision == "bf16" and on_cpu(config) else None
    if reason is not None:
        raise TrainingError(f"train.mixed_precision is bf16: {reason} (train.mixed_precision=no).")
    if config.heaviest.features and config.start is None:
        raise TrainingError(
            "train.heaviest.features keeps what the weights of train.start give, and there are none. Set it to 0."
        )
    phases = {"train.heaviest": config.heaviest, "train.supernet": config.supernet, "finetune": finetune}
    for name, phase in phases.items():
        _check_phase(name, phase, data, phase.shards or max(1, launched()))


def _check_phase(name: str, phase: Phase, data: ImageData, shards: int) -> None:
    if phase.batch_size > len(data.train):
        raise TrainingError(
            f"{name}: a batch of {phase.batch_size} images needs more than the {len(data.train)} training images there "
            f"are. Set {name}.batch_size to at most that."
        )
    if phase.batch_size < 2 * shards:
        raise TrainingError(
            f"{name}: a batch of {phase.batch_size} gives less than two images to each of {shards} shards, and "
            f"BatchNorm needs two. Set {name}.batch_size to at least {2 * shards}, or {name}.shards to less."
        )
    try:
        Augmentation.of(data, phase.augment)
    except DataError as error:
        raise TrainingError(f"{name}: {error} Change {name}.augment.") from error


def fresh_supernet(space: SearchSpace, seed: int) -> Supernet:
    """A supernet with random weights that depend on the seed only."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(derived_seed(seed, "weights"))
        return Supernet(space)


def fresh_network(space: SearchSpace, architecture: Architecture, seed: int) -> StaticNetwork:
    """A network of its own with random weights that depend on the seed only."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(derived_seed(seed, "weights"))
        return StaticNetwork.from_architecture(space, architecture)


def train_heaviest(space: SearchSpace, bench: Bench) -> Supernet:
    """Phase 1: w_h, the largest architecture. It is trained in place, so that the supernet starts from it."""
    bench.data.check(space)
    phase, largest = bench.config.heaviest, space.extreme()
    supernet, origin = fresh_supernet(space, bench.config.seed), {"space": space.fingerprint}
    if bench.config.start is not None:
        origin["start"] = start_from_file(supernet, bench.config.start)

    teacher = _feature_teacher(supernet, largest, phase)

    def loss_of(model: nn.Module, step: Step) -> Tensor:
        loss = _label_loss(model(step.images, largest), step, phase)
        return loss if teacher is None else loss + teacher.loss(step.images)

    def measure(network: nn.Module) -> Metrics:
        predict = partial(network, paths=largest)
        data, device = bench.data, device_of(network)
        return {"heaviest": accuracy(predict, data, data.validation, device, bench.team).percent}

    def recalibrated(done: Supernet) -> None:
        """Weights of others may have a BatchNorm momentum (0.01) that a short training does not bring up to date."""
        if bench.config.start is not None and phase.epochs:
            count, team = bench.config.supernet.recalibration, bench.team
            batches = calibration_batches(bench.data, count, device_of(done), team=team)
            recalibrate_supernet(
                done, (None if x is None else partial(done, x, largest) for x in batches), team
            )

    job = _job(bench, "heaviest", supernet, loss_of, measure, phase, origin)
    return _train_or_read(job, supernet, recalibrated)


def _feature_teacher(
    supernet: Supernet, largest: Architecture, phase: HeaviestPhase
) -> FeatureTeacher | None:
    """The heaviest network as it is now, which is to teach features; None where it is not."""
    if not phase.features:
        return None
    original = extract(supernet, largest)
    return FeatureTeacher(original, original.head, supernet.head, phase.features)


def start_from_file(supernet: Supernet, path: Path) -> str:
    """Give the heaviest network the weights of a file, and a short hash of them."""
    network = StaticNetwork.from_architecture(supernet.space, supernet.space.extreme())
    load_weights(network, read_tensors(path), str(path))
    supernet.absorb(network)
    return weights_digest(network)


def train_supernet(heaviest: Supernet, bench: Bench) -> Supernet:
    """Phase 2: w*, from w_h: every image on a uniform path, taught by w_h.

    At the end BatchNorm is re-estimated.
    """
    space, phase = heaviest.space, bench.config.supernet
    supernet = start_supernet(heaviest, bench.config.seed)
    teacher = teacher_of(heaviest, bench.data, phase.distillation, bench.folder / "heaviest", bench.team)

    def loss_of(model: nn.Module, step: Step) -> Tensor:
        drawn = generator(bench.config.seed, "paths", step.epoch, step.batch, step.shard)
        paths = sample_paths(space, len(step.labels), drawn, phase.groups, bench.odds)
        if (changed := _changed(phase, step, bench)) < 1:
            paths = nearer_heaviest(space, paths, changed, drawn)
        paths = with_extremes(space, paths, phase.sandwich) if phase.sandwich else paths
        logits = model(step.images, paths)
        return _taught_loss(logits, step, phase, teacher)

    job = _job(
        bench,
        "supernet",
        supernet,
        loss_of,
        lambda network: supernet_metrics(network, bench.data, bench.team, bench.odds),
        phase,
        {"space": space.fingerprint, "heaviest": weights_digest(heaviest)},
    )
    return _train_or_read(
        job,
        supernet,
        lambda done: calibrate_multipath(
            done, bench.data, phase.recalibration, bench.config.seed, bench.team, bench.odds
        ),
    )


def start_supernet(heaviest: Supernet, seed: int) -> Supernet:
    """The supernet before its first step, with the weights of w_h.

    The channels of every block are sorted by importance, so that narrower configs keep the best ones, and smaller kernels
    and private norms start from those of w_h.
    """
    supernet = fresh_supernet(heaviest.space, seed).to(device_of(heaviest))
    supernet.load_state_dict(heaviest.state_dict())
    supernet.start_from(heaviest.space.extreme())
    return supernet


def _changed(phase: MultiPath, step: Step, bench: Bench) -> float:
    """Share of the decisions that are drawn at a step: from 0 to 1 over the first ``gradual`` of the phase, then all."""
    batches = len(bench.data.train) // phase.batch_size
    done = (step.epoch * batches + step.batch + 1) / (phase.epochs * batches)
    return min(1.0, done / phase.gradual) if phase.gradual else 1.0


def fine_tune(
    supernet: Supernet,
    heaviest: Supernet,
    architecture: Architecture,
    bench: Bench,
    phase: FinetuneSettings,
    teacher: Teacher | None = None,
) -> StaticNetwork:
    """Phase 3: one architecture as a network of its own, from the weights of w*, taught by w_h.

    ``bench.folder`` is that of this architecture. The epoch with the best validation accuracy is kept, measured on the
    averaged weights where averaging is on; epoch 0 is the recalibrated start. From scratch, only the start differs:
    epochs, schedule and teacher are the same, so that the two can be compared. ``teacher`` is that of
    :func:`teacher_of`, given where several networks are fine-tuned, so that its logits are computed once.
    """
    space = supernet.space
    finished = has_checkpoint(bench.folder / FINETUNE, WEIGHTS)  # then any weights do: they are read
    network = (
        StaticNetwork.from_architecture(space, architecture)
        if finished
        else _starting_network(supernet, heaviest, architecture, bench, phase)
    )
    taught_by = teacher or teacher_of(heaviest, bench.data, phase.distillation, team=bench.team)

    def loss_of(model: nn.Module, step: Step) -> Tensor:
        return _taught_loss(model(step.images), step, phase, taught_by)

    job = _job(
        bench,
        FINETUNE,
        network,
        loss_of,
        partial(_validated, bench),
        phase,
        {
            "space": space.fingerprint,
            "architecture": str(architecture),
            "supernet": weights_digest(supernet),
            "heaviest": weights_digest(heaviest),
        },
        select="accuracy",
    )
    return _train_or_read(job, network)


def train_from_scratch(
    network: Network, bench: Bench, phase: Phase, origin: Mapping[str, str], teacher: Teacher | None = None
) -> Network:
    """Any network, of a space or not, from the weights it has; ``origin`` says what it is, and who teaches it.

    Without a ``teacher`` it learns from labels alone. As in :func:`fine_tune` the epoch with the best validation accuracy
    is kept, and a finished training is read.
    """

    def loss_of(model: nn.Module, step: Step) -> Tensor:
        logits = model(step.images)
        return (
            _label_loss(logits, step, phase)
            if teacher is None
            else _taught_loss(logits, step, phase, teacher)
        )

    measure = partial(_validated, bench)
    job = _job(bench, "scratch", network, loss_of, measure, phase, origin, select="accuracy")
    return _train_or_read(job, network)


def _validated(bench: Bench, network: nn.Module) -> Metrics:
    data = bench.data
    return {"accuracy": accuracy(network, data, data.validation, device_of(network), bench.team).percent}


def teacher_of(
    heaviest: Supernet,
    data: ImageData,
    settings: Distillation,
    folder: Path | None = None,
    team: Team = ALONE,
) -> Teacher:
    """The heaviest network as a teacher, its logits kept in ``folder``."""
    return Teacher(extract(heaviest, heaviest.space.extreme()), data, settings, folder, team)


def _starting_network(
    supernet: Supernet, heaviest: Supernet, architecture: Architecture, bench: Bench, phase: FinetuneSettings
) -> StaticNetwork:
    """The network fine-tuning starts from: the supernet's weights with statistics of its own, or fresh ones.

    With n ``blends`` its weights are (1 - t) * w_h + t * w*, of t = 1, ..., 1/n, 0 the first best by validation images: a
    large sub-network of a short phase 2 may be better with weights nearer to w_h, which never shared them.
    """
    if phase.from_scratch:
        return fresh_network(supernet.space, architecture, bench.config.seed)

    def recalibrated(network: StaticNetwork) -> StaticNetwork:
        device, team = device_of(supernet), bench.team
        recalibrate(network, calibration_batches(bench.data, phase.recalibration, device, team=team), team)
        return network

    last = extract(supernet, architecture)
    if not phase.blends:
        return recalibrated(last)
    first = extract(start_supernet(heaviest, bench.config.seed), architecture)
    mixed = (blended(first, last, k / phase.blends) for k in range(phase.blends, -1, -1))
    return max(map(recalibrated, mixed), key=lambda network: _validated(bench, network.eval())["accuracy"])


def blended(first: Network, last: Network, t: float) -> Network:
    """A network with weights (1 - t) * first + t * last; what is counted is the last one's."""
    network = copy.deepcopy(last)
    with torch.no_grad():
        for value, start in zip(network.state_dict().values(), first.state_dict().values(), strict=True):
            if value.is_floating_point():
                value.copy_(torch.lerp(start, value, t))
    return network


def supernet_metrics(
    network: nn.Module, data: ImageData, team: Team = ALONE, odds: Sequence[Odds] = ()
) -> Metrics:
    """Validation accuracy in percent of the heaviest, the lightest and sub-networks drawn as they are in training."""
    assert isinstance(network, Supernet)
    accuracies = {}
    for name, largest in (("heaviest", True), ("lightest", False)):
        predict = partial(network, paths=network.space.extreme(largest))
        accuracies[name] = accuracy(predict, data, data.validation, device_of(network), team)
    accuracies["random"] = multipath_accuracy(network, data, data.validation, team=team, odds=odds)
    return {name: value.percent for name, value in accuracies.items()}


def _label_loss(logits: Tensor, step: Step, phase: Phase) -> Tensor:
    target = targets(step.labels, logits.shape[1], phase.label_smoothing, step.other, step.weight)
    return soft_cross_entropy(logits, target)


def _taught_loss(logits: Tensor, step: Step, phase: Phase, teacher: Teacher) -> Tensor:
    """(1 - share) * cross entropy + share * distillation."""
    share, temperature = teacher.settings.share, teacher.settings.temperature
    loss = _label_loss(logits, step, phase)
    if not share:
        return loss
    return (1 - share) * loss + share * distillation_loss(logits, teacher(step), temperature)


def _job(
    bench: Bench,
    name: str,
    network: nn.Module,
    loss_of: LossOf,
    measure: Callable[[nn.Module], Metrics],
    phase: Phase,
    origin: Mapping[str, str],
    select: str | None = None,
) -> Job:
    settings = flattened(phase.model_dump(mode="json"))
    identity = {
        **origin,
        "data": bench.data.fingerprint(),
        "seed": bench.config.seed,
        "mixed_precision": bench.config.mixed_precision,
        **settings,
    }
    return Job(
        name,
        network,
        loss_of,
        phase,
        bench.data,
        bench.config,
        bench.folder / name,
        identity,
        measure,
        bench.accelerator,
        bench.reporter,
        select,
        bench.team,
    )


def _train_or_read(job: Job, result: Network, finish: Callable[[Network], None] | None = None) -> Network:
    """Weights of a finished phase, read back or trained now; ``finish`` is the last thing done to them."""
    finished = has_checkpoint(job.folder, WEIGHTS)
    job.team.wait()  # all have looked before the first writes: without an epoch nothing else holds them together
    if not finished:
        network = cast(Network, fit(job))
        if finish:
            finish(network)
        name = first_not_finite(network.state_dict())
        if name is not None:
            raise ExplodedError(
                f"{job.name}: {name} is not finite when all is done. Lower {job.setting}.learning_rate and train this "
                "phase anew with --redo."
            )
        if job.team.first:
            save_checkpoint(job.folder, WEIGHTS, network.state_dict(), {"identity": job.identity})
        job.team.wait()
    if job.team.first:  # also where a kill came between the two
        for name in UNFINISHED:
            remove_checkpoint(job.folder, name)
        remove_orphans(job.folder)
    checkpoint = load_checkpoint(job.folder, WEIGHTS)  # so that all processes continue with the same
    check_identity(checkpoint.values, job.identity, job.folder)
    load_weights(result, checkpoint.tensors, str(job.folder))
    return result.to(job.accelerator.device).eval()
