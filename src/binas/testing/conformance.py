"""A conformance kit for solvers: run it on yours.

from binas.testing import check_solver
check_solver(MySolver())          # raises AssertionError with the name of the case that fails
"""

from __future__ import annotations

from functools import cache

from binas.search.problem import evaluate
from binas.search.result import SearchResult, Status
from binas.search.solve import solve
from binas.search.solvers import Solver, make_solver
from binas.testing.cases import Case, bilinear_cases, depths_cases, quadratic_cases, stagewise_cases


@cache
def _all_cases() -> tuple[Case, ...]:
    """Made once, so that the optimum of each is found once for all solvers."""
    return (*bilinear_cases(), *stagewise_cases(), *depths_cases(), *quadratic_cases())


def cases_for(solver: Solver) -> list[Case]:
    """The cases whose objective and limits the solver says it can take."""
    can = solver.capabilities
    return [
        case
        for case in _all_cases()
        if case.problem.objective.kind in can.objectives
        and (can.max_limits is None or len(case.problem.limits) <= can.max_limits)
        and (can.lower_limits or not any(limit.lower for limit in case.problem.limits))
    ]


def check_case(solver: Solver, case: Case, tolerance: float = 1e-7) -> SearchResult:
    """Run one case: exact solvers must match brute force, heuristics must respect limits and never beat it."""
    result = solve(case.problem, solver)
    name, best = f"{solver.name} on {case.name!r}", case.optimum
    if result.evaluation is not None:
        assert evaluate(case.problem, result.evaluation.architecture).feasible, f"{name}: breaks a limit"
        assert best is not None, f"{name}: found an architecture where none keeps the limits"
        assert result.evaluation.accuracy <= best + tolerance, f"{name}: better than brute force"
    assert not (result.status is Status.INFEASIBLE and best is not None), (
        f"{name}: says infeasible, but it is not"
    )
    if result.status is Status.OPTIMAL:
        assert best is not None, f"{name}: says optimal where nothing keeps the limits"
        assert abs((result.accuracy or 0.0) - best) <= tolerance, (
            f"{name}: {result.accuracy} instead of {best}"
        )
    if solver.capabilities.exact:
        wanted = Status.INFEASIBLE if best is None else Status.OPTIMAL
        assert result.status is wanted, f"{name}: status {result.status} instead of {wanted}"
    if result.bound is not None and best is not None:
        assert result.bound >= best - tolerance, (
            f"{name}: its bound {result.bound} is below the optimum {best}"
        )
    return result


def check_solver(solver: Solver | str) -> list[SearchResult]:
    """Run all cases a solver can take; returns its results for further checks."""
    chosen = make_solver(solver) if isinstance(solver, str) else solver
    return [check_case(chosen, case) for case in cases_for(chosen)]
