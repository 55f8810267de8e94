"""What benchmarks/shrink.py does with one model: train, shrink, prune by others, fine-tune, measure; resumable by folder."""

from __future__ import annotations

import hashlib
import json
import resource
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, fields, replace
from functools import cached_property, partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn

from binas.base.errors import BinasError
from binas.base.files import dump_json, exists, read_json, write_text
from binas.base.identity import file_digest
from binas.base.interval import Interval
from binas.base.progress import Progress
from binas.base.workers import Work, dismiss
from binas.costs.measure import measuring_again
from binas.costs.session import Plan
from binas.data.arrays import read_npz
from binas.data.config import DataConfig
from binas.data.loading import load_data
from binas.report.published import measure_networks
from binas.run.config import FILE, load_config
from binas.run.engine import advance
from binas.run.run import Run, open_run
from binas.run.shrinking import Wish, begin, of_the_model
from binas.run.start import around_limits
from binas.run.workers import map_shared
from binas.search.answers import AnswerRecord
from binas.search.rivals import difference
from binas.tables.samples import pack, unpack
from binas.tasks import all_steps
from binas.tasks.artefacts import COSTS
from binas.tasks.finetune import Tuning
from binas.tasks.train import bench
from binas.training.calibration import recalibrate
from binas.training.config import FinetuneSettings, Phase, TrainSettings
from binas.training.evaluation import calibration_batches, correct
from binas.training.loop import make_accelerator
from binas.training.phases import Bench, fine_tune, fresh_network, train_from_scratch
from binas.training.reporting import Reporter
from binas.training.team import ALONE
from pruners import CPU, TooFew, fastnas, macs_of, magnitude
from trained_models import HALF, lite0_of_imagenet, resnet20

LIMITS = (0.75, 0.5, 0.3)
LATER = ("finetune", "compare", "export", "report")  # steps of a run after its answer
EIGHTHS = tuple(k / 8 for k in range(1, 9))  # of a layer's channels that FastNAS may choose of; its own: 20
TICK = 5.0  # seconds after which the time of a stage is written down
RECALIBRATED = 2048  # images that re-estimate BatchNorm of the model when it is trained
LEAST, WIDER = (
    0.05,
    1.15,
)  # share of FLOPs or channels that a tool is asked to keep at least; FastNAS's steps up
# Networks are also trained with this many times the run's rate of fine-tuning where they were cut to half or less.
FASTER, CUT = (3.0,), 0.5
KEPT = tuple(k / 20 for k in range(1, 20))  # shares of channels that are tried where fewer were asked for
TIMES = "-x"  # before that factor in the name of a training
SCRATCH = "from scratch"
COLUMNS = ("found", "FastNAS", "Torch-Pruning", "uniform width", SCRATCH)


@dataclass(frozen=True)
class Case:
    """One model: how it is built, and for images of which side; how many train, validate and test; how all is trained."""

    build: Callable[[], nn.Module]
    side: int
    images: int
    validation: int
    training: Mapping[str, Any]
    settings: Mapping[str, Any]
    normalised: tuple[float, float] | None = None
    tested: int = 10_000
    ratios: tuple[float, ...] | None = (
        None  # of a layer's channels that FastNAS may choose of; none = its own
    )
    rounds: int = 7  # of bisecting a setting: 1/128 of it may stay unused
    session: float = 3.0  # seconds of measuring of one round of bisecting

    def digest(self, source: Path) -> str:
        """Of everything the results depend on, the images in ``source`` included."""
        values = {item.name: getattr(self, item.name) for item in fields(self) if item.name != "build"}
        text = json.dumps({**values, "source": file_digest(source)}, sort_keys=True)
        return hashlib.sha256(text.encode()).hexdigest()[:8]

    def prepare(self, source: Path, path: Path) -> None:
        """The images as a file of their own: the first of the training images, those to test with, at the side wanted."""
        given, count = read_npz(source), self.images + self.validation
        arrays = {
            "images": self._sized(given["images"][:count]),
            "labels": given["labels"][:count],
            "test_images": self._sized(given["test_images"][: self.tested]),
            "test_labels": given["test_labels"][: self.tested],
            "classes": given["classes"],
        }
        path.parent.mkdir(parents=True, exist_ok=True)
        np.savez(path.with_name("part.npz"), **arrays)
        path.with_name("part.npz").rename(path)

    def _sized(self, images: Any) -> Any:
        """(n, h, w, 3) bytes at the side wanted, bilinear."""
        if images.shape[1] == self.side:
            return images
        floats = torch.from_numpy(images).permute(0, 3, 1, 2).float()
        found = F.interpolate(floats, size=self.side, mode="bilinear", align_corners=False)
        return found.round().clamp(0, 255).byte().permute(0, 2, 3, 1).numpy()

    def data(self, path: Path) -> dict[str, Any]:
        """The settings of the images."""
        share = self.validation / (self.images + self.validation)
        return {"kind": "arrays", "path": str(path), "validation_share": share}


