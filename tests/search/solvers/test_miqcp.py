"""miqcp: the paper's program has the problem's numbers, SCIP finds the optima, tolerances do no harm."""

from __future__ import annotations

import itertools
from dataclasses import dataclass, field, replace

import pytest
from problems import BELOW_8, quadratic_problem

from binas.base.errors import ProblemError, SolverClaimError
from binas.estimators.objective import CallableObjective
from binas.search.limits import Limit
from binas.search.problem import SearchProblem, evaluate
from binas.search.reach import reachable
from binas.search.result import Status
from binas.search.solve import solve
from binas.search.solvers import Options, make_solver
from binas.search.solvers._base import Capabilities
from binas.search.solvers._bilinear_program import (
    MAX_REPAIRS,
    PROGRAM_OBJECTIVES,
    Outcome,
    ProgramSolver,
    architecture_at,
    ones_of,
    pose,
)
from binas.search.solvers.miqcp import Scip
from binas.space import enumerate_all, load_space
from binas.testing import bilinear_cases, brute_force, check_case, stagewise_cases
from binas.testing.paper_example import paper_contributions, paper_costs

CASES = {case.name: case for case in bilinear_cases()}


def scaled(problem, factor):
    """The same problem with all costs and limits in another unit."""
    costs = {
        name: replace(cost, fixed=factor * cost.fixed, values=cost.values.map(lambda x: factor * x))
        for name, cost in problem.costs.items()
    }
    limits = tuple(replace(limit, value=factor * limit.value) for limit in problem.limits)
    return SearchProblem(problem.space, problem.objective, costs, limits)


@pytest.fixture(scope="module")
def paper_problem():
    space = load_space("imagenet-mbconv")
    return SearchProblem.build(paper_contributions(space), paper_costs(space), ["latency=50ms"])


@pytest.mark.parametrize("name", CASES)
def test_optimum_of_bilinear_problems(name):
    check_case(make_solver("miqcp"), CASES[name])


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("limits", [(), BELOW_8, (Limit("latency", 9.0, lower=True),)])
def test_optimum_of_quadratic_problems(seed, limits):
    problem = quadratic_problem(seed, limits)
    result = solve(problem, "miqcp")
    assert result.status is Status.OPTIMAL
    assert result.accuracy == pytest.approx(brute_force(problem), abs=1e-7)


def test_quadratic_problem_without_an_answer_is_infeasible():
    assert solve(quadratic_problem(0, [Limit("latency", -5.0)]), "miqcp").status is Status.INFEASIBLE


@pytest.mark.parametrize("factor", [1e-6, 1e9])
def test_units_do_not_matter(factor):
    for name in ("several limits", "lower and upper limits", "limit met exactly", "infeasible only together"):
        check_case(make_solver("miqcp"), type(CASES[name])(name, scaled(CASES[name].problem, factor)))


def test_paper_sized_problem_is_proven(paper_problem):
    result = solve(
        paper_problem, "miqcp", time_limit=3600
    )  # seconds; on a starved machine the default is too short
    assert result.status is Status.OPTIMAL
    assert result.accuracy == pytest.approx(solve(paper_problem, "milp").accuracy, abs=1e-7)


def test_out_of_time_is_not_optimal(paper_problem):
    result = solve(paper_problem, "miqcp", time_limit=0.0)
    assert result.status in (Status.STOPPED_WITH_ANSWER, Status.STOPPED_WITHOUT_ANSWER)
    assert result.bound is None or result.bound >= solve(paper_problem, "milp").accuracy


def test_out_of_time_with_a_start_keeps_the_start(paper_problem):
    start = solve(paper_problem, "milp")
    result = solve(paper_problem, "miqcp", time_limit=0.0, warm_start=start.architecture)
    assert result.status is Status.STOPPED_WITH_ANSWER
    assert result.accuracy == start.accuracy


@pytest.mark.parametrize("quadratic", [False, True])
def test_any_start_leads_to_the_optimum(quadratic):
    problem = quadratic_problem(3) if quadratic else CASES["depth zero"].problem
    everything = [evaluate(problem, a) for a in enumerate_all(problem.space)]
    kept = next(item for item in everything if item.feasible)
    broken = next(item for item in everything if not item.feasible)
    for start in (kept, broken):
        result = solve(problem, "miqcp", warm_start=start.architecture)
        assert result.status is Status.OPTIMAL
        assert result.accuracy == pytest.approx(brute_force(problem), abs=1e-7)


def test_says_nothing(capfd):
    for problem in (CASES["several limits"].problem, CASES["infeasible"].problem, quadratic_problem(1)):
        solve(problem, "miqcp")
    assert capfd.readouterr() == ("", "")


@pytest.mark.parametrize("kind", ["stagewise", "callable"])
def test_refuses_what_is_not_a_program(kind):
    problem = stagewise_cases()[0].problem
    if kind == "callable":
        problem = replace(problem, objective=CallableObjective(lambda a: 1.0))
    with pytest.raises(ProblemError, match=kind):
        solve(problem, "miqcp")


@pytest.mark.parametrize("quadratic", [False, True])
def test_program_has_the_numbers_of_the_problem(quadratic):
    problem = quadratic_problem(5) if quadratic else CASES["depth zero"].problem
    program = pose(problem)
    for architecture in enumerate_all(problem.space):
        judged, x = evaluate(problem, architecture), program.point(architecture)
        assert program.unit * program.objective.value(x) == pytest.approx(judged.accuracy)
        assert all(form.value(x) <= bound for form, bound in program.limits) == judged.feasible
        assert program.equality @ x == pytest.approx(program.right)
        assert architecture_at(program.space, x) == architecture


