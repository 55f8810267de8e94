"""What each design choice costs on a device (paper section 3.4, the equation of LAT).

cost = fixed + sum_s e^s_{d^s} + sum_s sum_{b <= d^s} t^s_{b, c_b}

Latency, MACs, parameters, memory and energy are all costs of this form. The per-depth part e is
optional (zero); it keeps an overhead per block exactly bilinear. A cost that is combined by ``max``, such as
peak activation memory, is the largest of the same parts instead of their sum.

A table may have variants: values of something outside the stages (threads, runtime, device, resolution) of which one is
chosen for the whole network, each with its own numbers of the costs that differ.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, Literal

import numpy as np
from pydantic import BaseModel, ConfigDict, Field, StringConstraints

from binas.base.errors import TableError, UnitError, several
from binas.base.files import dump_json, write_text
from binas.base.typed import MOST_PROBLEMS
from binas.space.architecture import Architecture
from binas.space.layout import Indices
from binas.space.space import SearchSpace
from binas.tables.entries import (
    Array,
    Column,
    ConfigEntries,
    DepthEntries,
    EntryReader,
    Number,
    Provenance,
    SpaceReference,
    column,
    config_data,
    depth_data,
    known_column,
    number_data,
    reference,
)
from binas.tables.reading import is_csv, other_space, read_table, validate
from binas.tables.units import Unit, parse_unit

FORMAT = "binas/costs"
Combine = Literal["sum", "max"]
NAME = r"^[A-Za-z][A-Za-z0-9_.-]{0,60}$"
CostName = Annotated[str, StringConstraints(pattern=NAME)]
VariantName = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1, max_length=60)]


class CostEntry(BaseModel):
    """One named cost."""

    model_config = ConfigDict(extra="forbid")
    unit: str = Field(description="ms, MACs, params, MiB, mJ, ... or 1 for a plain number")
    combine: Combine = Field(
        default="sum", description="how the parts of an architecture make its cost: added up, or the largest"
    )
    fixed: Number = Field(description="Cost of what is not searched: stem, head, pooling, classifier")
    depths: DepthEntries = Field(default={}, description="optional: stage -> depth -> additional cost")
    configs: ConfigEntries = Field(description="stage -> one object per block: config -> cost")
    provenance: Provenance = Provenance()


class CostsFile(BaseModel):
    """A binas cost table, version 1."""

    model_config = ConfigDict(extra="forbid")
    format: Literal["binas/costs"]
    version: Literal[1]
    space: SpaceReference | None = None
    costs: dict[CostName, CostEntry] = Field(min_length=1, json_schema_extra={"additionalProperties": False})
    variants: dict[VariantName, dict[CostName, CostEntry]] = Field(
        default={},
        description="optional: variant -> the costs that differ in it; one variant is chosen for the network",
    )


@dataclass(frozen=True, eq=False)
class Cost:
    """One cost of a space: fixed part, per depth, per config, in ``unit``.

    The cost of an architecture is the sum of the fixed part and the entries of its choices, or with ``combine``
    "max" the largest of them.
    """

    name: str
    unit: Unit
    fixed: float
    values: Column
    fixed_stderr: float = math.nan
    stderr: Column | None = None
    provenance: Provenance = field(default_factory=Provenance)
    combine: Combine = "sum"

    def total(self, positions: Indices) -> Array:
        """The cost of each row of ``Layout.positions``, (n,)."""
        if self.combine == "max":
            return np.maximum(self.fixed, self.values.largest(positions))
        return self.fixed + self.values.total(positions)

    def of(self, space: SearchSpace, architectures: Iterable[Architecture]) -> Array:
        """The cost of each architecture, (n,)."""
        return self.total(space.layout.positions_of(architectures))

    def range(self, space: SearchSpace) -> tuple[float, float]:
        """Least and greatest cost of any architecture, exactly."""
        least, greatest = self.of(space, [self.cheapest(space), self.dearest(space)]).tolist()
        return least, greatest

    def cheapest(self, space: SearchSpace) -> Architecture:
        """The architecture of least cost: stages are independent, so each takes its best depth and best configs."""
        return self._best(space, 1.0)

    def dearest(self, space: SearchSpace) -> Architecture:
        """The architecture of greatest cost."""
        return self._best(space, -1.0)

    def _best(self, space: SearchSpace, sign: float) -> Architecture:
        """The architecture of least sign * cost; the first one on ties."""
        depths, configs = [], []
        for stage, extra, blocks in zip(space.stages, self.values.depths, self.values.configs, strict=True):
            picks = [int(np.argmin(sign * block)) for block in blocks]
            parts = [float(block[pick]) for block, pick in zip(blocks, picks, strict=True)]
            totals = [
                self._combine([float(part), *parts[:depth]])
                for part, depth in zip(extra, stage.depths, strict=True)
            ]
            depths.append(stage.depths[int(np.argmin(sign * np.array(totals)))])
            configs.append(picks)
        return space.from_indices(depths, configs)

    def _combine(self, parts: list[float]) -> float:
        return max(parts) if self.combine == "max" else sum(parts)


@dataclass(frozen=True, eq=False)
class CostTable:
    """Named costs of one space.

    ``variants`` name what a network may be run as (``2 threads``), each with the costs that differ from ``costs``. Where
    there are variants, one of them is chosen; ``costs`` is then no further one but what they share, and should hold the
    numbers of the first of them for whatever shows only one table.
    """

    space: SearchSpace
    costs: Mapping[str, Cost]
    variants: Mapping[str, Mapping[str, Cost]] = field(default_factory=dict)

    def __getitem__(self, name: str) -> Cost:
        if name not in self.costs:
            raise TableError(f"there is no cost {name!r}; the table has {', '.join(self.costs)}.")
        return self.costs[name]

    def of(self, architectures: Iterable[Architecture], cost: str) -> Array:
        """One cost of each architecture in its unit, (n,)."""
        return self[cost].of(self.space, architectures)

    def range(self, cost: str) -> tuple[float, float]:
        """Least and greatest of one cost over all architectures of the space, exactly."""
        return self[cost].range(self.space)

    def cheapest(self, cost: str) -> Architecture:
        """The architecture of the space that has the least of one cost."""
        return self[cost].cheapest(self.space)

    def to_data(self) -> dict[str, Any]:
        """The JSON object of the file."""
        costs = {name: _cost_data(self.space, cost) for name, cost in self.costs.items()}
        data = {"format": FORMAT, "version": 1, "space": reference(self.space), "costs": costs}
        variants = {
            variant: {name: _cost_data(self.space, cost) for name, cost in own.items()}
            for variant, own in self.variants.items()
        }
        return {**data, "variants": variants} if variants else data

    def summary(self) -> dict[str, Any]:
        """Each cost without its entries: unit, fixed part, range and provenance; ``binas costs show --json`` prints it."""
        costs = {}
        for name, cost in self.costs.items():
            least, most = self.range(name)
            numbers = {"fixed": cost.fixed, "least": least, "most": most}
            about = {"unit": cost.unit.name, "combine": cost.combine, **numbers}
            costs[name] = {**about, "provenance": cost.provenance.to_data()}
        return {"space": self.space.name, "costs": costs}

    def save(self, path: Path) -> None:
        """Write as ``.json`` or ``.csv``, atomically."""
        from binas.tables.spreadsheet import costs_to_csv

        path = Path(path)
        if self.variants and is_csv(path):
            raise TableError(
                f"{path} cannot hold a table with variants; write it to a file that ends in .json."
            )
        write_text(path, costs_to_csv(self) if is_csv(path) else dump_json(self.to_data()))


def _cost_data(space: SearchSpace, cost: Cost) -> dict[str, Any]:
    data: dict[str, Any] = {"unit": cost.unit.name}
    if cost.combine != "sum":
        data["combine"] = cost.combine
    data["fixed"] = number_data(cost.fixed, cost.fixed_stderr)
    known = () if cost.stderr is None else cost.stderr.depths
    if any(row.any() for row in cost.values.depths) or any((~np.isnan(row)).any() for row in known):
        data["depths"] = depth_data(space, cost.values, cost.stderr)
    data["configs"] = config_data(space, cost.values, cost.stderr)
    data["provenance"] = cost.provenance.to_data()
    return data


def costs_from_data(data: Any, space: SearchSpace, where: str) -> CostTable:
    """Build from the JSON object, checking everything and reporting all problems at once."""
    parsed = validate(CostsFile, data, where)
    problems = other_space(parsed.space, space)
    costs = _read_each(parsed.costs, space, problems)
    variants = {variant: _read_each(own, space, problems) for variant, own in parsed.variants.items()}
    problems += variant_problems(costs, variants)
    if problems:
        advice = f"The table must cover the space {space.name!r} completely with finite numbers from zero up"
        raise TableError(several(where, problems, advice + "."))
    return CostTable(space, costs, variants)


def variant_problems(costs: Mapping[str, Cost], variants: Mapping[str, Mapping[str, Cost]]) -> list[str]:
    """What is wrong with variants: each must have other numbers of a cost that the table has, in the same unit."""
    problems = []
    for variant, own in variants.items():
        if not own:
            problems.append(f"the variant {variant!r} has no costs of its own")
        for name, cost in own.items():
            shared = costs.get(name)
            if shared is None or (shared.unit, shared.combine) != (cost.unit, cost.combine):
                problems.append(
                    f"the variant {variant!r} has {name} in {cost.unit}, which the table itself has not"
                )
    return problems


def _read_each(entries: Mapping[str, CostEntry], space: SearchSpace, problems: list[str]) -> dict[str, Cost]:
    """Each cost; the rest are not looked at once more is wrong than anybody reads."""
    found = {}
    for name, entry in entries.items():
        if len(problems) > MOST_PROBLEMS:
            break
        found[name] = _read_cost(name, entry, space, problems)
    return found


def _read_cost(name: str, entry: CostEntry, space: SearchSpace, problems: list[str]) -> Cost:
    reader = EntryReader(space, name, problems, allow_negative=False)
    unit = _read_unit(name, entry.unit, problems)
    fixed = reader.single(entry.fixed, "fixed")
    reader.allow_negative = True  # a correction per depth may be a discount
    depths = reader.depths(entry.depths, required=bool(entry.depths))
    reader.allow_negative = False
    configs = reader.configs(entry.configs)
    stderr = known_column(depths, configs, "stderr")
    fixed_stderr = math.nan if fixed.stderr is None else fixed.stderr
    values = column(depths, configs, "value")
    return Cost(name, unit, fixed.value, values, fixed_stderr, stderr, entry.provenance, entry.combine)


def _read_unit(name: str, text: str, problems: list[str]) -> Unit:
    """The unit of a cost; one that is missing or unknown is a problem, never taken for a plain number."""
    if not text.strip():
        problems.append(f"{name}.unit is empty; write ms, MACs, params, MiB, mJ, ... or 1 for a plain number")
        return parse_unit("1")
    try:
        return parse_unit(text)
    except UnitError as error:
        problems.append(f"{name}.unit: {error}".rstrip("."))
        return parse_unit("1")


def load_costs(path: Path, space: SearchSpace) -> CostTable:
    """Read a cost table (``.json`` or ``.csv``) and check it against the space."""
    from binas.tables.spreadsheet import costs_data_from_csv

    return costs_from_data(read_table(Path(path), costs_data_from_csv), space, str(path))
