"""Design rules ranked by what they bring per unit of cost: where the next millisecond is spent best."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Literal

from binas.insights.depth import DepthStep
from binas.insights.effects import Effect
from binas.insights.options import OptionStep


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
