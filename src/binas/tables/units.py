"""Quantities with units: ``45ms``, ``0.045s``, ``5M``, ``300MMACs``, ``4MiB``.

A unit belongs to a kind (time, count, bytes, energy, or plain); quantities of one kind convert, others
refuse. A bare number is an error wherever a unit is needed.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from decimal import Decimal, localcontext
from fractions import Fraction

from binas.base.errors import UnitError

MICRO = ("u", "\u00b5", "\u03bc")  # u, the micro sign, the Greek letter
TIME = {"s": 1.0, "ms": 1e-3, **{micro + "s": 1e-6 for micro in MICRO}, "ns": 1e-9}
ENERGY = {"J": 1.0, "kJ": 1e3, "mJ": 1e-3, **{micro + "J": 1e-6 for micro in MICRO}, "Wh": 3600.0, "mWh": 3.6}
BYTES = {
    "B": 1.0,
    **{p + "B": f for p, f in (("k", 1e3), ("K", 1e3), ("M", 1e6), ("G", 1e9))},
    **{p + "iB": 2.0 ** (10 * i) for i, p in enumerate(("K", "M", "G"), 1)},
}
PREFIXES = {"": 1.0, "k": 1e3, "K": 1e3, "M": 1e6, "G": 1e9, "T": 1e12}
COUNT_NOUNS = ("MACs", "FLOPs", "params", "count")
EXAMPLES = {"time": "45ms", "energy": "3.5mJ", "bytes": "4MiB", "count": "5M", "plain": "0.5"}

_QUANTITY = re.compile(r"\s*([+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?)\s*([A-Za-z\u00b5\u03bc%]*)\s*")


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
    ratio = _ratio(unit, target)
    return value * ratio.numerator / ratio.denominator


def _ratio(unit: Unit, target: Unit) -> Fraction:
    """How many ``target`` one ``unit`` is, exactly."""
    if unit.kind != target.kind or not _same_noun(unit, target):
        raise UnitError(
            f"a quantity in {unit.name} ({unit.kind}) does not convert to {target.name} ({target.kind}); "
            f"write e.g. {example(target)}."
        )
    return Fraction(repr(unit.factor)) / Fraction(repr(target.factor))


def _same_noun(unit: Unit, target: Unit) -> bool:
    """MACs and parameters do not mix, nor do % and points; what names nothing goes with any of its kind."""
    if unit.kind == "plain":
        return unit.name in ("1", target.name)
    nouns = {_noun(unit), _noun(target)} - {"", "count"}
    return len(nouns) <= 1


def _noun(unit: Unit) -> str:
    return next((noun for noun in COUNT_NOUNS if unit.kind == "count" and unit.name.endswith(noun)), "")


def example(unit: Unit) -> str:
    """How to write a quantity that converts to ``unit``."""
    return EXAMPLES[unit.kind]


def parse_quantity(text: str, target: Unit) -> float:
    """Read ``45ms`` as a number in ``target``; a bare number is accepted only for plain quantities."""
    match = _QUANTITY.fullmatch(text)
    if match is None:
        raise UnitError(f"cannot read the quantity {text[:40]!r}; write e.g. {example(target)}.")
    name = match[2]
    if not name and target.kind != "plain":
        shown = text.strip()[:40]
        ways = " or ".join(dict.fromkeys((shown + target.name, example(target))))
        raise UnitError(
            f"{shown!r} has no unit, so it could mean anything; the table is in {target.name}: write e.g. {ways}."
        )
    number = _scale(match[1], _ratio(parse_unit(name), target))
    if not math.isfinite(number):
        raise UnitError(f"the quantity {text[:40]!r} is not finite in {target.name}.")
    return number


def _scale(text: str, ratio: Fraction) -> float:
    """The number in ``text`` times ``ratio``, rounded once: 0.045 s is exactly 45 ms."""
    if not 0 < abs(float(text)) < math.inf:
        return float(text)
    with localcontext(prec=60):
        return float(Decimal(text) * ratio.numerator / ratio.denominator)


def format_quantity(value: float, unit: Unit) -> str:
    """A quantity for people: large counts and bytes get a fitting prefix, others keep their unit."""
    plain = value * unit.factor
    if unit.kind not in ("count", "bytes") or not 10_000 <= abs(plain) < math.inf:
        return f"{value:.6g} {unit.name}" if unit.name != "1" else f"{value:.6g}"
    names = [p + _noun(unit) for p in ("T", "G", "M", "k")] if unit.kind == "count" else ["GiB", "MiB", "KiB"]
    best = next(fitting for fitting in map(parse_unit, names) if abs(plain) >= fitting.factor)
    return f"{plain / best.factor:.6g} {best.name}"
