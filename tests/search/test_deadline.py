"""Every call is back by its deadline with what it has and a true bound. Clocks are counters: nothing depends on the time."""

from itertools import count, pairwise

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from problems import problems

from binas.base.errors import ProblemError
from binas.estimators.objective import BilinearObjective
from binas.search import fold as folding, merging
from binas.search.alternatives import best_architectures
from binas.search.deadline import NEVER, Deadline, TimeUpError
from binas.search.frontier import frontier
from binas.search.infeasible import explain_infeasible
from binas.search.labels import Labels
from binas.search.limits import Limit
from binas.search.merging import merge_thinned, thinned
from binas.search.pareto import pareto
from binas.search.problem import SearchProblem, evaluate
from binas.search.result import Status
from binas.search.solve import solve
from binas.search.solvers import Options, make_solver
from binas.search.surroundings import look_around
from binas.space import load_space
from binas.testing import brute_force, make_problem, make_space
from binas.testing.brute_force import all_values, feasible_mask
from binas.testing.paper_example import paper_costs


def looks(number):
    """A deadline that has passed after so many looks at the clock."""
    return Deadline.after(number, count().__next__)


class TestDeadline:
    def test_counts_down(self):
        clock = iter([10.0, 11.0, 14.0, 15.0, 16.0])
        deadline = Deadline.after(5.0, clock.__next__)
        assert deadline.left == 4.0
        assert not deadline.late
        assert deadline.late
        with pytest.raises(TimeUpError):
            deadline.check()

    def test_none_is_never(self):
        assert Deadline.after(None) is NEVER
        assert NEVER.seconds is None
        assert not NEVER.late

    def test_parts_share_what_is_left(self):
        clock = iter([0.0, 2.0])
        assert Deadline.after(10.0, clock.__next__).shared(4).end == 4.0

    @pytest.mark.parametrize("seconds", [-1.0, float("nan")])
    def test_refuses_what_is_no_time(self, seconds):
        with pytest.raises(ProblemError, match="time limit"):
            Deadline.after(seconds)


@pytest.mark.parametrize("solver", ["auto", "frontier"])
@given(problem=problems(), number=st.integers(0, 12))
@settings(max_examples=25, deadline=None)
def test_what_is_known_in_time_is_true(problem, number, solver):
    best = brute_force(problem)
    answer = make_solver(solver).solve(problem, Options(looks(number)))
    if best is None:
        assert answer.architecture is None
        return
    assert answer.status is not Status.INFEASIBLE
    assert answer.bound >= best - 1e-9
    if answer.architecture is not None:
        judged = evaluate(problem, answer.architecture)
        assert judged.feasible
        assert judged.accuracy <= answer.bound + 1e-9


@given(problem=problems(limits=1), number=st.integers(0, 30))
@settings(max_examples=25, deadline=None)
def test_a_frontier_in_time_is_certified(problem, number):
    problem = problem.with_limits(())
    whole = frontier(problem, "latency")
    found = frontier(problem, "latency", time_limit=looks(number))
    assert all(a < b for a, b in pairwise(found.costs))
    for point in whole:
        near = found.at(point.cost)
        if near is not None:
            assert point.accuracy - found.error - 1e-9 <= near.accuracy <= point.accuracy + 1e-9


@pytest.mark.parametrize("extra", [0, 1, 2])
def test_nothing_but_a_moment_is_enough_for_a_frontier(extra, monkeypatch):
    monkeypatch.setattr(folding, "LAST", 1000)
    problem = make_problem(make_space(4, 4, 8), 3, extra_costs=2)
    names = ["cost1", "cost2"][:extra]
    problem = problem.with_limits([Limit(n, 0.45 * problem.scales[n]) for n in names])
    exact, rough = frontier(problem, "latency"), frontier(problem, "latency", time_limit=0.0)
    assert rough.stopped
    assert not rough.exact
    assert all(evaluate(problem, point.architecture).feasible for point in rough)
    short = [point.accuracy - near.accuracy for point in exact if (near := rough.at(point.cost)) is not None]
    assert 0 < max(short) <= rough.error
    assert rough.to_json()["stopped"]


def test_the_best_in_no_time_has_a_bound():
    problem = make_problem(make_space(5, 4, 8), 1)
    problem = problem.with_limits([Limit("latency", 0.4 * problem.scales["latency"])])
    best = solve(problem)
    found = best_architectures(problem, 5, time_limit=0.0)
    assert not found.complete
    assert found.bound >= best.accuracy - 1e-9
    assert all(item.feasible for item in found.items)
    around = look_around(best, 5, time_limit=0.0)
    assert around.prices == ()
    assert not around.near.complete


@given(problem=problems(), number=st.integers(0, 25))
@settings(max_examples=30, deadline=None)
def test_a_list_that_was_stopped_is_a_beginning(problem, number):
    found = best_architectures(problem, 6, time_limit=looks(number))
    _, values, costs = all_values(problem)
    truth = np.sort(values[feasible_mask(problem, costs)])[::-1]
    known = [item.accuracy for item in found.items]
    sure = [x for x in known if found.complete or (found.bound is not None and x >= found.bound)]
    np.testing.assert_allclose(sure, truth[: len(sure)], atol=1e-9)
    if len(truth) > len(known):
        left = [value for k, value in enumerate(truth) if k >= len(known) or value > known[k] + 1e-9]
        assert found.bound >= max(left) - 1e-9


