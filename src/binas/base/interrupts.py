"""Signals that ask a command to end: Ctrl-C, SIGTERM (a cluster takes the machine back), SIGUSR1 (it soon will).

Work that can keep more by ending at a better moment postpones them: training does so until a batch is done, then keeps a
checkpoint. A second signal ends it at once. While the program is being loaded there is nothing to keep, and
:func:`leave_when_asked` lets a signal end it with the same sentence.
"""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import NoReturn

from binas.base.errors import BinasError

NAMES = ("SIGINT", "SIGTERM", "SIGUSR1")  # the last one is not known to Windows
SIGNALS = tuple(signal.Signals[name] for name in NAMES if name in signal.Signals.__members__)
GO_ON = "What is finished is kept: the same command goes on from there."

_postponing = 0
_noted: list[int] = []
_raised: list[int] = []


class Interrupted(BaseException):
    """A command was asked to end; no error, and nothing to be caught on the way but to keep what is done."""

    def __init__(self, number: int) -> None:
        super().__init__(f"interrupted by {signal.Signals(number).name}")
        self.number = number

    @property
    def exit_code(self) -> int:
        """What shells expect of a program that a signal has ended."""
        return 128 + self.number

    @property
    def sentence(self) -> str:
        """What is said of it at the end."""
        return f"{self}. {GO_ON}"


@contextmanager
def listening() -> Iterator[None]:
    """Let these signals end what is done here by :class:`Interrupted`; only a program's main thread hears them."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    _raised.clear()
    before = [(number, signal.signal(number, _heard)) for number in SIGNALS]
    try:
        yield
    except (BinasError, OSError):  # what goes wrong while something is kept must be told
        raise
    except Exception as error:  # compiled code passes on an interruption as an error of its own
        if _raised:
            raise Interrupted(_raised[0]) from error
        raise
    finally:
        for number, handler in before:
            signal.signal(number, handler)


def leave_when_asked() -> None:
    """Let these signals end the process at once, wherever :func:`listening` does not hear them."""
    for number in SIGNALS:
        signal.signal(number, leave)


def leave(number: int, _: FrameType | None = None) -> NoReturn:
    """End this process as one that a signal has interrupted: imports, and what waits outside Python, cannot be unwound."""
    interruption = Interrupted(number)
    try:
        os.write(2, f"{interruption.sentence}\n".encode())
    finally:  # with nobody to read it too
        os._exit(interruption.exit_code)


def ignore() -> None:
    """Let these signals do nothing: for workers, which end with the process that started them."""
    for number in SIGNALS:
        signal.signal(number, signal.SIG_IGN)


def _heard(number: int, _: FrameType | None) -> None:
    if _postponing and not _noted:
        _noted.append(number)
    else:
        _raised.append(number)
        raise Interrupted(number)


@contextmanager
def postponed() -> Iterator[None]:
    """A signal is only noted until :func:`noted` is asked for it, or until the end, where it is raised."""
    global _postponing
    _postponing += 1
    try:
        yield
    finally:
        _postponing -= 1
        heard = [] if _postponing else _noted.copy()
        if heard:
            _noted.clear()
    if heard:
        _raised.extend(heard)
        raise Interrupted(heard[0])


def asked() -> bool:
    """Whether a signal was heard already, postponed or not: one more would be taken for impatience."""
    return bool(_noted or _raised)


def noted() -> int | None:
    """The signal that was heard and postponed; None without one."""
    return _noted[0] if _noted else None
