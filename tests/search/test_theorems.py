"""The theory of the paper as tests: what its theorems say, and where they stop holding.

* Lemmas on the relaxed knapsack and Theorem 3.3 (sparsity) hold as stated for one limit.
* Line search on a bilinear objective gives gamma = 1 and its partial curvature is zero, as stated.
* Theorem 3.2 (gap <= 4/(k+4) of the first gap, in expectation) is proved through a theorem for concave
  objectives on a product domain. It holds there. A limit couples alpha and beta, and alpha' Q beta is not
  concave: then Algorithm 1 can stop below the optimum for good, which is kept here as a counterexample.
"""

import math
from itertools import islice

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from scipy.optimize import linprog

from binas.estimators.objective import BilinearObjective, CallableObjective
from binas.search.knapsack import relaxed_knapsack
from binas.search.limits import Limit
from binas.search.problem import SearchProblem, evaluate
from binas.search.solve import solve
from binas.search.solvers._relaxed import Domain, Point, anchor, stage_blocks, start_point, whole_blocks
from binas.search.solvers.bcfw import BlockSteps, bilinear_smooth
from binas.search.solvers.frank_wolfe import FrankWolfeSteps, line_search, relaxed_objective
from binas.space import enumerate_all
from binas.space.space import Config, SearchSpace, Stage
from binas.tables.costs import Cost
from binas.tables.entries import Column
from binas.tables.units import parse_unit
from binas.testing.instances import make_problem, make_space

SEEDS = st.integers(0, 10_000)


def steps_of(problem, blocks):
    return BlockSteps(Domain(problem), bilinear_smooth(problem), blocks, [1.0] * len(blocks), 2000)


def limited(seed, share=0.4):
    """A problem of 3 stages whose latency limit lies between the least and the most possible."""
    problem = make_problem(make_space(3, 3, 4, min_depth=1), seed)
    costs = [problem.cost("latency", problem.space.extreme(heaviest)) for heaviest in (False, True)]
    return problem.with_limits([Limit("latency", costs[0] + share * (costs[1] - costs[0]))])


def first(points, count):
    """The first ``count`` points; the last one again where the algorithm stopped at a fixed point."""
    taken = list(islice(points, count))
    return taken + [taken[-1]] * (count - len(taken))


# Lemmas on the relaxed multiple-choice knapsack


@st.composite
def knapsacks(draw):
    sizes = draw(st.lists(st.integers(1, 6), min_size=1, max_size=6))
    rng = np.random.default_rng(draw(SEEDS))
    whole = draw(st.booleans())  # small integers make ties, equal slopes and exact budgets common
    values, costs = (
        rng.integers(-4, 5, sum(sizes)).astype(float) if whole else rng.normal(size=sum(sizes))
        for _ in range(2)
    )
    return values, costs, np.repeat(np.arange(len(sizes)), sizes), float(draw(st.integers(-10, 15)))


@settings(max_examples=60, deadline=None)
@given(knapsacks())
def test_lemmas_one_group_is_fractional_with_two_nonzeros_and_nothing_is_better(case):
    values, costs, groups, budget = case
    member = (groups[None] == np.unique(groups)[:, None]).astype(float)
    reference = linprog(-values, A_ub=costs[None], b_ub=[budget], A_eq=member, b_eq=np.ones(len(member)))
    solution = relaxed_knapsack(values, costs, groups, budget)
    if solution is None:
        assert reference.status == 2
        return
    assert values @ solution == pytest.approx(-reference.fun, abs=1e-7)
    assert costs @ solution <= budget + 1e-9
    assert np.allclose(member @ solution, 1.0)
    nonzeros = member @ (solution > 0)
    assert (nonzeros > 1).sum() <= 1
    assert nonzeros.max() <= 2


# Theorem 3.3: sparsity


