"""What is done after a deadline, counted in numbers looked at: for every solver, several cost rows, lists and frontiers."""

import numpy as np
import pytest
from problems import Ticks

from binas.base.errors import ProblemError
from binas.estimators.objective import QuadraticObjective
from binas.search import alternatives, bounds, dual, lagrangian, merging, network, pareto
from binas.search.alternatives import best_architectures
from binas.search.deadline import Deadline
from binas.search.explain import explain
from binas.search.frontier import frontier
from binas.search.limits import Limit
from binas.search.problem import evaluate
from binas.search.result import Status
from binas.search.solve import solve
from binas.search.solvers import SOLVERS, Options, _relaxed, branch_bound, make_solver, solver_class
from binas.search.solvers._bilinear_program import count_products, pose
from binas.search.solvers.milp import Milp
from binas.testing import brute_force, make_problem, make_space

USABLE = [name for name in SOLVERS if solver_class(name).missing() is None and name != "hardcore"]
MOMENT = 2**24  # numbers looked at: a few tenths of a second


@pytest.fixture
def meter(monkeypatch):
    """Call it with a clock: a list that grows by the numbers that are looked at once time is up."""

    def start(ticks):
        spent = []

        def count(owner, name, numbers):
            plain = getattr(owner, name)

            def counted(*given, **more):
                late = ticks.passed
                result = plain(*given, **more)
                spent.append(numbers(*given) if late else 0)
                return result

            monkeypatch.setattr(owner, name, counted)

        count(pareto, "_pareto_many", lambda data, *_: data.size * pareto.STRONG)
        count(pareto, "staircase", lambda data, *_: 10 * data.size)
        count(merging, "_candidates", lambda left, right, *_: left.size * right.shape[1])
        count(lagrangian, "sums_above", lambda left, right, *_: left.data.size + right.data.size)
        count(lagrangian, "best_sums", lambda left, right, *_: left.data.size + right.data.size)
        count(alternatives, "evaluate", lambda problem, _: 64 * len(problem.space.layout.slices))
        count(bounds, "_correlate", lambda lower, upper: len(lower) * len(upper))
        count(dual, "_gains", lambda blocks, *_: blocks.size)
        count(dual, "best_for", lambda padded, *_: padded.blocks.size)
        count(network, "_spread_evenly", lambda unary, pair, v: pair[v].size)
        count(branch_bound._Search, "children", lambda _, part: part.open.size * part.open.shape[2])
        count(_relaxed, "_neighbours", _neighbours_size)
        return spent

    return start


def _neighbours_size(space, choice, floors, single):
    return len(list(_relaxed._changes(space, choice, floors, single))) * len(space.layout.slices)


def limited(size, limits, seed=1, share=0.35):
    problem = make_problem(make_space(*size), seed, extra_costs=limits - 1)
    return problem.with_limits([Limit(name, share * problem.scales[name]) for name in problem.costs])


@pytest.mark.parametrize("number", [0, 60])
@pytest.mark.parametrize("limits", [1, 3])
@pytest.mark.parametrize("solver", USABLE)
def test_every_solver_is_back_in_a_moment(solver, limits, number, meter):
    problem, ticks = limited((10, 8, 12), limits), Ticks(number)
    spent = meter(ticks)
    answer = make_solver(solver).solve(problem, Options(ticks.deadline))
    assert sum(spent) <= MOMENT
    assert answer.status is not Status.INFEASIBLE
    if answer.architecture is not None:
        judged = evaluate(problem, answer.architecture)
        assert judged.feasible
        assert answer.bound is None or judged.accuracy <= answer.bound + 1e-9


@pytest.mark.parametrize("solver", USABLE)
def test_what_every_solver_knows_at_once_is_true(solver):
    problem = limited((3, 2, 3), 2, share=0.5)
    best = brute_force(problem)
    answer = make_solver(solver).solve(problem, Options(Ticks(0).deadline))
    assert answer.bound is None or answer.bound >= best - 1e-9
    assert answer.value is None or answer.value <= best + 1e-9


