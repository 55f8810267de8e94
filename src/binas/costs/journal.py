"""The journal of a measuring session: every sample is on disk as soon as it is taken.

JSON lines (:mod:`binas.base.lines`): first what is measured and how, then the repeats chosen, then
``[entry, value, elapsed seconds]`` for each sample.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any

from pydantic import Field, TypeAdapter, ValidationError

from binas.base.errors import MeasureError
from binas.base.files import exists
from binas.base.identity import changes
from binas.base.lines import append_line, read_lines, write_lines

FORMAT = "binas/journal"
_Seconds = Annotated[float, Field(gt=0, le=1e9, strict=True)]
_Row = tuple[str, _Seconds, _Seconds]
_REPEATS = TypeAdapter(dict[str, Annotated[int, Field(gt=0, le=10**9, strict=True)]])
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
        """Resume the journal of the same plan, or start one; that of another plan is refused.

        A plan lists its ``entries``; what else it holds is only compared.
        """
        header = {"format": FORMAT, "version": 1, "plan": json.loads(json.dumps(plan))}
        if not (resume and exists(path)):
            write_lines(path, [header])
            return cls(path)
        first, *rest = read_lines(path) or [None]
        _check_header(first, header, path)
        repeats, rows = _parse(header["plan"]["entries"], rest, path)
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
        if self.path is not None:
            append_line(self.path, value)


def _check_header(first: Any, header: Mapping[str, Any], path: Path) -> None:
    """Refuse what is no journal, and the journal of another plan, naming what differs."""
    if (
        not isinstance(first, dict)
        or first.get("format") != FORMAT
        or not isinstance(first.get("plan"), dict)
    ):
        raise MeasureError(f"{path} is no journal of a measuring. Delete it, or start afresh with --redo.")
    changed = changes({**first, **first["plan"], "plan": None}, {**header, **header["plan"], "plan": None})
    if changed:
        raise MeasureError(
            f"{path} belongs to another measuring: {'; '.join(changed)}. Finish that one with its own command, or start "
            "afresh with --redo."
        )


def _parse(entries: list[str], rest: list[Any], path: Path) -> tuple[dict[str, int], list[_Row]]:
    """Repeats and samples, if they are such; none in a journal that ended before the first sample."""
    try:
        repeats, rows = _REPEATS.validate_python(rest[0] if rest else {}), _ROWS.validate_python(rest[1:])
    except ValidationError as error:
        raise MeasureError(f"{path} is damaged. Start afresh with --redo.") from error
    if repeats and set(entries) != set(repeats):
        raise MeasureError(f"{path} has not the repeats of the entries measured. Start afresh with --redo.")
    unknown = next((entry for entry, _, _ in rows if entry not in repeats), None)
    if unknown is not None:
        raise MeasureError(
            f"{path} has a sample of {unknown[:60]!r}, which is not measured. Start afresh with --redo."
        )
    times = [elapsed for _, _, elapsed in rows]
    if times != sorted(times):
        raise MeasureError(f"{path} is damaged: its samples are not in order. Start afresh with --redo.")
    return repeats, rows
