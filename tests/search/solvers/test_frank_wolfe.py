"""frank-wolfe (Algorithm 3): derivatives, line search, projection, and answers against brute force."""

import math
from itertools import islice

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from binas.base.errors import ProblemError
from binas.estimators.objective import CallableObjective, QuadraticObjective, StagewiseObjective
from binas.search.deadline import NEVER
from binas.search.limits import Limit
from binas.search.problem import SearchProblem, evaluate
from binas.search.result import Status
from binas.search.solve import solve
from binas.search.solvers._relaxed import Domain, Point, anchor, start_point, whole_blocks
from binas.search.solvers.frank_wolfe import (
    CallableSmooth,
    FrankWolfe,
    FrankWolfeSteps,
    LinearSmooth,
    line_search,
    projection,
    relaxed_objective,
)
from binas.space import enumerate_all, load_space
from binas.testing.instances import make_problem, make_space
from binas.testing.paper_example import paper_contributions, paper_costs

SMALL = make_space(2, 2, 3, min_depth=0)
SIZE = SMALL.alpha_size + SMALL.beta_size
EVERY = enumerate_all(SMALL)


def quadratic(seed):
    rng = np.random.default_rng(seed)
    return QuadraticObjective(70.0, rng.normal(size=SIZE), rng.normal(size=(SIZE, SIZE)) / 4)


def callable_of(seed):
    """-sum log(1 + exp(Wz)): smooth, concave, not quadratic; inactive blocks count as their first config."""
    weights = 3 * np.random.default_rng(seed).normal(size=(6, SIZE))

    def relaxed(alpha, beta):
        return -float(np.logaddexp(0.0, weights @ np.concatenate([alpha, beta])).sum())

    def gradient(alpha, beta):
        whole = -weights.T @ (1 / (1 + np.exp(-weights @ np.concatenate([alpha, beta]))))
        return whole[: SMALL.alpha_size], whole[SMALL.alpha_size :]

    return CallableObjective(lambda a: relaxed(*SMALL.layout.encode(a)), relaxed, gradient)


OBJECTIVES = {
    "bilinear": lambda seed: make_problem(SMALL, seed).objective,
    "quadratic": quadratic,
    "callable": callable_of,
}


def limited(kind, seed, share):
    base = make_problem(SMALL, seed)
    costs = [base.cost("latency", a) for a in EVERY]
    limit = Limit("latency", min(costs) + share * (max(costs) - min(costs)))
    return SearchProblem(SMALL, OBJECTIVES[kind](seed), base.costs, (limit,))


def random_point(problem, seed):
    domain = Domain(problem)
    return start_point(domain, anchor(domain), np.random.default_rng(seed))


@pytest.mark.parametrize("kind", OBJECTIVES)
@settings(max_examples=25, deadline=None)
@given(seed=st.integers(0, 1000))
def test_gradients_agree_with_differences(kind, seed):
    problem = limited(kind, seed, 0.5)
    smooth, point = relaxed_objective(problem), random_point(problem, seed)
    step, rng = 1e-5, np.random.default_rng(seed)
    for block in whole_blocks(SMALL):
        direction = rng.normal(size=block.where.stop)
        ends = [
            smooth.value(point.replaced(block, point.part(block.part) + sign * step * direction))
            for sign in (1, -1)
        ]
        slope = smooth.gradient(point, block.part) @ direction
        assert (ends[0] - ends[1]) / (2 * step) == pytest.approx(slope, rel=1e-5, abs=1e-6)


@pytest.mark.parametrize("kind", ["bilinear", "quadratic"])
@settings(max_examples=25, deadline=None)
@given(seed=st.integers(0, 1000), index=st.integers(0, len(EVERY) - 1))
def test_relaxed_objectives_are_exact_at_architectures(kind, seed, index):
    problem = limited(kind, seed, 0.5)
    point = Point(*SMALL.layout.encode(EVERY[index]))  # what stands in inactive blocks must not matter
    assert relaxed_objective(problem).value(point) == pytest.approx(
        problem.objective.value(SMALL, EVERY[index])
    )


