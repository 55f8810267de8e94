"""``RUN/log.jsonl``: one line per event (a step started, came so far, finished, failed) with time and seconds."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from binas.base.errors import FileError
from binas.base.files import exists, read_text

FILE = "log.jsonl"


def now() -> str:
    """The time as it stands in logs and records: UTC, to the second."""
    return datetime.now(UTC).isoformat(timespec="seconds")


def log_event(folder: Path, event: str, step: str, **values: Any) -> None:
    """Append one event; after a process that was killed within a line, on a line of its own."""
    line = json.dumps({"time": now(), "event": event, "step": step, **values}, allow_nan=False) + "\n"
    path = folder / FILE
    try:
        with path.open("a+b") as file:
            if file.tell():
                file.seek(-1, 2)
                line = line if file.read() == b"\n" else "\n" + line
            file.write(line.encode())
    except OSError as error:
        raise FileError(f"cannot write {path}: {error.strerror}. Finished work is kept.") from error


def read_log(folder: Path) -> list[dict[str, Any]]:
    """All events, oldest first; lines that were cut off are passed over."""
    if not exists(folder / FILE):
        return []
    found = []
    for line in read_text(folder / FILE).splitlines():
        try:
            event = json.loads(line)
        except json.JSONDecodeError:
            continue
        if isinstance(event, dict):
            found.append(event)
    return found
