"""best-of: the best of its members' answers, what they prove, and who was skipped for which reason."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest

from binas.base.errors import ProblemError, SolverClaimError
from binas.estimators.objective import CallableObjective, QuadraticObjective
from binas.search.problem import evaluate
from binas.search.result import Answer, Status
from binas.search.solve import solve
from binas.search.solvers import best_of, make_solver
from binas.search.solvers._base import ANYTHING, Capabilities, Solver
from binas.search.solvers.best_of import PAPER_MEMBERS, BestOf
from binas.search.solvers.miqcp import Scip
from binas.space import enumerate_all
from binas.testing import bilinear_cases, brute_force, check_case

CASES = {case.name: case for case in bilinear_cases()}
PROBLEM = CASES["several limits"].problem


@pytest.fixture
def quick(monkeypatch):
    """Members with settings small enough for tests."""
    settings = {"evolution": {"iterations": 20, "population": 30}, "bcfw": {"iterations": 100, "restarts": 2}}
    monkeypatch.setattr(best_of, "make_solver", lambda name: make_solver(name, **settings.get(name, {})))


@pytest.fixture
def interactions():
    size, rng = PROBLEM.space.alpha_size + PROBLEM.space.beta_size, np.random.default_rng(0)
    objective = QuadraticObjective(1.0, rng.normal(size=size), rng.normal(size=(size, size)))
    return replace(PROBLEM, objective=objective)


def by_name(result):
    return {member["solver"]: member for member in result.details["members"]}


@pytest.mark.usefixtures("quick")
@pytest.mark.parametrize("name", CASES)
def test_optimum_is_found_and_proven_with_miqcp(name):
    result = check_case(BestOf(), CASES[name])
    assert result.status is (Status.INFEASIBLE if CASES[name].optimum is None else Status.OPTIMAL)


@pytest.mark.usefixtures("quick")
def test_details_list_every_member():
    result = solve(PROBLEM, "best-of")
    members = by_name(result)
    assert tuple(members) == PAPER_MEMBERS
    for member in members.values():
        assert member["accuracy"] <= result.accuracy
        assert member["seconds"] >= 0.0
    assert members[result.details["taken_from"]]["accuracy"] == result.accuracy
    assert members["miqcp"]["status"] == "optimal"
    assert json.loads(json.dumps(result.to_json()))["status"] == "optimal"


@pytest.mark.usefixtures("quick")
def test_who_cannot_take_the_objective_is_skipped(interactions):
    result = solve(interactions, "best-of")
    assert "quadratic" in by_name(result)["bcfw"]["skipped"]
    assert result.status is Status.OPTIMAL
    assert result.accuracy == pytest.approx(brute_force(interactions))


@pytest.mark.usefixtures("quick")
def test_who_is_not_installed_is_skipped(monkeypatch):
    monkeypatch.setattr(Scip, "missing", classmethod(lambda cls: "pip install something"))
    result = solve(PROBLEM, "best-of")
    assert "pip install something" in by_name(result)["miqcp"]["skipped"]
    assert result.status is Status.FEASIBLE
    assert result.bound is None


@pytest.mark.usefixtures("quick")
def test_callable_objective_is_left_to_evolution():
    problem = replace(PROBLEM, objective=CallableObjective(lambda a: float(len(str(a)))))
    result = solve(problem, "best-of")
    assert [m["solver"] for m in result.details["members"] if "skipped" not in m] == ["evolution"]
    assert result.accuracy == brute_force(problem)


def test_nobody_left_says_why(interactions):
    with pytest.raises(ProblemError, match=r"milp: .*quadratic"):
        solve(interactions, "best-of", members=["milp", "frontier"])


def test_takes_the_better_of_two():
    problem = CASES["random 6"].problem
    fake = {"random": _Fixed(problem, rank=1), "evolution": _Fixed(problem, rank=0)}
    result = _with_members(problem, fake)
    assert result.details["taken_from"] == "evolution"
    assert result.accuracy == pytest.approx(brute_force(problem))
    assert result.status is Status.FEASIBLE


def test_smallest_bound_counts():
    problem = CASES["random 6"].problem
    best = brute_force(problem)
    stopped = Status.STOPPED_WITH_ANSWER
    fake = {
        "random": _Fixed(problem, rank=1, status=stopped, bound=best + 2.0),
        "milp": _Fixed(problem, rank=2, status=stopped, bound=best + 1.0),
    }
    result = _with_members(problem, fake)
    assert (result.status, result.bound) == (stopped, best + 1.0)


def test_contradictions_are_false_claims():
    problem = CASES["random 6"].problem
    denying = _Fixed(problem, rank=0)
    denying.answer = Answer(Status.INFEASIBLE)
    with pytest.raises(SolverClaimError, match="infeasible"):
        _with_members(problem, {"random": denying, "evolution": _Fixed(problem, rank=0)})


def test_a_member_that_breaks_a_limit_is_caught():
    problem = CASES["random 0"].problem
    broken = next(a for a in enumerate_all(problem.space) if not evaluate(problem, a).feasible)
    lying = _Fixed(problem, rank=0)
    lying.answer = Answer(Status.FEASIBLE, broken)
    with pytest.raises(SolverClaimError, match="breaks"):
        _with_members(problem, {"random": lying})


def test_time_limit_is_for_all_together():
    problem = CASES["random 6"].problem
    members = {name: _Fixed(problem, rank=0) for name in ("random", "evolution")}
    _with_members(problem, members, time_limit=50.0)
    one, two = (member.asked.deadline for member in members.values())
    assert one is two
    assert one.seconds is not None
    _with_members(problem, members)
    assert members["random"].asked.deadline.seconds is None


def test_nothing_found_nothing_proven():
    problem = CASES["infeasible only together"].problem
    result = solve(problem, "best-of", members=["random"])
    assert result.status is Status.STOPPED_WITHOUT_ANSWER


@pytest.mark.parametrize("members", [[], ["best-of"], "evolution", ["evolution", "simulated-annealing"]])
def test_impossible_members_are_refused(members):
    with pytest.raises(ProblemError, match="solver"):
        solve(PROBLEM, "best-of", members=members)


class _Fixed(Solver):
    """Answers with the rank-th best architecture within the limits."""

    name = "fixed"
    capabilities = Capabilities(exact=False, objectives=ANYTHING)

    def __init__(self, problem, rank, status=Status.FEASIBLE, bound=None):
        kept = [e for e in (evaluate(problem, a) for a in enumerate_all(problem.space)) if e.feasible]
        chosen = sorted(kept, key=lambda item: -item.accuracy)[rank]
        self.answer = Answer(status, chosen.architecture, chosen.accuracy, bound)

    def solve(self, problem, options):
        self.asked = options
        return self.answer


def _with_members(problem, members, **options):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(best_of, "make_solver", members.__getitem__)
        return solve(problem, BestOf(members=list(members)), **options)
