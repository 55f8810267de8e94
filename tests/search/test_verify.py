"""The verifier recomputes everything; a wrong claim raises."""

from pathlib import Path

import pytest

import binas
from binas.base.errors import MissingPackageError, ProblemError, SolverClaimError
from binas.search.limits import Limit
from binas.search.problem import evaluate
from binas.search.result import Answer, Status
from binas.search.solve import solve
from binas.search.solvers import make_solver, solver_class
from binas.search.verify import verify
from binas.testing import make_problem, make_space


@pytest.fixture
def problem():
    made = make_problem(make_space(2, 2, 3), 0)
    return made.with_limits([Limit("latency", 0.8 * made.scales["latency"])])


@pytest.fixture
def best(problem):
    return solve(problem).architecture


def test_a_true_claim_passes_and_carries_its_numbers(problem, best):
    value = evaluate(problem, best).accuracy
    result = verify(problem, Answer(Status.OPTIMAL, best, value, value), "mine", 0.1)
    assert (result.accuracy, result.bound, result.gap, result.solver, result.seconds) == (
        value,
        value,
        0.0,
        "mine",
        0.1,
    )


def test_what_the_gap_leaves_open_stays_in_the_bound(problem, best):
    value = evaluate(problem, best).accuracy
    result = verify(problem, Answer(Status.OPTIMAL, best, value, value + 5e-7), "mine", 0.1)
    assert result.status is Status.OPTIMAL
    assert result.bound == pytest.approx(value + 5e-7, abs=1e-12)
    assert result.gap == pytest.approx(5e-7, abs=1e-12)


def test_a_heuristic_has_no_gap_without_a_bound(problem, best):
    assert verify(problem, Answer(Status.FEASIBLE, best), "mine", 0.0).gap is None


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda best, heavy: Answer(Status.FEASIBLE, heavy), "breaks latency"),
        (lambda best, heavy: Answer(Status.FEASIBLE, best, 99.0), "claims the value"),
        (lambda best, heavy: Answer(Status.STOPPED_WITH_ANSWER, best, None, 1.0), "nothing is better"),
        (lambda best, heavy: Answer(Status.OPTIMAL, best, None, 1000.0), "with a gap"),
        (lambda best, heavy: Answer(Status.OPTIMAL), "no architecture"),
        (lambda best, heavy: Answer(Status.INFEASIBLE, best), "infeasible but gives"),
    ],
)
def test_false_claims_raise(problem, best, make, words):
    with pytest.raises(SolverClaimError, match=words):
        verify(problem, make(best, problem.space.extreme()), "mine", 0.0)


def test_nothing_but_the_verifier_makes_a_result():
    """So that what is written, shown or kept was verified."""
    makers = [
        path for path in Path(binas.__file__).parent.rglob("*.py") if " SearchResult(" in path.read_text()
    ]
    assert [path.name for path in makers] == ["verify.py"]


def test_result_as_json_has_the_published_keys(problem):
    data = solve(problem).to_json()
    wanted = {
        "status",
        "architecture",
        "accuracy",
        "accuracy_stderr",
        "costs",
        "bound",
        "gap",
        "seconds",
        "solver",
        "alternatives",
    }
    assert wanted <= set(data)
    assert set(data["costs"]["latency"]) == {"value", "unit", "limit"}


def test_unknown_solvers_settings_and_missing_packages_are_named(problem, monkeypatch):
    with pytest.raises(ProblemError, match="no solver 'cplex'"):
        make_solver("cplex")
    with pytest.raises(ProblemError, match="settings"):
        make_solver("milp", colour="red")
    monkeypatch.setattr(solver_class("milp"), "requires", ("no_such_module",))
    with pytest.raises(MissingPackageError, match="pip install no_such_module"):
        solve(problem, "milp")
