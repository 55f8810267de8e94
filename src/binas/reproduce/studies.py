"""Experiments done one after the other, and kept: JSON, CSV, PNG for each, one page for all.

DIR/NAME.json, .csv, .png   a finding; done again only when the run's files it reads, or the preset, have changed
DIR/measured/               networks and contributions that experiments share
DIR/reproduction.html       the page
"""

from __future__ import annotations

import csv
import io
import shlex
import time
from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from binas.base.errors import BinasError, ConfigError, FileError
from binas.base.files import exists, listed, read_bytes, write_bytes, write_text
from binas.base.identity import file_digest, identity_of
from binas.base.packages import missing
from binas.base.plugins import import_name
from binas.base.progress import Progress
from binas.base.settings import FileRecord
from binas.base.typed import read_typed
from binas.reproduce._base import PRESETS, WEIGHTS, Experiment, Finding, Study
from binas.reproduce.page import Section, cell, columns, render

if TYPE_CHECKING:
    from binas.run.run import Run

NAMES = (
    "ranking",
    "terms",
    "predictors",
    "components",
    "optimizers",
    "methods",
    "insights",
    "frontier",
    "main-table",
    "transitivity",
    "costs",
)
ALL, PAGE = "all", "reproduction.html"
PLOTTING = ("matplotlib",)
MAX_PICTURE_BYTES = 2**26


class FindingRecord(FileRecord):
    """A finding as it is kept: what it depends on, when and how it was made."""

    name: str
    item: str
    claim: str
    holds: str
    identity: str
    preset: str
    run: str
    command: str
    date: str
    seconds: float
    finding: Finding


def experiments(names: Iterable[str] = (ALL,)) -> list[Experiment]:
    """The experiments of these names, in the order of the paper's story; ``all`` is all of them."""
    asked = list(names)
    unknown = [name for name in asked if name not in (ALL, *NAMES)]
    if unknown:
        raise ConfigError(
            f"there is no experiment {unknown[0][:40]!r}; choose from {', '.join((ALL, *NAMES))}."
        )
    chosen = NAMES if ALL in asked else [name for name in NAMES if name in asked]
    return [import_name(f"binas.reproduce.{name.replace('-', '_')}:EXPERIMENT") for name in chosen]


def reproduce(
    run: Run,
    folder: Path,
    names: Sequence[str] = (ALL,),
    preset: str = "quick",
    progress: Progress | None = None,
) -> list[FindingRecord]:
    """Do experiments on a run and write what they found, page included; what is there and still holds stays.

    An experiment that this run has not what is needed for is left out, and ``progress`` is told why.
    """
    told = progress or Progress()
    if preset not in PRESETS:
        raise ConfigError(f"there is no preset {preset[:40]!r}; choose from {', '.join(PRESETS)}.")
    chosen, found = experiments(names), list[FindingRecord]()
    command = command_of(run, folder, names, preset)
    if lacking := missing(PLOTTING):
        told.say(f"without pictures, which the same command draws after: {lacking}")
    for number, experiment in enumerate(chosen):
        part = told.part(number, len(chosen), experiment.name)
        try:
            found.append(_done(Study(run, folder, PRESETS[preset], part), experiment, preset, command))
        except BinasError as error:
            if len(chosen) == 1:
                raise
            part.say(f"left out: {error}")
        _write_page(run, folder)
    return found


def command_of(run: Run, folder: Path, names: Sequence[str], preset: str) -> str:
    """The command that does these experiments, folders as they were given."""
    given = ["--run", str(run.folder), "--out", str(folder), "--preset", preset]
    return shlex.join(["binas", "reproduce", *names, *given])


def _done(study: Study, experiment: Experiment, preset: str, command: str) -> FindingRecord:
    """What is known of one experiment, made now by ``command`` where it is not known."""
    identity, path = _identity(study, experiment), study.folder / f"{experiment.name}.json"
    known = read_finding(path) if exists(path) else None
    if known is not None and known.identity == identity:
        if not exists(path.with_suffix(".png")):
            _draw(path, known.finding)
        return known
    start = time.monotonic()
    finding = experiment.make(study)
    record = FindingRecord(
        name=experiment.name,
        item=experiment.item,
        claim=experiment.claim,
        holds=experiment.holds,
        identity=identity,
        preset=preset,
        run=study.run.folder.name,
        command=command,
        date=f"{datetime.now(UTC):%Y-%m-%d}",
        seconds=round(time.monotonic() - start, 1),
        finding=finding,
    )
    write_text(path.with_suffix(".csv"), _csv(finding))
    _draw(path, finding)
    record.save(path)
    study.progress.say(finding.sentence)
    return record


def _draw(path: Path, finding: Finding) -> None:
    """The picture beside the record, where matplotlib is installed."""
    if finding.panels and missing(PLOTTING) is None:
        from binas.reproduce.figure import picture

        write_bytes(path.with_suffix(".png"), picture(finding))


def _identity(study: Study, experiment: Experiment) -> str:
    """What a finding depends on: the preset, the weights, and the run's files it reads."""
    folder = study.run.folder
    patterns = (WEIGHTS, *experiment.reads)
    files = sorted({path for pattern in patterns for path in listed(folder, pattern)})
    digests = {path.relative_to(folder).as_posix(): file_digest(path) for path in files}
    return identity_of(
        {"preset": study.preset.model_dump(mode="json"), "images": study.run.images, **digests}
    )


def read_finding(path: Path) -> FindingRecord:
    """What the experiment that a file is named after found, as it is kept."""
    advice = "Delete it; `binas reproduce` makes it again."
    found = read_typed(FindingRecord, path, advice)
    if found.name != path.stem:  # its picture is looked for by that name
        raise FileError(f"{path} is of the experiment {found.name[:60]!r}. {advice}")
    return found


def _csv(finding: Finding) -> str:
    text, names = io.StringIO(), columns(finding.rows)
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(names)
    writer.writerows([[cell(row.get(name)) for name in names] for row in finding.rows])
    return text.getvalue()


def _write_page(run: Run, folder: Path) -> None:
    """The page of everything that is there."""
    records = [read_finding(folder / f"{name}.json") for name in NAMES if exists(folder / f"{name}.json")]
    sizes = (len(run.data.train), len(run.data.validation), len(run.data.test))
    about = [
        f"Space {run.space.name} ({run.space.count:,} networks), images {run.data.name}: {sizes[0]:,} to train with, "
        f"{sizes[1]:,} to validate, {sizes[2]:,} to test. "
        f"Under each experiment stands which images and networks judge, and what its errors are."
    ]
    write_text(
        folder / PAGE, render("The paper's experiments on this run", about, sections_of(folder, records))
    )


def sections_of(folder: Path, records: Iterable[FindingRecord]) -> Iterator[Section]:
    """The parts of the page, with their pictures."""
    for item in records:
        png = folder / f"{item.name}.png"
        about = f"{item.holds} Made on {item.date} by `{item.command}` in {item.seconds:g} s."
        data = read_bytes(png, MAX_PICTURE_BYTES) if exists(png) else None
        found = item.finding
        yield Section(item.name, item.item, item.claim, found.sentence, about, found.rows, data)
