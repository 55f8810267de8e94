"""Gaps of frontiers that are not exact, closed by lists along lines: what is certified is true, and less than before."""

import sys
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from problems import problems

from binas.estimators.objective import BilinearObjective
from binas.search import closing
from binas.search.closing import Closing, Line, cheapest_point, dense_frontier, strictly_below
from binas.search.deadline import NEVER, Deadline
from binas.search.fold import Effort
from binas.search.frontier import frontier
from binas.search.limits import Limit
from binas.search.merging import TooManyError
from binas.search.problem import evaluate
from binas.search.terms import Row, build_terms, limit_rows
from binas.testing import brute_force_frontier, make_problem, make_space

LATE = Deadline(0.0, lambda: 1.0)


def limited(shape, seed=3, share=0.4):
    problem = make_problem(make_space(*shape), seed, extra_costs=1)
    return problem.with_limits([Limit("cost1", share * problem.scales["cost1"])])


def nearly_proportional(shape, noise):
    """0.1 points for each millisecond and noise, under a further limit."""
    problem, rng = limited(shape), np.random.default_rng(0)
    values = problem.costs["latency"].values.map(lambda x: 0.1 * x + rng.normal(0.0, noise, np.shape(x)))
    return replace(problem, objective=BilinearObjective(70.0, values))


def terms_of(problem):
    """The latency is traced."""
    others = [row for row in limit_rows(problem) if row.cost != "latency"]
    return build_terms(problem, [Row("latency", 1.0, np.inf), *others])


def check_certified(problem, found):
    """Against brute force: no limit at which the frontier is shorter than it says, and all points are true."""
    for cost, value in brute_force_frontier(problem, "latency"):
        place = found.index_at(cost)
        assert place is not None or found.stopped
        assert place is None or value <= found.accuracies[place] + found.error + 1e-9
    for point in found:
        judged = evaluate(problem, point.architecture)
        assert judged.feasible
        assert (judged.costs["latency"], judged.accuracy) == pytest.approx((point.cost, point.accuracy))
    assert (np.diff(found.costs) > 0).all()
    assert (np.diff(found.accuracies) > 0).all()


class TestClosing:
    problem = limited((2, 2, 3), share=0.8)

    def closing(self, **effort):
        terms = terms_of(self.problem)
        first = cheapest_point(terms, Effort())
        return Closing(terms, first, np.array([np.inf]), Effort(**effort))

    def truth(self):
        """Costs, with what rounding may add, and values."""
        costs, values = np.array(brute_force_frontier(self.problem, "latency")).T
        return np.stack([costs + 1e-12, values])

    def test_a_line_holds_up_to_where_it_was_listed(self):
        line = Line(2.0, 1.0, until=3.0)
        np.testing.assert_array_equal(line.at(np.array([0.0, 3.0, 3.5])), [1.0, 7.0, np.inf])

    def test_the_first_point_is_the_cheapest_of_all(self):
        terms = terms_of(self.problem)
        cost, value = self.truth()[:, 0]
        first = cheapest_point(terms, Effort())
        assert first.costs == pytest.approx(cost)
        assert first.values <= value + 1e-9
        assert cheapest_point(terms_of(self.problem.with_limits([Limit("cost1", 0.1)])), Effort()) is None

    def test_all_points_are_found_where_nothing_less_is_enough(self):
        state = self.closing(enough=1e-7)
        state.run()
        np.testing.assert_allclose(np.stack([state.points.costs, state.points.values]), self.truth())
        assert state.error <= 2e-7

    def test_every_question_leaves_true_ceilings(self):
        state, (costs, values) = self.closing(enough=0.05), self.truth()
        for _ in range(20):
            state.run(1)
            place = np.searchsorted(state.limits, costs, side="right")
            assert (values <= state.above[place] + 1e-9).all()
        assert state.error <= 0.05 + 1e-6

    def test_without_time_nothing_is_asked(self):
        state = self.closing(deadline=LATE)
        state.run()
        assert not state.lines
        assert state.error == np.inf

    def test_what_would_take_too_much_is_given_up(self, monkeypatch):
        monkeypatch.setattr(closing, "MAX_CANDIDATES", 1)
        monkeypatch.setattr(closing, "LAST", 1)
        state, (costs, values) = self.closing(enough=1e-7), self.truth()
        state.run()
        assert state.given_up
        best = state.points.reached(costs)
        assert ((values <= best + state.error) & (values >= best - 1e-9)).all()

    def test_strictly_below_keeps_out_one_cost_only(self):
        assert strictly_below(4.0) < 4.0
        assert strictly_below(4.0) > 4.0 - 1e-12


