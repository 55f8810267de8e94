"""Lists where too many architectures are close to the best to list them all: what is known, and a true bound."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from problems import problems, sorted_values

from binas.estimators.objective import BilinearObjective, StagewiseObjective
from binas.search import alternatives
from binas.search.alternatives import best_architectures
from binas.search.limits import Limit
from binas.search.problem import SearchProblem
from binas.search.result import Answer, Status
from binas.search.solve import solve
from binas.search.solvers import Options, milp
from binas.search.solvers._bilinear_program import MAX_REPAIRS, Outcome
from binas.search.solvers.milp import Milp
from binas.space import load_space
from binas.testing import make_problem, make_space
from binas.testing.paper_example import paper_costs


def proportional(stagewise):
    """The paper's space with 0.1 points for each millisecond, at 45 % of the range."""
    space = load_space("imagenet-mbconv")
    costs = paper_costs(space).costs
    latency = costs["latency"]
    values = latency.values.map(lambda x: 0.1 * x)
    objective = BilinearObjective(70.0, values)
    if stagewise:
        tables = [_table(stage, values, s) for s, stage in enumerate(space.stages)]
        objective = StagewiseObjective(70.0, tuple(tables))
    low, high = latency.range(space)
    return SearchProblem(space, objective, costs, (Limit("latency", low + 0.45 * (high - low)),))


def _table(stage, values, s):
    table = {}
    for i, depth in enumerate(stage.depths):
        total = np.array(values.depths[s][i])
        for b in range(depth):
            total = np.add.outer(total, values.configs[s][b])
        table[depth] = total
    return table


@pytest.mark.parametrize("stagewise", [False, True])
def test_values_proportional_to_cost_are_listed_and_proven_to_the_gap(stagewise):
    problem = proportional(stagewise)
    best, found = solve(problem), best_architectures(problem, 10)
    assert len({item.architecture for item in found.items}) == 10
    assert all(item.feasible for item in found.items)
    assert found.complete
    assert found.items[0].accuracy >= best.accuracy - 1e-9
    assert found.items[-1].accuracy >= found.bound - 1e-6
    assert found.bound >= best.accuracy


@pytest.mark.parametrize("stagewise", [False, True])
@given(data=st.data(), count=st.integers(1, 12))
@settings(max_examples=30, deadline=None)
def test_what_is_listed_of_a_crowd_is_true(stagewise, data, count):
    problem = data.draw(problems(stagewise=stagewise))
    truth = sorted_values(problem)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(alternatives, "MAX_LISTED", 0)
        patch.setattr(alternatives, "MAX_LISTED_MANY", 0)
        found = best_architectures(problem, count)
    known = [item.accuracy for item in found.items]
    assert all(item.feasible for item in found.items)
    assert len({item.architecture for item in found.items}) == len(known)
    np.testing.assert_allclose(known[:1], truth[:1], atol=1e-6)
    if found.complete:
        np.testing.assert_allclose(known, truth[:count], atol=2e-6)
    missed = [value for k, value in enumerate(truth) if k >= len(known) or value > known[k] + 1e-9]
    assert not missed or found.bound >= max(missed) - 1e-9
    if problem.objective.kind == "bilinear":
        assert found.complete


@pytest.mark.parametrize("limits", [1, 2])
def test_a_program_that_finds_nothing_to_keep_does_not_end_a_list(limits, monkeypatch):
    """Repairs that run out are no proof that nothing is left."""
    problem = make_problem(make_space(3, 3, 4), 5, extra_costs=1)
    names = list(problem.costs)[:limits]
    problem = problem.with_limits([Limit(name, 0.5 * problem.scales[name]) for name in names])
    best = solve(problem)
    given_up = Outcome(Status.OPTIMAL, np.zeros(1), best.accuracy), None, MAX_REPAIRS
    monkeypatch.setattr(alternatives, "MAX_LISTED", 0)
    monkeypatch.setattr(alternatives, "MAX_LISTED_MANY", 0)
    monkeypatch.setattr(
        alternatives, "drawn_best", lambda *_: (_ for _ in ()).throw(alternatives.TooManyError)
    )
    monkeypatch.setattr(milp, "run_until_kept", lambda *_: given_up)
    found = best_architectures(problem, 10)
    assert found.items[0].architecture == best.architecture
    assert len(found.items) > 1  # neighbours
    assert not found.complete
    assert found.bound >= best.accuracy - 1e-9


def test_a_crowd_of_another_kind_is_no_error(monkeypatch):
    monkeypatch.setattr(alternatives, "MAX_LISTED", 0)
    monkeypatch.setattr(
        alternatives, "drawn_best", lambda *_: (_ for _ in ()).throw(alternatives.TooManyError)
    )
    problem = make_problem(make_space(2, 2, 3), 1)
    low, high = problem.costs["latency"].range(problem.space)
    values = problem.objective.values
    tables = [_table(stage, values, s) for s, stage in enumerate(problem.space.stages)]
    objective = StagewiseObjective(problem.objective.base, tuple(tables))
    limits = (Limit("latency", low + 0.6 * (high - low)),)
    problem = SearchProblem(problem.space, objective, problem.costs, limits)
    found, truth = best_architectures(problem, 5), sorted_values(problem)
    assert found.items[0].accuracy == pytest.approx(truth[0])
    assert found.bound >= truth[1] - 1e-9
    assert not found.complete


class TestInOrder:
    problem = make_problem(make_space(2, 2, 2), 3)

    def limited(self):
        low, high = self.problem.costs["latency"].range(self.problem.space)
        return self.problem.with_limits([Limit("latency", low + 0.4 * (high - low))])

    def test_all_come_and_the_last_says_that_none_is_left(self):
        problem = self.limited()
        *answers, last = Milp().in_order(problem, Options(gap=0.0))
        np.testing.assert_allclose([a.value for a in answers], sorted_values(problem), atol=1e-7)
        assert last == Answer(Status.INFEASIBLE)
        assert all(b.bound <= a.bound + 1e-7 for a, b in pairwise(answers))

    def test_known_ones_are_left_out(self):
        problem = self.limited()
        first, second = (
            answer for answer, _ in zip(Milp().in_order(problem, Options()), range(2), strict=False)
        )
        other = next(Milp().in_order(problem, Options(), [first.architecture]))
        assert other.value == pytest.approx(second.value, abs=1e-6)

    def test_the_gap_ends_each_and_its_bound_is_true(self):
        problem = self.limited()
        truth = sorted_values(problem)
        for k, answer in enumerate(Milp().in_order(problem, Options(gap=0.5))):
            if answer.status is Status.OPTIMAL:
                assert answer.bound - 0.5 - 1e-9 <= answer.value <= answer.bound
                assert answer.bound >= truth[k] - 1e-9