@pytest.mark.parametrize("blocks_of", [whole_blocks, stage_blocks], ids=["algorithm 1", "algorithm 4"])
@settings(max_examples=25, deadline=None)
@given(seed=SEEDS, share=st.floats(0.05, 0.95))
def test_sparsity_of_every_iterate(blocks_of, seed, share):
    problem = limited(seed, share)
    rng, domain, blocks = np.random.default_rng(seed), Domain(problem), blocks_of(problem.space)
    start = start_point(domain, anchor(domain), rng)
    for point in first(steps_of(problem, blocks).iterates(start, rng), 60):
        for block in blocks:
            now, before = point.part(block.part)[block.where], start.part(block.part)[block.where]
            if np.array_equal(now, before):
                continue  # this block has not had its turn
            counts = np.array([(now[block.groups == g] > 0).sum() for g in np.unique(block.groups)])
            assert (counts > 1).sum() <= 1
            assert counts.max() <= 2


@settings(max_examples=25, deadline=None)
@given(seed=SEEDS)
def test_iterates_keep_the_limit_and_never_lose_value(seed):
    problem = limited(seed)
    rng, domain, objective = np.random.default_rng(seed), Domain(problem), bilinear_smooth(problem)
    points = [start_point(domain, anchor(domain), rng)]
    points += first(steps_of(problem, whole_blocks(problem.space)).iterates(points[0], rng), 40)
    scale = domain.bounds[0] * 1e-9
    assert all(domain.use(point)[0] <= domain.bounds[0] + scale for point in points)
    assert (np.diff([objective.value(point) for point in points]) >= -1e-9).all()


# Appendix on the analytic line search, and the lemma on curvature


@pytest.mark.parametrize("blocks_of", [whole_blocks, stage_blocks])
@settings(max_examples=25, deadline=None)
@given(seed=SEEDS)
def test_line_search_of_a_bilinear_objective_gives_gamma_one(blocks_of, seed):
    problem = limited(seed)
    rng, domain, objective = np.random.default_rng(seed), Domain(problem), bilinear_smooth(problem)
    point = start_point(domain, anchor(domain), rng)
    for block in blocks_of(problem.space):
        slope = objective.gradient(point, block.part)
        target = point.replaced(block, domain.best(block, point, slope))
        values = [objective.value(point.towards(target, share)) for share in np.linspace(0, 1, 11)]
        assert max(values) == pytest.approx(values[-1], abs=1e-12)
        gain = float(slope @ (target.part(block.part) - point.part(block.part)))
        assert gain >= -1e-12
        if gain > 1e-9:
            assert line_search(objective, point, target, gain) == 1.0


@settings(max_examples=30, deadline=None)
@given(seed=SEEDS, share=st.floats(0.01, 1.0))
def test_partial_curvature_of_a_bilinear_form_is_zero(seed, share):
    """C_f = sup 2/gamma^2 (f(y) - f(x) - (y - x)' grad f(x)), over one coordinate block, is zero."""
    problem = make_problem(make_space(2, 3, 3), seed)
    rng, domain, objective = np.random.default_rng(seed), Domain(problem), bilinear_smooth(problem)
    x, other = (start_point(domain, anchor(domain), rng) for _ in range(2))
    for block in stage_blocks(problem.space):
        s = x.replaced(block, other.part(block.part)[block.where])
        y = x.towards(s, share)
        linear = objective.gradient(x, block.part) @ (y.part(block.part) - x.part(block.part))
        assert objective.value(y) - objective.value(x) == pytest.approx(linear, abs=1e-11)


def test_a_quadratic_form_does_have_curvature():
    """The check above can fail: along both blocks at once even the bilinear form is curved."""
    problem = make_problem(make_space(2, 3, 3), 0)
    rng, domain, objective = np.random.default_rng(0), Domain(problem), bilinear_smooth(problem)
    x, y = (start_point(domain, anchor(domain), rng) for _ in range(2))
    linear = sum(objective.gradient(x, p) @ (y.part(p) - x.part(p)) for p in ("alpha", "beta"))
    assert abs(objective.value(y) - objective.value(x) - linear) > 1e-4


