"""Several cost tables of one space as one. What was measured under different conditions is never mixed by accident."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from binas.base.errors import TableError, UnitError
from binas.tables.conditions import KEYS, describe, differences
from binas.tables.costs import Cost, CostTable
from binas.tables.entries import Array, Column, Provenance
from binas.tables.units import convert


def merge(tables: Sequence[CostTable], average: bool = False, ignore: Iterable[str] = ()) -> CostTable:
    """All costs of several tables of one space.

    A cost that several tables have must be the same quantity measured under the same conditions. Equal numbers
    are kept once; different ones need ``average``, which takes their mean. Conditions named in ``ignore`` may
    differ; the result then says which values were mixed. To keep both, rename one (:func:`rename_cost`).
    """
    if not tables:
        raise TableError("there are no tables to merge.")
    skipped = _check_ignored(ignore)
    for table in tables:
        _check_single(table)
    space = tables[0].space
    if any(table.space.fingerprint != space.fingerprint for table in tables):
        raise TableError("the tables are of different spaces, so they cannot be merged.")
    names = dict.fromkeys(name for table in tables for name in table.costs)
    shared = {name: [table.costs[name] for table in tables if name in table.costs] for name in names}
    return CostTable(space, {name: _merge_cost(costs, average, skipped) for name, costs in shared.items()})


def rename_cost(table: CostTable, old: str, new: str) -> CostTable:
    """The table with one cost under another name."""
    if new in table.costs:
        raise TableError(f"the table has a cost {new!r} already.")
    _check_single(table)
    moved = replace(table[old], name=new)
    return CostTable(table.space, {n: c for n, c in table.costs.items() if n != old} | {new: moved})


def rename_costs(tables: Mapping[Path, CostTable], changes: Iterable[str]) -> dict[Path, CostTable]:
    """Tables by their files with costs renamed as each ``FILE:OLD=NEW`` says."""
    renamed = dict(tables)
    for text in changes:
        file, _, change = text.rpartition(":")
        old, _, new = change.partition("=")
        if Path(file) not in renamed or not old or not new:
            known = ", ".join(map(str, renamed))
            raise TableError(
                f"cannot read --rename {text[:80]!r}; write FILE:OLD=NEW with a FILE of {known}."
            )
        renamed[Path(file)] = rename_cost(renamed[Path(file)], old, new)
    return renamed


def _check_single(table: CostTable) -> None:
    if table.variants:
        raise TableError(
            f"a table with variants ({', '.join(table.variants)}) is neither merged nor renamed; do that with the tables it "
            "was made of."
        )


def _check_ignored(ignore: Iterable[str]) -> tuple[str, ...]:
    keys = tuple(ignore)
    unknown = [key for key in keys if key not in KEYS]
    if unknown:
        raise TableError(f"{unknown[0][:40]!r} is no condition to ignore; there are {', '.join(KEYS)}.")
    return keys


def _merge_cost(costs: list[Cost], average: bool, ignore: tuple[str, ...]) -> Cost:
    first = costs[0]
    same = [first, *(_comparable(first, other, ignore) for other in costs[1:])]
    equal = all(other.fixed == first.fixed and other.values.equals(first.values) for other in same)
    if not equal and not average:
        raise TableError(
            f"{first.name} is in several tables with different numbers, measured on the same ({_describe(first)}): "
            "take their mean with --average, or keep both with --rename."
        )
    mixed = {key: [getattr(cost.provenance, key) for cost in same] for key in ignore}
    unlike = {key: values for key, values in mixed.items() if len(set(values)) > 1}
    return first if equal and not unlike else _mean(same, unlike)


def _comparable(first: Cost, other: Cost, ignore: tuple[str, ...]) -> Cost:
    """The other cost in the unit of the first; refused where it is of something else."""
    unlike = differences(first.provenance, other.provenance, ignore)
    if unlike:
        raise TableError(
            f"{first.name} was measured on different things ({_describe(first)} and {_describe(other)}), so the tables are "
            f"not mixed: they differ in {', '.join(unlike)}. Keep both with --rename, or state with --ignore that "
            "this does not matter."
        )
    if first.combine != other.combine:
        raise TableError(f"{first.name} is a sum in one table and a maximum in another.")
    try:
        factor = convert(1.0, other.unit, first.unit)
    except UnitError as error:
        raise TableError(f"{first.name} is not the same quantity in all tables: {error}") from error
    if factor == 1.0:
        return other
    return replace(
        other,
        unit=first.unit,
        fixed=factor * other.fixed,
        fixed_stderr=factor * other.fixed_stderr,
        values=other.values.map(lambda x: factor * x),
        stderr=other.stderr and other.stderr.map(lambda x: factor * x),
    )


def _describe(cost: Cost) -> str:
    return describe(cost.provenance) or "conditions not stated"


def _mean(costs: list[Cost], mixed: dict[str, list[object]]) -> Cost:
    """Means of values; the standard error of a mean of n is sqrt(sum of squares) / n."""
    first, count = costs[0], len(costs)
    errors = [cost.stderr for cost in costs if cost.stderr is not None]
    return replace(
        first,
        fixed=float(np.mean([cost.fixed for cost in costs])),
        fixed_stderr=math.hypot(*(cost.fixed_stderr for cost in costs)) / count,
        values=_combine_columns([cost.values for cost in costs], lambda arrays: np.mean(arrays, axis=0)),
        stderr=_combine_columns(errors, lambda a: np.sqrt(np.square(a).sum(axis=0)) / count)
        if len(errors) == count
        else None,
        provenance=_common([cost.provenance for cost in costs], mixed),
    )


def _common(items: list[Provenance], mixed: dict[str, list[object]]) -> Provenance:
    """What several measurements agree in; what is said of only one of them (a date, a check) is left out."""
    data = [item.to_data() for item in items]
    same = {
        key: value for key, value in data[0].items() if all(other.get(key) == value for other in data[1:])
    }
    sources = dict.fromkeys(item.source for item in items if item.source)
    known = {**same, "source": "; ".join(sources), "merged": len(items)}
    return Provenance.model_validate({**known, "mixed": mixed} if mixed else known)


def _combine_columns(columns: list[Column], function: Callable[[Array], Array]) -> Column:
    """Columns of one space combined entry by entry."""
    depths = zip(*(column.depths for column in columns), strict=True)
    stages = zip(*(column.configs for column in columns), strict=True)
    return Column(
        tuple(function(np.stack(arrays)) for arrays in depths),
        tuple(tuple(function(np.stack(arrays)) for arrays in zip(*blocks, strict=True)) for blocks in stages),
    )