def cases(quick: bool) -> dict[str, Case]:
    """The models and how much they are trained; with ``quick`` next to nothing."""
    crop, large = {"crop": 4, "flip": True}, {"crop": 8, "flip": True}
    sgd = {"optimizer": "sgd", "batch_size": 128, "learning_rate": 0.1, "weight_decay": 5e-4, "warmup": 2.0}
    adapting = {"batch_size": 64, "learning_rate": 1e-3, "warmup": 0.5}
    found = {
        "resnet20": Case(
            resnet20, 32, 10_000, 2_000, {**sgd, "epochs": 12, "augment": crop}, _settings(crop)
        ),
        "lite0": Case(
            partial(lite0_of_imagenet, 10),
            64,
            4_000,
            1_000,
            {**adapting, "epochs": 5, "augment": large},
            {**_settings(large), "train.supernet.batch_size": 64},
            HALF,
            tested=5_000,
            ratios=EIGHTHS,
        ),
    }
    return {name: _quick(case) for name, case in found.items()} if quick else found


def _settings(augment: Mapping[str, Any]) -> dict[str, Any]:
    """Of the run that shrinks a model."""
    return {
        "train.device": "cpu",
        "train.supernet.epochs": 4,
        "train.supernet.augment": augment,
        "train.supernet.batch_size": 128,
        "train.supernet.shards": 1,
        "finetune.epochs": 6,
        "finetune.augment": augment,
        "finetune.shards": 1,
        "measure.seconds": 60,
        "measure.samples": 24,
        "search.seconds_per_network": 8,
        "estimate.passes": 16,
        "sample.count": 20,
    }


def _quick(case: Case) -> Case:
    few = {
        "train.supernet.epochs": 1,
        "finetune.epochs": 1,
        "measure.seconds": 15,
        "measure.samples": 16,
        "estimate.passes": 4,
        "sample.count": 8,
        "check.resamples": 20,
        "search.seconds_per_network": 2,
        "search.candidates": 1,
    }
    return replace(
        case,
        images=500,
        validation=200,
        tested=500,
        ratios=(0.25, 0.5, 1.0),
        session=2.0,
        rounds=2,
        training={**case.training, "epochs": 1, "warmup": 0.5},
        settings={**case.settings, **few},
    )


