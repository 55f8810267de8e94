"""The frontier: feasible, mutually non-dominated, equal to brute force, with or without the bounding machinery."""

import numpy as np
import pytest
from hypothesis import given, settings
from problems import problems

from binas.base.errors import ProblemError, TableError
from binas.search.frontier import Frontier, frontier
from binas.search.limits import Limit
from binas.search.problem import evaluate
from binas.search.solve import solve
from binas.testing import brute_force_frontier, make_problem, make_space


def without_lower_latency(problem):
    return problem.with_limits(item for item in problem.limits if not (item.lower and item.cost == "latency"))


def check(problem):
    problem = without_lower_latency(problem)
    found = frontier(problem, "latency")
    truth = brute_force_frontier(problem, "latency")
    assert found.exact
    assert len(found) == len(truth)
    np.testing.assert_allclose(found.costs, [x for x, _ in truth], atol=1e-9)
    np.testing.assert_allclose(found.accuracies, [y for _, y in truth], atol=1e-9)
    for point in found:
        judged = evaluate(problem, point.architecture)
        assert judged.feasible
        assert judged.costs["latency"] == pytest.approx(point.cost, abs=1e-9)
        assert judged.accuracy == pytest.approx(point.accuracy, abs=1e-9)
    assert (np.diff(found.costs) > 0).all()
    assert (np.diff(found.accuracies) > 0).all()


@given(problem=problems())
@settings(max_examples=60, deadline=None)
def test_equals_brute_force(problem):
    check(problem)


@given(problem=problems(stagewise=True, limits=1))
@settings(max_examples=30, deadline=None)
def test_equals_brute_force_with_interactions(problem):
    check(problem)


@given(problem=problems())
@settings(max_examples=50, deadline=None)
def test_bounds_drop_nothing_that_matters(problem):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("binas.search.fold.BOUND_ROWS", 1)
        patch.setattr("binas.search.merging.DIRECT", 0)
        check(problem)


def test_bounds_and_chunks_do_not_change_a_larger_frontier(monkeypatch):
    problem = make_problem(make_space(5, 5, 8), 4)
    plain = frontier(problem, "latency")
    monkeypatch.setattr("binas.search.fold.BOUND_ROWS", 1)
    monkeypatch.setattr("binas.search.merging.CHUNK", 500)
    bounded = frontier(problem, "latency")
    np.testing.assert_array_equal(plain.costs, bounded.costs)
    np.testing.assert_array_equal(plain.accuracies, bounded.accuracies)


@pytest.mark.parametrize("limits", [{"cost1": 0.35}, {"cost1": 0.35, "cost2": 0.4}, {"cost1": -0.45}])
def test_other_limits_are_respected_exactly(limits):
    problem = make_problem(make_space(3, 3, 5), 9, extra_costs=2)
    problem = problem.with_limits(
        [Limit(n, abs(f) * problem.scales[n], lower=f < 0) for n, f in limits.items()]
    )
    found = frontier(problem, "latency")
    assert found.exact
    for limit in np.linspace(found.costs[0], found.costs[-1], 7):
        best = solve(problem.with_limits([*problem.limits, Limit("latency", float(limit))]), "milp")
        assert found.at(float(limit)).accuracy == pytest.approx(best.accuracy, abs=1e-7)


@pytest.mark.parametrize("extra", [0, 1])
def test_rounding_is_certified(extra):
    problem = make_problem(make_space(4, 4, 8), 3, extra_costs=1)
    if extra:
        problem = problem.with_limits([Limit("cost1", 0.4 * problem.scales["cost1"])])
    exact = frontier(problem, "latency")
    rough = frontier(problem, "latency", max_labels=60)
    assert not rough.exact
    assert 0 < rough.error < 5
    worst = max(p.accuracy - q.accuracy for p in exact if (q := rough.at(p.cost)) is not None)
    assert worst <= rough.error + 1e-9
    assert worst > 0 or extra  # with a further limit lists may close every gap that rounding left
    assert all(evaluate(problem, p.architecture).feasible for p in rough)


