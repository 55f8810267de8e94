"""Limits of a configuration made absolute: ``latency=40%`` becomes so many milliseconds by the table.

With a the least and b the greatest cost that any network of the space has by the table, p % means a + p/100 * (b - a):
0 % is the lightest network, 100 % allows every network, and the same number asks for the same on every device.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from binas.errors import ProblemError
from binas.pipeline.sections import parts_of
from binas.search.problem import Limit, parse_limit
from binas.space.space import SearchSpace
from binas.tables.costs import Cost
from binas.tables.reach import reach

_RELATIVE = re.compile(r"\s*([A-Za-z][\w.-]*)\s*(<=|>=|=)\s*([0-9]+(?:\.[0-9]+)?)\s*%\s*")


def resolve(question: str, space: SearchSpace, costs: Mapping[str, Cost]) -> tuple[Limit, ...]:
    """The limits of one question, in the units of the tables."""
    return tuple(_limit(part, space, costs) for part in parts_of(question))


def _limit(text: str, space: SearchSpace, costs: Mapping[str, Cost]) -> Limit:
    match = _RELATIVE.fullmatch(text)
    if match is None:
        return parse_limit(text, costs)
    name, sign, percent = match[1], match[2], float(match[3])
    if name not in costs:
        raise ProblemError(f"there is no cost {name!r} to limit; the tables have {', '.join(costs)}.")
    if percent > 100:
        raise ProblemError(f"the limit {text!r} is above 100 %, the most any network of the space costs.")
    least, most = reach(space, costs[name])
    return Limit(name, least + percent / 100 * (most - least), lower=sign == ">=")


def file_name(question: str) -> str:
    """What a question's result is called: ``latency=40%`` is latency-40pct."""
    text = question.replace("%", "pct").replace("<=", "=").replace(">=", "-at-least-")
    return re.sub(r"[^A-Za-z0-9.]+", "-", text).strip("-.")[:100]
