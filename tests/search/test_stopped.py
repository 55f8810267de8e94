"""What ran out of time, memory or candidates says so: it calls nothing infeasible, and raises nothing."""

import json
import math
from contextlib import suppress
from dataclasses import replace

import pytest
from problems import Ticks

from binas.base.errors import ProblemError
from binas.base.progress import Progress
from binas.estimators.objective import StagewiseObjective
from binas.search.frontier import Frontier, frontier
from binas.search.infeasible import explain_infeasible, shows_infeasible, why_no_answer
from binas.search.lagrangian import Outcome
from binas.search.limits import Limit
from binas.search.problem import SearchProblem
from binas.search.result import SearchResult, Status
from binas.search.solve import solve
from binas.tasks.search import SearchSettings, search_for
from binas.testing import make_problem, make_space


def narrow():
    """A band and a limit on another cost, which some architecture keeps, though none that is quickly met."""
    problem = make_problem(make_space(3, 3, 4), 0, extra_costs=1)
    middle = {name: sum(cost.range(problem.space)) / 2 for name, cost in problem.costs.items()}
    limits = [Limit(name, value) for name, value in middle.items()]
    return problem.with_limits([*limits, Limit("latency", 0.999 * middle["latency"], lower=True)])


def tight(by=1.02, size=(20, 15, 40)):
    """Three limits a little above what each cost is at least."""
    problem = make_problem(make_space(*size), 0, extra_costs=2)
    return problem.with_limits([Limit(n, by * c.range(problem.space)[0]) for n, c in problem.costs.items()])


class TestExplainInfeasible:
    def test_a_feasible_problem_is_never_called_infeasible(self):
        problem = narrow()
        assert solve(problem).status is Status.OPTIMAL
        found = explain_infeasible(problem, time_limit=Ticks(0).deadline)
        assert not found.proven
        assert "time was up before it was known whether any architecture keeps" in found.sentence()
        assert "no architecture keeps" not in found.sentence()
        assert found.to_json()["proven"] is False

    @pytest.mark.parametrize("number", [1, 5, 20, 80])
    def test_nor_with_a_little_time(self, number):
        found = None
        with suppress(ProblemError):  # nothing to explain: it found one
            found = explain_infeasible(narrow(), time_limit=Ticks(number).deadline)
        assert found is None or not found.proven

    def test_what_is_impossible_alone_is_proven_in_no_time(self):
        problem = make_problem(make_space(3, 3, 4), 0)
        found = explain_infeasible(problem.with_limits([Limit("latency", 0.1)]), time_limit=Ticks(0).deadline)
        assert found.proven
        assert found.sentence().startswith("no architecture keeps")

    def test_what_is_known_is_not_asked_again(self, monkeypatch):
        problem = make_problem(make_space(3, 3, 4), 0, extra_costs=1)
        low = {name: problem.costs[name].range(problem.space)[0] for name in problem.costs}
        problem = problem.with_limits([Limit(name, 1.0001 * low[name]) for name in low])
        result, whole = solve(problem), explain_infeasible(problem)
        assert result.status is Status.INFEASIBLE
        asked = []
        monkeypatch.setattr(
            "binas.search.infeasible.solve",
            lambda part, *given, **more: asked.append(part) or solve(part, *given, **more),
        )
        assert why_no_answer(result) == whole.sentence()
        assert problem.limits not in [part.limits for part in asked]


class TestSolvers:
    def test_candidates_that_are_too_many_are_no_error(self):
        problem = make_problem(make_space(4, 4, 8), 0, extra_costs=2)
        problem = problem.with_limits([Limit(name, 0.35 * problem.scales[name]) for name in problem.costs])
        best, found = solve(problem), solve(problem, "frontier", max_candidates=50)
        assert best.status is Status.OPTIMAL
        assert found.status in (Status.STOPPED_WITH_ANSWER, Status.STOPPED_WITHOUT_ANSWER)
        assert found.bound >= best.accuracy - 1e-9
        assert found.accuracy is None or found.accuracy <= best.accuracy + 1e-9

    def test_nor_where_no_program_can_take_over(self, monkeypatch):
        made = tight(1.3, (3, 2, 3))
        objective = StagewiseObjective.from_function(made.space, lambda s, i: float(s), 10.0)
        problem = SearchProblem(made.space, objective, made.costs, made.limits)
        monkeypatch.setattr(
            "binas.search.solvers.auto.fold_outcome", lambda *_: Outcome(None, False, bound=99.0)
        )
        found = solve(problem)
        assert (found.status, found.bound) == (Status.STOPPED_WITHOUT_ANSWER, 99.0)
        assert "that does not mean there is none" in why_no_answer(found)


class TestFrontier:
    def test_nothing_found_is_not_nothing_there(self):
        problem = tight()
        problem = problem.with_limits([limit for limit in problem.limits if limit.cost != "latency"])
        found = frontier(problem, "latency", time_limit=Ticks(0).deadline)
        assert found.stopped
        assert not len(found)
        assert found.error == math.inf
        assert found.to_json()["error"] is None
        json.dumps(found.to_json(), allow_nan=False)
        assert "does not mean there is none" in why_no_answer(found)
        again = Frontier.from_csv(found.to_csv(), problem)
        assert not again.exact
        assert not shows_infeasible(again)
        assert found.certainty == "not certified"

    def test_where_a_fold_finds_nothing_it_begins_at_the_cheapest(self, monkeypatch):
        problem = make_problem(make_space(3, 3, 4), 0, extra_costs=2)
        problem = problem.with_limits([Limit(n, 0.4 * problem.scales[n]) for n in ("cost1", "cost2")])
        exact = frontier(problem, "latency")
        assert exact.exact
        monkeypatch.setattr("binas.search.fold.picked", lambda data, count: data[1].argmax()[None])
        rough = frontier(problem, "latency", max_labels=2)
        assert len(rough)
        assert rough.costs[0] == exact.costs[0]
        for point in exact:
            assert point.accuracy <= rough.at(point.cost).accuracy + rough.error + 1e-9

    def test_a_maximum_that_there_was_no_time_for_is_not_exact(self, monkeypatch):
        problem = make_problem(make_space(3, 3, 4), 0)
        nothing = SearchResult(problem, Status.STOPPED_WITHOUT_ANSWER, "auto", 0.0)
        monkeypatch.setitem(frontier.__globals__, "solve", lambda *_, **__: nothing)
        costs = {"memory": replace(problem.costs["latency"], name="memory", combine="max")}
        found = frontier(SearchProblem(problem.space, problem.objective, costs), "memory")
        assert (len(found), found.stopped, found.exact) == (0, True, False)


def test_a_search_and_its_explanation_share_one_deadline(monkeypatch):
    given = []
    monkeypatch.setattr("binas.tasks.search.solve", lambda *_, time_limit, **__: given.append(time_limit))
    monkeypatch.setattr("binas.tasks.search.why_no_answer", lambda _, limit: given.append(limit) or "")
    search_for(narrow(), SearchSettings(time_limit=50.0), False, Progress())
    assert given[0] is given[1]
    assert given[0].end < math.inf
