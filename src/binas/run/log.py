"""``RUN/log.jsonl``: one line per event (a step started, came so far, finished, failed) with time and seconds."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from binas.base.lines import append_line, read_lines

FILE = "log.jsonl"


def now() -> str:
    """The time as it stands in logs and records: UTC, to the second."""
    return datetime.now(UTC).isoformat(timespec="seconds")


def log_event(folder: Path, event: str, step: str, **values: Any) -> None:
    """Append one event."""
    append_line(folder / FILE, {"time": now(), "event": event, "step": step, **values})


def read_log(folder: Path) -> list[dict[str, Any]]:
    """All events, oldest first."""
    return [event for event in read_lines(folder / FILE) if isinstance(event, dict)]
