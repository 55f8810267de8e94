"""Two cost tables of one space side by side: what they were measured on, and by how much their numbers differ."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from binas.base.errors import TableError, UnitError
from binas.space.space import SearchSpace
from binas.tables.conditions import differences
from binas.tables.costs import Cost, CostTable
from binas.tables.entries import Column
from binas.tables.units import convert

NOISE = 2.0  # standard errors of the difference


@dataclass(frozen=True, slots=True)
class Change:
    """One entry whose number differs; ``beyond_noise`` is None where standard errors are not known."""

    entry: str
    first: float
    second: float
    beyond_noise: bool | None

    @property
    def ratio(self) -> float:
        """Second over first."""
        return self.second / self.first if self.first else math.inf


@dataclass(frozen=True, eq=False)
class CostDiff:
    """One cost in two tables, both in ``unit``: conditions that differ, and entries from the largest change down.

    ``entries`` counts the numbers that are not zero in both.
    """

    name: str
    unit: str
    conditions: Mapping[str, tuple[object, object]]
    entries: int
    changes: tuple[Change, ...]

    @property
    def median_ratio(self) -> float:
        """Median of second over first, of all entries that are not zero in the first."""
        ratios = [change.ratio for change in self.changes if change.first]
        same = [1.0] * (self.entries - len(self.changes))
        return float(np.median([*ratios, *same])) if ratios or same else math.nan

    def sentence(self) -> str:
        """How many numbers differ, and by how much."""
        if not self.changes:
            return f"{self.name}: the same {self.entries} numbers"
        noisy = sum(change.beyond_noise is False for change in self.changes)
        within = f", {noisy} of them within noise" if noisy else ""
        return (
            f"{self.name}: {len(self.changes)} of {self.entries} numbers differ{within}; the second is "
            f"{self.median_ratio:.4g} times the first (median)"
        )

    def to_json(self) -> dict[str, Any]:
        """The object that ``binas costs diff --json`` prints for one cost."""
        return {
            "cost": self.name,
            "unit": self.unit,
            "conditions": {key: list(pair) for key, pair in self.conditions.items()},
            "entries": self.entries,
            "median_ratio": None if math.isnan(self.median_ratio) else self.median_ratio,
            "changes": [
                {"entry": x.entry, "first": x.first, "second": x.second, "beyond_noise": x.beyond_noise}
                for x in self.changes
            ],
        }


@dataclass(frozen=True, eq=False)
class TableDiff:
    """Costs that only one of two tables has, and the difference of each that both have."""

    only_first: tuple[str, ...]
    only_second: tuple[str, ...]
    costs: tuple[CostDiff, ...]

    def to_json(self) -> dict[str, Any]:
        """The object that ``binas costs diff --json`` prints."""
        only = {"only_first": list(self.only_first), "only_second": list(self.only_second)}
        return {**only, "costs": [item.to_json() for item in self.costs]}


def diff(first: CostTable, second: CostTable) -> TableDiff:
    """Compare two tables of one space; the second is converted to the units of the first."""
    if first.space.fingerprint != second.space.fingerprint:
        raise TableError("the tables are of different spaces, so their entries cannot be compared.")
    shared = [name for name in first.costs if name in second.costs]
    return TableDiff(
        tuple(name for name in first.costs if name not in second.costs),
        tuple(name for name in second.costs if name not in first.costs),
        tuple(_cost_diff(first.space, first[name], second[name]) for name in shared),
    )


def _cost_diff(space: SearchSpace, one: Cost, two: Cost) -> CostDiff:
    if one.combine != two.combine:
        raise TableError(
            f"{one.name} is combined by {one.combine} in one table and by {two.combine} in the other."
        )
    try:
        factor = convert(1.0, two.unit, one.unit)
    except UnitError as error:
        raise TableError(f"{one.name} is not the same quantity in both tables: {error}") from error
    everything = zip(entries(space, one), entries(space, two), strict=True)
    pairs = [(a, b) for a, b in everything if a.value or b.value]  # most tables have no parts per depth
    changes = [
        Change(a.name, a.value, factor * b.value, _beyond_noise(a, b, factor))
        for a, b in pairs
        if not math.isclose(a.value, factor * b.value, rel_tol=1e-12)
    ]
    changes.sort(
        key=lambda change: -abs(math.log(change.ratio)) if 0 < change.ratio < math.inf else -math.inf
    )
    stated = {
        key: (getattr(one.provenance, key), getattr(two.provenance, key))
        for key in differences(one.provenance, two.provenance)
    }
    return CostDiff(one.name, one.unit.name, stated, len(pairs), tuple(changes))


def _beyond_noise(one: Entry, two: Entry, factor: float) -> bool | None:
    noise = math.hypot(one.stderr, factor * two.stderr)
    return None if math.isnan(noise) else abs(factor * two.value - one.value) > NOISE * noise


@dataclass(frozen=True, slots=True)
class Entry:
    """One number of a cost: where it stands, its value and standard error (NaN where not known)."""

    name: str
    value: float
    stderr: float


def entries(space: SearchSpace, cost: Cost) -> Iterator[Entry]:
    """Every number of a cost: the fixed part, then stage by stage depths and configs."""
    unknown = Column.full(space, math.nan) if cost.stderr is None else cost.stderr
    yield Entry("fixed", cost.fixed, cost.fixed_stderr)
    for s, stage in enumerate(space.stages):
        for i, depth in enumerate(stage.depths):
            value, error = cost.values.depths[s][i], unknown.depths[s][i]
            yield Entry(f"{stage.name} depth {depth}", float(value), float(error))
        for b, block in enumerate(stage.blocks):
            for c, config in enumerate(block):
                value, error = cost.values.configs[s][b][c], unknown.configs[s][b][c]
                yield Entry(f"{stage.name} block {b + 1} {config.name}", float(value), float(error))