def test_tolerance_buys_a_smaller_frontier():
    problem = make_problem(make_space(5, 4, 8), 3)
    exact, rough = frontier(problem, "latency"), frontier(problem, "latency", tolerance=0.05)
    assert rough.error <= 0.05 + 1e-12
    assert len(rough) < len(exact)


def test_reading_points():
    found = frontier(make_problem(make_space(3, 3, 4), 0), "latency")
    assert found.at(float(found.costs[0]) - 0.1) is None
    assert found.at(float(found.costs[3])).accuracy == found[3].accuracy
    assert found.at(1e9) == found[-1] == found[len(found) - 1]
    assert [p.cost for p in found[2:5]] == found.costs[2:5].tolist()
    assert found.gain(float(found.costs[0]), 1e9) == pytest.approx(found[-1].accuracy - found[0].accuracy)
    assert found.gain(0.0, 0.1) is None
    with pytest.raises(IndexError):
        found[len(found)]


def test_limit_on_the_traced_cost_cuts_the_frontier():
    problem = make_problem(make_space(3, 3, 4), 0)
    whole = frontier(problem, "latency")
    middle = float(whole.costs[len(whole) // 2])
    cut = frontier(problem.with_limits([Limit("latency", middle)]), "latency")
    np.testing.assert_array_equal(cut.costs, whole.costs[whole.costs <= middle])


def test_nothing_feasible_gives_an_empty_frontier():
    problem = make_problem(make_space(3, 3, 4), 0, extra_costs=1)
    assert len(frontier(problem.with_limits([Limit("cost1", 0.1)]), "latency")) == 0


def test_bad_questions_are_refused():
    problem = make_problem(make_space(2, 2, 3), 0)
    with pytest.raises(ProblemError, match="no cost 'energy'"):
        frontier(problem, "energy")
    with pytest.raises(ProblemError, match="lower limit"):
        frontier(problem.with_limits([Limit("latency", 3.0, lower=True)]), "latency")


@pytest.mark.parametrize("tolerance", [0.0, 0.5])
def test_a_written_frontier_is_read_back(tolerance):
    problem = make_problem(make_space(4, 4, 6), 1)
    traced = frontier(problem, "latency", tolerance=tolerance)
    again = Frontier.from_csv(traced.to_csv(), problem)
    assert list(again) == list(traced)
    assert (again.cost, again.error, again.exact) == (traced.cost, traced.error, tolerance == 0.0)
    assert again.to_csv() == traced.to_csv()
    assert traced.to_csv().splitlines()[0].startswith("latency_ms,accuracy_percent,architecture")


def test_an_empty_frontier_is_read_back():
    problem = make_problem(make_space(2, 2, 3), 0).with_limits([Limit("latency", 0.001)])
    assert len(Frontier.from_csv(frontier(problem, "latency").to_csv(), problem)) == 0


@pytest.mark.parametrize("spoil", ["", "cost", "architecture", "order", "number", "header", "short"])
def test_a_changed_frontier_is_refused(spoil):
    problem = make_problem(make_space(2, 2, 3), 0)
    lines = frontier(problem, "latency").to_csv().splitlines()
    cost, accuracy, architecture = lines[2].split(",")
    changed = {
        "": [],
        "cost": [*lines[:2], f"{float(cost) * 1.01},{accuracy},{architecture}"],
        "architecture": [*lines[:2], f"{cost},{accuracy},{lines[1].split(',')[2]}"],
        "order": [lines[0], lines[2], lines[1]],
        "number": [*lines[:2], f"cheap,{accuracy},{architecture}"],
        "header": ["latency_s,accuracy_percent,architecture", *lines[1:]],
        "short": [*lines[:2], f"{cost},{accuracy}"],
    }
    with pytest.raises(TableError, match="Make it again"):
        Frontier.from_csv("\n".join(changed[spoil]), problem)


def test_what_is_only_known_to_be_dominated_is_not_taken_for_left_out():
    """84 million sums in the last merge: more than are made where labels were left out before, and none were."""
    assert frontier(make_problem(make_space(5, 32, 12), 0), "latency").exact
