"""Around the optimum: K best, near-optimal, infeasibility, prices, explanations; all against brute force."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import assume, given, settings, strategies as st
from problems import problems, sorted_values

from binas.base.errors import ProblemError
from binas.search.alternatives import best_architectures
from binas.search.explain import explain
from binas.search.frontier import frontier
from binas.search.infeasible import explain_infeasible, why_no_answer
from binas.search.limits import Limit
from binas.search.problem import evaluate
from binas.search.result import SearchResult, Status
from binas.search.solve import solve
from binas.search.surroundings import look_around, prices, step_for
from binas.space import Architecture
from binas.testing import brute_force, make_problem, make_space
from binas.testing.brute_force import all_values


@pytest.mark.parametrize("stagewise", [False, True])
@given(data=st.data(), count=st.integers(1, 12))
@settings(max_examples=25, deadline=None)
def test_the_k_best_are_the_k_best(stagewise, data, count):
    problem = data.draw(problems(stagewise=stagewise))
    truth = sorted_values(problem)
    found = best_architectures(problem, count)
    np.testing.assert_allclose([item.accuracy for item in found.items], truth[:count], atol=1e-9)
    assert len({item.architecture for item in found.items}) == len(found.items)
    assert all(item.feasible for item in found.items)
    assert found.complete
    assert len(truth) <= count or found.bound >= truth[count] - 1e-9


@given(problem=problems(), within=st.floats(0, 3))
@settings(max_examples=40, deadline=None)
def test_all_near_optimal_are_listed(problem, within):
    truth = sorted_values(problem)
    found = best_architectures(problem, within=within)
    wanted = truth[truth >= truth[0] - within - 1e-9] if len(truth) else truth
    if len(wanted) <= 1000:
        np.testing.assert_allclose([item.accuracy for item in found.items], wanted, atol=1e-8)
        assert found.complete


@pytest.mark.parametrize("limits", [1, 3])
def test_integer_programs_take_over_when_too_many_are_close(monkeypatch, limits):
    problem = make_problem(make_space(3, 3, 4), 5, extra_costs=2)
    names = ["latency", "cost1", "cost2"][:limits]
    problem = problem.with_limits([Limit(n, 0.5 * problem.scales[n]) for n in names])
    wanted = best_architectures(problem, 8)
    monkeypatch.setattr("binas.search.alternatives.MAX_LISTED", 5)
    monkeypatch.setattr("binas.search.alternatives.MAX_LISTED_MANY", 5)
    found = best_architectures(problem, 8)
    np.testing.assert_allclose(
        [x.accuracy for x in found.items], [x.accuracy for x in wanted.items], atol=1e-7
    )
    near = best_architectures(problem, within=wanted.items[0].accuracy - wanted.items[4].accuracy)
    assert len(near.items) == 5
    assert near.complete


def test_more_than_can_be_listed_is_said():
    problem = make_problem(make_space(5, 4, 8), 0)
    found = best_architectures(problem.with_limits([Limit("latency", 50.0)]), within=5.0)
    assert len(found.items) == 1000
    assert not found.complete


def test_bad_questions_are_refused():
    problem = make_problem(make_space(2, 2, 2), 0)
    with pytest.raises(ProblemError):
        best_architectures(problem, count=0)
    with pytest.raises(ProblemError):
        best_architectures(problem, within=-1.0)


@given(problem=problems(limits=2))
@settings(max_examples=50, deadline=None)
def test_relaxations_of_infeasible_problems_work_and_are_minimal(problem):
    assume(brute_force(problem) is None)
    report = explain_infeasible(problem)
    _, _, costs = all_values(problem)
    for name, (low, high) in report.extremes.items():
        assert low == pytest.approx(costs[name].min())
        assert high == pytest.approx(costs[name].max())
    for limit in report.blocking:
        assert brute_force(problem.with_limits([limit])) is None
    for item in report.relaxations:
        eased = [replace(x, value=item.value) if x is item.limit else x for x in problem.limits]
        assert brute_force(problem.with_limits(eased)) is not None
        nearly = item.value - item.limit.sign * 1e-6 * max(1.0, abs(item.value))
        tighter = [replace(x, value=nearly) if x is item.limit else x for x in problem.limits]
        assert brute_force(problem.with_limits(tighter)) is None
    if not report.relaxations:
        new = {id(item.limit): item.value for item in report.together}
        eased = [replace(x, value=new.get(id(x), x.value)) for x in problem.limits]
        assert brute_force(problem.with_limits(eased)) is not None
    assert "no architecture keeps" in report.sentence()


def test_the_sentence_names_limit_least_value_and_change():
    problem = make_problem(make_space(2, 2, 3), 0)
    text = explain_infeasible(problem.with_limits([Limit("latency", 1.0)])).sentence()
    least = -solve(
        replace(problem, objective=type(problem.objective).negative_cost(problem.costs["latency"]))
    ).accuracy
    assert "latency <= 1 ms" in text
    assert f"{least:.6g} ms" in text
    assert "move the latency limit up to" in text


def test_price_is_the_gain_on_the_frontier():
    problem = make_problem(make_space(3, 3, 5), 1)
    result = solve(problem.with_limits([Limit("latency", 20.0)]))
    (price,) = prices(result)
    assert price.more == step_for(20.0) == 1.0
    assert price.gain == pytest.approx(frontier(problem, "latency").gain(20.0, 1.0), abs=1e-9)
    assert price.gain >= 0
    assert [step_for(x) for x in (45.0, 5.0, 5e6)] == pytest.approx([1.0, 0.1, 1e5])


@given(problem=problems(limits=1))
@settings(max_examples=25, deadline=None)
def test_explanations_add_up(problem):
    found = solve(problem)
    assume(found.architecture is not None)
    report = explain(problem, found.architecture)
    total = sum(item.contribution for item in report.decisions)
    assert problem.objective.base + total == pytest.approx(found.accuracy, abs=1e-9)
    cost = problem.costs["latency"]
    assert cost.fixed + sum(d.costs["latency"] for d in report.decisions) == pytest.approx(
        found.evaluation.costs["latency"]
    )
    for item in report.decisions:
        if item.best_within is not None:  # no single change within the limits beats a proven optimum
            assert item.best_within.accuracy <= 1e-9
        if item.block is not None and item.best is not None:
            s = [stage.name for stage in problem.space.stages].index(item.stage)
            names = list(found.architecture.stages[s])
            names[item.block - 1] = item.best.choice
            stages = [*found.architecture.stages[:s], tuple(names), *found.architecture.stages[s + 1 :]]
            other = evaluate(problem, Architecture(tuple(stages)))
            assert item.best.accuracy == pytest.approx(other.accuracy - found.accuracy, abs=1e-9)


def test_why_there_is_no_answer_is_said_once_for_searches_and_frontiers():
    problem = make_problem(make_space(2, 3, 3), 0)
    assert why_no_answer(solve(problem)) == why_no_answer(frontier(problem, "latency")) == ""
    impossible = problem.with_limits([Limit("latency", 1e-3)])
    reason = why_no_answer(solve(impossible))
    assert "The smallest change that works" in reason
    assert why_no_answer(frontier(impossible, "latency")) == reason
    stopped = SearchResult(impossible, Status.STOPPED_WITHOUT_ANSWER, "evolution", 1.0)
    assert "does not mean there is none. Give it more time, or use the solver auto" in why_no_answer(stopped)


def test_what_lies_around_an_optimum_is_without_itself():
    problem = make_problem(make_space(2, 2, 3, 1), 2)
    least, most = problem.costs["latency"].range(problem.space)
    problem = problem.with_limits([Limit("latency", (least + most) / 2)])
    result = solve(problem)
    around = look_around(result, count=3)
    assert result.architecture not in [item.architecture for item in around.near.items]
    assert len(around.near.items) == 2
    data = around.to_json()
    assert [item["cost"] for item in data["price"]] == [price.limit.cost for price in around.prices]
    assert all(f"{price.gain:+.4f} points" in price.sentence(problem) for price in around.prices)
    alone = look_around(result)
    assert (alone.near.items, alone.near.complete) == ((), True)