@dataclass(frozen=True)
class Study:
    """One model in its folder: trained, shrunk, pruned by others, compared."""

    name: str
    quick: bool
    folder: Path
    source: Path
    progress: Progress
    processes: int | None = None  # of a new run; none = as many as cores
    opened: Run | None = None  # in a worker: the run, which has its answers

    @cached_property
    def case(self) -> Case:
        """How much of everything."""
        return cases(self.quick)[self.name]

    @cached_property
    def images(self) -> Path:
        """The file of its images."""
        path = self.folder / "images.npz"
        if not exists(path):
            self.case.prepare(self.source, path)
        return path

    @cached_property
    def training(self) -> TrainSettings:
        """How the model is trained, as the settings of its phase ``heaviest``."""
        training = {f"train.heaviest.{name}": value for name, value in self.case.training.items()}
        return load_config(None, [("train.device", "cpu"), *training.items()]).part(TrainSettings)

    @cached_property
    def model(self) -> nn.Module:
        """The model, trained, BatchNorm re-estimated; a finished training is read, an interrupted one goes on."""
        data = load_data(DataConfig.model_validate(self.case.data(self.images)))
        if self.case.normalised is not None:
            mean, std = self.case.normalised
            data = replace(data, mean=(mean,) * 3, std=(std,) * 3)
        settings, folder = self.training, self.folder / "model"
        where = Bench(data, settings, folder, make_accelerator(settings), Reporter(folder, self.progress))
        torch.manual_seed(0)
        model = train_from_scratch(self.case.build(), where, settings.heaviest, {"model": self.name}).eval()
        recalibrate(model, calibration_batches(data, RECALIBRATED, CPU))
        return model

    @cached_property
    def run(self) -> Run:
        """The run that shrinks it, with its answers; nothing is fine-tuned yet."""
        if self.opened is not None:
            return self.opened
        model, folder = self.model, self.folder / "run"
        with self.timed("found"):
            if not exists(folder / FILE):
                normalised = self.case.normalised or (None, None)
                mean, std = (None if value is None else (value,) * 3 for value in normalised)
                limits = [f"latency={100 * share:g}%" for share in LIMITS]
                wish = Wish(self.case.data(self.images), limits, model, mean=mean, std=std)
                asked = ("search.limits", [of_the_model(text) for text in limits])
                shared = ("train.processes", self.processes)
                begin(wish, folder, [asked, shared, *self.case.settings.items()], self.progress)
            run = around_limits(open_run(folder), self.progress)
            advance(run, [step for step in all_steps() if step.name not in LATER], self.progress)
        return open_run(folder)

    @cached_property
    def tuning(self) -> Tuning:
        """What fine-tunes the answers, and the teacher of all columns."""
        return Tuning(self.run, ALONE)

    @contextmanager
    def timed(self, stage: str) -> Iterator[None]:
        """Add up the seconds of a stage, of this process and its workers, over all starts until it is done.

        They are written down every few seconds; a kill loses those since, and those of workers that were at work then.
        """
        path = self._time(stage)
        known = read_json(path) if exists(path) else {"seconds": 0.0, "wall": 0.0, "starts": 0, "done": False}
        if known["done"]:
            yield
            return
        dismiss()  # workers count when they have ended: those of before now, ours below
        start, wall, ended = _cpu_seconds(), time.monotonic(), threading.Event()

        def write(done: bool) -> None:
            spent = known["seconds"] + _cpu_seconds() - start, known["wall"] + time.monotonic() - wall
            values = {"seconds": spent[0], "wall": spent[1], "starts": known["starts"] + 1, "done": done}
            write_text(path, dump_json(values))

        def tick() -> None:
            while not ended.wait(TICK):
                write(False)

        ticker = threading.Thread(target=tick, daemon=True)
        ticker.start()
        done = False
        try:
            yield
            done = True
        finally:
            ended.set()
            ticker.join()
            dismiss()
            write(done)

    # Others

    @cached_property
    def settings(self) -> dict[str, list[float]]:
        """For each pruner the setting of each limit: the one that keeps the most of the network, measured within it."""
        left = [name for name in self.pruners if not exists(self._setting(name))]
        list(self._shared(bisector, left, "pruner"))
        return {name: [float(value) for value in read_json(self._setting(name))] for name in self.pruners}

    def _setting(self, name: str) -> Path:
        return self.folder / f"settings-{_plain(name)}.json"

    def _shared(self, work: Callable[..., Work], items: Sequence[str], what: str) -> Iterator[Any]:
        """Work on every item, in as many processes as the run may use."""
        given = [self.name, self.quick, str(self.folder), str(self.source)]
        return map_shared(self.run, work, given, items, self.progress, what)

    @property
    def pruners(self) -> dict[str, Callable[[float], nn.Module]]:
        """A network at a setting from 0 (next to nothing is left) to 1 (the model)."""
        shape, classes = (self.run.data.channels, *self.run.data.size), len(self.run.data.classes)
        whole, checkpoint = macs_of(self.model, shape), self.folder / "sensitivity.pth"

        def by_flops(kept: float) -> nn.Module:
            macs = max(kept, LEAST) * whole
            while True:  # where it cannot go as low, as low as it can
                try:
                    return fastnas(self.model, self.run.data, macs, checkpoint, ratios=self.case.ratios)
                except TooFew:
                    if macs > whole:
                        raise
                    macs *= WIDER

        def by_channels(everywhere: bool, kept: float) -> nn.Module:
            # a layer that would be left without channels is not pruned at all, so the lightest of all that keep as much
            least = max(kept, LEAST)
            shares = [least, *(share for share in KEPT if share > least)]
            made = (magnitude(self.model, shape, 1 - share, everywhere, classes) for share in shares)
            return min(made, key=lambda network: macs_of(network, shape))

        return {
            "FastNAS": by_flops,
            "Torch-Pruning": partial(by_channels, False),
            "uniform width": partial(by_channels, True),
        }

    def bisect(self, name: str) -> None:
        """All limits at once: each round measures one network of each in one session with the model."""
        make, ends = self.pruners[name], [(0.0, 1.0) for _ in LIMITS]
        with self.timed(name):
            for _ in range(self.case.rounds):
                middles = [(low + high) / 2 for low, high in ends]
                networks = {f"{share}": make(kept) for share, kept in zip(LIMITS, middles, strict=True)}
                shares = self.measured(networks, self.case.session)
                ends = [
                    (kept, high) if shares[f"{share}"].value <= share else (low, kept)
                    for share, kept, (low, high) in zip(LIMITS, middles, ends, strict=True)
                ]
        write_text(self._setting(name), dump_json([low for low, _ in ends]))

    def measured(self, networks: Mapping[str, nn.Module], seconds: float) -> dict[str, Interval]:
        """Latencies as shares of the model's own, all measured in one session, taking turns."""
        shape = (self.run.data.channels, *self.run.data.size)
        builders = {name: partial(_given, network, shape) for name, network in networks.items()}
        cost = COSTS.read(self.run).costs["latency"]
        how = measuring_again(cost, Plan(budget=seconds))
        found = measure_networks(how)({"model": partial(_given, self.model, shape), **builders})
        whole = found["model"].value
        return {name: found[name].scaled(1 / whole) for name in builders}

    # Columns

    def result(self) -> dict[str, Any]:
        """Everything that is told of the model."""
        answers, data = self.answers, self.run.data
        latencies = self.latencies(answers)
        self.tune_all()
        rows = [self._row(number, answer, latencies) for number, answer in enumerate(answers)]
        right = self._right("model")
        return {
            "images": {part: len(getattr(data, part)) for part in ("train", "validation", "test")},
            "epochs": {
                "model": self.case.training["epochs"],
                "elastic": self.run.settings(TrainSettings).supernet.epochs,
                "fine-tuning": self.run.settings(FinetuneSettings).epochs,
            },
            "model": {
                "accuracy": 100 * float(right.mean()),
                "latency": answers[0].limits[0].value / LIMITS[0],
            },
            "limits": rows,
            "seconds": {stage: read_json(self._time(stage)) for stage in ("found", *self.pruners)},
            "networks": self.run.space.count,
        }

    def _time(self, stage: str) -> Path:
        return self.folder / f"time-{_plain(stage)}.json"

    def latencies(self, answers: list[AnswerRecord]) -> dict[str, float]:
        """Every network of every column once more, in one session with the model, as shares of its latency."""
        path = self.folder / "latencies.json"
        if not exists(path):
            networks: dict[str, nn.Module] = {}
            for number, answer in enumerate(answers):
                networks[f"found {number}"] = fresh_network(
                    self.run.space, _architecture(self.run, answer), 0
                )
                for name, make in self.pruners.items():
                    networks[f"{name} {number}"] = make(self.settings[name][number])
            found = self.measured(networks, 5 * self.case.session)
            write_text(path, dump_json({name: value.value for name, value in found.items()}))
        return dict(read_json(path))

    def _row(self, number: int, answer: AnswerRecord, latencies: Mapping[str, float]) -> dict[str, Any]:
        own, columns = self._best("found", number), {}
        for name in (*self.pruners, SCRATCH):
            right = self._best(name, number)
            columns[name] = {
                "accuracy": 100 * float(right.mean()),
                "latency": latencies[f"{'found' if name == SCRATCH else name} {number}"],
                "lead": list(difference(own, right)),
                "all": self._all(name, number),
            }
        return {
            "limit": LIMITS[number],
            "found": {
                "accuracy": 100 * float(own.mean()),
                "latency": latencies[f"found {number}"],
                "all": self._all("found", number),
            },
            "readings": len(answer.on_device),
            "built": len({reading.architecture for reading in answer.on_device}),
            "architecture": answer.architecture,
            "columns": columns,
        }

    def _labels(self, name: str, number: int) -> list[str]:
        """The trainings of a column's network: deeply cut ones have several rates, of which validation images choose."""
        plain, cut = f"{_plain(name)}-{number}", name != SCRATCH and LIMITS[number] <= CUT
        return [plain, *(f"{plain}{TIMES}{factor:g}" for factor in FASTER if cut)]

    def _best(self, name: str, number: int) -> Any:
        """Which test images the training that validation images choose gets right."""
        return self._right(max(self._labels(name, number), key=self._validation))

    def _all(self, name: str, number: int) -> dict[str, float]:
        """Percent of the test images of every training."""
        return {label: 100 * float(self._right(label).mean()) for label in self._labels(name, number)}

    def _validation(self, label: str) -> float:
        return float(read_json(self._outcome(label))["validation"])

    def _right(self, label: str) -> Any:
        return unpack(read_json(self._outcome(label))["correct"], len(self.run.data.test))

    def _outcome(self, label: str) -> Path:
        return self.folder / "outcomes" / f"{label}.json"

    def tune_all(self) -> None:
        """Fine-tune every network of every column that is not done, in as many processes as the run may use."""
        each = (self._labels(name, number) for number in range(len(LIMITS)) for name in COLUMNS)
        labels = ["model", *(label for some in each for label in some)]
        left = [label for label in labels if not exists(self._outcome(label))]
        assert self.settings  # found before processes share the work
        for label, percent in zip(left, self._shared(tuner, left, "network"), strict=True):
            self.progress.say(f"{self.name}, {label}: {percent:.2f} % of the test images")

    def judge(self, label: str) -> float:
        """Percent of the test images that the network of a column gets right; which ones is kept."""
        data, network = self.run.data, self.network(label).eval()
        chosen, right = (correct(network, data, part, CPU) for part in (data.validation, data.test))
        percent, validation = (100 * float(found.mean()) for found in (right, chosen))
        values = {"accuracy": percent, "validation": validation, "correct": pack(right)}
        write_text(self._outcome(label), dump_json(values))
        return percent

    def network(self, label: str) -> nn.Module:
        """The network of a column, fine-tuned."""
        if label == "model":
            return self.model
        plain, _, number = label.partition(TIMES)[0].rpartition("-")
        name = next(name for name in COLUMNS if _plain(name) == plain)
        answer = self.answers[int(number)]
        return (
            self._found(label, answer) if name == "found" else self._rival(label, name, int(number), answer)
        )

    @cached_property
    def answers(self) -> list[AnswerRecord]:
        """Of the run, the widest limit first; each has a network, or there is nothing to compare."""
        for answer in self.run.answers:
            if answer.architecture is None:
                raise BinasError(f"{self.name}: no network for {answer.question}: {answer.why}")
        return sorted(self.run.answers, key=lambda answer: -answer.limits[0].value)

    def _found(self, label: str, answer: AnswerRecord) -> nn.Module:
        """The answer, fine-tuned as `binas finetune` does."""
        tuning, where, chosen = self.tuning, self._bench(label), _architecture(self.run, answer)
        settings = _at_rate(tuning.settings, label)
        return fine_tune(tuning.supernet, tuning.heaviest, chosen, where, settings, tuning.teacher)

    def _bench(self, name: str) -> Bench:
        return bench(self.run, self.progress, ALONE, self.folder / "tuned" / name)

    def _rival(self, label: str, name: str, number: int, answer: AnswerRecord) -> nn.Module:
        """A network of another column, trained as long and taught as the found one is; fresh weights as the model was."""
        run, phase = self.run, self.tuning.settings
        how: Phase = phase
        network: nn.Module
        if name == SCRATCH:
            network = fresh_network(run.space, _architecture(run, answer), run.settings(TrainSettings).seed)
            how = self.training.heaviest.model_copy(update={"epochs": phase.epochs})
        else:
            how = _at_rate(phase, label)
            network = self.pruners[name](self.settings[name][number])
            recalibrate(network, calibration_batches(run.data, phase.recalibration, CPU))
        where = bench(run, self.progress, ALONE, self.folder / "rivals" / label)
        return train_from_scratch(network, where, how, {"rival": name}, self.tuning.teacher)


