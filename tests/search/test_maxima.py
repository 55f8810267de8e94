"""Limits on costs that are a maximum (peak memory): exact everywhere, against brute force."""

import sys
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from problems import problems

from binas.base.errors import ProblemError, SolverClaimError
from binas.search import BilinearObjective, CallableObjective, QuadraticObjective, restricted, solve
from binas.search.alternatives import best_architectures
from binas.search.explain import explain
from binas.search.frontier import frontier
from binas.search.infeasible import explain_infeasible
from binas.search.limits import Limit, parse_limits
from binas.search.matrices import paper_form, tight_form
from binas.search.problem import SearchProblem, evaluate
from binas.search.restrict import levels
from binas.search.result import Answer, Status
from binas.search.surroundings import prices
from binas.search.verify import verify
from binas.space import enumerate_all
from binas.tables import Column
from binas.testing import brute_force, brute_force_frontier, make_problem, make_space, small_space
from binas.testing.brute_force import all_values, feasible_mask
from binas.testing.cases import PLAIN, make_cost, random_column


@st.composite
def with_maximum(draw, limits: int | None = None, stagewise: bool = False, tight: bool = False):
    """A small problem whose ``params`` are a maximum, limited at one of the values it can take, or between."""
    problem = draw(problems(limits, stagewise=stagewise))
    cost = replace(problem.costs["params"], combine="max")
    values = levels(cost)
    index = draw(st.integers(0, max(0, len(values) // 2) if tight else len(values) - 1))
    value = float(values[index]) + draw(st.sampled_from([0.0, 0.1, -0.1]))
    others = [limit for limit in problem.limits if limit.cost != "params"]
    costs = {**problem.costs, "params": cost}
    return SearchProblem(problem.space, problem.objective, costs, (*others, Limit("params", value)))


def by_hand(problem, architecture) -> float:
    """max(fixed, depth parts, config parts), written out."""
    cost, parts = problem.costs["params"], [problem.costs["params"].fixed]
    for s, names in enumerate(architecture.stages):
        parts.append(cost.values.depths[s][problem.space.stages[s].depths.index(len(names))])
        for b, name in enumerate(names):
            parts.append(
                cost.values.configs[s][b][[c.name for c in problem.space.stages[s].blocks[b]].index(name)]
            )
    return float(max(parts))


@given(problem=with_maximum(limits=0))
@settings(max_examples=30)
def test_evaluations_and_batches_take_the_largest_part(problem):
    architectures, _, costs = all_values(problem)
    for architecture, value in zip(architectures[:50], costs["params"][:50], strict=True):
        judged = evaluate(problem, architecture)
        assert judged.costs["params"] == value == by_hand(problem, architecture)
        assert judged.feasible == (value <= problem.limits[0].value + 1e-6)


@pytest.mark.parametrize("solver", ["auto", "milp", "evolution"])
@given(problem=with_maximum())
@settings(max_examples=25)
def test_solvers_match_brute_force(solver, problem):
    best, found = brute_force(problem), solve(problem, solver)
    if solver == "evolution":
        assert found.accuracy is None or (best is not None and found.accuracy <= best + 1e-9)
    else:
        assert found.status is (Status.INFEASIBLE if best is None else Status.OPTIMAL)
        assert best is None or found.accuracy == pytest.approx(best, abs=1e-9)


@given(problem=with_maximum(stagewise=True))
@settings(max_examples=25)
def test_interactions_inside_a_stage_stay_exact(problem):
    best, found = brute_force(problem), solve(problem)
    assert (found.accuracy is None) == (best is None)
    assert best is None or found.accuracy == pytest.approx(best, abs=1e-9)


@pytest.mark.parametrize("traced", ["latency", "params"])
@given(data=st.data(), stagewise=st.booleans())
@settings(max_examples=25)
def test_frontiers_match_brute_force(traced, data, stagewise):
    problem = data.draw(with_maximum(stagewise=stagewise))
    limits = [limit for limit in problem.limits if not (limit.cost == traced and limit.lower)]
    problem = problem.with_limits(limits)
    found = frontier(problem, traced)
    wanted = brute_force_frontier(problem, traced)
    np.testing.assert_allclose([p.cost for p in found], [cost for cost, _ in wanted], atol=1e-9)
    np.testing.assert_allclose([p.accuracy for p in found], [value for _, value in wanted], atol=1e-9)
    for point in found:
        judged = evaluate(problem, point.architecture)
        assert judged.feasible
        assert judged.costs[traced] == pytest.approx(point.cost)
        assert judged.accuracy == pytest.approx(point.accuracy)
    assert found.exact


@given(problem=with_maximum(), count=st.integers(1, 12))
@settings(max_examples=30)
def test_the_k_best(problem, count):
    _, values, costs = all_values(problem)
    truth = np.sort(values[feasible_mask(problem, costs)])[::-1]
    found = best_architectures(problem, count)
    np.testing.assert_allclose([item.accuracy for item in found.items], truth[:count], atol=1e-9)
    assert all(evaluate(problem, item.architecture) == item for item in found.items)


@given(problem=with_maximum(tight=True))
@settings(max_examples=30)
def test_infeasible_limits_are_explained(problem):
    if brute_force(problem) is not None:
        with pytest.raises(ProblemError, match="nothing to explain"):
            explain_infeasible(problem)
        return
    _, _, costs = all_values(problem)
    report = explain_infeasible(problem)
    low, high = report.extremes["params"]
    assert (low, high) == (costs["params"].min(), costs["params"].max())
    own = problem.limits[-1]
    assert (own in report.blocking) == (low > own.value + 1e-6)
    for item in report.relaxations:
        others = problem.with_limits(limit for limit in problem.limits if limit is not item.limit)
        reach = costs[item.limit.cost][feasible_mask(others, costs)]
        assert item.value == pytest.approx(reach.max() if item.limit.lower else reach.min())
    changed = {id(item.limit): item.value for item in (report.relaxations[:1] or report.together)}
    assert changed
    eased = [replace(limit, value=changed.get(id(limit), limit.value)) for limit in problem.limits]
    assert solve(problem.with_limits(eased)).status is Status.OPTIMAL


def test_limits_that_must_give_together():
    """No single limit can be moved enough; the smallest common fraction is found."""
    rng = np.random.default_rng(0)
    space = small_space(PLAIN)
    costs = {name: peak(space, name, random_column(space, rng, 1.0, 9.0)) for name in ("memory", "cache")}
    costs["latency"] = make_cost(space, "latency", random_column(space, rng, 1.0, 9.0))
    limits = (Limit("memory", 0.6), Limit("cache", 0.7), Limit("latency", 2.0))
    problem = SearchProblem(space, BilinearObjective(0.0, Column.full(space, 0.0)), costs, limits)
    report = explain_infeasible(problem)
    assert not report.relaxations
    _, _, reached = all_values(problem)
    over = [np.maximum(0.0, reached[x.cost] / x.value - 1.0) for x in limits]
    assert max(item.change for item in report.together) == pytest.approx(np.max(over, axis=0).min())


def test_a_fixed_part_above_the_limit():
    problem = memory_problem(Limit("memory", 1.0))
    assert restricted(problem) is None
    assert solve(problem, "evolution").status is Status.INFEASIBLE
    assert len(frontier(problem, "latency")) == 0
    assert len(frontier(problem, "memory")) == 0
    assert best_architectures(problem, 3).items == ()
    assert explain_infeasible(problem).relaxations[0].value >= problem.costs["memory"].fixed == 2.0


class TestRestriction:
    def test_architectures_of_the_smaller_space_are_those_that_keep_the_limit(self):
        problem = memory_problem(Limit("memory", 6.0))
        smaller = restricted(problem)
        assert smaller is not None
        assert smaller.limits == ()
        kept = {a for a in enumerate_all(problem.space) if evaluate(problem, a).feasible}
        assert set(enumerate_all(smaller.space)) == kept
        assert 0 < len(kept) < problem.space.count

    def test_without_such_limits_it_is_the_same_problem(self):
        problem = memory_problem(Limit("latency", 6.0))
        assert restricted(problem) is problem

    def test_standard_errors_come_along(self):
        problem = memory_problem(Limit("memory", 6.0))
        stderr = random_column(problem.space, np.random.default_rng(3), 0.0, 1.0)
        problem = replace(problem, objective=replace(problem.objective, stderr=stderr))
        found = solve(problem).evaluation
        assert found == evaluate(problem, found.architecture)
        assert found.accuracy_stderr > 0
        assert best_architectures(problem, 1).items[0].accuracy_stderr == pytest.approx(found.accuracy_stderr)

    @pytest.mark.parametrize("kind", ["quadratic", "callable"])
    def test_other_objectives(self, kind):
        problem = memory_problem(Limit("memory", 6.0), Limit("latency", 12.0))
        rng, size = np.random.default_rng(4), problem.space.alpha_size + problem.space.beta_size
        quadratic = QuadraticObjective(1.0, rng.normal(size=size), rng.normal(size=(size, size)))
        whole = replace(problem, objective=quadratic)
        best = brute_force(whole)
        if kind == "callable":
            whole = replace(whole, objective=as_function(problem.space, quadratic))
        assert solve(whole, "evolution").accuracy == pytest.approx(best)
        relaxed = solve(whole, "frank-wolfe")
        assert relaxed.evaluation is not None
        assert relaxed.evaluation.feasible

    def test_functions_of_relaxed_points_see_the_whole_space(self):
        problem = memory_problem(Limit("memory", 4.0))
        rng, size = np.random.default_rng(5), problem.space.alpha_size + problem.space.beta_size
        quadratic = QuadraticObjective(1.0, rng.normal(size=size), rng.normal(size=(size, size)))
        problem = replace(problem, objective=as_function(problem.space, quadratic))
        smaller = restricted(problem)
        architecture = enumerate_all(smaller.space)[0]
        point = smaller.space.layout.encode(architecture, inactive="first")
        objective = smaller.objective
        step = [1e-6 * (np.arange(len(part)) == 0) for part in point]
        moved = objective.relaxed(point[0] + step[0], point[1] + step[1]) - objective.relaxed(*point)
        by_alpha, by_beta = objective.gradient(*point)
        assert by_alpha.shape == point[0].shape
        assert moved == pytest.approx(1e-6 * (by_alpha[0] + by_beta[0]), rel=1e-3)


def as_function(space, quadratic: QuadraticObjective) -> CallableObjective:
    """A quadratic form as a function of architectures and, differentiable, of (alpha, beta)."""

    def relaxed(alpha, beta):
        z = np.concatenate([alpha, beta])
        return float(quadratic.constant + quadratic.linear @ z + z @ quadratic.quadratic @ z)

    def gradient(alpha, beta):
        z = np.concatenate([alpha, beta])
        slope = quadratic.linear + (quadratic.quadratic + quadratic.quadratic.T) @ z
        return slope[: len(alpha)], slope[len(alpha) :]

    return CallableObjective(lambda a: quadratic.value(space, a), relaxed, gradient)


def peak(space, name: str, values: Column, fixed: float = 0.5):
    return replace(make_cost(space, name, values, fixed, "kB"), combine="max")


def memory_problem(*limits: Limit) -> SearchProblem:
    rng, space = np.random.default_rng(12), small_space(PLAIN)
    costs = {
        "latency": make_cost(space, "latency", random_column(space, rng, 0.5, 5.0)),
        "memory": peak(space, "memory", random_column(space, rng, 0.0, 10.0), 2.0),
    }
    return SearchProblem(
        space, BilinearObjective(70.0, random_column(space, rng, 0.0, 2.0, 1.0)), costs, limits
    )


def test_the_verifier_computes_the_maximum_itself():
    problem = memory_problem(Limit("memory", 6.0))
    heavy = next(a for a in enumerate_all(problem.space) if evaluate(problem, a).costs["memory"] > 6.0)
    claim = Answer(Status.FEASIBLE, heavy, evaluate(problem, heavy).accuracy)
    with pytest.raises(SolverClaimError, match="which breaks memory <= 6 kB"):
        verify(problem, claim, "made-up", 0.0)


def test_prices_are_exact():
    problem = memory_problem(Limit("memory", 6.0), Limit("latency", 12.0))
    found = {price.limit.cost: price for price in prices(solve(problem))}
    for limit in problem.limits:
        price = found[limit.cost]
        eased = [replace(x, value=x.value + price.more) if x is limit else x for x in problem.limits]
        assert price.gain == pytest.approx(brute_force(problem.with_limits(eased)) - brute_force(problem))


def test_explanations_judge_alternatives_by_the_maximum():
    problem = memory_problem(Limit("memory", 6.0))
    found = explain(problem, solve(problem).architecture)
    for decision in found.decisions:
        if decision.best_within is not None:
            assert found.evaluation.costs["memory"] + decision.best_within.costs["memory"] <= 6.0 + 1e-9


def test_a_warm_start_outside_the_limit_is_not_used():
    problem = memory_problem(Limit("memory", 6.0))
    heavy = next(a for a in enumerate_all(problem.space) if evaluate(problem, a).costs["memory"] > 6.0)
    assert solve(problem, "milp", warm_start=heavy).accuracy == pytest.approx(brute_force(problem))


@pytest.mark.parametrize("form", [paper_form, tight_form])
def test_matrices_refuse_what_is_no_sum(form):
    with pytest.raises(ProblemError, match="one on a maximum, not a sum"):
        form(memory_problem(Limit("memory", 6.0)))


def test_lower_limits_are_refused():
    with pytest.raises(ProblemError, match="memory is a maximum over blocks; it takes only upper limits"):
        memory_problem(*parse_limits("memory>=3kB", memory_problem().space, memory_problem().costs))


def test_the_error_of_a_frontier_of_a_maximum_is_the_widest_gap_of_its_answers(monkeypatch):
    """Answers count as proven at 1e-6 points; a frontier of such answers is not exact."""
    module = sys.modules["binas.search.frontier"]
    plain = module.solve

    def with_gap(*args, **settings):
        result = plain(*args, **settings)
        return replace(result, bound=None if result.accuracy is None else result.accuracy + 5e-7)

    monkeypatch.setattr(module, "solve", with_gap)
    problem = make_problem(make_space(2, 2, 3), 1)
    costs = {"latency": replace(problem.costs["latency"], combine="max")}
    found = frontier(replace(problem, costs=costs, limits=()), "latency")
    assert len(found)
    assert found.error == pytest.approx(5e-7, rel=1e-3)
    assert not found.exact
