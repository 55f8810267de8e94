"""Limits on costs, and the one grammar everybody writes them in.

====================================  =================================================================================
``latency=45ms``, ``latency<=45ms``   at most 45 ms; the unit is required
``params>=3M``                        at least 3 million
``latency=25%``                       25 % of the way from the least to the greatest latency a network has by the table
``latency=0.5x``                      half of the greatest latency: of the heaviest network, such as a model of one's own
``latency=45ms@batch=1,device=xeon``  refused by a table of anything else (:mod:`binas.tables.conditions`)
``latency=25% and params<=300k``      both at once: one question
====================================  =================================================================================

With a the least and b the greatest cost that any network of the space has by the table, p % means a + p/100 * (b - a):
0 % is the lightest network, 100 % allows every network, and the same number asks for the same on every device. A cost whose
own unit is % is limited by its value, as any other quantity.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from binas.base.errors import ProblemError, UnitError
from binas.space.space import SearchSpace
from binas.tables.conditions import check_conditions, parse_conditions
from binas.tables.costs import Cost
from binas.tables.units import parse_quantity

_START = r"[A-Za-z][A-Za-z0-9_.-]*\s*(?:<=|>=|=)"
_LIMIT = re.compile(r"\s*([A-Za-z][A-Za-z0-9_.-]*)\s*(<=|>=|=)\s*([^@\s=][^@=]*)(?:@(.*))?", re.DOTALL)
_AND = re.compile(rf"\s+and\s+(?={_START})")
_LEFTOVER = re.compile(r"\sand(?:\s|$)")  # joins something that is no limit
_PERCENT = re.compile(r"([+-]?(?:\d+\.?\d*|\.\d+))\s*%")
_TIMES = re.compile(r"(\d+\.?\d*|\.\d+)\s*x")


@dataclass(frozen=True, slots=True)
class Limit:
    """An upper (or lower) limit on a cost, in the unit of that cost."""

    cost: str
    value: float
    lower: bool = False

    def holds(self, value: float, tolerance: float) -> bool:
        """Whether a cost keeps the limit."""
        return value >= self.value - tolerance if self.lower else value <= self.value + tolerance

    @property
    def sign(self) -> float:
        """+1 for an upper limit, -1 for a lower one: sign * cost <= sign * value."""
        return -1.0 if self.lower else 1.0


def parse_limits(
    texts: str | Limit | Iterable[str | Limit],
    space: SearchSpace,
    costs: Mapping[str, Cost],
    variants: Mapping[str, Mapping[str, Cost]] | None = None,
) -> tuple[Limit, ...]:
    """All limits of some texts, each of which may join several by 'and', in the units of the tables.

    Where a cost has ``variants``, percent are of the way from the least to the greatest cost in any of them, and conditions
    (``@batch=1``) must hold in all of them.
    """
    several = (texts,) if isinstance(texts, str | Limit) else texts
    tables = {name: _tables(name, cost, variants or {}) for name, cost in costs.items()}
    return tuple(
        limit
        for text in several
        for limit in ([text] if isinstance(text, Limit) else _question(text, space, tables))
    )


def parts_of(question: str) -> list[str]:
    """The single limits of a question: ``latency=40% and params=300k`` are two."""
    return [part.strip() for part in _AND.split(question)]


def question_name(question: str) -> str:
    """A question as the name of a file: ``latency=40%`` is latency-40pct."""
    text = question.replace("%", "pct").replace("<=", "=").replace(">=", "-at-least-")
    return re.sub(r"[^A-Za-z0-9.]+", "-", text).strip("-.")[:100]


def check_form(text: str) -> None:
    """Raise a ProblemError for a question that has not the form of limits, whatever costs there are."""
    for part in parts_of(text):
        _split(part)


@dataclass(frozen=True, slots=True)
class _Written:
    """One limit as it is written."""

    text: str
    cost: str
    sign: str
    amount: str
    meant_for: str | None


def _split(part: str) -> _Written:
    match = _LIMIT.fullmatch(part)
    if match is None or _LEFTOVER.search(match[3]):
        raise ProblemError(
            f"{part[:60]!r} is no limit; write COST=QUANTITY, such as latency=45ms or latency=40% (= and <= are at most, "
            ">= at least); several limits at once are joined by 'and'."
        )
    name, sign, amount, meant_for = match.groups()
    return _Written(part[:60], name, sign, amount.strip(), meant_for)


def _tables(name: str, cost: Cost, variants: Mapping[str, Mapping[str, Cost]]) -> list[Cost]:
    """All tables of a cost: one, or that of each variant."""
    return [own.get(name, cost) for own in variants.values()] or [cost]


def _question(question: str, space: SearchSpace, tables: Mapping[str, list[Cost]]) -> list[Limit]:
    return [_limit(_split(part), space, tables) for part in parts_of(question)]


def _limit(written: _Written, space: SearchSpace, tables: Mapping[str, list[Cost]]) -> Limit:
    name, costs = written.cost, tables.get(written.cost)
    if costs is None:
        known = ", ".join(tables) or "none"
        raise ProblemError(f"there is no cost {name!r} to limit; the tables have {known}.")
    if written.meant_for is not None:
        for cost in costs:
            check_conditions(name, cost.provenance, parse_conditions(written.meant_for))
    return Limit(name, _value(written, space, costs), lower=written.sign == ">=")


def _value(written: _Written, space: SearchSpace, costs: list[Cost]) -> float:
    """The number of a limit in the unit of its cost."""
    percent, unit = _PERCENT.fullmatch(written.amount), costs[0].unit
    if percent is not None and unit.name != "%":
        return _on_the_way(float(percent[1]), written, space, costs)
    times = _TIMES.fullmatch(written.amount)
    if times is not None:
        most = float(times[1]) * max(cost.range(space)[1] for cost in costs)
        if not math.isfinite(most):
            raise ProblemError(f"the limit {written.text!r} is not finite.")
        return most
    try:
        return parse_quantity(written.amount, unit)
    except UnitError as error:
        raise UnitError(f"limit {written.text!r}: {error}") from error


def _on_the_way(percent: float, written: _Written, space: SearchSpace, costs: list[Cost]) -> float:
    if not 0 <= percent <= 100:
        side = "below 0 %, the least" if percent < 0 else "above 100 %, the most"
        raise ProblemError(f"the limit {written.text!r} is {side} any network of the space costs.")
    ranges = [cost.range(space) for cost in costs]
    least, most = min(low for low, _ in ranges), max(high for _, high in ranges)
    return least + percent / 100 * (most - least)