def _architecture(run: Run, answer: AnswerRecord) -> Any:
    assert answer.architecture is not None
    return run.space.parse(answer.architecture)


def _at_rate(phase: FinetuneSettings, label: str) -> FinetuneSettings:
    """The settings with the rate that the label of a training says."""
    factor = float(label.partition(TIMES)[2] or 1)
    return phase.model_copy(update={"learning_rate": factor * phase.learning_rate})


def _plain(name: str) -> str:
    return name.replace(" ", "-")


def _given(network: nn.Module, shape: tuple[int, int, int]) -> tuple[nn.Module, tuple[int, int, int]]:
    return network, shape


def _cpu_seconds() -> float:
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(item.ru_utime + item.ru_stime for item in used)


# In a worker process


def bisector(run: Run, name: str, quick: bool, folder: str, source: str) -> Work:
    """What finds the settings of a pruner."""

    def work(pruner: str, progress: Progress) -> None:
        Study(name, quick, Path(folder), Path(source), progress, opened=run).bisect(pruner)

    return work


def tuner(run: Run, name: str, quick: bool, folder: str, source: str) -> Work:
    """What fine-tunes and judges the network of a column."""

    def work(label: str, progress: Progress) -> float:
        return Study(name, quick, Path(folder), Path(source), progress, opened=run).judge(label)

    return work
