"""random: a baseline that keeps the limits, finds small optima and says when nothing can be found."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from binas.base.errors import ProblemError
from binas.estimators.objective import CallableObjective, QuadraticObjective
from binas.search.limits import Limit
from binas.search.problem import SearchProblem
from binas.search.result import Status
from binas.search.solve import solve
from binas.search.solvers.random_search import CHUNK, RandomSearch
from binas.testing import bilinear_cases, brute_force, check_case, make_problem, make_space, stagewise_cases

CASES = {case.name: case for case in [*bilinear_cases(), *stagewise_cases()]}


@pytest.fixture
def large():
    return make_problem(make_space(5, 4, 6), 2).with_limits([Limit("latency", 30.0)])


@pytest.mark.parametrize("name", CASES)
def test_finds_the_optimum_of_small_problems(name):
    result = check_case(RandomSearch(samples=5000), CASES[name])
    optimum = CASES[name].optimum
    assert (result.accuracy is None) == (optimum is None)
    assert optimum is None or result.accuracy == pytest.approx(optimum)


def test_quadratic_and_callable_objectives():
    problem = CASES["several limits"].problem
    size, rng = problem.space.alpha_size + problem.space.beta_size, np.random.default_rng(0)
    quadratic = QuadraticObjective(1.0, rng.normal(size=size), rng.normal(size=(size, size)))
    for objective in (quadratic, CallableObjective(lambda a: float(len(str(a)) % 7))):
        made = replace(problem, objective=objective)
        assert solve(made, "random", samples=5000).accuracy == pytest.approx(brute_force(made))


def test_same_seed_same_answer(large):
    first, again, other = (solve(large, "random", seed=s, samples=500) for s in (1, 1, 2))
    assert first.architecture == again.architecture
    assert first.architecture != other.architecture


def test_more_than_a_chunk_is_drawn_in_full(large):
    result = solve(large, "random", samples=2 * CHUNK + 5)
    assert result.status is Status.FEASIBLE
    assert result.details["samples"] == 2 * CHUNK + 5
    assert result.accuracy >= solve(large, "random", samples=CHUNK).accuracy


def test_loses_against_a_proof_but_not_against_the_cheapest(large):
    cheapest, drawn = (solve(large, "random", samples=count).accuracy for count in (0, 2000))
    assert cheapest < drawn < solve(large, "milp").accuracy


def test_tightest_limit_is_met_by_the_cheapest(large):
    unlimited = large.with_limits([])
    least = solve(SearchProblem(large.space, _negative(large), large.costs), "milp").evaluation
    tight = unlimited.with_limits([Limit("latency", least.costs["latency"])])
    result = solve(tight, "random", samples=10)
    assert result.status is Status.FEASIBLE
    assert result.evaluation.costs["latency"] == pytest.approx(least.costs["latency"])


def _negative(problem):
    return type(problem.objective).negative_cost(problem.costs["latency"])


def test_a_start_is_never_lost(large):
    start = solve(large, "milp")
    assert solve(large, "random", samples=10, warm_start=start.architecture).accuracy == start.accuracy


def test_infeasible_only_when_proven():
    assert solve(CASES["infeasible"].problem, "random").status is Status.INFEASIBLE
    together = solve(CASES["infeasible only together"].problem, "random", samples=100)
    assert together.status is Status.STOPPED_WITHOUT_ANSWER


def test_out_of_time(large):
    result = solve(large, "random", time_limit=0.0)
    assert result.status is Status.STOPPED_WITH_ANSWER
    assert result.details["samples"] == 0


def test_negative_number_of_samples_is_refused(large):
    with pytest.raises(ProblemError, match="samples"):
        solve(large, "random", samples=-1)
