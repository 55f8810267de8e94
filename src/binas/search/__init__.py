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
from binas.search.infeasible import Infeasibility, explain_infeasible
from binas.search.problem import Evaluation, Limit, SearchProblem, evaluate, parse_limit
from binas.search.restrict import restricted
from binas.search.result import Answer, SearchResult, Status
from binas.search.solve import solve
from binas.search.solvers import SOLVERS, Capabilities, Options, Solver, make_solver, solver_class
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
    "Options",
    "QuadraticObjective",
    "SearchProblem",
    "SearchResult",
    "Solver",
    "StagewiseObjective",
    "Status",
    "best_architectures",
    "evaluate",
    "explain",
    "explain_infeasible",
    "frontier",
    "make_solver",
    "parse_limit",
    "restricted",
    "solve",
    "solver_class",
    "verify",
]