# Theorem 3.2: the rate, where it holds: a concave objective on a product domain. alpha' Q beta is concave only where it is
# linear there, which is where configs count in no block but those that always run; and any limit couples alpha and beta.


def without_interaction(seed):
    """No limit, and configs count only in the first block, which always runs: linear on a product domain."""
    space, rng = make_space(3, 3, 4, min_depth=1), np.random.default_rng(seed)
    configs = rng.normal(size=(3, 4))
    values = Column.build(
        space, lambda s, i: float(rng.normal()), lambda s, b, c: float(configs[s, c]) if b == 0 else 0.0
    )
    return SearchProblem(space, BilinearObjective(70.0, values))


@pytest.mark.parametrize("blocks_of", [whole_blocks, stage_blocks], ids=["n = 2", "n = 2S"])
def test_rate_holds_in_expectation_without_interaction_and_without_a_limit(blocks_of):
    """E[gap_k] <= 2n/(k+2n) gap_0; with n independent linear blocks it is (1 - 1/n)^k gap_0 exactly."""
    problem = without_interaction(0)
    blocks, objective = blocks_of(problem.space), bilinear_smooth(problem)
    best = solve(problem, "milp").accuracy
    start, count, runs = Point(*problem.space.layout.uniform()), 40, 400
    gaps = np.zeros((runs, count))
    for seed in range(runs):
        points = first(steps_of(problem, blocks).iterates(start, np.random.default_rng(seed)), count)
        gaps[seed] = [best - objective.value(point) for point in points]
    ratio = gaps.mean(axis=0) / (best - objective.value(start))
    k, n = np.arange(1, count + 1), len(blocks)
    assert (ratio <= 2 * n / (k + 2 * n)).all()
    assert np.abs(ratio - (1 - 1 / n) ** k).max() <= 5 * 0.5 / math.sqrt(runs)
    assert gaps.min() >= -1e-9


def test_rate_with_curvature_on_a_product_domain():
    """Algorithm 3 with its step schedule on f = -|x - a|^2: gap_k <= 2n/(k+2n) (C_f + gap_0).

    Over one simplex |s - x|^2 <= 2, so C_f <= 2 * 2 * (number of decisions); f's maximum is 0.
    """
    space = make_space(2, 2, 3)
    rng = np.random.default_rng(5)
    problem = SearchProblem(space, CallableObjective(lambda a: 0.0))
    a = start_point(Domain(problem), Point(*space.layout.uniform()), rng)
    objective = CallableObjective(
        lambda architecture: 0.0,
        lambda alpha, beta: -float(((alpha - a.alpha) ** 2).sum() + ((beta - a.beta) ** 2).sum()),
        lambda alpha, beta: (2 * (a.alpha - alpha), 2 * (a.beta - beta)),
    )
    problem = SearchProblem(space, objective)
    smooth, start = relaxed_objective(problem), Point(*space.layout.encode(space.extreme()))
    steps = FrankWolfeSteps(Domain(problem), smooth, 2000, 1, "schedule")
    gaps = np.array(
        [
            [-smooth.value(p) for p in first(steps.iterates(start, np.random.default_rng(s)), 200)]
            for s in range(10)
        ]
    ).mean(axis=0)
    decisions = sum(len(stage.blocks) + 1 for stage in space.stages)
    k = np.arange(1, 201)
    assert (gaps <= 4 / (k + 4) * (4 * decisions - smooth.value(start))).all()
    assert gaps[-1] < 0.01 * gaps[0]


# Theorem 3.2: where it does not hold


