"""The journal of a measuring session: every sample is on disk as soon as it is taken.

One JSON value per line: first what is measured and how, then the repeats chosen, then
``[entry, value, elapsed seconds]`` for each sample. Lines are only ever appended, so a process killed at any moment
leaves at most half a line, which is cut off when the session goes on.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pydantic import PositiveFloat, PositiveInt, TypeAdapter, ValidationError

from binas.base.errors import FileError, MeasureError
from binas.base.files import exists, parse_json, read_text, write_text

FORMAT = "binas/journal"
_Row = tuple[str, PositiveFloat, PositiveFloat]
_REPEATS = TypeAdapter(dict[str, PositiveInt])
_ROWS = TypeAdapter(list[_Row])


@dataclass(frozen=True, slots=True)
class Sample:
    """One sample: cost of one run of an entry, and the measuring time spent when it was done, in seconds."""

    entry: str
    value: float
    elapsed: float


@dataclass
class Journal:
    """What was measured so far. Without a path it is kept in memory only."""

    path: Path | None = None
    repeats: dict[str, int] = field(default_factory=dict)
    samples: list[Sample] = field(default_factory=list)

    @classmethod
    def open(cls, path: Path, plan: Mapping[str, Any], resume: bool = True) -> Journal:
        """Go on with the journal of the same plan, or start one; that of another plan is refused.

        A plan lists its ``entries``; what else it holds is only compared.
        """
        header = {"format": FORMAT, "version": 1, "plan": json.loads(json.dumps(plan))}
        if not (resume and exists(path)):
            write_text(path, _line(header))
            return cls(path)
        first, *rest = _complete_lines(path)
        if first != header:
            raise MeasureError(
                f"{path} belongs to another measuring (other space, setting or entries). Finish that one with its "
                "own command, or start afresh with --no-resume."
            )
        repeats, rows = _checked(header["plan"]["entries"], rest, path)
        return cls(path, repeats, [Sample(*row) for row in rows])

    def set_repeats(self, repeats: dict[str, int]) -> None:
        """Record how many runs make a sample."""
        self.repeats = repeats
        self._append(repeats)

    def add(self, sample: Sample) -> None:
        """Record a sample."""
        self.samples.append(sample)
        self._append([sample.entry, sample.value, sample.elapsed])

    def _append(self, value: Any) -> None:
        if self.path is None:
            return
        try:
            with self.path.open("a", encoding="utf-8") as file:
                file.write(_line(value))
        except OSError as error:
            raise FileError(
                f"cannot write {self.path}: {error.strerror}. Finished samples are kept."
            ) from error


def _checked(entries: list[str], rest: list[Any], path: Path) -> tuple[dict[str, int], list[_Row]]:
    """Repeats and samples, if they are such; none in a journal that ended before the first sample."""
    try:
        repeats, rows = _REPEATS.validate_python(rest[0] if rest else {}), _ROWS.validate_python(rest[1:])
    except ValidationError as error:
        raise MeasureError(f"{path} is damaged. Start afresh with --no-resume.") from error
    if repeats and not set(entries) <= set(repeats):
        raise MeasureError(f"{path} lacks the repeats of some entries. Start afresh with --no-resume.")
    return repeats, rows


def _line(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, allow_nan=False) + "\n"


def _complete_lines(path: Path) -> Iterator[Any]:
    """All values of a journal; half a line at the end is cut off the file."""
    text = read_text(path)
    whole = text[: text.rfind("\n") + 1]
    if whole != text:
        write_text(path, whole)
    if not whole:
        raise MeasureError(
            f"{path} is no journal of a measuring. Delete it, or start afresh with --no-resume."
        )
    for number, line in enumerate(whole.splitlines(), 1):
        yield parse_json(line, f"{path}, line {number}")
