"""bcfw-product (Algorithm 4): one stage's alpha or beta at a time."""

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from binas.base.errors import ProblemError
from binas.search.deadline import NEVER
from binas.search.limits import Limit
from binas.search.problem import SearchProblem, evaluate
from binas.search.result import Status
from binas.search.solve import solve
from binas.search.solvers._relaxed import Domain, anchor, stage_blocks, start_point, whole_blocks
from binas.search.solvers.bcfw_product import BcfwProduct
from binas.space import enumerate_all, load_space
from binas.space.space import SearchSpace, Stage
from binas.testing.instances import make_problem, make_space
from binas.testing.paper_example import paper_contributions, paper_costs

SMALL = make_space(2, 2, 3, min_depth=0)


def limited(seed, share, lower=False):
    problem = make_problem(SMALL, seed)
    costs = [problem.cost("latency", a) for a in enumerate_all(SMALL)]
    limit = Limit("latency", min(costs) + share * (max(costs) - min(costs)), lower)
    return problem.with_limits([limit])


def test_the_blocks_are_alpha_and_beta_of_every_stage():
    space = make_space(3, 2, 4)
    blocks = stage_blocks(space)
    assert [block.part for block in blocks] == ["alpha", "beta"] * 3
    assert [block.where for block in blocks[::2]] == [slice(0, 8), slice(8, 16), slice(16, 24)]
    assert [block.where for block in blocks[1::2]] == [slice(0, 2), slice(2, 4), slice(4, 6)]
    for part, whole in zip(("alpha", "beta"), whole_blocks(space), strict=True):
        joined = np.concatenate([block.groups for block in blocks if block.part == part])
        assert np.array_equal(joined, whole.groups)


def test_the_solver_takes_these_blocks_equally_likely():
    climber = BcfwProduct().climber(Domain(limited(0, 0.5)))
    assert len(climber.blocks) == 4
    assert len(set(climber.weights)) == 1


def test_a_stage_without_blocks_has_only_beta():
    space = SearchSpace("odd", (*make_space(1, 2, 2).stages, Stage("empty", (0,), ())))
    assert [block.part for block in stage_blocks(space)] == ["alpha", "beta", "beta"]


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 1000), st.floats(0, 1), st.booleans())
def test_an_answer_is_feasible_and_never_better_than_the_best(seed, share, lower):
    problem = limited(seed, share, lower)
    judged = [evaluate(problem, a) for a in enumerate_all(SMALL)]
    result = solve(problem, "bcfw-product", restarts=3)
    assert result.status is Status.FEASIBLE
    assert result.evaluation.feasible
    assert result.accuracy <= max(item.accuracy for item in judged if item.feasible) + 1e-9


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 1000), st.floats(0.1, 0.9))
def test_at_a_fixed_point_no_block_can_gain_alone(seed, share):
    problem = limited(seed, share)
    domain, rng = Domain(problem), np.random.default_rng(seed)
    climber = BcfwProduct(iterations=5000).climber(domain)
    end = climber.climb(start_point(domain, anchor(domain), rng), rng, NEVER)
    assert end.fixed
    for block in stage_blocks(problem.space):
        slope = climber.objective.gradient(end.point, block.part)
        best = domain.best(block, end.point, slope)
        if best is not None:
            gain = slope[block.where] @ (best - end.point.part(block.part)[block.where])
            assert gain <= 1e-7


def test_without_a_limit_and_with_random_starts_the_optimum_is_found():
    """No limit ties the stages together, so a restart whose alpha steps come first ends at the optimum."""
    problem = make_problem(make_space(3, 3, 4), 4)
    best = solve(problem, "auto").accuracy
    assert solve(problem, "bcfw-product", restarts=20).accuracy == pytest.approx(best)


def test_the_same_seed_gives_the_same_answer():
    problem = make_problem(make_space(4, 4, 5), 2).with_limits([Limit("latency", 20.0)])
    runs = [solve(problem, "bcfw-product", restarts=2, seed=seed) for seed in (7, 7, 8)]
    assert runs[0].architecture == runs[1].architecture
    assert runs[0].details == runs[1].details
    assert runs[0].details != runs[2].details


def test_a_limit_out_of_reach_is_proven_infeasible():
    problem = make_problem(SMALL, 1).with_limits([Limit("latency", 1.0)])
    assert solve(problem, "bcfw-product").status is Status.INFEASIBLE


def test_two_limits():
    problem = make_problem(SMALL, 9, extra_costs=1)
    middle = sorted(enumerate_all(SMALL), key=lambda a: problem.cost("latency", a))[90]
    limits = [Limit(name, problem.cost(name, middle)) for name in ("latency", "cost1")]
    problem = problem.with_limits(limits)
    result = solve(problem, "bcfw-product")
    assert result.status is Status.FEASIBLE
    assert result.accuracy <= solve(problem, "milp").accuracy + 1e-9


def test_iterations_are_kept_to():
    problem = make_problem(make_space(4, 4, 5), 2).with_limits([Limit("latency", 20.0)])
    result = solve(problem, "bcfw-product", restarts=2, iterations=5)
    assert result.details["iterations"] == 10
    assert result.details["fixed_points"] == 0


@pytest.mark.parametrize("bad", [{"iterations": 0}, {"restarts": 0}])
def test_bad_settings_are_refused(bad):
    with pytest.raises(ProblemError, match="bcfw-product needs"):
        BcfwProduct(**bad)


def test_weaker_than_algorithm_1_on_the_paper_sized_example_but_within_the_limit():
    space = load_space("imagenet-mbconv")
    problem = SearchProblem.build(paper_contributions(space), paper_costs(space), ["latency=50ms"])
    best, found = solve(problem, "auto"), solve(problem, "bcfw-product")
    assert best.accuracy - 2.0 <= found.accuracy <= solve(problem, "bcfw").accuracy
