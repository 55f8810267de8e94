"""The training loop, the same for every phase: read it top to bottom.

Order of images, augmentation and paths are functions of (seed, epoch, step, shard), so a resumed run repeats the
uninterrupted one bit for bit on a CPU, in whatever number of processes (:mod:`binas.training.team`). A checkpoint holds
weights, optimizer, average, the state of torch's generator and the position (epoch, batch); the schedule is a function
of the position. That of the last whole epoch, which was validated, stays beside one within the next: weights can be past
saving for a while before a number is not finite, so training that explodes goes back to it.
"""

from __future__ import annotations

import copy
import math
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Any

import torch
from accelerate import Accelerator
from pydantic import BaseModel, ConfigDict, Field, ValidationError
from torch import Tensor, nn

from binas.base.errors import CheckpointError, ExplodedError, TrainingError
from binas.base.identity import changes, only_lower
from binas.base.interrupts import Interrupted, noted, postponed
from binas.data.augment import Augmentation, resize
from binas.data.dataset import ImageData
from binas.data.images import Batch, moved
from binas.supernet.depthwise import fast_filters
from binas.supernet.network import keep_memory
from binas.supernet.rows import side_by_side
from binas.training.calibration import brisk_statistics
from binas.training.checkpoint import (
    Checkpoint,
    first_not_finite,
    has_checkpoint,
    load_checkpoint,
    load_generator,
    load_optimizer,
    load_weights,
    read_values,
    remove_checkpoint,
    save_checkpoint,
)
from binas.training.config import EASING, GROWN, Phase, TrainSettings
from binas.training.randomness import derived_seed
from binas.training.reporting import Reporter
from binas.training.shared_norms import shared_statistics
from binas.training.team import ALONE, Shards, Team

Metrics = dict[str, float]
WEIGHTS, BEST = "weights", "best"  # names of checkpoints
PROGRESS, WITHIN = UNFINISHED = "progress", "within"  # of the last whole epoch, and within the next


@dataclass(frozen=True, slots=True)
class Step:
    """What one shard of a training step gets: augmented, normalised images and where they come from.

    ``other`` and ``weight`` are those of mixup: image i is weight * i + (1 - weight) * other[i]; one weight, or one each,
    (n, 1).
    """

    epoch: int
    batch: int
    images: Tensor
    labels: Tensor
    indices: Tensor
    other: Tensor | None
    weight: float | Tensor
    shard: int = 0


def together(steps: Sequence[Step]) -> Step:
    """Several shards of a batch as one; each keeps its own augmentation and mixup."""
    if len(steps) == 1:
        return steps[0]
    first, sizes = steps[0], [len(step.labels) for step in steps]
    images, labels, indices = (
        torch.cat([getattr(step, name) for step in steps]) for name in ("images", "labels", "indices")
    )
    weights = torch.cat(
        [
            labels.new_full((n, 1), float(step.weight), dtype=torch.float32)
            for n, step in zip(sizes, steps, strict=True)
        ]
    )
    begins = [sum(sizes[:number]) for number in range(len(sizes))]
    others = [begin + step.other for begin, step in zip(begins, steps, strict=True) if step.other is not None]
    return Step(
        first.epoch,
        first.batch,
        side_by_side(images),
        labels,
        indices,
        torch.cat(others) if others else None,
        weights,
        first.shard,
    )


LossOf = Callable[[nn.Module, Step], Tensor]


@dataclass(frozen=True)
class Job:
    """One phase of training: what is trained, on what, how, and where its checkpoints live.

    ``identity`` names everything the result depends on; a checkpoint with another identity is refused.
    ``measure`` gives the figures shown after each epoch, from the network in eval mode, and is called in all processes
    of ``team``; with ``select`` the weights of the epoch in which that figure is highest are returned, the start
    counting as epoch 0, else the last.
    """

    name: str
    network: nn.Module
    loss_of: LossOf
    phase: Phase
    data: ImageData
    config: TrainSettings
    folder: Path
    identity: dict[str, Any]
    measure: Callable[[nn.Module], Metrics]
    accelerator: Accelerator
    reporter: Reporter = field(default_factory=Reporter)
    select: str | None = None
    team: Team = ALONE

    @property
    def setting(self) -> str:
        """Where the phase is set in a run's configuration."""
        return self.name if self.name == "finetune" else f"train.{self.name}"