@pytest.mark.parametrize("step", ["line-search", "schedule"])
@pytest.mark.parametrize("kind", OBJECTIVES)
@settings(max_examples=8, deadline=None)
@given(seed=st.integers(0, 1000), share=st.floats(0, 1))
def test_an_answer_is_feasible_and_never_better_than_the_best(step, kind, seed, share):
    problem = limited(kind, seed, share)
    judged = [evaluate(problem, a) for a in EVERY]
    result = solve(problem, "frank-wolfe", restarts=2, iterations=40, projection_iterations=40, step=step)
    assert result.status is Status.FEASIBLE
    assert result.evaluation.feasible
    assert result.accuracy <= max(item.accuracy for item in judged if item.feasible) + 1e-9


@pytest.mark.parametrize("kind", OBJECTIVES)
def test_answers_rank_high_among_all_feasible_architectures(kind):
    """Not exact, and the projection of an interior optimum loses something; a random draw would have 0.5."""
    shares = []
    for seed in range(10):
        problem = limited(kind, seed, 0.5)
        values = [e.accuracy for e in (evaluate(problem, a) for a in EVERY) if e.feasible]
        found = solve(problem, "frank-wolfe", restarts=3, iterations=60).accuracy
        shares.append(np.mean(np.array(values) > found + 1e-9))
    assert np.mean(shares) <= {"bilinear": 0.05, "quadratic": 0.1, "callable": 0.2}[kind]


@pytest.mark.parametrize("step", ["line-search", "schedule"])
@pytest.mark.parametrize("kind", OBJECTIVES)
def test_iterates_keep_the_limit_and_stay_probabilities(kind, step):
    problem = limited(kind, 3, 0.4)
    domain = Domain(problem)
    steps = FrankWolfeSteps(domain, relaxed_objective(problem), 100, 100, step)
    points = steps.iterates(random_point(problem, 3), np.random.default_rng(3))
    for point in islice(points, 60):
        assert domain.use(point)[0] <= domain.bounds[0] * (1 + 1e-9)
        assert min(point.alpha.min(), point.beta.min()) >= 0.0
        for block in whole_blocks(SMALL):
            totals = [point.part(block.part)[block.groups == g].sum() for g in np.unique(block.groups)]
            assert totals == pytest.approx([1.0] * len(totals))


@pytest.mark.parametrize("kind", OBJECTIVES)
def test_line_search_never_goes_down(kind):
    problem = limited(kind, 4, 0.4)
    smooth = relaxed_objective(problem)
    steps = FrankWolfeSteps(Domain(problem), smooth, 100, 100, "line-search")
    points = steps.iterates(random_point(problem, 4), np.random.default_rng(4))
    values = [smooth.value(point) for point in islice(points, 60)]
    assert len(values) >= 2
    assert (np.diff(values) >= -1e-9).all()


@pytest.mark.parametrize("kind", OBJECTIVES)
@settings(max_examples=20, deadline=None)
@given(seed=st.integers(0, 1000))
def test_line_search_finds_the_best_share(kind, seed):
    problem = limited(kind, seed, 0.5)
    smooth, start = relaxed_objective(problem), random_point(problem, seed)
    for block in whole_blocks(SMALL):
        slope = smooth.gradient(start, block.part)
        target = start.replaced(block, Domain(problem).best(block, start, slope))
        gain = float(slope @ (target.part(block.part) - start.part(block.part)))
        share = line_search(smooth, start, target, gain)
        values = [smooth.value(start.towards(target, x)) for x in np.linspace(0, 1, 101)]
        assert 0.0 <= share <= 1.0
        assert smooth.value(start.towards(target, share)) >= max(values) - 1e-6


def test_it_ends_by_itself_only_where_no_block_leads_up():
    ended = 0
    for seed in range(20):
        problem = limited("quadratic", seed, 0.5)
        domain, smooth = Domain(problem), relaxed_objective(problem)
        steps = FrankWolfeSteps(domain, smooth, 2000, 1, "line-search")
        walk = steps.iterates(random_point(problem, seed), np.random.default_rng(seed))
        points = list(islice(walk, 200))
        if len(points) == 200:
            continue
        ended += 1
        for block in whole_blocks(SMALL):
            slope = smooth.gradient(points[-1], block.part)
            best = domain.best(block, points[-1], slope)
            assert best is None or slope @ (best - points[-1].part(block.part)) <= 1e-7
    assert ended >= 5


