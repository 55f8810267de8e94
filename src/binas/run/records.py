"""Records of steps: that one was started, or finished, with which inputs.

The identity of a step is a hash of its inputs: the settings it depends on, fingerprints of space and images, the device
it measures, and the files of the steps before it. ``RUN/steps/NAME.json`` records them, so that a step is done again
when, and only when, one of them has changed, and the change can be named.
"""

from __future__ import annotations

import hashlib
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from pydantic import ConfigDict

from binas.base.files import dump_json, exists, listed, write_text
from binas.base.identity import file_digest, flattened
from binas.base.typed import read_typed
from binas.tasks._base import Step

if TYPE_CHECKING:
    from binas.run.run import Run

FOLDER = "steps"
# Settings that change how fast a step is done, not what it finds.
SPEED_ONLY = (
    *("train.checkpoint_seconds", "train.device", "train.processes", "train.old_gib"),
    *("data.workers", "data.cache", "data.check_images"),
)


@dataclass(frozen=True)
class Record:
    """That a step was started, or finished, with these inputs; times in UTC, ``seconds`` those worked on it.

    ``exploded`` says of one that was started that its training ended with numbers that are not finite.
    """

    __pydantic_config__ = ConfigDict(extra="forbid", allow_inf_nan=False)

    step: str
    state: Literal["started", "finished"]
    identity: str
    inputs: dict[str, Any]
    time: str
    seconds: float = 0.0
    files: tuple[str, ...] = ()
    machine: dict[str, str] = field(default_factory=dict)
    exploded: bool = False


def inputs_of(run: Run, step: Step) -> dict[str, Any]:
    """Everything a step depends on, by name; a step before it counts with the digest of its files."""
    chosen = {key: value for key, value in settings_of(run).items() if _within(key, step.settings)}
    before = {files_of(name): outcome(run.folder, read_record(run.folder, name)) for name in step.after}
    return {"version": step.version, **chosen, **step.facts(run), **before}


def files_of(step: str) -> str:
    """The name of the input that stands for the files of a step before."""
    return f"files of {step}"


def settings_of(run: Run) -> dict[str, Any]:
    """All settings that decide what is found, by their dotted names."""
    values = flattened(run.config.model_dump(mode="json"))
    return {key: value for key, value in values.items() if not key.startswith(SPEED_ONLY)}


def _within(key: str, settings: tuple[str, ...]) -> bool:
    return any(key == name or key.startswith(f"{name}.") for name in settings)


def outcome(folder: Path, record: Record | None) -> str | None:
    """Digest of the files a finished step wrote, as they are now; None where it is not finished."""
    if record is None or record.state != "finished" or missing(folder, record):
        return None
    digest = hashlib.sha256()
    for name in record.files:
        digest.update(f"{name}\n{file_digest(folder / name)}\n".encode())
    return digest.hexdigest()[:16]


def missing(folder: Path, record: Record) -> list[str]:
    """The files of a finished step that are no longer there."""
    return [name for name in record.files if not exists(folder / name)]


def written_files(folder: Path, step: Step) -> tuple[str, ...]:
    """The files of a step that are there, by name."""
    paths = {path for pattern in step.files for path in listed(folder, pattern)}
    return tuple(sorted(path.relative_to(folder).as_posix() for path in paths))


def read_record(folder: Path, name: str) -> Record | None:
    """The record of a step; None where it was never started."""
    path = _path(folder, name)
    return read_typed(Record, path, "Delete it; the step is then done again.") if exists(path) else None


def write_record(folder: Path, record: Record) -> None:
    """Keep a record, atomically."""
    write_text(_path(folder, record.step), dump_json(asdict(record)))


def _path(folder: Path, name: str) -> Path:
    return folder / FOLDER / f"{name}.json"
