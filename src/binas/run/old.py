"""``RUN/old/``: what was replaced, each time in a folder of its own, with the record of the step that had made it.

What fits the settings again is brought back instead of being made again. Beyond ``train.old_gib`` the oldest is deleted,
once what replaced it is finished; the newest always stays.

Where a record is, there the files belong that it names. So it goes first into ``old/`` and comes last out of it: after a
kill in between it is in ``old/``, and the run has files and no record of the step (:func:`half_moved`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from binas.base.files import exists, facts_of, is_regular, listed, move, remove_tree, size_of
from binas.base.lines import write_lines
from binas.base.progress import Progress
from binas.run.log import log_event, now
from binas.run.records import FOLDER as RECORDS, Record, missing, read_record
from binas.training.reporting import LINES, read_metrics

OLD = "old"
GIB = 2**30


def keep_old(folder: Path, what: str, names: Sequence[str]) -> Path:
    """Move files or folders of a run to a new folder in ``old/``."""
    return keep_in(folder, new_place(folder, what), what, names)


def new_place(folder: Path, what: str) -> Path:
    """The folder in ``old/`` for what is set aside now; it is not there yet."""
    stamp, number = now().replace(":", "").removesuffix("+0000"), 1
    place = folder / OLD / f"{stamp}-{what}"
    while exists(place):
        number += 1
        place = folder / OLD / f"{stamp}-{what}-{number}"
    return place


def keep_in(folder: Path, place: Path, what: str, names: Sequence[str]) -> Path:
    """Move files or folders of a run, in this order, to a folder in ``old/``."""
    for name in names:
        move(folder / name, place / name)
    log_event(folder, "set aside", what, files=list(names), to=place.relative_to(folder).as_posix())
    return place


def places(folder: Path, what: str = "") -> list[Path]:
    """The folders in ``old/``, newest first; only those of one step where ``what`` names it."""
    found = listed(folder / OLD, f"*-{what}*" if what else "*")
    own = [path for path in found if not what or _step_of(path) == what]
    return sorted(own, key=_age, reverse=True)


def _step_of(place: Path) -> str:
    """The step that a folder ``2026-01-31T120000-STEP`` or ``...-STEP-2`` is of."""
    name = place.name.split("T", 1)[-1].partition("-")[2]
    stem, _, number = name.rpartition("-")
    return stem if stem and number.isdigit() else name


def _age(place: Path) -> tuple[str, int]:
    """Sorts folders by the second in their names, and those of one second by when they were last changed."""
    return place.name[: len("2026-01-31T120000")], facts_of(place).st_mtime_ns


def find_old(folder: Path, step: str, identity: str) -> tuple[Path, Record] | None:
    """Where ``old/`` has what a step made of the same inputs, whole, and its record; None where it has not."""
    for place in places(folder, step):
        record = read_record(place, step)
        if record is None or (record.state, record.identity) != ("finished", identity):
            continue
        if not missing(place, record):
            return place, record
    return None


def half_moved(folder: Path, step: str) -> tuple[Path, Record] | None:
    """Where the record is of files of a step that are still, or again, in the run; None where the run has one itself."""
    if read_record(folder, step) is not None:
        return None
    for place in places(folder, step):
        record = read_record(place, step)
        outside = [] if record is None else missing(place, record)
        if record is not None and outside and all(exists(folder / name) for name in outside):
            return place, record
    return None


def bring_back(folder: Path, step: str, place: Path, progress: Progress) -> None:
    """Put back what a step had made, its record last; there must be nothing of the step in the run, or the rest of this."""
    if exists(place / LINES):
        _bring_back_figures(folder, place, step)
    for path in listed(place):
        if path.name not in (RECORDS, LINES):
            move(path, folder / path.name)
    record = f"{RECORDS}/{step}.json"
    move(place / record, folder / record)
    drop(place)
    log_event(folder, "brought back", step, origin=place.relative_to(folder).as_posix())
    progress.say(f"{step}: done before with these inputs, brought back from {place.relative_to(folder)}")


def keep_figures_of(folder: Path, step: str, place: Path) -> None:
    """Copy a step's figures, which are about to be replaced, to where its files were moved to."""
    own = [line for line in read_metrics(folder) if _is_of(line, step)]
    if own:
        write_lines(place / LINES, own)


def _bring_back_figures(folder: Path, place: Path, step: str) -> None:
    others = [line for line in read_metrics(folder) if not _is_of(line, step)]
    write_lines(folder / LINES, [*others, *read_metrics(place)])


def _is_of(line: Mapping[str, Any], step: str) -> bool:
    """Whether a line of figures is a step's: its phase begins with the last part of the step's name."""
    return str(line["phase"]).split(" ")[0] == step.rpartition(".")[2]


def limit_old(folder: Path, gib: float, progress: Progress) -> None:
    """Delete the oldest of ``old/`` beyond that many GiB; the newest stays."""
    found = places(folder)
    sizes = [sum(size_of(path) for path in listed(place, "**/*") if is_regular(path)) for place in found]
    for number, place in enumerate(found[1:], 2):
        if sum(sizes[:number]) > gib * GIB:
            drop(place)
            progress.say(
                f"{place.relative_to(folder)} deleted: {OLD}/ holds more than train.old_gib={gib:g} GiB"
            )


def drop(place: Path) -> None:
    """Delete a folder of ``old/``, its record first: half of it must not be taken for what was half moved."""
    if exists(place / RECORDS):
        remove_tree(place / RECORDS)
    remove_tree(place)


def drop_emptied(folder: Path) -> None:
    """Delete what processes that were killed left in ``old/`` without anything of a step in it but figures."""
    for place in places(folder):
        if {path.name for path in listed(place)} <= {LINES, RECORDS} and not listed(place / RECORDS):
            drop(place)