def make_accelerator(config: TrainSettings) -> Accelerator:
    """Device, mixed precision and the processes of a launcher, from the settings and the launcher's environment."""
    keep_memory()
    return Accelerator(mixed_precision=config.mixed_precision, cpu=config.device == "cpu")


def fit(job: Job) -> nn.Module:
    """Train, continuing from the last checkpoint; returns the averaged network where averaging is on."""
    return _Training(job).run()


def learning_rate(phase: Phase, step: int, steps: int, steps_per_epoch: int) -> float:
    """Linear from 0 during the warm-up, then peak * (1 + cos(pi * t)) / 2 for t from 0 to 1."""
    warm = round(phase.warmup * steps_per_epoch)
    if step < warm:
        return phase.learning_rate * (step + 1) / (warm + 1)
    return phase.learning_rate * (1 + math.cos(math.pi * (step - warm) / max(1, steps - warm))) / 2


def image_side(phase: Phase, full: int, done: float) -> int:
    """Pixels of the images' shorter side when the share ``done`` of a phase is behind.

    (first + (1 - first) * done / GROWN) * full until GROWN, in steps of 4 pixels, then ``full``. Small images cost less
    and teach the coarse things first.
    """
    share = phase.first_size + (1 - phase.first_size) * done / GROWN
    return full if done >= GROWN else min(full, max(4, round(share * full / 4) * 4))