class TestThinning:
    data = np.array([np.linspace(0, 10, 501), np.linspace(0, 1, 501)])

    def test_every_label_has_one_as_cheap_and_nearly_as_good(self):
        kept, step = thinned(self.data, 20)
        assert len(kept) <= 20
        for value, cost in self.data.T:
            assert max(v for v, c in self.data[:, kept].T if c <= cost) > value - step

    def test_again_loses_no_more_than_the_last_step(self):
        first, step = thinned(self.data, 100)
        kept, step = thinned(self.data[:, first], 20, step)
        left = self.data[:, first][:, kept]
        assert max(v - left[0, left[1] <= c].max() for v, c in self.data.T) < step

    def test_looks_at_the_clock_between_rounds(self):
        with pytest.raises(TimeUpError):
            thinned(self.data, 20, deadline=looks(1))

    def test_a_merge_looks_at_the_clock_before_it_prunes_and_thins(self, monkeypatch):
        monkeypatch.setattr("binas.search.merging.CHUNK", 600)
        monkeypatch.setattr("binas.search.merging.HELD", 500)
        made, clock = [], count()
        monkeypatch.setattr(
            merging, "pareto", lambda *given, **more: made.append(next(clock)) or pareto(*given, **more)
        )
        deadline = Deadline(1e9, clock.__next__)
        rng = np.random.default_rng(0)
        cost = np.sort(rng.uniform(0, 1, (2, 60)), axis=1)
        sets = [Labels(np.stack([row + 1e-4 * rng.uniform(size=60).cumsum(), row]), None) for row in cost]
        merge_thinned(*sets, np.array([np.inf]), (), None, 100, deadline)
        assert len(made) >= 3
        assert all(b - a > 1 for a, b in pairwise(made))

    def test_many_sums_are_held_to_the_most(self, monkeypatch):
        monkeypatch.setattr("binas.search.merging.CHUNK", 300)
        monkeypatch.setattr("binas.search.merging.HELD", 500)
        rng = np.random.default_rng(0)
        cost = np.sort(rng.uniform(0, 1, (2, 60)), axis=1)
        sets = [Labels(np.stack([row + 1e-4 * rng.uniform(size=60).cumsum(), row]), None) for row in cost]
        caps = np.array([np.inf])
        exact, none = merge_thinned(*sets, caps, (), None, np.inf, NEVER)
        rough, lost = merge_thinned(*sets, caps, (), None, 100, NEVER)
        assert none == 0.0
        assert lost > 0
        assert len(rough) < len(exact)
        for value, spent in exact.data.T:
            assert rough.data[0, rough.data[1] <= spent].max() > value - lost


def proportional(factor=0.1):
    """The paper's space with contributions exactly proportional to latency: nothing is dominated but by rounding."""
    space = load_space("imagenet-mbconv")
    costs = paper_costs(space).costs
    values = costs["latency"].values.map(lambda x: factor * x)
    return SearchProblem(space, BilinearObjective(70.0, values), costs)


@pytest.mark.parametrize("number", [0, 8, 20])
def test_little_is_done_after_the_deadline(number, monkeypatch):
    """Counted in sums made and architectures read back, at the size of the paper's space."""
    deadline, sums = looks(number), []
    made = merging._candidates

    def counted(left, right, *more):
        sums.append(left.shape[1] * right.shape[1] if deadline.late else 0)
        return made(left, right, *more)

    monkeypatch.setattr(merging, "_candidates", counted)
    found = frontier(proportional(), "latency", time_limit=deadline)
    assert sum(sums) <= folding.LAST + 2 * merging.CHUNK
    assert len(found) <= folding.LAST_POINTS
    assert 0 < found.error < 0.01


def test_what_is_left_out_of_a_dense_frontier_is_hardly_missed(monkeypatch):
    monkeypatch.setattr(folding, "MAX_PAIRS", 200_000)
    monkeypatch.setattr(folding, "MAX_PAIRS_THINNED", 200_000)
    found = frontier(proportional(), "latency")
    assert not found.exact
    assert found.error <= 0.001


@pytest.mark.parametrize("most", [20, 60, 200])
def test_the_error_of_a_thinned_frontier_is_true(most):
    problem = make_problem(make_space(4, 3, 6), most)
    exact, rough = frontier(problem, "latency"), frontier(problem, "latency", max_labels=most)
    short = max(
        point.accuracy - rough.accuracies[rough.index_at(point.cost)]
        for point in exact
        if rough.index_at(point.cost) is not None
    )
    assert 0 <= short <= rough.error
    assert rough.costs[0] == exact.costs[0]


def test_exact_proportionality_is_proven():
    problem = proportional()
    result = solve(problem.with_limits([Limit("latency", 45.0)]))
    assert result.status is Status.OPTIMAL
    assert 0 < result.gap <= 1e-6


def test_an_explanation_in_no_time_is_true():
    problem = make_problem(make_space(3, 3, 4), 0, extra_costs=1)
    low = {name: problem.costs[name].range(problem.space)[0] for name in problem.costs}
    problem = problem.with_limits([Limit(name, 1.0001 * low[name]) for name in low])
    assert solve(problem).status is Status.INFEASIBLE
    hurried = explain_infeasible(problem, time_limit=0.0)
    whole = explain_infeasible(problem)
    assert hurried.blocking == whole.blocking == ()
    assert whole.relaxations
    for item in hurried.relaxations:
        assert item.change >= whole.relaxations[0].change - 1e-9
