"""HardCoRe-NAS: stochastic Frank-Wolfe on a supernet's own loss, under a hard limit."""

import numpy as np
import pytest

from binas.base.errors import ProblemError
from binas.search import solve
from binas.search.limits import Limit
from binas.search.problem import evaluate
from binas.search.result import Status
from binas.search.solvers import make_solver
from binas.search.solvers._relaxed import Domain, Point
from binas.search.solvers.hardcore import HardCore, keeping
from binas.testing import ObjectiveOracle, make_problem, make_space


def limited(seed=0, share=0.5):
    problem = make_problem(make_space(3, 3, 4), seed)
    low, high = problem.costs["latency"].range(problem.space)
    return problem.with_limits([Limit("latency", low + share * (high - low))])


def hardcore(problem, **settings):
    return solve(problem, "hardcore", oracle=ObjectiveOracle(problem), **settings)


def test_it_finds_a_good_answer_within_the_limit_from_noisy_gradients_alone():
    """Far above random networks of the same cost, below or at the proven optimum."""
    problem = limited()
    best = solve(problem).accuracy
    rng = np.random.default_rng(0)
    layout, values = problem.space.layout, []
    while len(values) < 200:
        z = np.concatenate([rng.random(problem.space.alpha_size), rng.random(problem.space.beta_size)])
        judged = evaluate(problem, layout.round(*layout.split(z)))
        values += [judged.accuracy] if judged.feasible else []
    for seed in range(3):
        found = hardcore(problem, seed=seed)
        assert found.status is Status.FEASIBLE
        assert found.evaluation.feasible
        assert np.quantile(values, 0.95) < found.accuracy <= best + 1e-9


def test_every_iterate_keeps_the_limit():
    problem = limited(1, 0.3)
    domain, solver = Domain(problem), HardCore(ObjectiveOracle(problem), steps=50, batch_size=32)
    points = [item.point for item in solver._descent(domain, np.random.default_rng(0))]
    assert len(points) == 50
    for point in points:
        assert domain.use(point)[0] <= domain.bounds[0] * (1 + 1e-9)
        for where in problem.space.layout.slices:
            assert np.concatenate([point.alpha, point.beta])[where].sum() == pytest.approx(1.0)


def test_the_same_seed_gives_the_same_answer_and_evaluations_are_counted():
    problem = limited(2)
    one, two = (hardcore(problem, seed=4, steps=30, batch_size=64) for _ in range(2))
    assert one.architecture == two.architecture
    assert (one.details["image_evaluations"], one.details["image_gradients"]) == (30 * 64, 0)
    assert one.details["steps"] == 30


def test_an_impossible_limit_is_infeasible_and_costs_nothing():
    problem = limited().with_limits([Limit("latency", 0.0)])
    oracle = ObjectiveOracle(problem)
    assert solve(problem, "hardcore", oracle=oracle).status is Status.INFEASIBLE
    assert oracle.evaluations == 0


def test_time_that_is_up_leaves_a_valid_answer():
    found = hardcore(limited(), time_limit=0.0)
    assert found.status is Status.STOPPED_WITH_ANSWER
    assert (found.evaluation.feasible, found.details["steps"]) == (True, 1)


def test_tables_alone_are_not_enough():
    with pytest.raises(ProblemError, match="only tables"):
        solve(limited(), "hardcore")


def test_a_supernet_of_another_space_is_refused():
    other = make_problem(make_space(2, 2, 2), 0)
    with pytest.raises(ProblemError, match="searches all choices"):
        solve(limited(), "hardcore", oracle=ObjectiveOracle(other))


@pytest.mark.parametrize("wrong", [{"steps": 0}, {"batch_size": 0}, {"exploration": 0.0}])
def test_settings_are_checked(wrong):
    with pytest.raises(ProblemError, match="hardcore needs"):
        make_solver("hardcore", **wrong)


def test_what_repair_keeps_is_the_likeliest_choice_and_no_depth_for_its_own_sake():
    problem = limited()
    layout = problem.space.layout
    wanted = problem.space.extreme()
    point = Point(*layout.encode(wanted)).towards(Point(*layout.uniform()), 0.4)
    objective = keeping(Domain(problem), point).problem.objective
    deep, shallow = wanted, problem.space.extreme(heaviest=False)
    stages = len(problem.space.stages)
    likeliest = [point.beta[where].max() for where in layout.beta_slices]
    assert objective.value(problem.space, deep) == pytest.approx(sum(likeliest))
    assert objective.value(problem.space, shallow) < objective.value(problem.space, deep)
    assert len(likeliest) == stages
