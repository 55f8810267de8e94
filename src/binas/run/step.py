"""A step of a run as a plain value, its identity, and the record of it having been done.

The identity of a step is a hash of its inputs: the settings it depends on, fingerprints of space and images, the device
it measures, and the files of the steps before it. ``RUN/steps/NAME.json`` records them, so that a step is done again
when, and only when, one of them has changed, and the change can be named.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from binas.base.files import dump_json, exists, write_text
from binas.base.identity import file_digest, flattened
from binas.base.progress import Progress
from binas.base.typed import read_typed

if TYPE_CHECKING:
    from binas.run.run import Run

FOLDER = "steps"
# Settings that change how fast a step is done, not what it finds.
FREE = ("training.checkpoint_seconds", "training.device", "data.workers", "data.cache", "data.check_images")


@dataclass(frozen=True)
class Step:
    """One step: ``work`` reads what ``after`` wrote and the ``settings``, and writes ``files``.

    ``settings`` are dotted names of settings, or of parts of the configuration; ``facts`` what else it depends on;
    ``files`` patterns within the folder; ``scratch`` what it leaves there when interrupted. An ``expensive`` step is
    not done again unasked; one that ``sorts`` decides itself which of its old files it can use. Its time grows with
    the setting ``amount``. ``version`` is raised when the code makes something else of the same inputs.
    """

    name: str
    does: str
    work: Callable[[Run, Progress], None]
    files: tuple[str, ...]
    settings: tuple[str, ...] = ()
    after: tuple[str, ...] = ()
    facts: Callable[[Run], Mapping[str, Any]] = lambda _: {}
    scratch: tuple[str, ...] = ()
    expensive: bool = False
    sorts: bool = False
    amount: str | None = None
    version: int = 1


@dataclass(frozen=True)
class Record:
    """That a step was started, or finished, with these inputs; times in UTC, ``seconds`` those worked on it."""

    step: str
    state: Literal["started", "finished"]
    identity: str
    inputs: dict[str, Any]
    time: str
    seconds: float = 0.0
    files: tuple[str, ...] = ()
    machine: dict[str, str] = field(default_factory=dict)


def inputs_of(run: Run, step: Step) -> dict[str, Any]:
    """Everything a step depends on, by name; a step before it counts with the digest of its files."""
    config = flattened(run.config.model_dump(mode="json"))
    chosen = {key: value for key, value in config.items() if _within(key, step.settings)}
    before = {f"files of {name}": outcome(run.folder, read_record(run.folder, name)) for name in step.after}
    return {"version": step.version, **chosen, **step.facts(run), **before}


def _within(key: str, settings: tuple[str, ...]) -> bool:
    free = key.startswith(FREE)
    return not free and any(key == name or key.startswith(f"{name}.") for name in settings)


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


def written(folder: Path, step: Step) -> tuple[str, ...]:
    """The files of a step that are there, by name."""
    found = {path for pattern in step.files for path in folder.glob(pattern)}
    return tuple(sorted(path.relative_to(folder).as_posix() for path in found))


def read_record(folder: Path, name: str) -> Record | None:
    """The record of a step; None where it was never started."""
    path = _path(folder, name)
    if not exists(path):
        return None
    return read_typed(Record, path, "It is the record of a step. Delete it; the step is then done again.")


def write_record(folder: Path, record: Record) -> None:
    """Keep a record, atomically."""
    write_text(_path(folder, record.step), dump_json(asdict(record)))


def _path(folder: Path, name: str) -> Path:
    return folder / FOLDER / f"{name}.json"
