"""Limits of a configuration made absolute: ``latency=40%`` becomes so many milliseconds by the table.

With a the least and b the greatest cost that any network of the space has by the table, p % means a + p/100 * (b - a):
0 % is the lightest network, 100 % allows every network, and the same number asks for the same on every device.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from binas.base.errors import ConfigError, ProblemError, SpaceError
from binas.costs.analytic import analytic_costs
from binas.run.config import RunConfig
from binas.run.sections import MeasuringConfig, parts_of
from binas.search.problem import Limit, parse_limit
from binas.space.space import SearchSpace
from binas.tables.costs import Cost, load_costs
from binas.tables.entries import Column
from binas.tables.units import parse_unit

_RELATIVE = re.compile(r"\s*([A-Za-z][\w.-]*)\s*(<=|>=|=)\s*([0-9]+(?:\.[0-9]+)?)\s*%\s*")


def resolve(question: str, space: SearchSpace, costs: Mapping[str, Cost]) -> tuple[Limit, ...]:
    """The limits of one question, in the units of the tables."""
    return tuple(_limit(part, space, costs) for part in parts_of(question))


def check_questions(config: RunConfig, space: SearchSpace) -> None:
    """Raise an error for a limit that the search would refuse after hours of training: its cost, unit or percentage."""
    costs, files = known_costs(config.measuring, space), dict[str, str]()
    for question in config.search.limits:
        for part in parts_of(question):
            _limit(part.partition("@")[0], space, costs)  # conditions wait until the table is there
        other = files.setdefault(file_name(question), question)
        if other != question:
            raise ConfigError(f"search.limits: {question!r} and {other!r} say the same; keep one of them.")


def known_costs(measuring: MeasuringConfig, space: SearchSpace) -> dict[str, Cost]:
    """The costs a run will have, those that are measured with zeros."""
    found = counted_costs(space)
    if measuring.table is not None:
        return {**found, **load_costs(measuring.table, space).costs}
    if not measuring.measures:
        return found
    return {**found, "latency": Cost("latency", parse_unit("ms"), 0.0, Column.full(space, 0.0))}


def counted_costs(space: SearchSpace) -> dict[str, Cost]:
    """Costs that follow from the space; none for a space that only names its choices."""
    try:
        return dict(analytic_costs(space).costs)
    except SpaceError:
        return {}


def _limit(text: str, space: SearchSpace, costs: Mapping[str, Cost]) -> Limit:
    match = _RELATIVE.fullmatch(text)
    if match is None:
        return parse_limit(text, costs)
    name, sign, percent = match[1], match[2], float(match[3])
    if name not in costs:
        raise ProblemError(
            f"there is no cost {name!r} to limit; the tables have {', '.join(costs) or 'none'}."
        )
    if percent > 100:
        raise ProblemError(f"the limit {text!r} is above 100 %, the most any network of the space costs.")
    least, most = costs[name].range(space)
    return Limit(name, least + percent / 100 * (most - least), lower=sign == ">=")


def file_name(question: str) -> str:
    """What a question's result is called: ``latency=40%`` is latency-40pct."""
    text = question.replace("%", "pct").replace("<=", "=").replace(">=", "-at-least-")
    return re.sub(r"[^A-Za-z0-9.]+", "-", text).strip("-.")[:100]
