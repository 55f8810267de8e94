"""A number with its confidence interval, the same value in every room."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

Z = 1.96  # standard errors of half a 95 % interval


@dataclass(frozen=True, slots=True)
class Interval:
    """A number and the bounds of its 95 % confidence interval, in the number's unit; NaN where not defined."""

    value: float
    low: float
    high: float

    def scaled(self, factor: float) -> Interval:
        """The same in another unit."""
        return Interval(self.value * factor, self.low * factor, self.high * factor)

    def to_json(self) -> dict[str, float | None]:
        """value, low and high; null where not defined."""
        numbers = {"value": self.value, "low": self.low, "high": self.high}
        return {name: None if math.isnan(number) else number for name, number in numbers.items()}

    @classmethod
    def from_json(cls, data: Any) -> Any:
        """The reverse of :meth:`to_json`; anything else is left to be refused by whoever reads it."""
        if not isinstance(data, dict):
            return data
        return {name: math.nan if number is None else number for name, number in data.items()}

    def __format__(self, form: str) -> str:
        """For people, each number in ``form``: ``f"{tau:.2f}"`` gives ``0.91 (0.88 to 0.93)``."""
        value, low, high = (format(number, form) for number in (self.value, self.low, self.high))
        return f"{value} ({low} to {high})"


@dataclass(frozen=True, slots=True)
class Taken(Interval):
    """What one session of measuring found, and how the machine was meanwhile, by a control: one fixed piece of work.

    A quarter of the control's samples took longer by ``disturbance`` (a share) than it needs; ``control`` is what it needs,
    in the device's unit. Where the device was ``slower`` than when a table was made, the numbers are divided by that factor.
    """

    disturbance: float = 0.0
    control: float | None = None
    slower: float = 1.0

    def as_fast_as(self, control: float | None, least: float, most: float) -> Taken:
        """At the speed of a session with that ``control``: divided by the factor between both, ``least`` up to ``most``."""
        if control is None or self.control is None or self.control < least * control:
            return self
        slower = min(most, self.control / control)
        numbers = (self.value / slower, self.low / slower, self.high / slower)
        return Taken(*numbers, self.disturbance, self.control, slower)
