"""What the tables say about design choices: effects with standard errors, rules ranked by gain per cost, sentences."""

from binas.insights.depth import DepthStep, depth_steps
from binas.insights.effects import Effect, Effects
from binas.insights.options import OptionStep, option_steps
from binas.insights.per import Per, per_unit
from binas.insights.rules import Rule, rank_rules
from binas.insights.sentences import sentences
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