@pytest.mark.parametrize("number", [0, 100, 600])
@pytest.mark.parametrize("limits", [2, 3, 4])
def test_a_frontier_under_further_limits_is_back_in_a_moment(limits, number, meter):
    problem, ticks = limited((10, 8, 12), limits), Ticks(number)
    problem = problem.with_limits([limit for limit in problem.limits if limit.cost != "latency"])
    spent = meter(ticks)
    found = frontier(problem, "latency", time_limit=ticks.deadline)
    assert found.stopped
    assert sum(spent) <= MOMENT
    assert len(found)
    assert all(evaluate(problem, point.architecture).feasible for point in found[:: max(1, len(found) // 10)])


@pytest.mark.parametrize("limits", [1, 2, 3])
def test_a_list_is_back_in_a_moment(limits, meter):
    problem, ticks = limited((10, 8, 12), limits), Ticks(60)
    spent = meter(ticks)
    best_architectures(problem, 10, time_limit=ticks.deadline)
    assert sum(spent) <= MOMENT


@pytest.mark.parametrize("number", [60, 250])
def test_a_long_list_is_back_in_a_moment(number, meter):
    problem, ticks = limited((20, 15, 40), 1), Ticks(number)
    spent = meter(ticks)
    found = best_architectures(problem, 1000, time_limit=ticks.deadline)
    assert ticks.passed
    assert sum(spent) <= MOMENT
    assert not found.complete


def test_few_of_a_long_list_are_looked_up_when_time_is_up():
    problem = limited((20, 15, 40), 1)
    blocks = sum(len(stage.blocks) for stage in problem.space.stages)
    names = 1000 * [problem.space.extreme()]
    assert (
        len(alternatives._evaluated(problem, names, Ticks(0).deadline))
        == alternatives.LAST_BLOCKS // blocks + 1
    )
    assert len(alternatives._evaluated(problem, names[:200], Deadline())) == 200


def test_an_explanation_is_back_in_a_moment(meter):
    problem, ticks = limited((10, 8, 12), 1), Ticks(0)
    best, spent = solve(problem).architecture, meter(ticks)
    assert explain(problem, best, time_limit=ticks.deadline).decisions
    assert sum(spent) <= MOMENT


class TestBranchBound:
    def problem(self):
        problem = limited((3, 3, 4), 1, share=0.5)
        size, rng = problem.space.layout.size, np.random.default_rng(0)
        objective = QuadraticObjective(50.0, rng.normal(size=size), 0.3 * rng.normal(size=(size, size)))
        return type(problem)(problem.space, objective, problem.costs, problem.limits)

    def test_what_waits_is_bounded_and_the_answer_the_same(self, monkeypatch):
        problem = self.problem()
        expected = solve(problem, "branch-bound")
        waiting, plain = [], branch_bound._Search.children

        def children(search, part):
            made = plain(search, part)
            waiting.append((made.open.size, part.open[0].size * part.open.shape[2], search.network.size))
            return made

        monkeypatch.setattr(branch_bound._Search, "children", children)
        monkeypatch.setattr(branch_bound._Search, "dive", lambda *_: None)
        monkeypatch.setattr(branch_bound, "HELD", 20_000)
        found = solve(problem, "branch-bound")
        assert found.status is expected.status is Status.OPTIMAL
        assert found.accuracy == pytest.approx(expected.accuracy)
        assert all(made <= max(branch_bound.HELD // size, one) for made, one, size in waiting)

    def test_too_many_pairs_are_refused(self, monkeypatch):
        monkeypatch.setattr(network, "MAX_PAIRS", 1000)
        with pytest.raises(ProblemError, match="pairs would take"):
            solve(self.problem(), "branch-bound")


def test_a_program_is_posed_only_where_there_is_time_to():
    problem = limited((3, 3, 4), 2)
    forms = [pose(problem).objective, *(form for form, _ in pose(problem).limits)]
    assert count_products(problem) == sum(len(form.weights) for form in forms)
    if "miqcp" in USABLE:
        answer = make_solver("miqcp").solve(problem, Options(Ticks(0).deadline))
        assert answer.details["posed"] is False


class TestSeveralLimits:
    """Few labels are listed and not compared; the same answers as where all are."""

    @pytest.mark.parametrize("seed", range(6))
    @pytest.mark.parametrize("unjudged", [0, 10, 1_000_000])
    def test_exact_whether_compared_or_not(self, seed, unjudged, monkeypatch):
        monkeypatch.setattr("binas.search.merging.UNJUDGED", unjudged)
        monkeypatch.setattr("binas.search.lagrangian.UNJUDGED", unjudged)
        problem = limited((3, 2, 4), 2 + seed % 2, seed, share=0.45)
        assert solve(problem, "frontier").accuracy == pytest.approx(brute_force(problem))

    def test_the_ten_best_need_no_program(self, monkeypatch):
        monkeypatch.setattr(Milp, "in_order", None)
        found = best_architectures(limited((10, 8, 12), 2), 10)
        assert found.complete
        assert len(found.items) == 10

    def test_three_limits_need_no_program(self):
        assert solve(limited((10, 8, 12), 3)).details["method"] == "frontier"
