"""A configuration to start from: what a folder of images asks for is set, everything else stands there as a comment."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import yaml
from pydantic import BaseModel

from binas.base.errors import DataError, FileError
from binas.base.files import exists, write_text
from binas.data.config import DataConfig
from binas.data.folder import Seen, look
from binas.run.config import config_model
from binas.space.files import load_space, save_space

SMALL, LARGE = 64, 224  # shorter sides: below, the small space; the large one at most at this
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
    """The files that were written, and what was seen and chosen."""

    files: tuple[Path, ...]
    space: str
    size: int
    seen: Seen | None

    def sentence(self) -> str:
        """For people."""
        if self.seen is None:
            return "The embedded sample of Fashion-MNIST with the space of the demo."
        kind = "grey" if self.seen.grey else "colour"
        return (
            f"{self.seen.folder} has {self.seen.images:,} {kind} images of {self.seen.classes} classes, about "
            f"{self.seen.side} pixels a side: the space {self.space!r} at {self.size} x {self.size}."
        )


def _plain(text: str) -> str:
    """A name that a space may have."""
    return re.sub(r"[^A-Za-z0-9_.-]+", "-", text).strip("-.") or "mine"


def write_starter(out: Path, data: Path | None = None) -> Starter:
    """Write a commented configuration, and beside it the space for the images where a folder is given."""
    if not out.name or out.is_dir():
        raise FileError(f"{out} is a folder; name a file as --out, such as config.yaml.")
    space_file = out.with_name(f"{out.stem}-space.yaml")
    for path in (out, space_file) if data is not None else (out,):
        if exists(path):
            raise FileError(f"{path} exists; choose another --out. Nothing was changed.")
    if data is None:
        write_text(out, commented({"space": "demo", "data": {"kind": "embedded"}, **OFTEN_CHANGED}, out))
        return Starter((out,), "demo", 28, None)
    seen = look(data)
    name, size = chosen_space(seen.side)
    channels = 1 if seen.grey else 3
    space = replace(
        load_space(name), name=_plain(out.stem), channels=channels, resolution=size, classes=seen.classes
    )
    source = {"kind": "folder", "path": str(data.absolute()), "size": size, "channels": channels}
    chosen: dict[str, Any] = {"space": space_file.name, "data": source, **OFTEN_CHANGED}
    if seen.images < FEWEST_IMAGES:
        raise DataError(
            f"{data} has {seen.images} images; a run needs at least {FEWEST_IMAGES} to train, validate and test with."
        )
    if seen.images < SMALL_SET:
        source["validation_share"] = 0.4  # a run measures on one half of them and checks on the other
    if seen.images < 4 * BATCH:  # about half of them may be left to train with
        batch = max(2, seen.images // 4)
        phases = {phase: {"batch_size": batch} for phase in ("heaviest", "supernet")}
        chosen["train"] = {**OFTEN_CHANGED["train"], **phases}
        chosen["finetune"] = {"batch_size": batch}
    save_space(space, space_file)
    write_text(out, commented(chosen, out))
    return Starter((out, space_file), name, size, seen)


def chosen_space(side: int) -> tuple[str, int]:
    """A built-in space and the pixels per side its networks take, for images of ``side`` pixels."""
    if side < SMALL:
        return "demo", 28 if side <= 28 else 32
    return "imagenet-mbconv", min(LARGE, side // 32 * 32)


def commented(chosen: Mapping[str, Any], out: Path) -> str:
    """The chosen settings, and all others with their defaults behind a ``#``, each with its description above it."""
    given = {key: chosen[key] for key in ("data", "train", "finetune") if key in chosen}
    defaults = config_model().model_validate(given)
    head = [
        f"# binas run {out.name} --out runs/{out.stem}",
        "# Settings behind a # have the value they have anyway; remove the # to change one.",
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
    """The settings of images worth showing; the others are those of other kinds, or rarely needed (docs/data.md)."""
    return _OF_A_FOLDER if data.kind == "folder" else _OF_THE_SAMPLE


def _flow(value: Any) -> str:
    """A value on one line of YAML."""
    plain = list(value) if isinstance(value, tuple) else str(value) if isinstance(value, Path) else value
    text = yaml.safe_dump(plain, default_flow_style=True, width=10_000)
    return text.removesuffix("\n").removesuffix("\n...")