def test_the_projection_recovers_an_architecture_that_the_point_is_near():
    problem = limited("quadratic", 0, 1.0)
    domain = Domain(problem)
    wanted = EVERY[100]
    near = Point(*SMALL.layout.encode(wanted)).towards(Point(*SMALL.layout.uniform()), 0.3)
    end = projection(domain, near, 100).climb(near, np.random.default_rng(0), NEVER)
    assert SMALL.layout.decode(end.point.alpha, end.point.beta) == wanted
    assert LinearSmooth(near).value(end.point) > LinearSmooth(near).value(near)


def test_a_concave_objective_without_limits_is_solved_to_its_relaxed_optimum():
    target = random_point(limited("quadratic", 0, 1.0), 8)
    objective = CallableObjective(
        lambda a: 0.0,
        lambda alpha, beta: -float(((alpha - target.alpha) ** 2).sum() + ((beta - target.beta) ** 2).sum()),
        lambda alpha, beta: (2 * (target.alpha - alpha), 2 * (target.beta - beta)),
    )
    problem = SearchProblem(SMALL, objective)
    result = solve(problem, "frank-wolfe", restarts=1, iterations=300)
    assert -0.02 <= result.details["relaxed_value"] <= 0.0


def test_objectives_without_derivatives_are_refused():
    problem = SearchProblem(SMALL, CallableObjective(lambda a: 0.0))
    with pytest.raises(ProblemError, match="differentiated"):
        solve(problem, "frank-wolfe")
    with pytest.raises(ProblemError, match="stagewise"):
        solve(SearchProblem(SMALL, StagewiseObjective.from_function(SMALL, lambda s, c: 0.0)), "frank-wolfe")


@pytest.mark.parametrize("bad", [np.zeros(2), np.full(SMALL.beta_size, math.nan)])
def test_a_gradient_of_the_wrong_form_is_named(bad):
    smooth = CallableSmooth(lambda alpha, beta: 0.0, lambda alpha, beta: (np.zeros(SMALL.alpha_size), bad))
    point = Point(*SMALL.layout.uniform())
    assert smooth.gradient(point, "alpha").shape == (SMALL.alpha_size,)
    with pytest.raises(ProblemError, match="with respect to beta"):
        smooth.gradient(point, "beta")


@pytest.mark.parametrize(
    "bad", [{"iterations": 0}, {"projection_iterations": 0}, {"restarts": 0}, {"step": "armijo"}]
)
def test_bad_settings_are_refused(bad):
    with pytest.raises(ProblemError, match="frank-wolfe"):
        FrankWolfe(**bad)


@pytest.mark.parametrize("kind", OBJECTIVES)
def test_the_same_seed_gives_the_same_answer(kind):
    problem = limited(kind, 6, 0.5)
    runs = [solve(problem, "frank-wolfe", restarts=2, iterations=60, seed=seed) for seed in (7, 7)]
    assert runs[0].architecture == runs[1].architecture
    assert runs[0].details == runs[1].details


def test_a_limit_out_of_reach_is_proven_infeasible():
    problem = SearchProblem(SMALL, quadratic(0), make_problem(SMALL, 0).costs, (Limit("latency", 1.0),))
    assert solve(problem, "frank-wolfe").status is Status.INFEASIBLE


def test_time_runs_out_politely():
    problem = limited("quadratic", 0, 0.5)
    result = solve(problem, "frank-wolfe", time_limit=0.0, step="schedule")
    assert result.status is Status.STOPPED_WITH_ANSWER
    assert result.details["restarts"] == 1


def test_close_to_the_optimum_on_the_paper_sized_example():
    space = load_space("imagenet-mbconv")
    problem = SearchProblem.build(paper_contributions(space), paper_costs(space), ["latency=50ms"])
    best, found = solve(problem, "auto"), solve(problem, "frank-wolfe")
    assert best.accuracy - 0.25 <= found.accuracy <= best.accuracy + 1e-9
