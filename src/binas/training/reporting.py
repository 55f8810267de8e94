"""Progress: a bar with time left on a terminal, plain lines elsewhere; JSON lines and TensorBoard on disk."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from binas.base.errors import FileError
from binas.base.files import exists, read_text, write_text

LINES = "metrics.jsonl"


class Reporter:
    """Shows nothing and keeps nothing: the base of the others, and the one for tests."""

    def start(self, phase: str, total: int, done: int) -> None:
        """A phase of ``total`` steps begins, or continues after ``done`` of them."""

    def advance(self, done: int, **values: float) -> None:
        """``done`` steps of the phase are finished."""

    def record(self, epoch: int, step: int, metrics: Mapping[str, float]) -> None:
        """Figures after an epoch."""

    def finish(self) -> None:
        """The phase is over."""


class RunReporter(Reporter):
    """Reports to the terminal, to ``metrics.jsonl`` and to TensorBoard in a run's folder.

    A line of ``metrics.jsonl`` is one epoch: phase, epoch, step and figures, no times, so that a resumed run
    writes the same file as an uninterrupted one. Lines past the position a phase resumes from are dropped.
    """

    def __init__(self, folder: Path, quiet: bool = False) -> None:
        self.folder, self.quiet = folder, quiet
        self.phase, self.total = "", 0
        self.bar: Progress | None = None
        self.task: Any = None
        self.board: Any = None

    def start(self, phase: str, total: int, done: int) -> None:
        """Open the bar; forget lines that will be written again."""
        from torch.utils.tensorboard import SummaryWriter

        self.phase, self.total = phase, total
        kept = [line for line in read_metrics(self.folder) if line["phase"] != phase or line["step"] <= done]
        write_text(self.folder / LINES, "".join(json.dumps(line) + "\n" for line in kept))
        self.board = SummaryWriter(str(self.folder / "tensorboard"), purge_step=done + 1)
        if sys.stderr.isatty() and not self.quiet:
            self.bar = Progress(
                TextColumn("{task.description}"),
                BarColumn(),
                MofNCompleteColumn(),
                TimeRemainingColumn(),
                TextColumn("{task.fields[note]}"),
                console=Console(stderr=True),
            )
            self.bar.start()
            self.task = self.bar.add_task(phase, total=total, completed=done, note="")

    def advance(self, done: int, **values: float) -> None:
        """Move the bar."""
        if self.bar is not None:
            self.bar.update(self.task, completed=done)
        for name, value in values.items():
            self.board.add_scalar(f"{self.phase}/step/{name}", value, done)

    def record(self, epoch: int, step: int, metrics: Mapping[str, float]) -> None:
        """Keep and show the figures of an epoch; they replace those written before a kill between them and a checkpoint."""
        line = {"phase": self.phase, "epoch": epoch, "step": step, **metrics}
        others = [
            old for old in read_metrics(self.folder) if (old["phase"], old["step"]) != (self.phase, step)
        ]
        kept = [json.dumps(old) for old in others]
        write_text(self.folder / LINES, "\n".join([*kept, json.dumps(line, allow_nan=False), ""]))
        for name, value in metrics.items():
            self.board.add_scalar(f"{self.phase}/{name}", value, step)
        self.board.flush()
        note = "  ".join(f"{name} {value:.4g}" for name, value in metrics.items() if name != "learning_rate")
        if self.bar is not None:
            self.bar.update(self.task, note=note)
        elif not self.quiet:
            sys.stderr.write(f"{self.phase} epoch {epoch} ({step} of {self.total} steps): {note}\n")

    def finish(self) -> None:
        """Close bar and board."""
        if self.bar is not None:
            self.bar.stop()
        self.bar = None
        if self.board is not None:
            self.board.close()


def read_metrics(folder: Path) -> list[dict[str, Any]]:
    """The lines of a run's ``metrics.jsonl``; none if it is not there yet."""
    path = folder / LINES
    if not exists(path):
        return []
    lines = []
    for number, text in enumerate(read_text(path).splitlines(), 1):
        try:
            line = json.loads(text)
        except json.JSONDecodeError as error:
            raise FileError(f"{path}, line {number} is not JSON ({error.msg}); delete the line.") from error
        if not isinstance(line, dict) or "phase" not in line or type(line.get("step")) is not int:
            raise FileError(f"{path}, line {number} has no phase and step; delete the line.")
        lines.append(line)
    return lines
