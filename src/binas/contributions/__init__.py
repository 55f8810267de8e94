"""Measuring what each design choice contributes to accuracy, and architectures to judge that by. Needs torch."""

from binas.contributions.factorial import factorial, factorial_contributions, stability
from binas.contributions.journal import Journal
from binas.contributions.normal import Recorded
from binas.contributions.outcomes import Evaluator, OutcomeKind, Outcomes, TableEvaluator
from binas.contributions.paper import paper, paper_contributions, paper_passes
from binas.contributions.paths import balanced_paths, conditioned_paths
from binas.contributions.sampling import architectures_to_measure, measure_samples
from binas.contributions.strata import cost_strata, uniform_architectures
from binas.contributions.supernet_evaluator import SupernetEvaluator

__all__ = [
    "Evaluator",
    "Journal",
    "OutcomeKind",
    "Outcomes",
    "Recorded",
    "SupernetEvaluator",
    "TableEvaluator",
    "architectures_to_measure",
    "balanced_paths",
    "conditioned_paths",
    "cost_strata",
    "factorial",
    "factorial_contributions",
    "measure_samples",
    "paper",
    "paper_contributions",
    "paper_passes",
    "stability",
    "uniform_architectures",
]