def coupled():
    """One stage, depths 1 or 2, two configs: large costs 2 ms and adds 1 point, small costs 1 ms and adds 0.

    A second block adds 3 points. Under 2 ms the best is two small blocks (3 points), but from one large
    block (1 point) neither step leads there: a second block does not fit beside a large one, and with
    one block the large config is best. Only changing alpha and beta together helps.
    """
    block = (Config("small"), Config("large"))
    space = SearchSpace("coupled", (Stage("s1", (1, 2), (block, block)),))
    values = Column.build(space, lambda s, i: 3.0 * i, lambda s, b, c: float(c))
    costs = Column.build(space, lambda s, i: 0.0, lambda s, b, c: 1.0 + c)
    latency = Cost("latency", parse_unit("ms"), 0.0, costs)
    return SearchProblem(
        space, BilinearObjective(0.0, values), {"latency": latency}, (Limit("latency", 2.0),)
    )


def test_a_limit_makes_algorithm_1_stall_below_the_optimum():
    problem = coupled()
    judged = [evaluate(problem, a) for a in enumerate_all(problem.space)]
    assert max(item.accuracy for item in judged if item.feasible) == 3.0
    assert solve(problem, "milp").accuracy == 3.0

    start = Point(*problem.space.layout.encode(problem.space.parse("large")))
    steps, objective = steps_of(problem, whole_blocks(problem.space)), bilinear_smooth(problem)
    assert Domain(problem).feasible(start)
    for seed in range(20):
        points = list(steps.iterates(start, np.random.default_rng(seed)))  # ends: a fixed point
        gap = 3.0 - objective.value(points[-1])
        assert gap == pytest.approx(2.0, abs=1e-6)
        assert gap > 4 / (2000 + 4) * (3.0 - objective.value(start))  # what the theorem would promise


def test_random_starts_stall_there_too_and_restarts_help():
    problem = coupled()
    single = [solve(problem, "bcfw", restarts=1, seed=seed).accuracy for seed in range(40)]
    assert set(single) == {1.0, 3.0}
    assert solve(problem, "bcfw", restarts=20).accuracy == 3.0


def saddle():
    """One stage, depths 1 and 2, no limit. What the first block is does not matter; the second is bad (-1) or good (+3)."""
    block = (Config("bad"), Config("good"))
    space = SearchSpace("saddle", (Stage("s1", (1, 2), (block, block)),))
    values = Column.build(space, lambda s, i: 0.0, lambda s, b, c: b * (4.0 * c - 1.0))
    return SearchProblem(space, BilinearObjective(70.0, values))


def test_interaction_makes_algorithm_1_stall_without_any_limit():
    """At depth 1 the second block has no weight: every config of it is an argmax, and the first one is bad.

    So alpha does not move, and beta sees a second block that would only lose: 70.0 for ever, where 73.0 is possible. The
    proof takes a rate for concave functions, and alpha' Q beta is not concave, whatever its partial curvature.
    """
    problem = saddle()
    space, objective, depth_one = problem.space, bilinear_smooth(problem), problem.space.parse("bad")
    assert solve(problem, "milp").accuracy == 73.0
    start = Point(*space.layout.encode(depth_one))
    for seed in range(20):
        points = list(steps_of(problem, whole_blocks(space)).iterates(start, np.random.default_rng(seed)))
        assert {objective.value(point) for point in points} == {
            70.0
        }  # and it ended: nothing would move any more
    assert 4 / (2000 + 4) * (73.0 - objective.value(start)) < 3.0  # what the theorem would promise by then
    assert solve(problem, "bcfw", restarts=1, warm_start=depth_one).accuracy == 70.0
    assert solve(problem, "bcfw", restarts=20).accuracy == 73.0


def test_the_bilinear_objective_is_not_concave():
    """Halfway between depth 1 with a bad second block (70) and depth 2 with a good one (73) it is below their mean."""
    problem = saddle()
    layout, objective = problem.space.layout, bilinear_smooth(problem)
    one, two = (Point(*layout.encode(problem.space.parse(text))) for text in ("bad", "bad-good"))
    assert (objective.value(one), objective.value(two)) == (70.0, 73.0)
    assert objective.value(one.towards(two, 0.5)) == 70.5
