"""miqcp-cplex and miqcp-gurobi: the same program, the same optima, clear words about licences."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from problems import BELOW_8, quadratic_problem

from binas.base.errors import ProblemError
from binas.estimators.objective import BilinearObjective
from binas.search.limits import Limit
from binas.search.problem import SearchProblem, evaluate
from binas.search.result import Status
from binas.search.solve import solve
from binas.search.solvers import Options, make_solver, solver_class
from binas.search.solvers._bilinear_program import architecture_at, ones_of, pose
from binas.space import enumerate_all
from binas.tables.entries import Column
from binas.testing import bilinear_cases, brute_force, check_case, make_problem, make_space
from binas.testing.cases import make_cost, small_space

CASES = {case.name: case for case in bilinear_cases()[:20]}  # a few of the random ones are enough


@pytest.fixture(params=["miqcp-cplex", "miqcp-gurobi"])
def name(request):
    missing = solver_class(request.param).missing()
    if missing is not None:
        pytest.skip(f"{request.param} is not installed: {missing}")
    return request.param


@pytest.mark.parametrize("case", CASES)
def test_optimum_of_bilinear_problems(name, case):
    check_case(make_solver(name), CASES[case])


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("limits", [(), BELOW_8])
def test_optimum_of_quadratic_problems(name, seed, limits):
    problem = quadratic_problem(seed, limits)
    result = solve(problem, name)
    assert result.status is Status.OPTIMAL
    assert result.accuracy == pytest.approx(brute_force(problem), abs=1e-7)


def test_forbidding_the_best_gives_the_next(name):
    problem = CASES["depth zero"].problem
    kept = [e for e in (evaluate(problem, a) for a in enumerate_all(problem.space)) if e.feasible]
    wanted = sorted((item.accuracy for item in kept), reverse=True)[:3]
    program, found = pose(problem), []
    model = make_solver(name)._model(program, Options())
    for _ in wanted:
        architecture = architecture_at(program.space, model.run(60.0).x)
        found.append(evaluate(problem, architecture).accuracy)
        model.forbid(ones_of(program.space, architecture))
    model.close()
    assert found == pytest.approx(wanted)


def test_any_start_and_seed_lead_to_the_optimum(name):
    problem = CASES["depth zero"].problem
    for architecture in enumerate_all(problem.space)[:2] + enumerate_all(problem.space)[-2:]:
        result = solve(problem, name, warm_start=architecture, seed=7)
        assert result.status is Status.OPTIMAL
        assert result.accuracy == pytest.approx(brute_force(problem), abs=1e-7)


def test_out_of_time_with_a_start_keeps_the_start(name):
    problem = make_problem(make_space(3, 3, 6), 1)
    problem = problem.with_limits([Limit("latency", 20.0)])
    start = solve(problem, "milp")
    result = solve(problem, name, time_limit=0.0, warm_start=start.architecture)
    assert result.accuracy == start.accuracy
    assert result.bound is None or result.bound >= start.accuracy - 1e-6


def test_says_nothing(name, capfd):
    for problem in (CASES["several limits"].problem, CASES["infeasible"].problem, quadratic_problem(1)):
        solve(problem, name)
    assert capfd.readouterr() == ("", "")


def test_too_large_for_the_free_licence_says_what_to_do(name, capfd):
    problem = make_problem(make_space(4, 9, 30), 1).with_limits([Limit("latency", 60.0)])
    try:
        solve(problem, name, time_limit=1.0)
    except ProblemError as error:
        message = str(error)
    else:
        pytest.skip(f"{name} has a full licence here")
    assert "licence" in message or "licensed" in message
    assert "miqcp or milp" in message
    assert capfd.readouterr() == ("", "")


def fixed_depth_problem():
    """Two limits that exclude each other; CPLEX 22.2 answers with an error where a proof is due."""
    space = small_space((((2,), (3, 1)), ((1,), (3,))))
    first = Column((np.array([4.0]), np.array([2.0])), _configs([1, 4, 1], [2], [3, 2, 0]))
    second = Column((np.array([4.0]), np.array([3.0])), _configs([4, 2, 4], [1], [2, 3, 0]))
    value = Column((np.array([-1.0]), np.array([-3.0])), _configs([0, 3, -3], [-1], [-1, 3, -2]))
    costs = {"a": make_cost(space, "a", first, 0.0), "b": make_cost(space, "b", second, 0.0)}
    limits = (Limit("a", 9.0), Limit("b", 14.0, lower=True))
    return SearchProblem(space, BilinearObjective(70.0, value), costs, limits)


def _configs(first, second, third):
    one, two, three = (np.array(values, dtype=float) for values in (first, second, third))
    return ((one, two), (three,))


def test_limits_that_exclude_each_other_are_proven_infeasible(name):
    problem = fixed_depth_problem()
    assert brute_force(problem) is None
    assert solve(problem, name).status is Status.INFEASIBLE
    relaxed = replace(problem, limits=problem.limits[:1])
    assert solve(relaxed, name).accuracy == pytest.approx(brute_force(relaxed))
