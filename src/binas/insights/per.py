"""The unit that gains are told per: ``ms`` as it is, but ``MMACs`` instead of MACs, so that numbers can be read."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from binas.tables.costs import Cost
from binas.tables.units import COUNT_NOUNS, parse_unit


@dataclass(frozen=True, slots=True)
class Per:
    """``scale`` units of a cost have the name ``unit``: points per ``unit`` are ``scale`` times points per unit of cost."""

    unit: str
    scale: float


def per_unit(cost: Cost) -> Per:
    """Counts and bytes get the prefix that fits the typical (median) block; a plain number is a "unit of" its cost."""
    unit = cost.unit
    if unit.kind == "plain":
        return Per(f"unit of {cost.name}" if unit.name == "1" else unit.name, 1.0)
    if unit.kind == "count":
        noun = next((noun for noun in COUNT_NOUNS if unit.name.endswith(noun)), "")
        names = [prefix + noun for prefix in ("k", "M", "G", "T")]
    else:
        names = ["KiB", "MiB", "GiB"] if unit.kind == "bytes" else []
    entries = [block.ravel() for row in cost.values.configs for block in row]
    typical = float(np.median(np.concatenate([np.zeros(0), *entries]))) * unit.factor if entries else 0.0
    fitting = [
        found for found in map(parse_unit, names) if found.factor <= typical and found.factor > unit.factor
    ]
    return Per(fitting[-1].name, fitting[-1].factor / unit.factor) if fitting else Per(unit.name, 1.0)
