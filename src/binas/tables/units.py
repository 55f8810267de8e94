"""Quantities with units: ``45ms``, ``0.045s``, ``5M``, ``300MMACs``, ``4MiB``.

A unit belongs to a kind (time, count, bytes, energy, or plain); quantities of one kind convert, others
refuse. A bare number is an error wherever a unit is needed.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass

from binas.errors import UnitError

TIME = {"s": 1.0, "ms": 1e-3, "us": 1e-6, "µs": 1e-6, "ns": 1e-9}
ENERGY = {"J": 1.0, "kJ": 1e3, "mJ": 1e-3, "uJ": 1e-6, "µJ": 1e-6, "Wh": 3600.0, "mWh": 3.6}
BYTES = {
    "B": 1.0,
    **{p + "B": f for p, f in (("k", 1e3), ("K", 1e3), ("M", 1e6), ("G", 1e9))},
    **{p + "iB": 2.0 ** (10 * i) for i, p in enumerate(("K", "M", "G"), 1)},
}
PREFIXES = {"": 1.0, "k": 1e3, "K": 1e3, "M": 1e6, "G": 1e9, "T": 1e12}
COUNT_NOUNS = ("MACs", "FLOPs", "params", "count")
EXAMPLES = {"time": "45ms", "energy": "3.5mJ", "bytes": "4MiB", "count": "5M", "plain": "0.5"}

_QUANTITY = re.compile(r"\s*([+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?)\s*([A-Za-zµ%]*)\s*")


@dataclass(frozen=True, slots=True)
class Unit:
    """A unit: its name, its kind, and how many base units of that kind it is."""

    name: str
    kind: str
    factor: float

    def __str__(self) -> str:
        return self.name


def parse_unit(text: str) -> Unit:
    """A unit by name: ``ms``, ``MiB``, ``MACs``, ``M`` (a count), ``MMACs``, ``1`` (plain)."""
    for kind, table in (("time", TIME), ("energy", ENERGY), ("bytes", BYTES)):
        if text in table:
            return Unit(text, kind, table[text])
    if text in ("", "1", "%", "points"):
        return Unit(text or "1", "plain", 1.0)
    noun = next((noun for noun in COUNT_NOUNS if text.endswith(noun)), "")
    prefix = text[: len(text) - len(noun)] if noun else text
    if prefix in PREFIXES:
        return Unit(text, "count", PREFIXES[prefix])
    raise UnitError(
        f"unknown unit {text[:30]!r}; write a time (s, ms, us), bytes (B, kB, MiB), energy (J, mJ), a count "
        "(M, MMACs, params) or 1 for a plain number."
    )


def convert(value: float, unit: Unit, target: Unit) -> float:
    """``value`` in ``unit`` expressed in ``target``; refuses another kind or another counted noun."""
    if unit.kind != target.kind or not _same_noun(unit, target):
        raise UnitError(
            f"{value:g} {unit.name} is a {unit.kind} quantity, but {target.name} ({target.kind}) is needed; write e.g. "
            f"{example(target)}."
        )
    return value if unit.factor == target.factor else value * unit.factor / target.factor


def _same_noun(one: Unit, two: Unit) -> bool:
    """Counts of MACs and of parameters do not mix; a count without a noun goes with any."""
    nouns = {noun for unit in (one, two) for noun in COUNT_NOUNS if noun != "count" and unit.name.endswith(noun)}
    return len(nouns) <= 1


def example(unit: Unit) -> str:
    """How to write a quantity that converts to ``unit``."""
    return EXAMPLES[unit.kind]


def parse_quantity(text: str, target: Unit) -> float:
    """Read ``45ms`` as a number in ``target``; a bare number is accepted only for plain quantities."""
    match = _QUANTITY.fullmatch(text)
    if match is None:
        raise UnitError(f"cannot read the quantity {text[:40]!r}; write e.g. {example(target)}.")
    number, name = float(match[1]), match[2]
    if not math.isfinite(number):
        raise UnitError(f"the quantity {text[:40]!r} is not finite.")
    if not name and target.kind != "plain":
        raise UnitError(
            f"{text.strip()!r} has no unit, so it could mean anything; the table is in {target.name}: "
            f"write e.g. {text.strip()}{target.name} or {example(target)}."
        )
    return convert(number, parse_unit(name), target)


def format_quantity(value: float, unit: Unit) -> str:
    """A quantity for people: counts and bytes get a fitting prefix, others keep their unit."""
    if unit.kind != "count" or abs(value * unit.factor) < 10_000:
        return f"{value:.6g} {unit.name}" if unit.name != "1" else f"{value:.6g}"
    noun = next((noun for noun in COUNT_NOUNS if unit.name.endswith(noun)), "")
    plain = value * unit.factor
    prefix = next(p for p in ("T", "G", "M", "k") if abs(plain) >= PREFIXES[p])
    return f"{plain / PREFIXES[prefix]:.6g} {prefix}{noun}"