class _Training:
    """State of a running phase."""

    def __init__(self, job: Job) -> None:
        self.job, phase = job, job.phase
        self.batches = len(job.data.train) // phase.batch_size
        if not self.batches:
            raise TrainingError(
                f"{job.name}: a batch is larger than the {len(job.data.train)} training images."
            )
        self.augment = Augmentation.of(job.data, phase.augment)
        self.network = job.network.to(job.accelerator.device)
        self.optimizer = make_optimizer(self.network, phase)
        self.shards = Shards(self.network, job.team, check_shards(job), phase.statistics == "batch")
        self.average = Average(self.network, phase.ema) if phase.ema else None
        self.epoch = self.batch = 0
        self.loss = 0.0  # sum over the batches of this epoch
        self.best = -math.inf
        self.saved = time.monotonic()
        self.eased: list[
            dict[str, Any]
        ] = []  # where a rate or a clip was lowered on the way, and what it was
        places = {name: self._place(name) for name in UNFINISHED if has_checkpoint(job.folder, name)}
        if places:  # a process that was killed may leave one within an epoch that is over
            last = max(places, key=lambda name: (places[name].epoch, places[name].batch))
            self._restore(load_checkpoint(job.folder, last), places[last])
        self.stepper = job.accelerator.prepare(self.optimizer)

    def run(self) -> nn.Module:
        """All epochs that are left."""
        job = self.job
        job.reporter.start(job.name, job.phase.epochs * self.batches, self._position())
        try:
            if not self._position():
                self._consider_start()
            with (
                self._statistics(),
                brisk_statistics(self.network, job.phase.epochs * self.batches),
                fast_filters(self.network),
                nullcontext() if job.team.first else postponed(),
            ):  # others end with the first
                while self.epoch < job.phase.epochs:
                    self._one_epoch()
        except ExplodedError:
            self._forget_epoch()
            raise
        finally:
            job.reporter.finish()
        network = self._result()
        if job.select:
            load_weights(network, load_checkpoint(job.folder, BEST).tensors, str(job.folder))
        return network

    def _statistics(self) -> AbstractContextManager[None]:
        """BatchNorm over the whole batch, where that is asked for."""
        shared = self.job.phase.statistics == "batch"
        return shared_statistics(self.network, self.job.team) if shared else nullcontext()

    def _consider_start(self) -> None:
        """The weights training starts from may be the best: short or too rough training can lose accuracy."""
        if self.job.select:
            network = self._result().eval()
            self._keep_if_best(network, self.job.measure(network))

    def _keep_if_best(self, network: nn.Module, metrics: Metrics) -> None:
        select = self.job.select
        if select and metrics[select] > self.best:
            self.best = metrics[select]
            if self.job.team.first:
                save_checkpoint(self.job.folder, BEST, network.state_dict(), {"epoch": self.epoch})

    def _one_epoch(self) -> None:
        self.network.train()
        batches = self._batches()
        with postponed():
            while together := list(islice(batches, self.job.phase.accumulate)):
                self._one_step(together)
        self._finish_epoch()

    def _batches(self) -> Iterator[Batch]:
        """What is left of this epoch: of each batch, the images of the shards of this process."""
        job, size = self.job, self.job.phase.batch_size
        given: dict[str, Any] = {"places": self.shards.places(size), "crop": self.augment.crop}
        given |= {"shards": self.shards.count if self.shards.count > 1 else None}
        given = {name: value for name, value in given.items() if value is not None}
        return job.data.train.batches(
            size, seed=job.config.seed, epoch=self.epoch, start=self.batch, drop_last=True, **given
        )

    def _result(self) -> nn.Module:
        return self.average.module if self.average else self.network

    def _position(self) -> int:
        return self.epoch * self.batches + self.batch

    def _step(self, batch: Batch, shard: int, number: int) -> Step:
        """One shard of a batch, the ``number``-th from here on."""
        job, place = self.job, (self.epoch, self.batch + number)
        rows, device = self.shards.rows(shard, job.phase.batch_size), job.accelerator.device
        seed = derived_seed(job.config.seed, f"augment {job.name}", *place, shard)
        changed = self.augment(moved(batch.images[rows], device), seed)
        images = resize(changed.images, self._side(number))
        labels, indices = moved(batch.labels[rows], device), batch.indices[rows]
        return Step(*place, images, labels, indices, changed.other, changed.weight, shard)

    def _side(self, number: int) -> int:
        """The shorter side in pixels of the images of a batch, the ``number``-th from here on."""
        phase, position = self.job.phase, self._position() + number
        return image_side(phase, min(self.job.data.size), position / (phase.epochs * self.batches))

    def _one_step(self, batches: list[Batch]) -> None:
        """Forward and backward of some batches, whose gradients are added up, and a step of the optimizer."""
        job, phase = self.job, self.job.phase
        for group in self.optimizer.param_groups:
            group["lr"] = self._rate(self.batch)

        def piece_loss(piece: range, number: int) -> Tensor:
            step = together([self._step(batches[number], shard, number) for shard in piece])
            with job.accelerator.autocast():
                loss = job.loss_of(self.network, step)
            job.accelerator.backward(loss * self.shards.share(piece, phase.batch_size) / len(batches))
            return loss.detach()

        values = self.shards.backward(piece_loss, phase.batch_size, len(batches))
        for number, value in enumerate(values, self.batch + 1):
            if not math.isfinite(value):
                raise self._exploded(f"the loss became {value} in epoch {self.epoch + 1}, batch {number}")
        if phase.clip is not None:
            job.accelerator.clip_grad_norm_(self.network.parameters(), phase.clip)
        self.stepper.step()
        self.stepper.zero_grad()
        if self.average:
            self.average.update(self.network)
        for value in values:
            self.batch, self.loss = self.batch + 1, self.loss + value
            job.reporter.advance(self._position(), loss=value)
        stop = self._told_to_stop()
        if stop or time.monotonic() - self.saved >= job.config.checkpoint_seconds:
            self._save()
        if stop:
            raise Interrupted(stop)

    def _told_to_stop(self) -> int | None:
        """The signal that one of the processes has heard, the same for all of them; None without one."""
        heard, device = noted() or 0, self.job.accelerator.device
        if self.job.team.size > 1:
            heard = int(self.job.team.gather(torch.tensor([heard], device=device)).max())
        return heard or None

    def _exploded(self, what: str) -> ExplodedError:
        """The error of weights that are no longer of use, and how to go on."""
        job = self.job
        where = f"the end of epoch {self.epoch}, the last good one" if self.epoch else "the beginning"
        return ExplodedError(
            f"{job.name}: {what}. Lower {job.setting}.learning_rate, now {job.phase.learning_rate:g}, or set or lower "
            f"{job.setting}.clip, such as --set {job.setting}.clip=1: with that the same command goes on from {where}. "
            "Should that explode too, train anew with --redo."
        )

    def _check_finite(self) -> None:
        """A step can leave weights that no loss has seen yet."""
        for module in (self.network, self._result()):
            name = first_not_finite(module.state_dict())
            if name is not None:
                raise self._exploded(
                    f"{name} is no longer finite after epoch {self.epoch}, batch {self.batch}"
                )

    def _rate(self, batch: int) -> float:
        """The learning rate of the optimizer step that a batch of this epoch belongs to."""
        phase = self.job.phase
        per_epoch = -(-self.batches // phase.accumulate)
        step = self.epoch * per_epoch + batch // phase.accumulate
        return learning_rate(phase, step, phase.epochs * per_epoch, per_epoch)

    def _finish_epoch(self) -> None:
        job, loss, rate = self.job, self.loss / self.batches, self._rate(self.batches - 1)
        self._check_finite()
        network = self._result().eval()
        try:
            metrics = job.measure(network)
        except Interrupted:  # which may take long: the epoch is kept as it is, and validated again later
            self._save()
            raise
        except ExplodedError as error:
            raise self._exploded(f"epoch {self.epoch + 1}, {str(error).partition('. ')[0]}") from error
        self.epoch, self.batch, self.loss = self.epoch + 1, 0, 0.0
        self._keep_if_best(network, metrics)
        job.reporter.record(self.epoch, self._position(), {"loss": loss, "learning_rate": rate, **metrics})
        self._save()
        job.team.wait()

    def _forget_epoch(self) -> None:
        """A checkpoint within an epoch that explodes may hold weights that no setting mends."""
        if self.job.team.first:
            remove_checkpoint(self.job.folder, WITHIN)

    def _save(self) -> None:
        """Keep a checkpoint; that of a whole epoch takes the place of those within it."""
        job, state = self.job, self.optimizer.state_dict()["state"]
        self.saved = time.monotonic()
        if not job.team.first:
            return
        self._check_finite()
        tensors = {f"network.{name}": value for name, value in self.network.state_dict().items()}
        for index, entries in state.items():
            tensors |= {f"optimizer.{index}.{key}": t for key, t in entries.items() if isinstance(t, Tensor)}
        if self.average:
            tensors |= {f"average.{name}": value for name, value in self.average.state().items()}
        tensors["generator"] = torch.get_rng_state()
        scaler = job.accelerator.scaler
        place = Place(
            epoch=self.epoch,
            batch=self.batch,
            loss=self.loss,
            best=self.best if job.select else None,
            average_steps=self.average.steps if self.average else 0,
            scaler=scaler.state_dict() if scaler is not None else None,
        )
        values = {"identity": job.identity, "place": place.model_dump(mode="json"), "eased": self.eased}
        save_checkpoint(job.folder, WITHIN if self.batch else PROGRESS, tensors, values)
        if not self.batch:
            remove_checkpoint(job.folder, WITHIN)

    def _place(self, name: str) -> Place:
        """Where a checkpoint of this training was taken."""
        values = read_values(self.job.folder, name)
        self._check_own(values)
        return read_place(values, self.job.folder / f"{name}.json", self.job.phase.epochs, self.batches)

    def _restore(self, found: Checkpoint, place: Place) -> None:
        job, parts = self.job, _by_prefix(found.tensors)
        load_weights(self.network, parts.get("network", {}), str(job.folder))
        load_optimizer(self.optimizer, parts.get("optimizer", {}), str(job.folder))
        if self.average:
            load_weights(self.average.module, parts.get("average", {}), f"the average of {job.folder}")
            self.average.steps = place.average_steps
        if place.scaler is not None and job.accelerator.scaler is not None:
            job.accelerator.scaler.load_state_dict(place.scaler)
        load_generator(found.tensors.get("generator"), str(job.folder))
        self.epoch, self.batch, self.loss = place.epoch, place.batch, place.loss
        self.best = -math.inf if place.best is None else place.best
        self._note_eased(found, place)

    def _check_own(self, values: Mapping[str, Any]) -> None:
        """Refuse the checkpoint of something else; one with a higher rate or clip is that of a training that exploded."""
        was = values.get("identity")
        if not (isinstance(was, dict) and only_lower(was, self.job.identity, EASING)):
            check_identity(values, self.job.identity, self.job.folder)

    def _note_eased(self, found: Checkpoint, place: Place) -> None:
        """Remember with what the steps before this place were done, where that was something else."""
        was, before = found.values["identity"], found.values.get("eased", [])
        self.eased = list(before) if isinstance(before, list) else []
        if was != self.job.identity:
            old = {name: was.get(name) for name in EASING}
            self.eased.append({"until_epoch": place.epoch, "until_batch": place.batch, **old})


def check_shards(job: Job) -> int:
    """The shards of a job's batches; each process of its team must have one."""
    shards = job.phase.shards or job.team.size
    if job.team.size > shards:
        raise TrainingError(
            f"{job.setting}.shards is {shards}, which gives nothing to do to some of {job.team.size} processes. Launch at "
            f"most {shards}, or train anew with more shards."
        )
    return shards


class Place(BaseModel):
    """Where a checkpoint was taken: finished epochs and batches, the loss summed over this epoch's batches."""

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False, strict=True)

    epoch: int = Field(ge=0)
    batch: int = Field(ge=0)
    loss: float
    best: float | None
    average_steps: int = Field(ge=0)
    scaler: dict[str, float | int] | None


