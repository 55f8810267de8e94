"""What both kinds of tables share: values per depth and per (block, config), keyed as people write them.

On disk a table is keyed by names::

    "depths":  {"s1": {"2": 0.0, "3": 0.33}}
    "configs": {"s1": [{"e3k3": 0.1, "e3k5": {"value": 0.2, "stderr": 0.01}}, ...one object per block...]}

In memory it is arrays aligned with the space.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Annotated, Any

import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel, ConfigDict, Field, JsonValue

from binas.space.layout import Indices
from binas.space.space import Config, SearchSpace
from binas.tables.verification import Calibration, Verification
from binas.version import TOOL

Array = NDArray[np.float64]
LARGEST = 1e100  # of a number in a table: sums and squares of such are still finite


class Entry(BaseModel):
    """A measured number with its standard error and the number of observations behind it."""

    model_config = ConfigDict(extra="forbid", strict=True)
    value: float
    stderr: float | None = None
    count: float | None = None


# Strict: neither "1.5" nor true is a number. NaN and infinity pass here; EntryReader reports them.
Number = Annotated[Annotated[float, Field(strict=True)] | Entry, Field(union_mode="left_to_right")]
DepthEntries = dict[str, dict[str, Number]]
ConfigEntries = dict[str, list[dict[str, Number]]]


class Provenance(BaseModel):
    """Where a table comes from. Any further key is kept."""

    model_config = ConfigDict(extra="allow", frozen=True, allow_inf_nan=False)
    __pydantic_extra__: dict[str, JsonValue] = Field(init=False)
    source: str = ""
    device: str | None = None
    runtime: str | None = None
    threads: int | None = None
    batch: int | None = None
    dtype: str | None = None
    backend: str | None = None
    processor: str | None = None
    memory_format: str | None = None
    onednn: bool | None = None
    statistic: str | None = None
    repeats: int | None = None
    dispersion: float | None = None
    disturbance: float | None = None  # a quarter of the control's samples took more than so much longer
    control: float | None = (
        None  # what one run of the control needed, in seconds (or joules): sessions are compared by it
    )
    date: str | None = None
    tool: str | None = None
    calibration: Calibration | None = None
    verification: Verification | None = None

    @classmethod
    def made(cls, source: str, **known: Any) -> Provenance:
        """That of a table which this version of binas makes today."""
        return cls(source=source, date=today(), tool=TOOL, **known)

    def to_data(self) -> dict[str, Any]:
        """Only what is known, and every further key as it was given."""
        return {**self.model_dump(mode="json", exclude_none=True), **(self.__pydantic_extra__ or {})}


class SpaceReference(BaseModel):
    """Which space a table was made for."""

    model_config = ConfigDict(extra="forbid")
    name: str
    fingerprint: str | None = None


def reference(space: SearchSpace) -> dict[str, str]:
    """The reference to ``space`` that a table file carries."""
    return {"name": space.name, "fingerprint": space.fingerprint}


def today() -> str:
    """Date of a measurement, UTC."""
    return datetime.now(UTC).date().isoformat()


@dataclass(frozen=True, eq=False)
class Column:
    """One number per decision of a space: per allowed depth of a stage, per config of a block.

    ``depths[s][i]`` belongs to the i-th allowed depth of stage s; ``configs[s][b][c]`` to config c.
    """

    depths: tuple[Array, ...]
    configs: tuple[tuple[Array, ...], ...]

    @classmethod
    def full(cls, space: SearchSpace, value: float) -> Column:
        """The same number everywhere."""
        return cls(
            tuple(np.full(len(stage.depths), value, dtype=np.float64) for stage in space.stages),
            tuple(
                tuple(np.full(len(block), value, dtype=np.float64) for block in stage.blocks)
                for stage in space.stages
            ),
        )

    @classmethod
    def build(
        cls,
        space: SearchSpace,
        depth: Callable[[int, int], float],
        config: Callable[[int, int, int], float],
    ) -> Column:
        """From functions of (stage, index of allowed depth) and (stage, block, config)."""
        depths = tuple(
            np.array([depth(s, i) for i in range(len(stage.depths))], dtype=np.float64)
            for s, stage in enumerate(space.stages)
        )
        configs = tuple(
            tuple(
                np.array([config(s, b, c) for c in range(len(block))], dtype=np.float64)
                for b, block in enumerate(stage.blocks)
            )
            for s, stage in enumerate(space.stages)
        )
        return cls(depths, configs)

    @classmethod
    def from_flat(cls, space: SearchSpace, vector: Array) -> Column:
        """A vector in the order of ``space.layout`` as a column: the reverse of :meth:`flat`."""
        layout = space.layout
        return cls(
            tuple(vector[where] for where in layout.depth_slices),
            tuple(tuple(vector[where] for where in blocks) for blocks in layout.config_slices),
        )

    def map(self, function: Callable[[Array], Array]) -> Column:
        """Apply an element-wise function."""
        return Column(
            tuple(function(d) for d in self.depths),
            tuple(tuple(function(c) for c in row) for row in self.configs),
        )

    def arrays(self) -> Iterator[Array]:
        """All arrays, depths first."""
        yield from self.depths
        for row in self.configs:
            yield from row

    def flat(self) -> Array:
        """All numbers as one vector in the order of ``space.layout``: configs (alpha), then depths (beta)."""
        return np.concatenate([np.zeros(0), *(c for row in self.configs for c in row), *self.depths])

    def total(self, positions: Indices) -> Array:
        """Sum of the numbers of the active choices of each row of ``Layout.positions``, (n,)."""
        return np.asarray(np.append(self.flat(), 0.0)[positions].sum(axis=1))

    def largest(self, positions: Indices) -> Array:
        """Largest of the numbers of the active choices of each row of ``Layout.positions``, (n,)."""
        return np.asarray(np.append(self.flat(), -np.inf)[positions].max(axis=1))

    def equals(self, other: Column) -> bool:
        """Same shape and same numbers (NaN equals NaN)."""
        mine, theirs = list(self.arrays()), list(other.arrays())
        return len(mine) == len(theirs) and all(
            np.array_equal(a, b, equal_nan=True) for a, b in zip(mine, theirs, strict=True)
        )


@dataclass
class EntryReader:
    """Fills columns (value, stderr, count) from named entries and collects every problem on the way."""

    space: SearchSpace
    label: str
    problems: list[str] = field(default_factory=list)
    allow_negative: bool = True

    def depths(self, entries: DepthEntries, required: bool) -> list[list[Entry]]:
        """Entries per stage and allowed depth."""
        self._unknown_stages(entries, "depths")
        rows = []
        for stage in self.space.stages:
            given = entries.get(stage.name, {})
            where = f"{self.label}.depths.{stage.name}"
            self._unknown(given, [str(d) for d in stage.depths], where)
            rows.append([self._entry(given.get(str(d)), f"{where}.{d}", required) for d in stage.depths])
        return rows

    def configs(self, entries: ConfigEntries) -> list[list[list[Entry]]]:
        """Entries per stage, block and config."""
        self._unknown_stages(entries, "configs")
        result = []
        for stage in self.space.stages:
            given = entries.get(stage.name, [])
            where = f"{self.label}.configs.{stage.name}"
            if len(given) != len(stage.blocks):
                self.problems.append(f"{where} has {len(given)} blocks, the space has {len(stage.blocks)}")
            rows = [self._block(given, b, configs, where) for b, configs in enumerate(stage.blocks)]
            result.append(rows)
        return result

    def _block(
        self, given: list[dict[str, Number]], b: int, configs: tuple[Config, ...], where: str
    ) -> list[Entry]:
        """Entries of one block; one that the file does not list is a problem already counted."""
        listed = b < len(given)
        values, place = given[b] if listed else {}, f"{where}[{b + 1}]"
        if listed:
            self._unknown(values, [config.name for config in configs], place)
        return [self._entry(values.get(c.name), f"{place}.{c.name}", listed) for c in configs]

    def single(self, number: Number | None, name: str) -> Entry:
        """A number that is not keyed, such as a base or fixed part."""
        return self._entry(number, f"{self.label}.{name}", required=True)

    def _entry(self, number: Number | None, where: str, required: bool) -> Entry:
        if number is None:
            if required:
                self.problems.append(f"{where} is missing")
            return Entry(value=0.0)
        entry = number if isinstance(number, Entry) else Entry(value=number)
        if not abs(entry.value) <= LARGEST:  # not for NaN either
            self.problems.append(f"{where} is {entry.value}")
        elif entry.value < 0 and not self.allow_negative:
            self.problems.append(f"{where} is negative ({entry.value:g})")
        for key, value in (("stderr", entry.stderr), ("count", entry.count)):
            if value is not None and not 0 <= value <= LARGEST:
                self.problems.append(f"{where}.{key} is {value}")
        return entry

    def _unknown_stages(self, entries: Mapping[str, Any], part: str) -> None:
        self._unknown(entries, [stage.name for stage in self.space.stages], f"{self.label}.{part}")

    def _unknown(self, given: Mapping[str, Any], known: Sequence[str], where: str) -> None:
        extra = [name for name in given if name not in known]
        if extra:
            names, allowed = ", ".join(extra[:5]), ", ".join(known[:12])
            self.problems.append(f"{where} has {names}, not in the space (it has {allowed})")


def column(depths: list[list[Entry]], configs: list[list[list[Entry]]], key: str) -> Column:
    """One attribute of all entries as arrays; NaN where it is not known."""

    def pick(entry: Entry) -> float:
        value = getattr(entry, key)
        return math.nan if value is None else float(value)

    return Column(
        tuple(np.array([pick(e) for e in row], dtype=np.float64) for row in depths),
        tuple(tuple(np.array([pick(e) for e in row], dtype=np.float64) for row in rows) for rows in configs),
    )


def known_column(depths: list[list[Entry]], configs: list[list[list[Entry]]], key: str) -> Column | None:
    """The column of an optional attribute; None where not one entry has it."""
    result = column(depths, configs, key)
    return None if all(np.isnan(array).all() for array in result.arrays()) else result


def number_data(value: float, stderr: float = math.nan, count: float = math.nan) -> Any:
    """A number for a file: plain where nothing more is known, else an object."""
    extra = {"stderr": float(stderr), "count": float(count)}
    known = {key: number for key, number in extra.items() if not math.isnan(number)}
    return {"value": float(value), **known} if known else float(value)


def depth_data(
    space: SearchSpace, values: Column, stderr: Column | None = None, count: Column | None = None
) -> dict[str, Any]:
    """The ``depths`` object of a table file."""
    result = {}
    for s, stage in enumerate(space.stages):
        result[stage.name] = {
            str(d): number_data(values.depths[s][i], _at(stderr, s, i), _at(count, s, i))
            for i, d in enumerate(stage.depths)
        }
    return result


def config_data(
    space: SearchSpace, values: Column, stderr: Column | None = None, count: Column | None = None
) -> dict[str, Any]:
    """The ``configs`` object of a table file."""
    result = {}
    for s, stage in enumerate(space.stages):
        result[stage.name] = [
            {
                config.name: number_data(values.configs[s][b][c], _of(stderr, s, b, c), _of(count, s, b, c))
                for c, config in enumerate(block)
            }
            for b, block in enumerate(stage.blocks)
        ]
    return result


def _at(values: Column | None, stage: int, index: int) -> float:
    return math.nan if values is None else float(values.depths[stage][index])


def _of(values: Column | None, stage: int, block: int, config: int) -> float:
    return math.nan if values is None else float(values.configs[stage][block][config])
