"""Public helpers for testing: small spaces, solver cases with brute-force optima, made-up instances of any size.

What needs torch stays apart: :mod:`binas.testing.evaluators`.
"""

from binas.testing.brute_force import brute_force, brute_force_frontier
from binas.testing.cases import (
    Case,
    bilinear_cases,
    depths_cases,
    quadratic_cases,
    small_space,
    stagewise_cases,
)
from binas.testing.conformance import cases_for, check_case, check_solver
from binas.testing.instances import make_problem, make_space
from binas.testing.oracles import ObjectiveOracle

__all__ = [
    "Case",
    "ObjectiveOracle",
    "bilinear_cases",
    "brute_force",
    "brute_force_frontier",
    "cases_for",
    "check_case",
    "check_solver",
    "depths_cases",
    "make_problem",
    "make_space",
    "quadratic_cases",
    "small_space",
    "stagewise_cases",
]
