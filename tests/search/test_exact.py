"""Exact solvers agree with each other and with brute force."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from problems import problems

from binas.estimators.objective import BilinearObjective
from binas.search.dual import Padded, best_for, solve_dual
from binas.search.lagrangian import solve_exact
from binas.search.limits import Limit
from binas.search.problem import SearchProblem
from binas.search.result import Status
from binas.search.solve import solve
from binas.search.solvers import Options, make_solver
from binas.search.solvers._base import GAP
from binas.search.terms import build_terms, limit_rows
from binas.testing import brute_force, make_problem, make_space


def agree(problem, solver):
    best = brute_force(problem)
    result = solve(problem, solver)
    if best is None:
        assert result.status is Status.INFEASIBLE
        assert result.architecture is None
    else:
        assert result.status is Status.OPTIMAL
        assert result.accuracy == pytest.approx(best, abs=1e-7)
        assert result.gap == 0.0 or (result.details.get("method", solver) == "milp" and result.gap <= GAP)


@pytest.mark.parametrize("solver", ["auto", "frontier", "milp"])
@given(problem=problems())
@settings(max_examples=60, deadline=None)
def test_matches_brute_force(problem, solver):
    agree(problem, solver)


@pytest.mark.parametrize("solver", ["auto", "frontier"])
@given(problem=problems(stagewise=True))
@settings(max_examples=30, deadline=None)
def test_interactions_inside_a_stage_stay_exact(problem, solver):
    agree(problem, solver)


@given(problem=problems(limits=1), scale=st.floats(1e-3, 1e3), shift=st.floats(-1e3, 1e3))
@settings(max_examples=30, deadline=None)
def test_scaling_and_shifting_the_objective_changes_nothing(problem, scale, shift):
    objective = problem.objective
    other = BilinearObjective(objective.base * scale + shift, objective.values.map(lambda x: x * scale))
    one, two = solve(problem), solve(replace(problem, objective=other))
    assert one.status == two.status
    if one.accuracy is not None:
        assert two.accuracy == pytest.approx(one.accuracy * scale + shift, rel=1e-9, abs=1e-6)


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("limits", [1, 2, 3])
def test_auto_equals_milp_on_larger_instances(seed, limits):
    problem = make_problem(make_space(4, 3, 6), seed, extra_costs=2)
    names = ["latency", "cost1", "cost2"][:limits]
    problem = problem.with_limits([Limit(n, (0.3 + 0.05 * seed) * problem.scales[n]) for n in names])
    one, two = solve(problem, "auto"), solve(problem, "milp")
    assert one.status is two.status is Status.OPTIMAL
    assert one.accuracy == pytest.approx(two.accuracy, abs=1e-7)


@given(problem=problems(limits=2), multipliers=st.lists(st.floats(0, 5), min_size=2, max_size=2))
@settings(max_examples=30, deadline=None)
def test_every_multiplier_gives_an_upper_bound(problem, multipliers):
    best = brute_force(problem)
    terms = build_terms(problem, limit_rows(problem))
    bound = best_for(Padded(terms), np.array(multipliers)).bound + terms.constant[0]
    if best is not None:
        assert bound >= best - 1e-9
        assert solve_dual(Padded(terms)).relaxed.bound + terms.constant[0] >= best - 1e-9


def test_too_many_candidates_are_refused_rather_than_held():
    problem = make_problem(make_space(6, 6, 10), 1, extra_costs=1)
    problem = problem.with_limits([Limit(n, 0.4 * problem.scales[n]) for n in ("latency", "cost1")])
    outcome = solve_exact(build_terms(problem, limit_rows(problem)), max_candidates=10)
    best = solve(problem).accuracy
    assert not outcome.proven
    assert outcome.best is None or outcome.best.value <= best + 1e-9
    assert outcome.bound >= best - 1e-9


@pytest.mark.parametrize("bound", [{"time_limit": 0.0}, {"max_nodes": 1}])
def test_milp_out_of_time_or_nodes_is_reported_as_stopped(bound):
    problem = make_problem(make_space(10, 8, 30), 3, extra_costs=2)
    problem = problem.with_limits([Limit(n, 0.35 * problem.scales[n]) for n in problem.costs])
    result = solve(problem, "milp", **bound)
    assert result.status in (Status.STOPPED_WITH_ANSWER, Status.STOPPED_WITHOUT_ANSWER)


def test_milp_takes_a_warm_start():
    problem = make_problem(make_space(4, 3, 6), 0)
    problem = problem.with_limits([Limit("latency", 0.4 * problem.scales["latency"])])
    best = solve(problem)
    assert solve(problem, "milp", warm_start=best.architecture).accuracy == pytest.approx(best.accuracy)


def test_a_limit_is_kept_to_its_tolerance_and_not_beyond():
    problem = make_problem(make_space(3, 3, 5), 2)
    cost = solve(problem.with_limits([Limit("latency", 15.0)])).evaluation.costs["latency"]
    for solver in ("auto", "milp"):
        at = solve(problem.with_limits([Limit("latency", cost)]), solver)
        below = solve(problem.with_limits([Limit("latency", cost * (1 - 1e-7))]), solver)
        assert at.evaluation.costs["latency"] == pytest.approx(cost)
        assert below.evaluation.costs["latency"] < cost
        assert isinstance(at.problem, SearchProblem)


@pytest.mark.parametrize(("solver", "settings"), [("frontier", {"max_candidates": 1}), ("milp", {})])
@pytest.mark.parametrize("seed", range(8))
def test_what_the_gap_ends_has_its_true_bound(seed, solver, settings):
    problem = make_problem(make_space(3, 2, 4), seed)
    low, high = problem.costs["latency"].range(problem.space)
    problem = problem.with_limits([Limit("latency", low + 0.4 * (high - low))])
    best, answer = brute_force(problem), make_solver(solver, **settings).solve(problem, Options(gap=2.0))
    assert answer.status is Status.OPTIMAL
    assert best - 1e-9 <= answer.bound <= answer.value + 2.0
    assert answer.value <= best + 1e-9
