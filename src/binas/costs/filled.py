"""A filled-in CSV becomes a cost table (see :mod:`binas.costs.exchange` for what was filled in).

Wrong rows are errors, all of them in one message; what only looks wrong comes back as warnings with numbers.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from statistics import fmean

from binas.base.errors import FileError, SpaceError, TableError, UnitError, several
from binas.base.files import exists, read_text
from binas.base.identity import file_digest
from binas.base.interval import Interval
from binas.base.rows import parse_rows
from binas.costs.analytic import analytic_costs
from binas.costs.manifest import HEADER, BlockFile, Manifest
from binas.costs.plausible import doubts
from binas.space.architecture import Architecture
from binas.space.space import SearchSpace
from binas.tables.costs import Combine, Cost, CostTable
from binas.tables.entries import Column, Provenance, today
from binas.tables.reading import other_space
from binas.tables.units import Unit, convert, parse_unit
from binas.version import TOOL

MAX_BYTES = 32 * 2**20
FEW_PERCENT = 5.0
FEWEST = 10  # whole networks to correct and verify a table with

MeasuredNetworks = Sequence[tuple[Architecture, float]]
Calibrate = Callable[[SearchSpace, Cost, MeasuredNetworks], Cost]


@dataclass(frozen=True, eq=False)
class Filled:
    """What a filled CSV gave: the table, what to look at again, and the whole networks that were measured."""

    table: CostTable
    warnings: tuple[str, ...]
    networks: MeasuredNetworks


def import_filled(
    path: Path,
    manifest: Manifest,
    space: SearchSpace,
    *,
    unit: str | None = None,
    name: str = "latency",
    combine: Combine = "sum",
    provenance: Provenance | None = None,
    calibrate: Calibrate | None = None,
) -> Filled:
    """The cost ``name`` from a filled CSV, with the exact analytic costs beside it.

    ``unit`` is that of values that do not carry one, and of the table. ``provenance`` says device, runtime and
    threads; batch and dtype are the manifest's. Rows of whole networks may stay empty; where they are filled,
    the sum of blocks is held against them, and ``calibrate`` (:func:`correct_sum` unless given) makes a better table of it.
    """
    problems = other_space(manifest.space, space)
    if problems:
        raise TableError(several(str(path), problems))
    measured, of = read_values(path, manifest, unit)
    stated = _provenance(provenance or Provenance(), manifest, path)
    fixed, values = _column(space, manifest, measured)
    cost = Cost(name, of, fixed, values, provenance=stated, combine=combine)
    networks = [
        (space.parse(item.architecture), measured[item.key])
        for item in manifest.files
        if item.architecture is not None and item.key in measured
    ]
    warnings = [*doubts(space, cost), *_doubt_sum(space, cost, networks)]
    if networks:
        cost = (calibrate or correct_sum)(space, cost, networks)
    return Filled(with_analytic(space, cost), tuple(warnings), networks)


def correct_sum(space: SearchSpace, cost: Cost, networks: MeasuredNetworks) -> Cost:
    """The sum of blocks corrected on some of the measured networks and verified on the others, if there are enough.

    The first of the list are the lightest and the heaviest, so that what is fitted to spans the space.
    """
    if len(networks) < FEWEST or cost.combine == "max":
        return cost
    from binas.costs.calibrate import MeasuredNetwork
    from binas.costs.verify import check_formula

    measured = [
        MeasuredNetwork(item, Interval(value, value, value), (value, value)) for item, value in networks
    ]
    cut = len(measured) // 2
    return check_formula(space, cost, measured[:cut], measured[cut:], analytic_costs(space)["macs"])


def _doubt_sum(space: SearchSpace, cost: Cost, networks: MeasuredNetworks) -> Iterator[str]:
    """The table against whole networks, in percent of measured, where that is more than a few percent off."""
    known = [(item, value) for item, value in networks if value > 0]
    predicted = cost.of(space, [item for item, _ in known])
    errors = (100 * (predicted / [value for _, value in known] - 1)).tolist()
    if errors and fmean(map(abs, errors)) > FEW_PERCENT:
        worst = max(errors, key=abs)
        yield (
            f"what the blocks make together is off by {fmean(map(abs, errors)):.1f} % on average from the "
            f"{len(errors)} whole networks that were measured (bias {fmean(errors):+.1f} %, worst {worst:+.1f} %)."
        )


def _provenance(given: Provenance, manifest: Manifest, path: Path) -> Provenance:
    if given.batch not in (None, manifest.batch):
        raise TableError(
            f"the blocks were exported for batch {manifest.batch}, not {given.batch}: export them again with "
            f"--batch {given.batch}, or leave the batch out."
        )
    known = {"batch": manifest.batch, "dtype": given.dtype or manifest.dtype, "date": given.date or today()}
    known |= {"source": given.source or f"imported from {path.name}", "tool": TOOL}
    return given.model_copy(update=known)


def _column(space: SearchSpace, manifest: Manifest, measured: Mapping[str, float]) -> tuple[float, Column]:
    """The fixed part and the entries of the table."""
    places = {(use.stage, use.block, use.config): measured[x.key] for x in manifest.files for use in x.uses}
    fixed = [measured[item.key] for item in manifest.files if item.kind == "fixed"]

    keys = [
        [[(stage.name, b, config.name) for config in block] for b, block in enumerate(stage.blocks, 1)]
        for stage in space.stages
    ]
    lacking = [
        f"{stage} block {b} {config}"
        for row in keys
        for block in row
        for stage, b, config in block
        if (stage, b, config) not in places
    ]
    if lacking or len(fixed) != 1:
        what = lacking or ["one fixed part"]
        raise TableError(several("the manifest lacks", what, "Export the blocks again."))
    return fixed[0], Column.build(space, lambda s, i: 0.0, lambda s, b, c: places[keys[s][b][c]])


def with_analytic(space: SearchSpace, cost: Cost) -> CostTable:
    """A table of one cost and the exact analytic ones, where the blocks of the space can be counted."""
    try:
        exact: Mapping[str, Cost] = analytic_costs(space).costs
    except SpaceError:
        exact = {}
    return CostTable(space, {cost.name: cost, **{name: c for name, c in exact.items() if name != cost.name}})


def read_values(path: Path, manifest: Manifest, unit: str | None = None) -> tuple[dict[str, float], Unit]:
    """The values by key, all in one unit; every problem of the CSV in one error. Networks may be missing."""
    reading = _Reading(
        {item.key: item for item in manifest.files}, parse_unit(unit) if unit else None, path.parent
    )
    for line, row in _rows(path):
        reading.add(row, f"line {line}")
    needed = [key for key, item in reading.files.items() if item.kind != "network"]
    missing = [key for key in needed if key not in reading.values and key not in reading.bad]
    if missing:
        share = f"{len(missing)} of {len(needed)} values are missing"
        reading.problems.append(several(share, missing))
    if reading.problems or reading.unit is None:
        raise TableError(several(str(path), reading.problems or ["no values"], "Nothing was written."))
    return reading.values, reading.unit


@dataclass
class _Reading:
    """Values read so far, and what was wrong on the way. ``default`` is the unit of values that name none."""

    files: Mapping[str, BlockFile]
    default: Unit | None
    folder: Path
    unit: Unit | None = None
    values: dict[str, float] = field(default_factory=dict)
    bad: set[str] = field(default_factory=set)
    problems: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.unit = self.default

    def add(self, row: Mapping[str, str], line: str) -> None:
        """Take one row; a row without a value is one that is missing."""
        key = row["key"]
        if key in self.files and not row["value"]:
            return
        try:
            self._check_row(row)
            self.values[key] = self._value(row)
        except (TableError, UnitError, FileError) as error:
            self.bad.add(key)
            self.problems.append(f"{line} ({key[:60]}): {str(error).rstrip('.')}")

    def _check_row(self, row: Mapping[str, str]) -> None:
        item = self.files.get(row["key"])
        if item is None:
            raise TableError("no such key in the manifest")
        if item.key in self.values or item.key in self.bad:
            raise TableError("this key has a value already")
        if row["file"] not in ("", item.file):
            raise TableError(f"the file of this key is {item.file}, not {row['file'][:60]!r}")
        here = self.folder / item.file
        if exists(here) and file_digest(here) != item.sha256:
            raise TableError(f"{item.file} was changed after it was exported")

    def _value(self, row: Mapping[str, str]) -> float:
        """The number in the unit of the table, which is the first one met where none was given."""
        try:
            number = float(row["value"])
        except ValueError:
            shown = repr(row["value"][:20])
            raise TableError(
                f"{shown} is not a number (decimal point; the unit has its own column)"
            ) from None
        if not (math.isfinite(number) and number >= 0):
            raise TableError(f"{row['value'][:20]} is not a cost from zero up")
        unit = parse_unit(row["unit"]) if row["unit"] else self.default
        if unit is None:
            raise TableError("it has no unit: fill the column unit, or pass --unit ms")
        self.unit = self.unit or unit
        return convert(number, unit, self.unit)


def _rows(path: Path) -> Iterator[tuple[int, dict[str, str]]]:
    """Rows that are not blank, by the names of the header, with their line numbers; further columns are kept out."""
    header: list[str] = []
    for line, given in parse_rows(read_text(path, MAX_BYTES), str(path), TableError):
        cells = [cell.strip() for cell in given]
        if header:
            row = dict(zip(header, cells, strict=False))
            yield line, {key: row.get(key, "") for key in HEADER}
        else:
            header = _header(cells, path)
    if not header:
        raise TableError(f"{path} is empty; fill in the CSV that `binas costs export-blocks` wrote.")


def _header(cells: list[str], path: Path) -> list[str]:
    header = [cell.lower() for cell in cells]
    missing = [key for key in HEADER if key not in header]
    if missing:
        raise TableError(
            f"{path} lacks the columns {', '.join(missing)}; its first row must be {','.join(HEADER)}, separated by "
            "commas (not semicolons)."
        )
    return header
