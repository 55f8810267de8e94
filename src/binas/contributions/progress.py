"""What a user sees while passes are measured: passes, images, stability, time left."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn


class Watcher:
    """Shows nothing: the base of the others, and the one for tests and libraries."""

    @contextmanager
    def watching(self, what: str, total: int, images: int, done: int = 0) -> Iterator[None]:
        """A measurement of up to ``total`` steps of ``images`` images each, of which ``done`` are there already."""
        self.start(what, total, images, done)
        try:
            yield
        finally:
            self.finish()

    def start(self, what: str, total: int, images: int, done: int = 0) -> None:
        """It begins, or goes on."""

    def advance(self, done: int) -> None:
        """``done`` steps are finished."""

    def note(self, text: str) -> None:
        """Something new is known, such as the stability of the ranking."""

    def finish(self) -> None:
        """The measurement is over, or was interrupted."""


class Terminal(Watcher):
    """A bar with time left on a terminal; elsewhere a plain line per note."""

    def __init__(self) -> None:
        self._bar: Progress | None = None
        self._what, self._total, self._images, self._done, self._before = "", 0, 0, 0, 0
        self._began = time.monotonic()

    def start(self, what: str, total: int, images: int, done: int = 0) -> None:
        """Open the bar."""
        self._what, self._total, self._images = what, total, images
        self._done = self._before = done
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
        self._bar.add_task(what, total=total, completed=done, images=f"{done * images:,}", note="")

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
            sys.stderr.write(
                f"{self._what}: {self._done} of {self._total} ({self._done * self._images:,} images{self._left()}): {text}\n"
            )

    def _left(self) -> str:
        """Time left if it goes on as in this session; nothing before the first step."""
        new = self._done - self._before
        if not new:
            return ""
        return f", about {(time.monotonic() - self._began) / new * (self._total - self._done):.0f} s left"

    def finish(self) -> None:
        """Close the bar."""
        if self._bar is not None:
            self._bar.stop()
            self._bar = None