def read_place(values: Mapping[str, Any], path: Path, epochs: int, batches: int) -> Place:
    """The place a checkpoint says it was taken at, if a training of this length can have been there."""
    try:
        place = Place.model_validate(values.get("place"))
    except ValidationError as error:
        raise CheckpointError(
            f"{path} does not say where training stood ({error.errors()[0]['msg']}). It was changed; "
            "delete it and the tensor file beside it to train this phase anew."
        ) from error
    # A checkpoint behind an epoch's last batch was taken before that epoch was validated and counted.
    if place.epoch > epochs or place.batch > (batches if place.epoch < epochs else 0):
        raise CheckpointError(
            f"{path} stands at epoch {place.epoch}, batch {place.batch}, which this training of "
            f"{epochs} epochs of {batches} batches does not reach. It was changed; delete it to train this phase anew."
        )
    return place


def make_optimizer(network: nn.Module, phase: Phase) -> torch.optim.Optimizer:
    """SGD with Nesterov momentum or AdamW; weight decay on weights of two and more dimensions only.

    On a CPU a step of AdamW changes all weights in one call, in a ninth of the time that many small ones take one by one.
    That call reads weight and gradient as they lie in memory, so weights must lie there row by row, as gradients do.
    """
    parameters = [p for p in network.parameters() if p.requires_grad]
    groups = [
        {"params": [p for p in parameters if p.ndim > 1], "weight_decay": phase.weight_decay},
        {"params": [p for p in parameters if p.ndim <= 1], "weight_decay": 0.0},
    ]
    if phase.optimizer == "adamw":
        one_call = all(p.device.type == "cpu" and p.is_contiguous() for p in parameters)
        return torch.optim.AdamW(groups, lr=phase.learning_rate, fused=one_call or None)
    nesterov = phase.momentum > 0
    return torch.optim.SGD(groups, lr=phase.learning_rate, momentum=phase.momentum, nesterov=nesterov)


