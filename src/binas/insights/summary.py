"""All insights of a pair of tables as one value."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from binas.insights.effects import Effects
from binas.insights.rules import Per, Rule, per_unit, rank_rules
from binas.insights.sentences import sentences
from binas.insights.steps import DepthStep, OptionStep, depth_steps, option_steps
from binas.tables.contributions import Contributions
from binas.tables.costs import Cost


@dataclass(frozen=True, eq=False)
class Insights:
    """What depth and options bring, rules ranked by points per unit of cost, and what can be said in words.

    Gains per cost are per ``unit``; times ``per.scale`` they are per ``per.unit``, which reads better.
    ``errors_known``: False where the table has no standard errors, so that the sentences take its numbers as exact.
    """

    cost: str | None
    unit: str | None
    per: Per | None
    errors_known: bool
    depths: tuple[DepthStep, ...]
    options: tuple[OptionStep, ...]
    rules: tuple[Rule, ...]
    sentences: tuple[str, ...]

    def to_json(self) -> dict[str, Any]:
        """The object that ``binas insights --json`` prints; values in points, costs in ``unit``."""
        return {
            "cost": self.cost,
            "unit": self.unit,
            "per": None if self.per is None else {"unit": self.per.unit, "scale": self.per.scale},
            "errors_known": self.errors_known,
            "depths": [step.to_json() for step in self.depths],
            "options": [step.to_json() for step in self.options],
            "rules": [rule.to_json() for rule in self.rules],
            "sentences": list(self.sentences),
        }


def find_insights(contributions: Contributions, cost: Cost | None = None) -> Insights:
    """The insights of section 5.3 from contributions and, if given, one cost that adds up."""
    effects = Effects(contributions, cost)
    depths, options = depth_steps(effects), option_steps(effects)
    rules = rank_rules(depths, options)
    return Insights(
        None if cost is None else cost.name,
        None if cost is None else cost.unit.name,
        None if cost is None else per_unit(cost),
        effects.errors_known,
        depths,
        options,
        rules,
        sentences(effects, depths, options, rules),
    )
