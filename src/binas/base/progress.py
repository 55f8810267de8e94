"""How far a piece of work is: one protocol for every room, a bar or plain lines for people, `logging` for applications."""

from __future__ import annotations

import logging
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

from binas.base.times import Seconds, duration

if TYPE_CHECKING:
    from rich.progress import Progress as Bar

LOG = logging.getLogger("binas")
REDRAW_SECONDS = 0.1
TRUSTED = 5.0  # seconds of work whose expected time is believed before any was done
LINE_SECONDS, LONGEST = 15.0, 300.0  # between plain lines: first, and after some of them


def speak(text: str) -> None:
    """A line on standard error; that its reader is gone, or its disk full, stops nothing."""
    with suppress(OSError, ValueError):
        if sys.stderr is not None:  # as in a program that was started without it
            sys.stderr.write(f"{text}\n")
            sys.stderr.flush()


class Progress:
    """Nobody listens: what is told goes to the logger ``binas`` (:meth:`say` at INFO, :meth:`show` at DEBUG).

    Whoever starts a piece of work calls :meth:`begin` and :meth:`end`; the work itself only shows and says.
    """

    def begin(self, what: str) -> None:
        """A piece of work begins; ``what`` names it in one or two words."""
        LOG.debug("%s begins", what)

    def show(self, done: float, doing: str = "", left: float | None = None) -> None:
        """``done`` is the share of the work from 0 to 1, ``left`` its seconds left where they are known."""
        LOG.debug("%s", _line(done, doing, left))

    def say(self, text: str) -> None:
        """Something to be read, such as a warning."""
        LOG.info("%s", text)

    def end(self) -> None:
        """The work is over, or was interrupted."""

    @contextmanager
    def during(self, what: str) -> Iterator[Progress]:
        """Begin ``what``, and end it however it ends."""
        self.begin(what)
        try:
            yield self
        finally:
            self.end()

    def part(self, number: int, count: int, name: str = "") -> Progress:
        """The progress of one part of this work, number ``number`` (from 0) of ``count`` equal ones."""
        return _Part(self, number, count, name)


class _Part(Progress):
    """Tells of one part of several, such as one network of three, as that share of the whole."""

    def __init__(self, whole: Progress, number: int, count: int, name: str) -> None:
        self.whole, self.number, self.count, self.name = whole, number, count, name

    def begin(self, what: str) -> None:
        """Show the share of the whole that came before."""
        self.show(0.0, what)

    def show(self, done: float, doing: str = "", left: float | None = None) -> None:
        """Pass it on; the time left is that of the part, so it is not."""
        self.whole.show((self.number + done) / self.count, f"{self.name} {doing}".strip())

    def say(self, text: str) -> None:
        """Pass it on."""
        self.whole.say(f"{self.name}: {text}" if self.name else text)


