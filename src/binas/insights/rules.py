"""Design rules ranked by what they bring per unit of cost: where the next millisecond is spent best."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from binas.insights.effects import Effect
from binas.insights.steps import DepthStep, OptionStep
from binas.tables.costs import Cost
from binas.tables.units import COUNT_NOUNS, parse_unit


@dataclass(frozen=True, eq=False)
class Rule:
    """One change in one stage: what it brings and costs, and both per unit of cost.

    ``per_cost`` (points per unit) and its standard error are None for a change that costs nothing or saves cost.
    """

    name: str
    kind: Literal["depth", "option"]
    stage: str
    effect: Effect
    balanced: bool

    @property
    def per_cost(self) -> float | None:
        """Points per unit of cost."""
        return self.effect.per_cost

    @property
    def per_cost_stderr(self) -> float | None:
        """Standard error of ``per_cost``; the cost is taken as exact."""
        stderr, cost = self.effect.stderr, self.effect.cost
        return None if stderr is None or cost is None or cost <= 0 else stderr / cost

    def to_json(self) -> dict[str, Any]:
        """The numbers."""
        return {
            "rule": self.name,
            "kind": self.kind,
            "stage": self.stage,
            "balanced": self.balanced,
            **self.effect.to_json(),
            "per_cost_stderr": self.per_cost_stderr,
        }


def rank_rules(depths: Iterable[DepthStep], options: Iterable[OptionStep]) -> tuple[Rule, ...]:
    """All changes per stage, the most points per unit of cost first.

    Before all others come changes that bring points and cost nothing or less; after them those that bring none.
    """
    return tuple(sorted(_rules(depths, options), key=_order))


def _rules(depths: Iterable[DepthStep], options: Iterable[OptionStep]) -> Iterator[Rule]:
    for step in depths:
        yield Rule(step.name, "depth", step.stage, step.effect, True)
    for option in options:
        for stage, effect in option.per_stage.items():
            yield Rule(option.name, "option", stage, effect, option.balanced)


def _order(rule: Rule) -> tuple[float, float]:
    if rule.per_cost is None:
        return (-math.inf if rule.effect.value > 0 else math.inf, -rule.effect.value)
    return -rule.per_cost, -rule.effect.value


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
    fitting = [larger for larger in map(parse_unit, names) if unit.factor < larger.factor <= typical]
    return Per(fitting[-1].name, fitting[-1].factor / unit.factor) if fitting else Per(unit.name, 1.0)
