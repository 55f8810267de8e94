"""Choices that no limit leaves room for; costs over twelve decades; value in proportion to cost."""

import warnings
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from problems import problems

from binas.search import BilinearObjective, Limit, SearchProblem, Status, evaluate, solve
from binas.search.pareto import pareto
from binas.search.reach import reachable
from binas.space import enumerate_all
from binas.testing import make_problem, make_space


@given(problem=problems())
@settings(max_examples=25, deadline=None)
def test_what_keeps_the_limits_stays(problem):
    smaller = reachable(problem)
    kept = {x for x in enumerate_all(problem.space) if evaluate(problem, x).feasible}
    left = set() if smaller is None else set(enumerate_all(smaller.space))
    assert kept <= left
    if smaller is not None:
        assert all(smaller.tolerance(x) == problem.tolerance(x) for x in problem.limits)


def decades(seed):
    problem, rng = make_problem(make_space(3, 3, 6), seed), np.random.default_rng(seed)
    cost = problem.costs["latency"]
    values = cost.values.map(lambda x: 10.0 ** rng.uniform(-6, 6, np.shape(x)))
    cost = replace(cost, values=values, fixed=0.0, stderr=None)
    limit = 100 * cost.range(problem.space)[0]
    return SearchProblem(problem.space, problem.objective, {"latency": cost}, (Limit("latency", limit),))


@pytest.mark.parametrize("solver", ["milp", "miqcp"])
@pytest.mark.parametrize("seed", range(3))
def test_twelve_decades_in_one_cost(seed, solver):
    if solver == "miqcp":
        pytest.importorskip("pyscipopt", reason="SCIP is not installed: pip install 'binas[scip]'")
    results = [solve(decades(seed), name) for name in ("auto", solver)]
    assert {result.status for result in results} == {Status.OPTIMAL}
    assert results[0].accuracy == pytest.approx(results[1].accuracy, abs=1e-6)


def test_value_in_proportion_to_cost_is_proven():
    made = make_problem(make_space(4, 3, 8), 0)
    cost = made.costs["latency"]
    objective = BilinearObjective(70.0, cost.values.map(lambda x: 0.1 * x))
    limit = Limit("latency", 0.4 * made.scales["latency"])
    assert solve(SearchProblem(made.space, objective, {"latency": cost}, (limit,))).status is Status.OPTIMAL


def test_a_constant_cost_row_is_no_trouble():
    data = np.array([[3.0, 2.0, 1.0], [1.0, 1.0, 2.0], [5e200, 5e200, 5e200], [1.0, 2.0, 1.0]])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert pareto(data).tolist() == [0]
