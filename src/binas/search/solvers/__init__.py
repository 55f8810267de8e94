"""Solvers, one file each. They are imported only when used.

Another installed package adds one with an entry point in the group ``binas.solvers`` that names a :class:`Solver`;
:mod:`binas.testing` has what to test it with.
"""

from __future__ import annotations

from typing import Any

from binas.base.errors import ProblemError
from binas.base.plugins import Registry, subclass_of
from binas.search.solvers._base import Capabilities, Options, Solver

SOLVERS = Registry(
    "solver",
    "binas.solvers",
    {
        "auto": "binas.search.solvers.auto:Auto",
        "frontier": "binas.search.solvers.frontier:FrontierSolver",
        "milp": "binas.search.solvers.milp:Milp",
        "branch-bound": "binas.search.solvers.branch_bound:BranchBound",
        "miqcp": "binas.search.solvers.miqcp:Scip",
        "miqcp-cplex": "binas.search.solvers.miqcp_cplex:Cplex",
        "miqcp-gurobi": "binas.search.solvers.miqcp_gurobi:Gurobi",
        "bcfw": "binas.search.solvers.bcfw:Bcfw",
        "bcfw-product": "binas.search.solvers.bcfw_product:BcfwProduct",
        "frank-wolfe": "binas.search.solvers.frank_wolfe:FrankWolfe",
        "hardcore": "binas.search.solvers.hardcore:HardCore",
        "evolution": "binas.search.solvers.evolution:Evolution",
        "random": "binas.search.solvers.random_search:RandomSearch",
        "best-of": "binas.search.solvers.best_of:BestOf",
    },
    subclass_of(Solver),
    ProblemError,
)


def solver_class(name: str) -> type[Solver]:
    """The class of a solver by name; imports only its own file."""
    solver: type[Solver] = SOLVERS.load(name)
    return solver


def make_solver(name: str, **settings: Any) -> Solver:
    """A solver by name with its settings."""
    try:
        return solver_class(name)(**settings)
    except TypeError as error:
        raise ProblemError(f"the solver {name!r} does not take these settings: {error}") from error


__all__ = ["SOLVERS", "Capabilities", "Options", "Solver", "make_solver", "solver_class"]
