"""Gaps of frontiers that are not exact, closed by single answers: what is certified is true, and less than before."""

import numpy as np
import pytest
from hypothesis import given, settings
from problems import problems

from binas.search import closing
from binas.search.closing import Found, Stretch, closed, strictly_below
from binas.search.deadline import NEVER, Deadline
from binas.search.fold import Effort
from binas.search.frontier import frontier
from binas.search.limits import Limit
from binas.search.problem import evaluate
from binas.testing import brute_force_frontier, make_problem, make_space

NONE = np.zeros(1, np.int64)


def asking(truth, asked):
    """Exact answers of a frontier given as (cost, value) pairs."""

    def ask(limit):
        asked.append(limit)
        cost, value = max((pair for pair in truth if pair[0] <= limit), key=lambda pair: pair[1])
        return value, Found(cost, value, NONE, NONE)

    return ask


class TestStretches:
    truth = tuple((float(cost), 1.5 * cost) for cost in range(11))

    def test_all_points_are_found(self):
        new, error = closed([Stretch(0.0, 10.0, 0.0, 20.0)], asking(self.truth, []), 0.0, NEVER)
        assert sorted((found.cost, found.value) for found in new) == list(self.truth[1:])
        assert error == 0.0

    def test_what_is_enough_is_not_asked_for(self):
        asked = []
        new, error = closed([Stretch(0.0, 10.0, 0.0, 20.0)], asking(self.truth, asked), 4.0, NEVER)
        assert 0 < len(new) < 8
        assert 0 < error <= 4.0

    def test_that_there_is_nothing_takes_two_questions(self):
        asked = []
        assert closed(
            [Stretch(3.0, strictly_below(4.0), 4.5, 9.0)], asking(self.truth, asked), 0.0, NEVER
        ) == (
            [],
            0.0,
        )
        assert asked == [pytest.approx(3.5), strictly_below(4.0)]

    def test_without_time_nothing_is_asked(self):
        late = Deadline(0.0, lambda: 1.0)
        assert closed([Stretch(0.0, 10.0, 0.0, 20.0)], asking(self.truth, []), 0.0, late) == ([], 20.0)

    def test_what_cannot_be_learned_stays(self):
        """Answers with a bound of their own above what they found."""
        new, error = closed(
            [Stretch(0.0, 10.0, 0.0, 20.0)],
            lambda limit: (limit + 1.0, Found(limit, limit, NONE, NONE)),
            0.0,
            NEVER,
        )
        assert error >= 1.0
        assert closed([Stretch(0.0, 8.0, 0.0, 9.0)], lambda limit: (2.0, None), 2.5, NEVER)[1] == 2.0
        assert len(new) <= closing.MAX_QUESTIONS


@given(problem=problems(limits=2, lower=False))
@settings(max_examples=60, deadline=None)
def test_what_is_certified_is_true(problem):
    """As many labels as a thinned frontier of so small a space has; answers without listing are rough too."""
    _check(problem)


@given(problem=problems(limits=1, lower=False, stagewise=True))
@settings(max_examples=30, deadline=None)
def test_with_interactions_inside_a_stage(problem):
    _check(problem)


def _check(problem):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("binas.search.fold.LEAST_LABELS", 1)
        patch.setattr(closing, "MAX_CANDIDATES", 3)
        truth = brute_force_frontier(problem, "latency")
        if not truth:
            return
        found = frontier(problem, "latency", max_labels=2)
    for cost, value in truth:
        place = found.index_at(cost)
        assert place is None or value <= found.accuracies[place] + found.error + 1e-9
    for point in found:
        judged = evaluate(problem, point.architecture)
        assert judged.feasible
        assert (judged.costs["latency"], judged.accuracy) == pytest.approx((point.cost, point.accuracy))
    assert (np.diff(found.costs) > 0).all()
    assert (np.diff(found.accuracies) > 0).all()


def test_a_thinned_frontier_under_a_further_limit_gets_closer(monkeypatch):
    problem = make_problem(make_space(4, 4, 8), 3, extra_costs=1)
    problem = problem.with_limits([Limit("cost1", 0.4 * problem.scales["cost1"])])
    near = frontier(problem, "latency", max_labels=60)
    monkeypatch.setattr(closing, "MAX_QUESTIONS", 0)
    rough = frontier(problem, "latency", max_labels=60)
    assert Effort().enough < near.error < rough.error / 2
    assert len(near) > len(rough)