class Several(Progress):
    """Tells of several pieces of work as of one, by the seconds each is expected to take, by name.

    The bar moves with the share of all these seconds that is done. The time left is what is expected of the rest; seconds
    of work count as many times as what was done so far took longer than expected, so it comes true as the work goes on.
    """

    def __init__(self, progress: Progress, expected: Mapping[str, Seconds]) -> None:
        self.progress, self.left = progress, dict(expected)
        self.total = sum(seconds.total for seconds in expected.values())
        self.planned = self.took = TRUSTED  # seconds of work so far: as expected, and really
        self.what, self.now = "", Seconds()
        self.start = self.since = time.monotonic()
        self.first: float | None = None  # share that was done when it was first shown

    def begin(self, what: str) -> None:
        """A piece begins; those before it in order that did not are left out."""
        while self.left and next(iter(self.left)) != what:
            self.left.pop(next(iter(self.left)))
        self.what, self.now = what, self.left.pop(what, Seconds())
        self.start = self.since = time.monotonic()
        self.first = None
        self.progress.show(self._share(0.0), what, self._left(0.0, None))

    def show(self, done: float, doing: str = "", left: float | None = None) -> None:
        """The share and the time left of all."""
        if self.first is None:
            self.first, self.since = done, time.monotonic()
        self.progress.show(self._share(done), f"{self.what} {doing}".strip(), self._left(done, left))

    def say(self, text: str) -> None:
        """Pass it on with the name of the piece."""
        self.progress.say(f"{self.what}: {text}" if self.what else text)

    def end(self) -> None:
        """A piece is over: what it took says how fast the rest will be."""
        elapsed = time.monotonic() - self.start
        self.say(duration(elapsed))
        self.planned, self.took = self._pace(1 - (self.first or 0.0), elapsed)
        self.what, self.now = "", Seconds()

    def _share(self, done: float) -> float:
        rest = sum(seconds.total for seconds in self.left.values()) + (1 - done) * self.now.total
        return 1 - rest / self.total if self.total else done

    def _pace(self, done: float, elapsed: float) -> tuple[float, float]:
        """Seconds of work as expected, and really, after ``done`` of this piece in ``elapsed`` seconds."""
        if not self.now.work:
            return self.planned, self.took
        return self.planned + self.now.work * done, self.took + max(0.0, elapsed - self.now.fixed * done)

    def _left(self, done: float, own: float | None) -> float:
        """Seconds left of this piece, by its own speed as far as it is done, and of all that follow."""
        elapsed, part = time.monotonic() - self.since, done - (self.first or 0.0)
        planned, took = self._pace(part, elapsed)
        pace = took / planned
        full = self.now.work * pace + self.now.fixed
        if part > 0:
            full = (1 - part) * full + elapsed if full else elapsed / part
        rest = sum(seconds.work * pace + seconds.fixed for seconds in self.left.values())
        return rest + ((1 - done) * full if own is None else own)


class Terminal(Progress):
    """For people, on standard error: a bar with the time left on a terminal, elsewhere a line now and then.

    The bar is drawn only when progress is told: a thread that refreshes it would run while something is timed. Work goes on
    where nothing can be shown any more, as after a terminal was closed.
    """

    def __init__(self) -> None:
        self.what = ""
        self.bar: Bar | None = None
        self.start = self.shown = time.monotonic()
        self.pause = LINE_SECONDS
        self.first: float | None = None

    def begin(self, what: str) -> None:
        """Open the bar, or say what begins."""
        self.what, self.first, self.pause = what, None, LINE_SECONDS
        self.start = self.shown = time.monotonic()
        if sys.stderr is not None and sys.stderr.isatty():
            self.bar = _make_bar()
            self.bar.add_task(what, total=1.0, left="")
            with suppress(OSError):
                self.bar.start()
        else:
            self.say("begins")

    def show(self, done: float, doing: str = "", left: float | None = None) -> None:
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
            self.say(_line(done, doing, left))
        else:
            text = f"{self.what} {doing}"
            self.bar.update(self.bar.task_ids[0], completed=done, description=text, left=_time_left(left))
            with suppress(OSError):
                self.bar.refresh()

    def say(self, text: str) -> None:
        """A line."""
        line = f"{self.what}: {text}" if self.what else text
        if self.bar is None:
            speak(line)
        else:
            with suppress(OSError):
                self.bar.console.print(line, markup=False, highlight=False)

    def end(self) -> None:
        """Close the bar; say how long it took."""
        if self.bar is not None:
            with suppress(OSError):
                self.bar.stop()
            self.bar = None
        self.say(duration(time.monotonic() - self.start))
        self.what = ""


def _line(done: float, doing: str, left: float | None) -> str:
    return ", ".join(filter(None, (f"{done:.0%}", _time_left(left), doing)))


def _time_left(seconds: float | None) -> str:
    """The time left for people; empty when it is not known."""
    return "" if seconds is None else f"{duration(seconds)} left"


def _make_bar() -> Bar:
    """A bar on standard error: share, time left, what is being done."""
    from rich.console import Console
    from rich.progress import BarColumn, Progress as Bar, TextColumn

    columns = (BarColumn(), TextColumn("{task.fields[left]}"), TextColumn("{task.description}", markup=False))
    return Bar(*columns, console=Console(stderr=True), transient=True, auto_refresh=False)
