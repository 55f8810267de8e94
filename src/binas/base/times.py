"""Spans of time as people write and read them: ``90s``, ``15min``, ``2h``, ``1h30``."""

from __future__ import annotations

import re
from dataclasses import dataclass

from binas.base.errors import UnitError

LONGEST = 1000 * 3600.0  # seconds; more is a slip of the pen
_SPAN = re.compile(
    r"(?:(?P<h>\d+(?:\.\d+)?)\s*h)?\s*(?:(?P<min>\d+(?:\.\d+)?)\s*(?:min|m))?\s*(?:(?P<s>\d+(?:\.\d+)?)\s*s)?"
)
_HOURS_MINUTES = re.compile(r"(\d+)\s*h\s*([0-5]\d)")
_IN_SECONDS = {"h": 3600.0, "min": 60.0, "s": 1.0}


@dataclass(frozen=True)
class Seconds:
    """Seconds of ``work``, which take longer on a machine that is slower or busy, and ``fixed`` ones that do not."""

    work: float = 0.0
    fixed: float = 0.0

    @property
    def total(self) -> float:
        """Both."""
        return self.work + self.fixed


def duration(seconds: float) -> str:
    """A time for people."""
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    if hours:
        return f"{hours} h {minutes:02d} min"
    return f"{minutes} min {rest:02d} s" if minutes else f"{rest} s"


def short_duration(seconds: float) -> str:
    """The same as it may be typed, to the minute from one hour on: ``90s``, ``15min``, ``2h``, ``1h30``."""
    whole = round(seconds)
    if whole >= 3600:
        hours, minutes = divmod(round(seconds / 60), 60)
        return f"{hours}h{minutes:02d}" if minutes else f"{hours}h"
    minutes, rest = divmod(whole, 60)
    return f"{whole}s" if rest or not minutes else f"{minutes}min"


def parse_duration(text: str) -> float:
    """Seconds of ``90s``, ``15min``, ``2h``, ``1h30`` or ``1h 30min``; a bare number is refused."""
    given = text.strip().lower()
    both = _HOURS_MINUTES.fullmatch(given)
    match = _SPAN.fullmatch(f"{both[1]}h{both[2]}min" if both else given)
    parts = {} if match is None else {unit: value for unit, value in match.groupdict().items() if value}
    seconds = sum(float(value) * _IN_SECONDS[unit] for unit, value in parts.items())
    if not 0 < seconds <= LONGEST:
        bare = ", which has no unit" if re.fullmatch(r"\d+(\.\d+)?", given) else ""
        raise UnitError(
            f"cannot read the time {text.strip()[:40]!r}{bare}; write e.g. 90s, 15min, 2h or 1h30 (at most 1000h)."
        )
    return seconds
