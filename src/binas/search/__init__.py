"""Search: problem, solvers, verified results, frontier, explanations."""

from binas.estimators.objective import (
    BilinearObjective,
    CallableObjective,
    Objective,
    QuadraticObjective,
    StagewiseObjective,
)
from binas.search.alternatives import Alternatives, best_architectures
from binas.search.explain import Explanation, explain
from binas.search.frontier import Frontier, FrontierPoint, frontier
from binas.search.infeasible import Infeasibility, explain_infeasible, why_no_answer
from binas.search.limits import Limit, parse_limits
from binas.search.on_device import OnDevice, keep_limits
from binas.search.problem import Evaluation, SearchProblem, evaluate
from binas.search.restrict import restricted
from binas.search.result import Answer, SearchResult, Status
from binas.search.solve import solve
from binas.search.solvers import SOLVERS, Capabilities, Options, Solver, make_solver, solver_class
from binas.search.surroundings import Price, prices
from binas.search.variants import by_variant
from binas.search.verify import verify

__all__ = [
    "SOLVERS",
    "Alternatives",
    "Answer",
    "BilinearObjective",
    "CallableObjective",
    "Capabilities",
    "Evaluation",
    "Explanation",
    "Frontier",
    "FrontierPoint",
    "Infeasibility",
    "Limit",
    "Objective",
    "OnDevice",
    "Options",
    "Price",
    "QuadraticObjective",
    "SearchProblem",
    "SearchResult",
    "Solver",
    "StagewiseObjective",
    "Status",
    "best_architectures",
    "by_variant",
    "evaluate",
    "explain",
    "explain_infeasible",
    "frontier",
    "keep_limits",
    "make_solver",
    "parse_limits",
    "prices",
    "restricted",
    "solve",
    "solver_class",
    "verify",
    "why_no_answer",
]
