"""By when a call must be back: the one thing that everything which may take long asks for the time."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass, replace

from binas.base.errors import ProblemError

Clock = Callable[[], float]


class TimeUpError(Exception):
    """The deadline has passed; whoever catches it returns what there is, with a bound."""


@dataclass(frozen=True, eq=False)
class Deadline:
    """A moment of ``clock`` (seconds, rising); never, unless one is given."""

    end: float = math.inf
    clock: Clock = time.monotonic

    @classmethod
    def after(cls, seconds: TimeLimit, clock: Clock = time.monotonic) -> Deadline:
        """So many seconds from now; None: never; a deadline that there is already stays."""
        if isinstance(seconds, Deadline):
            return seconds
        if seconds is not None and not seconds >= 0:
            raise ProblemError(f"the time limit is {seconds} s; it must be zero or more.")
        return NEVER if seconds is None or seconds == math.inf else cls(clock() + seconds, clock)

    @property
    def left(self) -> float:
        """Seconds that are left, never below zero; infinite without a limit."""
        return math.inf if self.end == math.inf else max(0.0, self.end - self.clock())

    @property
    def seconds(self) -> float | None:
        """The same as a time limit: None without one."""
        return None if self.end == math.inf else self.left

    @property
    def late(self) -> bool:
        """Whether time is up."""
        return self.end < math.inf and self.clock() >= self.end

    def check(self) -> None:
        """Raise where time is up."""
        if self.late:
            raise TimeUpError

    def shared(self, parts: float) -> Deadline:
        """The deadline of the first of so many equal parts of what is left."""
        return self if self.end == math.inf else replace(self, end=self.end - self.left * (1 - 1 / parts))


TimeLimit = float | Deadline | None
"""What a call may take: seconds, until a deadline, or as long as it likes."""

NEVER = Deadline()