def test_bilinear_program_is_the_papers():
    """One config for every block whatever the depth; alpha only in products with the depths that run it."""
    problem = CASES["one limit"].problem
    program = pose(problem)
    space = problem.space
    pairs = sum(
        len(block) * sum(depth > b for depth in stage.depths)
        for stage in space.stages
        for b, block in enumerate(stage.blocks)
    )
    for form in (program.objective, program.limits[0][0]):
        assert len(form.weights) == pairs
        assert not form.linear[: space.alpha_size].any()
    assert (program.right == 1.0).all()
    assert program.equality.shape == (sum(1 + len(stage.blocks) for stage in space.stages), program.size)


def test_rows_are_scaled():
    for form, _ in pose(scaled(CASES["several limits"].problem, 1e9)).limits:
        assert form.largest == pytest.approx(1.0)


def test_a_cut_meets_one_architecture_only():
    program = pose(CASES["depth zero"].problem)
    ones = [set(ones_of(program.space, a)) for a in enumerate_all(program.space)]
    assert not any(one <= two for one, two in itertools.permutations(ones, 2))


@pytest.mark.parametrize("quadratic", [False, True])
def test_forbidding_the_best_gives_the_next(quadratic):
    problem = quadratic_problem(2) if quadratic else CASES["depth zero"].problem
    kept = [e for e in (evaluate(problem, a) for a in enumerate_all(problem.space)) if e.feasible]
    wanted = sorted((item.accuracy for item in kept), reverse=True)[:3]
    program, found = pose(problem), []
    model = Scip()._model(program, Options())
    for _ in wanted:
        architecture = architecture_at(program.space, model.run(60.0).x)
        found.append(evaluate(problem, architecture).accuracy)
        model.forbid(ones_of(program.space, architecture))
    model.close()
    assert found == pytest.approx(wanted)


@dataclass
class Script:
    """A model that plays back outcomes, the last one for ever."""

    outcomes: list
    forbidden: list = field(default_factory=list)
    closed: bool = False

    def run(self, seconds):
        return self.outcomes.pop(0) if len(self.outcomes) > 1 else self.outcomes[0]

    def forbid(self, ones):
        self.forbidden.append(ones)

    def close(self):
        self.closed = True


class Scripted(ProgramSolver):
    name = "scripted"
    capabilities = Capabilities(exact=True, objectives=PROGRAM_OBJECTIVES)

    def __init__(self, *outcomes):
        self.script = Script(list(outcomes))

    def _model(self, program, options):
        return self.script


@pytest.fixture
def judged():
    """Problem, its optimum, and an architecture that breaks the limit."""
    problem = CASES["one limit"].problem
    everything = [evaluate(problem, a) for a in enumerate_all(problem.space)]
    best = max((item for item in everything if item.feasible), key=lambda item: item.accuracy)
    left = reachable(problem).space
    return problem, best, next(item for item in everything if not item.feasible and item.architecture in left)


def posed(problem):
    """The program that the solver is given: choices that no limit leaves room for are not in it."""
    return pose(reachable(problem))


def outcome(problem, item, status=Status.OPTIMAL, bound=None):
    return Outcome(status, posed(problem).point(item.architecture), item.accuracy if bound is None else bound)


def test_a_point_over_the_limit_is_forbidden_and_the_program_run_again(judged):
    problem, best, broken = judged
    solver = Scripted(outcome(problem, broken), outcome(problem, best))
    result = solve(problem, solver)
    assert solver.script.forbidden == [ones_of(posed(problem).space, broken.architecture)]
    assert solver.script.closed
    assert (result.status, result.architecture) == (Status.OPTIMAL, best.architecture)


def test_repairs_are_bounded(judged):
    problem, _, broken = judged
    solver = Scripted(outcome(problem, broken))
    assert solve(problem, solver).status is Status.STOPPED_WITHOUT_ANSWER
    assert len(solver.script.forbidden) == MAX_REPAIRS


def test_optimal_needs_a_bound_that_agrees(judged):
    problem, best, _ = judged
    result = solve(problem, Scripted(outcome(problem, best, bound=best.accuracy + 0.01)))
    assert result.status is Status.STOPPED_WITH_ANSWER
    assert result.gap == pytest.approx(0.01)


def test_the_bound_of_a_proof_is_what_was_proven(judged):
    problem, best, _ = judged
    result = solve(problem, Scripted(outcome(problem, best, bound=best.accuracy + 5e-7)))
    assert result.status is Status.OPTIMAL
    assert result.gap == pytest.approx(5e-7, abs=1e-9)


def test_more_than_the_stated_gap_is_no_proof(judged):
    problem, best, _ = judged
    result = solve(problem, Scripted(outcome(problem, best, bound=best.accuracy + 2e-6)))
    assert result.status is Status.STOPPED_WITH_ANSWER
    assert result.gap == pytest.approx(2e-6, abs=1e-9)


def test_infeasible_against_a_start_that_keeps_the_limits_is_a_false_claim(judged):
    problem, best, _ = judged
    with pytest.raises(SolverClaimError, match="infeasible"):
        solve(problem, Scripted(Outcome(Status.INFEASIBLE)), warm_start=best.architecture)
