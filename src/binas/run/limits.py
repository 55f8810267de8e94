"""Limits of a configuration checked before there are tables to answer them from."""

from __future__ import annotations

from binas.base.errors import ConfigError, SpaceError
from binas.costs.analytic import analytic_costs
from binas.run.config import RunConfig
from binas.run.sections import MeasuringConfig
from binas.search.limits import parse_limits, parts_of, question_name
from binas.space.space import SearchSpace
from binas.tables.costs import Cost, load_costs
from binas.tables.entries import Column
from binas.tables.units import parse_unit


def check_questions(config: RunConfig, space: SearchSpace) -> None:
    """Raise an error for a limit that the search would refuse after hours of training: its cost, unit or percentage."""
    costs, files = known_costs(config.measuring, space), dict[str, str]()
    for question in config.search.limits:
        parts = [part.partition("@")[0] for part in parts_of(question)]  # conditions wait for the table
        parse_limits(parts, space, costs)
        other = files.setdefault(question_name(question), question)
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
