"""Solvers, one file each. They are imported only when used."""

from __future__ import annotations

import importlib
from typing import Any

from binas.base.errors import ProblemError
from binas.search.solvers._base import Capabilities, Options, Solver

SOLVERS = {
    "auto": "auto:Auto",
    "frontier": "frontier:FrontierSolver",
    "milp": "milp:Milp",
    "miqcp": "miqcp:Scip",
    "miqcp-cplex": "miqcp_cplex:Cplex",
    "miqcp-gurobi": "miqcp_gurobi:Gurobi",
    "bcfw": "bcfw:Bcfw",
    "bcfw-product": "bcfw_product:BcfwProduct",
    "frank-wolfe": "frank_wolfe:FrankWolfe",
    "evolution": "evolution:Evolution",
    "random": "random_search:RandomSearch",
    "best-of": "best_of:BestOf",
}


def solver_class(name: str) -> type[Solver]:
    """The class of a solver by name; imports only its own file."""
    if name not in SOLVERS:
        raise ProblemError(f"there is no solver {name!r}; choose one of {', '.join(SOLVERS)}.")
    module, attribute = SOLVERS[name].split(":")
    found: type[Solver] = getattr(importlib.import_module(f"binas.search.solvers.{module}"), attribute)
    return found


def make_solver(name: str, **settings: Any) -> Solver:
    """A solver by name with its settings."""
    try:
        return solver_class(name)(**settings)
    except TypeError as error:
        raise ProblemError(f"the solver {name!r} does not take these settings: {error}") from error


__all__ = ["SOLVERS", "Capabilities", "Options", "Solver", "make_solver", "solver_class"]
