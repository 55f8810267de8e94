"""An explanation obeys its deadline in every part, and says what is missing. No clock but one that counts its looks."""

import importlib
import json

import pytest
from problems import Ticks

from binas.estimators.objective import CallableObjective
from binas.search.deadline import Deadline
from binas.search.explain import explain
from binas.search.limits import Limit
from binas.search.problem import SearchProblem, evaluate
from binas.testing import make_problem, make_space

explaining = importlib.import_module("binas.search.explain")  # the package has a function of that name


@pytest.fixture
def judged(monkeypatch):
    """Call it with a clock: how many architectures were judged at a time once time was up."""

    def start(ticks):
        late, plain = [], explaining._Changes._numbers

        def counted(changes, depths, configs):
            late.append(len(depths) if ticks.passed else 0)
            return plain(changes, depths, configs)

        monkeypatch.setattr(explaining._Changes, "_numbers", counted)
        monkeypatch.setattr(explaining, "evaluate", lambda *given: late.append(1) or evaluate(*given))
        return late

    return start


def limited():
    problem = make_problem(make_space(4, 3, 40), 0)
    return problem.with_limits([Limit("latency", 0.35 * problem.scales["latency"])])


@pytest.mark.parametrize("number", [0, 1, 5, 12])
def test_decisions_for_which_there_is_no_time_say_so(number, judged):
    problem, ticks = limited(), Ticks(number)
    whole = explain(problem, problem.space.extreme())
    late = judged(ticks)
    hurried = explain(problem, problem.space.extreme(), time_limit=ticks.deadline)
    assert sum(late) <= 2 + explaining.AT_ONCE
    assert whole.complete
    assert not hurried.complete
    assert len(hurried.decisions) == len(whole.decisions)
    done = [item.complete for item in hurried.decisions]
    assert sum(done) <= number
    assert sorted(done, reverse=True) == done
    for one, two in zip(hurried.decisions, whole.decisions, strict=True):
        assert (one.choice, one.contribution, one.costs) == (two.choice, two.contribution, two.costs)
        assert one == two if one.complete else one.best is None
    assert json.loads(json.dumps(hurried.to_json()))["complete"] is False


def test_a_slow_function_is_asked_once_between_looks_at_the_clock():
    space, asked = make_space(2, 2, 9), []
    objective = CallableObjective(lambda architecture: float(asked.append(architecture) or 50.0))
    problem = SearchProblem(space, objective, make_problem(space, 0).costs)
    for number in (0, 4):
        asked.clear()
        found = explain(problem, space.extreme(), time_limit=Ticks(number).deadline)
        assert len(asked) <= 3 + number
        assert not found.complete


def test_no_deadline_is_never_late():
    assert explain(limited(), limited().space.extreme(), time_limit=Deadline()).complete
