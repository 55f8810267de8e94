"""Progress for people: a bar with the time left on a terminal; elsewhere silence, or a plain line now and then."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from binas.run.teller import Teller

if TYPE_CHECKING:
    from rich.progress import Progress as Bar

    from binas.costs.measure import Report
    from binas.costs.session import Progress

REDRAW_SECONDS = 0.1
LINE_SECONDS, LONGEST = 15.0, 300.0  # between plain lines: first, and after some of them


@contextmanager
def progress_bar() -> Iterator[Report]:
    """A bar on standard error with the time left; nothing is shown when that is not a terminal."""
    from rich.console import Console

    hidden = not Console(stderr=True).is_terminal
    # Drawn only when told of progress: a thread that refreshes it would run while something is timed.
    with make_bar(hidden) as bar:
        task = bar.add_task("", total=1.0, left="")

        def show(state: Progress) -> None:
            bar.update(task, completed=state.fraction, description=state.doing, left=time_left(state.left))
            bar.refresh()

        yield show


def make_bar(hidden: bool = False) -> Bar:
    """A bar on standard error: share, time left, what is being done."""
    from rich.console import Console
    from rich.progress import BarColumn, TextColumn
    from rich.progress import Progress as Bar

    columns = (BarColumn(), TextColumn("{task.fields[left]}"), TextColumn("{task.description}", markup=False))
    return Bar(*columns, console=Console(stderr=True), transient=True, disable=hidden, auto_refresh=False)


def time_left(seconds: float | None) -> str:
    """The time left for people; empty when it is not known."""
    return "" if seconds is None else f"{duration(seconds)} left"


def duration(seconds: float) -> str:
    """A time for people."""
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    if hours:
        return f"{hours} h {minutes:02d} min"
    return f"{minutes} min {rest:02d} s" if minutes else f"{rest} s"


class Terminal(Teller):
    """What the steps of a run tell, on standard error: a bar on a terminal, else a line now and then."""

    def __init__(self) -> None:
        self.step = ""
        self.bar: Bar | None = None
        self.start = self.shown = 0.0
        self.pause = LINE_SECONDS
        self.first: float | None = None

    def begin(self, step: str) -> None:
        """Open the bar, or say what begins."""
        self.step, self.first, self.pause = step, None, LINE_SECONDS
        self.start = self.shown = time.monotonic()
        if sys.stderr.isatty():
            self.bar = make_bar()
            self.bar.add_task(step, total=1.0, left="")
            self.bar.start()
        else:
            self.say("begins")

    def show(self, done: float, doing: str, left: float | None = None) -> None:
        """Move the bar, or say how far it is if nothing was said for some time."""
        now = time.monotonic()
        if self.first is None:
            self.first = done
        if now - self.shown < (self.pause if self.bar is None else REDRAW_SECONDS):
            return
        self.shown = now
        if left is None and done > self.first:
            left = (now - self.start) / (done - self.first) * (1 - done)
        if self.bar is None:
            self.pause = min(LONGEST, 1.5 * self.pause)
            self.say(", ".join(filter(None, (f"{done:.0%}", time_left(left), doing))))
        else:
            text = f"{self.step} {doing}"
            self.bar.update(self.bar.task_ids[0], completed=done, description=text, left=time_left(left))
            self.bar.refresh()

    def say(self, text: str) -> None:
        """A line."""
        line = f"{self.step}: {text}" if self.step else text
        if self.bar is None:
            sys.stderr.write(line + "\n")
        else:
            self.bar.console.print(line, markup=False, highlight=False)

    def end(self) -> None:
        """Close the bar; say how long it took."""
        if self.bar is not None:
            self.bar.stop()
            self.bar = None
        self.say(f"{duration(time.monotonic() - self.start)}")
