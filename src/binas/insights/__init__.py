"""What the tables say about design choices: effects with standard errors, rules ranked by gain per cost, sentences."""

from binas.insights.effects import Effect, Effects
from binas.insights.rules import Per, Rule, per_unit, rank_rules
from binas.insights.sentences import sentences
from binas.insights.steps import DepthStep, OptionStep, depth_steps, option_steps
from binas.insights.summary import Insights, find_insights

__all__ = [
    "DepthStep",
    "Effect",
    "Effects",
    "Insights",
    "OptionStep",
    "Per",
    "Rule",
    "depth_steps",
    "find_insights",
    "option_steps",
    "per_unit",
    "rank_rules",
    "sentences",
]
