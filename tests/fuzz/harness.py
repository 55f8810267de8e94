"""One changed file handed to its reader, and what came of it."""

from __future__ import annotations

import random
import resource
import shutil
import signal
import time
import traceback
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import FrameType
from typing import Literal

from mutations import ALWAYS_WRONG, Mutated, mutate
from readers import Reader

from binas.base.errors import BinasError

Outcome = Literal["refused", "accepted", "wrong accepted", "traceback", "hang", "memory"]
BAD: tuple[Outcome, ...] = ("wrong accepted", "traceback", "hang", "memory")
MOST_SECONDS = 2.0  # of the processor
GIVE_UP = 20.0
MOST_BYTES = 2**30


class HangError(Exception):
    """A reader that does not come to an end."""


@dataclass(frozen=True)
class Finding:
    """What a reader did with one changed file."""

    reader: str
    number: int
    how: str
    outcome: Outcome
    message: str = ""
    seconds: float = 0.0  # of the processor
    memory: int = 0  # bytes that were in use at once, above what was before


class Ground:
    """The right files of a reader in a folder of their own; each trial changes one and puts it back."""

    def __init__(self, reader: Reader, folder: Path) -> None:
        self.reader, self.folder = reader, folder
        folder.mkdir(parents=True, exist_ok=True)
        reader.make(folder)
        self.path = folder / reader.file
        self.right = self.path.read_bytes()
        reader.read(folder)  # what is right must be accepted, or nothing is tested

    def trial(self, number: int) -> Finding:
        """The reader on the change that belongs to a number."""
        return self.judge(
            number, mutate(self.right, self.reader.form, random.Random(f"{self.reader.name}/{number}"))
        )

    def judge(self, number: int, changed: Mutated) -> Finding:
        """The reader on one change."""
        self.path.write_bytes(changed.content)
        found = self._outcome(changed)
        self.path.unlink()
        self.path.write_bytes(self.right)
        return Finding(self.reader.name, number, changed.how, *found)

    def _outcome(self, changed: Mutated) -> tuple[Outcome, str, float, int]:
        before, start = _peak_bytes(reset=True), time.process_time()
        try:
            with warnings.catch_warnings(), _given_up():
                warnings.simplefilter("error", RuntimeWarning)
                self.reader.read(self.folder)
            wrong = changed.content != self.right and self._surely_wrong(changed)
            outcome, message = ("wrong accepted" if wrong else "accepted"), str(changed.at)
        except BinasError as error:
            outcome, message = "refused", str(error)
            if len(message) > 20_000:
                outcome, message = "traceback", f"a message of {len(message)} characters"
        except HangError:
            outcome, message = "hang", "given up"
        except Exception:
            outcome, message = "traceback", traceback.format_exc()
        seconds, memory = time.process_time() - start, max(0, _peak_bytes() - before)
        if seconds > MOST_SECONDS:
            outcome, message = "hang", f"{seconds:.1f} s; {message[:500]}"
        if memory > MOST_BYTES:
            outcome, message = "memory", f"{memory / 2**30:.1f} GiB; {message[:500]}"
        return outcome, message, seconds, memory  # type: ignore[return-value]

    def _surely_wrong(self, changed: Mutated) -> bool:
        if self.reader.foreign:
            return False
        if self.reader.sealed:
            return True
        if changed.how in ALWAYS_WRONG:
            return changed.wrong
        names = ".".join(str(part) for part in changed.at if not isinstance(part, int))
        free = any(not part or names == part or names.startswith(f"{part}.") or f".{part}" in f".{names}"
                   for part in self.reader.free)  # fmt: skip
        return changed.wrong and not free


@contextmanager
def _given_up() -> Iterator[None]:
    """Stop a reader after ``GIVE_UP`` seconds of the processor."""

    def stop(number: int, frame: FrameType | None) -> None:
        raise HangError

    before = signal.signal(signal.SIGPROF, stop)
    signal.setitimer(signal.ITIMER_PROF, GIVE_UP)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)


def _peak_bytes(reset: bool = False) -> int:
    """The most memory that was in use, since the last reset where the system can forget it."""
    try:
        if reset:
            Path("/proc/self/clear_refs").write_text("5")
        lines = Path("/proc/self/status").read_text().splitlines()
        return 1024 * next(int(line.split()[1]) for line in lines if line.startswith("VmHWM"))
    except (OSError, StopIteration):
        return 1024 * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


def clear(folder: Path) -> None:
    """Remove a folder of trials."""
    shutil.rmtree(folder, ignore_errors=True)
