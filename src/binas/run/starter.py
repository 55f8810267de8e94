"""A configuration to start from: what a folder of images asks for is set, everything else stands there as a comment."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Callable, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass, replace
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Any

import yaml
from pydantic import BaseModel

from binas.base.errors import ConfigError, DataError, FileError
from binas.base.files import check_replaceable, exists, is_folder, write_text
from binas.base.times import duration, short_duration
from binas.data.config import DataConfig
from binas.data.folder import Seen, look
from binas.run.config import RunConfig, config_model, set_value
from binas.run.plan import LIMIT, Budget, Plan, images_of, make_plan, total_seconds
from binas.run.probe import probe
from binas.run.start import with_shards
from binas.space.files import load_space, save_space
from binas.space.space import SearchSpace
from binas.tasks import all_steps
from binas.tasks.outlook import Images, Outlook, Rates, guessed_rates
from binas.training.config import FinetuneSettings, TrainSettings

if TYPE_CHECKING:
    from binas.data.dataset import ImageData
    from binas.run.run import Run

Probe = Callable[[SearchSpace, "ImageData", RunConfig], Rates]

MANY_CLASSES = 100  # from here on the paper's wide space
ENOUGH = 10  # epochs of the heaviest network; where the time allows fewer, smaller images are taken
MORE = 1.5  # times what the defaults take: less is no better run
WORTH = 30  # epochs of it up to which networks usually still improve
PROBED = 256  # images that are read to probe with
LOADING = 5.0  # seconds until a run begins to work
TIMES = tuple(
    60.0 * minutes
    for minutes in (10, 15, 20, 30, 45, *(60 * hours for hours in (1, 2, 3, 4, 6, 8, 12, 24, 48)))
)
BATCH = 64
FEWEST_IMAGES, SMALL_SET = 80, 200  # fewer are refused; with fewer, more go to validation
OFTEN_CHANGED: dict[str, dict[str, Any]] = {
    "train": {"recipe": "small"},
    "measure": {"backend": "onnxruntime", "threads": 1},
    "search": {"limits": ["latency=50%"]},
}
_OF_THE_SAMPLE = ("kind", "validation_share", "seed", "limit")
_OF_A_FOLDER = (*_OF_THE_SAMPLE, "path", "size", "channels", "test_share", "workers")


@dataclass(frozen=True)
class Starter:
    """The files that were written, what was seen and chosen, and how long it will take as far as that is known.

    ``plan`` is for a time that was given; without one ``outlook`` is that of the defaults.
    """

    files: tuple[Path, ...]
    space: str
    size: int
    seen: Seen | None
    plan: Plan | None = None
    outlook: Outlook | None = None

    def sentences(self) -> list[str]:
        """For people."""
        said = [self._about()]
        if self.plan is not None:
            return [*said, *self.plan.lines()]
        return said if self.outlook is None else [*said, _takes(self.outlook)]

    def _about(self) -> str:
        if self.seen is None:
            return f"The embedded sample of Fashion-MNIST with the space {self.space!r}: to try things, not to be shipped."
        kind = "grey" if self.seen.grey else "colour"
        return (
            f"{self.seen.folder} has {self.seen.images:,} {kind} images of {self.seen.classes} classes, about "
            f"{self.seen.side} pixels a side: the space {self.space!r} at {self.size} x {self.size}."
        )


def _takes(outlook: Outlook) -> str:
    """How long the defaults take, and the time from which more is hardly worth it."""
    train, tune = outlook.settings(TrainSettings), outlook.settings(FinetuneSettings)
    epochs = f"{train.heaviest.epochs} + {train.supernet.epochs} + {tune.epochs} epochs"
    total = total_seconds(outlook)
    takes = f"About {duration(total)} on this machine with {epochs} (heaviest network, supernet, each network found)."
    step = next(step for step in all_steps() if step.name == "train.heaviest")
    share = next(item.share for item in step.amounts)
    worth = WORTH * step.seconds(outlook).work / train.heaviest.epochs / share
    if train.heaviest.epochs >= WORTH:
        return takes
    better = next((time for time in TIMES if time >= max(worth, MORE * total)), TIMES[-1])
    return (
        f"{takes} Networks usually still improve up to about {WORTH} epochs of the heaviest: "
        f"--time {short_duration(better)}."
    )


def _plain(text: str) -> str:
    """A name that a space may have."""
    return re.sub(r"[^A-Za-z0-9_.-]+", "-", text).strip("-.") or "mine"


def write_starter(
    out: Path, data: Path | None = None, time: float | None = None, probing: Probe | None = probe
) -> Starter:
    """Write a commented configuration, and beside it the space for the images where a folder is given.

    With a ``time`` in seconds, what a run does is planned to fill it. Without ``probing`` nothing is said of time.
    """
    space_file = out.with_name(f"{out.stem}-space.yaml")
    files = (out,) if data is None else (out, space_file)
    _check_new(files)
    seen = None if data is None else look(data)
    start, outlook, plan = _choose(_starts(seen, out), time, probing)
    chosen = {"space": start.name if seen is None else space_file.name, **deepcopy(start.settings)}
    for name, value in ({} if plan is None else plan.own).items():
        set_value(chosen, name, value)
    if seen is not None:
        save_space(start.space, space_file)
    write_text(out, commented(chosen, out, [] if plan is None else plan.lines()))
    return Starter(files, start.name, start.size, seen, plan, outlook)


def _check_new(files: Sequence[Path]) -> None:
    """Refuse to write over anything, and what cannot be written, before the first of them is."""
    if not files[0].name or is_folder(files[0]):
        raise FileError(f"{files[0]} is a folder; name a file as --out, such as config.yaml.")
    for path in files:
        if exists(path):
            raise FileError(f"{path} exists; choose another --out. Nothing was changed.")
        check_replaceable(path)


@dataclass(frozen=True)
class Start:
    """A way to begin: a built-in space by its name, pixels per side, the space made fitting, and settings."""

    name: str
    size: int
    space: SearchSpace
    settings: dict[str, Any]

    def outlook(self, probing: Probe) -> Outlook:
        """What a run with these settings is going to be, probed on some of its images."""
        config = with_shards(config_model().model_validate(deepcopy(self.settings)), None)
        data, images, read = _some_images(config.data)
        rates = probing(self.space, data, config).model_copy(update={"read": read})
        return Outlook(config, images, rates, len(data.classes), data.size, self.name)


def _some_images(source: DataConfig) -> tuple[ImageData, Images, float]:
    """Images to probe with, the numbers of all images, and the seconds it takes to read one."""
    from binas.data.loading import glimpse_folder, load_data

    start = perf_counter()
    if source.kind != "folder":
        data = load_data(source)
        return data, images_of(data), 0.0
    data, (train, validation, test) = glimpse_folder(source, PROBED)
    decoded = sum(map(len, (data.train, data.validation, data.test)))
    return data, Images(train=train, validation=validation, test=test), (perf_counter() - start) / decoded


def _choose(
    starts: Sequence[Start], time: float | None, probing: Probe | None
) -> tuple[Start, Outlook | None, Plan | None]:
    """The first way to begin; within a time, the first that trains for enough epochs with all images, or else the last."""
    if probing is None:
        return starts[0], None, None
    for start in starts:
        outlook = start.outlook(probing)
        if time is None:
            return start, outlook, None
        try:
            plan = make_plan(outlook, Budget(time, spent=LOADING))
        except ConfigError:
            if start is starts[-1]:
                raise
            continue
        if start is starts[-1] or _is_enough(plan):
            break
    return start, outlook, plan


def smaller_start(run: Run, outlook: Outlook, plan: Plan) -> str:
    """What ``init --time`` would take for a plan's time where a run's own space and size leave it too little; else empty.

    A run cannot change them. How fast others are is reckoned from the MACs of their heaviest networks.
    """
    if run.config.data.kind != "folder" or run.config.data.path is None or _is_enough(plan):
        return ""
    seen, found = look(run.config.data.path), None
    for name, size in fitting_spaces(seen.side, seen.classes):
        if size >= min(outlook.size):
            continue
        space = _start(seen, Path(name), name, size).space
        factor = guessed_rates(space).heaviest / guessed_rates(run.space).heaviest
        other = replace(outlook, rates=outlook.rates.times(factor), size=(size, size), space=name)
        found = (name, size)
        if _is_enough(make_plan(other, Budget(plan.budget, frozenset(plan.given), plan.spent))):
            break
    if found is None:
        return ""
    time, epochs = short_duration(plan.budget), plan.chosen["train.heaviest.epochs"]
    return (
        f"  little time for images of {min(outlook.size)} pixels ({epochs:g} epochs of the heaviest network): `binas init "
        f"--data {seen.folder} --time {time}` would take {found[1]} pixels with the space {found[0]!r}; a run keeps its own"
    )


def _is_enough(plan: Plan) -> bool:
    """Whether a plan trains for enough epochs, with all images."""
    return plan.chosen["train.heaviest.epochs"] >= ENOUGH and LIMIT not in plan.own


def _starts(seen: Seen | None, out: Path) -> list[Start]:
    """The ways to begin, the best one first, for what was seen in a folder, or for the embedded images."""
    if seen is None:
        name = RunConfig.model_fields["space"].default
        return [Start(name, 28, load_space(name), {"data": {"kind": "embedded"}, **OFTEN_CHANGED})]
    if seen.images < FEWEST_IMAGES:
        raise DataError(
            f"{seen.folder} has {seen.images} images; a run needs at least {FEWEST_IMAGES} to train, validate and test with."
        )
    return [_start(seen, out, name, size) for name, size in fitting_spaces(seen.side, seen.classes)]


def _start(seen: Seen, out: Path, name: str, size: int) -> Start:
    """The settings for a folder of images with one of the spaces."""
    channels = 1 if seen.grey else 3
    space = replace(
        load_space(name), name=_plain(out.stem), channels=channels, resolution=size, classes=seen.classes
    )
    source = {"kind": "folder", "path": str(seen.folder.absolute()), "size": size, "channels": channels}
    chosen: dict[str, Any] = {"data": source, **deepcopy(OFTEN_CHANGED)}
    if seen.images < SMALL_SET:
        source["validation_share"] = 0.4  # a run measures on one half of them and checks on the other
    if seen.images < 4 * BATCH:  # about half of them may be left to train with
        batch = max(2, seen.images // 4)
        chosen["train"] |= {phase: {"batch_size": batch} for phase in ("heaviest", "supernet")}
        chosen["finetune"] = {"batch_size": batch}
    return Start(name, size, space, chosen)


def fitting_spaces(side: int, classes: int) -> list[tuple[str, int]]:
    """Built-in spaces and the pixels per side their networks take, for images of ``side`` pixels: the best one first.

    Those that follow see less of the images and are quicker.
    """
    large = ("imagenet-mbconv", 224) if classes >= MANY_CLASSES else ("photos-160", 160)
    steps = [(*large, 128), ("photos-160", 128, 128), ("photos-96", 96, 64), ("photos-96", 64, 64)]
    found = [(name, min(most, side // 32 * 32)) for name, most, least in steps if side >= least]
    return [*dict.fromkeys(found), ("small-32", 28 if side <= 28 else 32)]


def commented(chosen: Mapping[str, Any], out: Path, about: Sequence[str] = ()) -> str:
    """The chosen settings, and all others with their defaults behind a ``#``, each with its description above it.

    The lines ``about`` them stand on top.
    """
    given = {key: chosen[key] for key in ("data", "train", "finetune") if key in chosen}
    defaults = config_model().model_validate(given)
    head = [
        f"# binas run {out.name} --out runs/{out.stem}",
        "# Settings behind a # have the value they have anyway; remove the # to change one.",
        *(f"# {line}" for line in about),
        "",
    ]
    return "\n".join([*head, *_lines(defaults, chosen, "")]) + "\n"


def _lines(model: BaseModel, chosen: Mapping[str, Any], pad: str) -> list[str]:
    """A model as YAML, one level deeper by ``pad``; only what is in ``chosen`` is not behind a ``#``."""
    lines: list[str] = []
    for name, field in type(model).model_fields.items():
        value = getattr(model, name)
        if isinstance(model, DataConfig) and name not in _shown(model):
            continue
        lines += textwrap.wrap(
            field.description or "", 110, initial_indent=f"{pad}# ", subsequent_indent=f"{pad}# "
        )
        mark = "" if name in chosen else "#"
        if isinstance(value, BaseModel):
            lines += [f"{pad}{mark}{name}:", *_lines(value, chosen.get(name, {}), pad + "  ")]
        else:
            lines.append(f"{pad}{mark}{name}: {_flow(chosen.get(name, value))}")
        if not pad:
            lines.append("")
    return lines


def _shown(data: DataConfig) -> tuple[str, ...]:
    """The settings of images worth showing; the others are those of other kinds, or rarely needed (docs/howto/data.md)."""
    return _OF_A_FOLDER if data.kind == "folder" else _OF_THE_SAMPLE


def _flow(value: Any) -> str:
    """A value on one line of YAML."""
    plain = list(value) if isinstance(value, tuple) else str(value) if isinstance(value, Path) else value
    text = yaml.safe_dump(plain, default_flow_style=True, width=10_000)
    return text.removesuffix("\n").removesuffix("\n...")