@pytest.mark.parametrize("dense", [False, True])
@given(problem=problems(limits=2, lower=False))
@settings(max_examples=25, deadline=None)
def test_what_is_certified_is_true(dense, problem):
    """As many labels as a thinned frontier of so small a space has; lists are short too."""
    _check(problem, dense)


@pytest.mark.parametrize("dense", [False, True])
@given(problem=problems(limits=1, lower=False, stagewise=True))
@settings(max_examples=15, deadline=None)
def test_with_interactions_inside_a_stage(dense, problem):
    _check(problem, dense)


def _check(problem, dense):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("binas.search.fold.LEAST_LABELS", 1)
        patch.setattr(closing, "DENSE", 0 if dense else np.inf)
        if not dense:
            patch.setattr(closing, "MAX_CANDIDATES", 3)
        if brute_force_frontier(problem, "latency"):
            check_certified(problem, frontier(problem, "latency", max_labels=2))


def test_a_frontier_of_labels_that_were_picked_begins_with_the_cheapest(monkeypatch):
    """Where nothing tells labels apart some are picked, and the cheapest within the limits may not be among their sums."""

    def too_many(*_):
        raise TooManyError

    monkeypatch.setattr("binas.search.fold.LEAST_LABELS", 1)
    monkeypatch.setattr("binas.search.fold.picked", lambda data, _: np.argsort(-data[0])[:1])
    monkeypatch.setattr("binas.search.fold.thinned", too_many)
    monkeypatch.setattr(closing, "MAX_QUESTIONS", 0)
    problem = limited((2, 2, 3), share=1.0)
    check_certified(problem, frontier(problem, "latency", max_labels=1))


def test_a_thinned_frontier_under_a_further_limit_gets_closer(monkeypatch):
    problem = limited((4, 4, 8))
    near = frontier(problem, "latency", max_labels=60)
    monkeypatch.setattr(closing, "MAX_QUESTIONS", 0)
    rough = frontier(problem, "latency", max_labels=60)
    assert near.error < rough.error / 2
    assert len(near) > len(rough)


def test_dense_frontiers_under_a_further_limit_need_no_fold(monkeypatch):
    """Values nearly proportional to the traced cost: certified within what is enough, and true."""
    monkeypatch.setattr(sys.modules["binas.search.frontier"], "fold", None)
    monkeypatch.setattr(closing, "DENSE", 500)
    problem = nearly_proportional((4, 4, 8), 0.0003)
    found = frontier(problem, "latency", tolerance=0.01)
    assert found.error <= 0.01 + 1e-6
    assert not found.stopped
    for point in found[:: len(found) // 20]:
        judged = evaluate(problem, point.architecture)
        assert judged.feasible
        assert judged.accuracy == pytest.approx(point.accuracy)


@pytest.mark.parametrize(("deadline", "patient"), [(NEVER, True), (Deadline(5.0, lambda: 0.0), False)])
def test_what_was_given_up_is_listed_once_more_where_there_is_time(monkeypatch, deadline, patient):
    """Short lists give up; at the end longer ones close what is left, unless their long steps could break a time limit."""
    monkeypatch.setattr(closing, "MAX_CANDIDATES", 300)
    monkeypatch.setattr(closing, "PATIENT", 10_000)
    terms = terms_of(nearly_proportional((4, 4, 8), 0.0003))
    effort = Effort(tolerance=0.01, deadline=deadline)
    found = Closing(terms, cheapest_point(terms, effort), np.array([np.inf]), effort)
    found.run()
    assert (found.candidates > 300) == patient
    assert bool(found.given_up) != patient
    assert (found.error <= 0.01 + 1e-6) == patient


def test_sparse_frontiers_are_left_to_the_fold():
    assert dense_frontier(terms_of(limited((4, 4, 8))), Effort()) is None
    assert frontier(limited((4, 4, 8)), "latency").exact
