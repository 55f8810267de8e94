"""What a user sees while passes are measured: passes, images, stability, time left."""

from __future__ import annotations

import sys
import time

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn


class Watcher:
    """Shows nothing: the base of the others, and the one for tests and libraries."""

    def start(self, what: str, total: int, images: int) -> None:
        """A measurement of up to ``total`` steps of ``images`` images each begins, or goes on."""

    def advance(self, done: int) -> None:
        """``done`` steps are finished."""

    def note(self, text: str) -> None:
        """Something new is known, such as the stability of the ranking."""

    def finish(self) -> None:
        """The measurement is over."""


class Terminal(Watcher):
    """A bar with time left on a terminal; elsewhere a plain line per note."""

    def __init__(self) -> None:
        self._bar: Progress | None = None
        self._what, self._total, self._images, self._done = "", 0, 0, 0
        self._began = time.monotonic()

    def start(self, what: str, total: int, images: int) -> None:
        """Open the bar."""
        self._what, self._total, self._images, self._done = what, total, images, 0
        self._began = time.monotonic()
        if not sys.stderr.isatty():
            return
        self._bar = Progress(
            TextColumn("{task.description}"),
            BarColumn(),
            MofNCompleteColumn(),
            TextColumn("{task.fields[images]} images"),
            TimeRemainingColumn(),
            TextColumn("{task.fields[note]}"),
            console=Console(stderr=True),
        )
        self._bar.start()
        self._bar.add_task(what, total=total, images="0", note="")

    def advance(self, done: int) -> None:
        """Move the bar."""
        self._done = done
        if self._bar is not None:
            self._bar.update(self._bar.task_ids[0], completed=done, images=f"{done * self._images:,}")

    def note(self, text: str) -> None:
        """Beside the bar, or as a line."""
        if self._bar is not None:
            self._bar.update(self._bar.task_ids[0], note=text)
        else:
            left = (time.monotonic() - self._began) / max(1, self._done) * (self._total - self._done)
            images = f"{self._done * self._images:,} images, at most {left:.0f} s left"
            sys.stderr.write(f"{self._what}: {self._done} of {self._total} ({images}): {text}\n")

    def finish(self) -> None:
        """Close the bar."""
        if self._bar is not None:
            self._bar.stop()
            self._bar = None
