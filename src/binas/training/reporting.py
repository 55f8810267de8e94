"""Figures of training on disk, as JSON lines and for TensorBoard; how far it is goes to the progress."""

from __future__ import annotations

import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from binas.base.errors import FileError
from binas.base.lines import read_lines, write_lines
from binas.base.progress import Progress
from binas.training.board import Board

LINES = "metrics.jsonl"


class Reporter:
    """Figures go to ``metrics.jsonl`` and TensorBoard in ``folder`` where one is given, how far it is to ``progress``.

    A line of ``metrics.jsonl`` is one epoch: phase, epoch, step and figures, no times, so that a resumed run
    writes the same file as an uninterrupted one. Lines past the position a phase resumes from are dropped.
    """

    def __init__(self, folder: Path | None = None, progress: Progress | None = None) -> None:
        self.folder, self.progress = folder, progress or Progress()
        self.phase, self.total, self.note = "", 1, ""
        self.board: Board | None = None

    def start(self, phase: str, total: int, done: int) -> None:
        """A phase of ``total`` steps begins, or resumes after ``done`` of them; later lines are written again."""
        self.phase, self.total, self.note = phase, total, ""
        if self.folder is None:
            return
        lines = read_metrics(self.folder)
        write_lines(
            self.folder / LINES, [line for line in lines if line["phase"] != phase or line["step"] <= done]
        )
        self.board = Board(self.folder / "tensorboard", done)

    def advance(self, done: int, **values: float) -> None:
        """``done`` steps of the phase are finished."""
        if self.board is not None:
            self.board.add({f"{self.phase}/step/{name}": value for name, value in values.items()}, done)
            self._give_up_board()
        self.progress.show(done / self.total, self.note)

    def record(self, epoch: int, step: int, metrics: Mapping[str, float]) -> None:
        """Figures after an epoch: kept, and shown from the next step on.

        They replace those written before a kill between them and a checkpoint.
        """
        if self.folder is not None:
            others = [
                line
                for line in read_metrics(self.folder)
                if (line["phase"], line["step"]) != (self.phase, step)
            ]
            own = {"phase": self.phase, "epoch": epoch, "step": step, **metrics}
            write_lines(self.folder / LINES, [*others, own])
            if self.board is not None:
                self.board.add({f"{self.phase}/{name}": value for name, value in metrics.items()}, step)
                self._give_up_board()
        shown = (f"{name} {value:.4g}" for name, value in metrics.items() if name != "learning_rate")
        self.note = f"epoch {epoch}: {', '.join(shown)}"

    def _give_up_board(self) -> None:
        """Say it once where TensorBoard's file cannot be written, and go on without."""
        if self.board is not None and self.board.problem:
            self.progress.say(f"no more figures for TensorBoard: {self.board.problem}")
            self.board = None

    def finish(self) -> None:
        """The phase is over."""
        if self.board is not None:
            self.board.close()
            self.board = None


def keep_figures(folder: Path, phase: str, figures: Mapping[str, float]) -> None:
    """Figures that arise once, in ``metrics.jsonl`` and TensorBoard; those that are not numbers are left out."""
    reporter = Reporter(folder)
    reporter.start(phase, 1, 0)
    reporter.record(1, 1, {name: value for name, value in figures.items() if math.isfinite(value)})
    reporter.finish()


def read_metrics(folder: Path) -> list[dict[str, Any]]:
    """The lines of a run's ``metrics.jsonl``; none if it is not there yet."""
    lines = read_lines(folder / LINES)
    for line in lines:
        if not isinstance(line, dict) or "phase" not in line or type(line.get("step")) is not int:
            raise FileError(
                f"{folder / LINES} has a line without phase and step; delete that line: {str(line)[:100]}"
            )
    return lines