def check_identity(values: Mapping[str, Any], identity: dict[str, Any], folder: Path) -> None:
    """Refuse the values of a checkpoint that was made for something else, and say what differs."""
    stored = values.get("identity")
    changed = changes(stored if isinstance(stored, dict) else {}, identity)
    if changed:
        raise CheckpointError(
            f"{folder} holds a checkpoint of other settings: {'; '.join(changed[:3])}. Give another --out (or --name), "
            "or delete that folder to train anew. It was left as it is."
        )


def _by_prefix(tensors: dict[str, Tensor]) -> dict[str, dict[str, Tensor]]:
    parts: dict[str, dict[str, Tensor]] = {}
    for name, value in tensors.items():
        prefix, _, rest = name.partition(".")
        parts.setdefault(prefix, {})[rest] = value
    return parts


class Average:
    """EMA, evaluated instead of the last weights (paper appendix).

    average <- d * average + (1 - d) * weights after each step, with d = min(decay, (1 + t) / (10 + t)).

    The growing d keeps the first, random weights from staying in the average of short trainings. BatchNorm
    statistics are averaged the same way; whole numbers are copied.
    """

    def __init__(self, module: nn.Module, decay: float) -> None:
        self.decay, self.steps = decay, 0
        self.module = copy.deepcopy(module).eval().requires_grad_(False)

    @torch.no_grad()
    def update(self, module: nn.Module) -> None:
        """Take in the weights of ``module`` after a step."""
        decay = min(self.decay, (1 + self.steps) / (10 + self.steps))
        self.steps += 1
        mine = self.module.state_dict()
        for name, value in module.state_dict().items():
            if value.is_floating_point():
                mine[name].lerp_(value.to(mine[name].dtype), 1 - decay)
            else:
                mine[name].copy_(value)

    def state(self) -> dict[str, Tensor]:
        """Tensors for a checkpoint."""
        return dict(self.module.state_dict())
