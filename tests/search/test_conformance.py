"""Every solver that is installed passes the conformance kit; the kit catches solvers that lie."""

import pytest

from binas.search.restrict import restricted
from binas.search.result import Answer, Status
from binas.search.solvers import SOLVERS, make_solver, solver_class
from binas.search.solvers._base import ANYTHING, Capabilities, Solver
from binas.testing import ObjectiveOracle, bilinear_cases, cases_for, check_case, check_solver

SETTINGS = {"bcfw": {"iterations": 200, "restarts": 2}, "evolution": {"iterations": 60}}


def brief(name):
    return make_solver(name, **SETTINGS.get(name, {}))


def params():
    for name in SOLVERS:
        solver = brief(name)
        for case in cases_for(solver):
            yield pytest.param(on_a_supernet(solver, case), case, id=f"{name}-{case.name}")


def on_a_supernet(solver, case):
    """A solver that searches the supernet itself gets one that is as accurate as the case says."""
    if not solver.capabilities.supernet:
        return solver
    return make_solver(solver.name, oracle=RestrictedOracle(case.problem), steps=40)


class RestrictedOracle(ObjectiveOracle):
    """Of the problem that is left where limits on maxima take choices out."""

    def __init__(self, problem):
        super().__init__(restricted(problem) or problem)


@pytest.fixture(autouse=True)
def members_as_brief_as_alone(monkeypatch):
    """best-of asks other solvers, which are tried with these settings themselves."""
    monkeypatch.setattr("binas.search.solvers.best_of.make_solver", brief)


@pytest.mark.parametrize(("solver", "case"), list(params()))
def test_solver(solver, case):
    missing = solver.missing()
    if missing is not None:
        pytest.skip(f"{solver.name} is not installed: {missing}")
    check_case(solver, case)


def test_cases_cover_what_they_promise():
    cases = {case.name: case for case in bilinear_cases()}
    assert cases["infeasible only together"].optimum is None
    alone = [
        cases["infeasible only together"].problem.with_limits([x])
        for x in cases["infeasible only together"].problem.limits
    ]
    assert all(check_case(make_solver("milp"), type(cases["ties"])("alone", p)).architecture for p in alone)
    assert cases["one architecture"].problem.space.count == 1


class _Cheat(Solver):
    name = "cheat"
    capabilities = Capabilities(exact=True, objectives=ANYTHING)

    def __init__(self, status):
        self.status = status

    def solve(self, problem, options):
        if self.status is Status.INFEASIBLE:
            return Answer(Status.INFEASIBLE)
        return Answer(self.status, problem.space.extreme(heaviest=False))


@pytest.mark.parametrize("status", [Status.OPTIMAL, Status.INFEASIBLE])
def test_the_kit_catches_a_solver_that_lies(status):
    with pytest.raises((AssertionError, Exception)) as caught:
        check_solver(_Cheat(status))
    assert "cheat" in str(caught.value)


def test_solvers_declare_themselves():
    for name in SOLVERS:
        cls = solver_class(name)
        assert cls.name == name
        assert cls.capabilities.summary
        assert cls.capabilities.objectives <= ANYTHING
