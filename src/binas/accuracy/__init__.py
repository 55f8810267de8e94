"""Measuring what each design choice contributes to accuracy, and architectures to judge that by. Needs torch."""

from binas.accuracy.factorial import factorial, factorial_contributions, stability
from binas.accuracy.journal import Journal
from binas.accuracy.normal import Recorded
from binas.accuracy.outcomes import Evaluator, OutcomeKind, Outcomes, TableEvaluator
from binas.accuracy.paper import paper, paper_contributions, paper_passes
from binas.accuracy.paths import balanced_paths, conditioned_paths
from binas.accuracy.progress import Terminal, Watcher
from binas.accuracy.sampling import architectures_to_measure, measure_samples
from binas.accuracy.strata import cost_strata, uniform_architectures
from binas.accuracy.supernet_evaluator import SupernetEvaluator

__all__ = [
    "Evaluator",
    "Journal",
    "OutcomeKind",
    "Outcomes",
    "Recorded",
    "SupernetEvaluator",
    "TableEvaluator",
    "Terminal",
    "Watcher",
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
