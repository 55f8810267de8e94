"""bcfw (Algorithm 1), and the start points, rounding and repair that all Frank-Wolfe solvers share."""

import json
from dataclasses import replace
from itertools import islice

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from binas.base.errors import ProblemError
from binas.estimators.objective import QuadraticObjective
from binas.search.limits import Limit
from binas.search.problem import SearchProblem, evaluate
from binas.search.result import Status
from binas.search.solve import solve
from binas.search.solvers._relaxed import Domain, Point, anchor, cheapest, repaired, start_point
from binas.search.solvers.bcfw import Bcfw
from binas.space import enumerate_all, load_space, sample_many
from binas.space.space import Config, SearchSpace, Stage
from binas.tables.costs import Cost
from binas.tables.entries import Column
from binas.testing.instances import make_problem, make_space
from binas.testing.paper_example import paper_contributions, paper_costs

SMALL = make_space(2, 2, 3, min_depth=0)  # depth 0 too: 169 architectures
NAMES = ("latency", "cost1")


def with_depth_costs(problem, seed):
    """The same problem with a cost per depth, partly a discount, so that deeper can be cheaper."""
    rng, costs = np.random.default_rng(seed), {}
    for name, cost in problem.costs.items():
        extra = Column.build(problem.space, lambda s, i: float(rng.normal(0, 2)), lambda s, b, c: 0.0)
        costs[name] = replace(cost, values=Column(extra.depths, cost.values.configs))
    return SearchProblem(problem.space, problem.objective, costs)


def span(problem, name):
    values = [problem.cost(name, a) for a in enumerate_all(problem.space)]
    return min(values), max(values)


def limit_at(problem, name, share, lower=False):
    low, high = span(problem, name)
    return Limit(name, low + share * (high - low), lower)


def brute_force(problem):
    judged = [evaluate(problem, a) for a in enumerate_all(problem.space)]
    return max((item.accuracy for item in judged if item.feasible), default=None)


@st.composite
def problems(draw):
    """Small problems with zero to two limits, upper or lower, with and without costs per depth."""
    seed = draw(st.integers(0, 1000))
    problem = make_problem(SMALL, seed, extra_costs=1)
    if draw(st.booleans()):
        problem = with_depth_costs(problem, seed)
    names = draw(st.lists(st.sampled_from(NAMES), max_size=2))
    limits = [limit_at(problem, n, draw(st.floats(0, 1)), draw(st.booleans())) for n in names]
    return problem.with_limits(limits)


@settings(max_examples=30, deadline=None)
@given(problems())
def test_an_answer_is_feasible_and_never_better_than_the_best(problem):
    best, result = brute_force(problem), solve(problem, "bcfw", restarts=4)
    assert (result.status is Status.FEASIBLE) == (result.evaluation is not None)
    if best is None:
        assert result.status in (Status.INFEASIBLE, Status.STOPPED_WITHOUT_ANSWER)
    else:
        assert result.status is not Status.INFEASIBLE
    if result.evaluation is not None:
        assert result.evaluation.feasible
        assert result.accuracy <= best + 1e-9


@settings(max_examples=30, deadline=None)
@given(problems())
def test_with_one_limit_there_is_an_answer_whenever_one_exists(problem):
    problem = problem.with_limits(problem.limits[:1])
    answered = solve(problem, "bcfw", restarts=1).evaluation is not None
    assert answered == (brute_force(problem) is not None)


@settings(max_examples=30, deadline=None)
@given(problems(), st.integers(0, 168))
def test_repair_ends_feasible_and_leaves_what_is_feasible_alone(problem, index):
    problem = problem.with_limits(problem.limits[:1])
    architecture = enumerate_all(SMALL)[index]
    fixed = repaired(Domain(problem), architecture)
    if brute_force(problem) is not None:
        assert evaluate(problem, fixed).feasible
    if evaluate(problem, architecture).feasible:
        assert fixed == architecture


def hand_made(space, values, costs):
    """A problem from two columns, without base and fixed part."""
    problem = make_problem(space, 0)
    return replace(
        problem,
        objective=replace(problem.objective, base=0.0, values=values),
        costs={"latency": replace(problem.costs["latency"], fixed=0.0, values=costs)},
    )


@pytest.mark.parametrize(
    ("third", "limit", "expected"),
    [
        (5.0, 9.0, "y-y-y"),
        (5.0, 8.0, "y-y-x"),  # 0.8 points per ms
        (5.0, 7.0, "x-y-y"),  # 0.5
        (5.0, 6.0, "x-y-x"),
        (0.9, 6.0, "y-y"),  # dropping the third block: 0.3 points per ms
    ],
)
def test_repair_takes_the_least_loss_per_cost_saved(third, limit, expected):
    """From y-y-y (9 ms): x saves 2, 2, 1 ms for 1, 4, 0.8 points; depth 2 saves 3 ms for ``third`` points."""
    block = (Config("x"), Config("y"))
    space = SearchSpace("three", (Stage("s1", (2, 3), (block,) * 3),))
    gains, saved = (1.0, 4.0, 0.8), (2.0, 2.0, 1.0)
    values = Column.build(space, lambda s, i: (third - 0.8) * i, lambda s, b, c: gains[b] * c)
    costs = Column.build(space, lambda s, i: 0.0, lambda s, b, c: 3.0 - (0.0 if c else saved[b]))
    problem = hand_made(space, values, costs).with_limits([Limit("latency", limit)])
    assert str(repaired(Domain(problem), space.parse("y-y-y"))) == expected


def test_repair_goes_deeper_where_that_is_cheaper():
    """Depth 2 has a discount of 10 ms, but its first config costs 20: both must change together."""
    first, second = (Config("a"),), (Config("big"), Config("tiny"))
    space = SearchSpace("discount", (Stage("s1", (1, 2), (first, second)),))
    prices = [[5.0], [20.0, 1.0]]
    costs = Column.build(space, lambda s, i: -10.0 * i, lambda s, b, c: prices[b][c])
    problem = hand_made(space, Column.full(space, 0.0), costs).with_limits([Limit("latency", 0.0)])
    assert str(repaired(Domain(problem), space.parse("a"))) == "a-tiny"


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 1000), st.floats(0.1, 0.9))
def test_steps_count_fixed_parts_and_costs_per_depth(seed, share):
    problem = with_depth_costs(make_problem(SMALL, seed), seed)
    domain = Domain(problem.with_limits([limit_at(problem, "latency", share)]))
    rng = np.random.default_rng(seed)
    points = Bcfw().climber(domain).iterates(start_point(domain, anchor(domain), rng), rng)
    for point in islice(points, 30):
        assert domain.use(point)[0] <= domain.bounds[0] + 1e-9


@settings(max_examples=25, deadline=None)
@given(problems(), st.integers(0, 100))
def test_start_points_keep_one_limit_and_are_probabilities(problem, seed):
    problem = problem.with_limits(problem.limits[:1])
    if brute_force(problem) is None:
        return
    domain = Domain(problem)
    point = start_point(domain, anchor(domain), np.random.default_rng(seed))
    assert domain.feasible(point)
    assert point.alpha.min() >= 0.0
    assert point.alpha.sum() == pytest.approx(4)  # two stages of two blocks
    assert point.beta.sum() == pytest.approx(2)


def test_the_anchor_of_several_limits_keeps_them_all():
    problem = make_problem(SMALL, 3, extra_costs=1)
    optimum = max(enumerate_all(SMALL), key=lambda a: problem.objective.value(SMALL, a))
    limits = [Limit(name, problem.cost(name, optimum)) for name in NAMES]
    limits += [Limit(name, 0.9 * problem.cost(name, optimum), lower=True) for name in NAMES]
    domain = Domain(problem.with_limits(limits))
    assert (domain.use(anchor(domain)) <= domain.bounds + 1e-6).all()


@settings(max_examples=25, deadline=None)
@given(problems())
def test_cheapest_is_the_brute_force_minimum(problem):
    for limit, row in zip(problem.limits, Domain(problem).rows, strict=True):
        found = problem.cost(limit.cost, cheapest(problem, row))
        low, high = span(problem, limit.cost)
        assert found == pytest.approx(high if limit.lower else low)


@settings(max_examples=25, deadline=None)
@given(problems(), st.integers(0, 168))
def test_rows_at_architectures_are_their_costs(problem, index):
    architecture = enumerate_all(SMALL)[index]
    domain = Domain(problem)
    use = domain.use(Point(*SMALL.layout.encode(architecture)))
    costs = [limit.sign * problem.cost(limit.cost, architecture) for limit in problem.limits]
    assert use == pytest.approx(costs)


@pytest.mark.parametrize("lower", [False, True])
def test_a_limit_out_of_reach_is_proven_infeasible(lower):
    problem = make_problem(SMALL, 1)
    low, high = span(problem, "latency")
    limit = Limit("latency", high + 0.1 if lower else low - 0.1, lower)
    result = solve(problem.with_limits([limit]), "bcfw")
    assert result.status is Status.INFEASIBLE
    assert "latency" in result.details["impossible"]


def test_a_limit_at_the_minimum_leaves_the_cheapest_architecture():
    problem = make_problem(SMALL, 1)
    low, _ = span(problem, "latency")
    result = solve(problem.with_limits([Limit("latency", low)]), "bcfw")
    assert result.evaluation.costs["latency"] == pytest.approx(low)


def test_limits_that_exclude_each_other_end_without_an_answer_and_without_a_false_proof():
    problem = make_problem(SMALL, 1)
    limits = [limit_at(problem, "latency", 0.4), limit_at(problem, "latency", 0.6, lower=True)]
    assert solve(problem.with_limits(limits), "bcfw").status is Status.STOPPED_WITHOUT_ANSWER


def test_the_same_seed_gives_the_same_answer():
    problem = make_problem(make_space(4, 4, 5), 2)
    problem = problem.with_limits([Limit("latency", 20.0)])
    runs = [solve(problem, "bcfw", restarts=2, seed=seed) for seed in (7, 7, 8)]
    assert runs[0].architecture == runs[1].architecture
    assert runs[0].details == runs[1].details
    assert runs[0].details != runs[2].details


def test_a_warm_start_is_never_made_worse():
    problem = make_problem(make_space(3, 4, 4), 5).with_limits([Limit("latency", 18.0)])
    best = solve(problem, "milp")
    for warm in [best.architecture, *sample_many(problem.space, 5, seed=0)]:
        judged = evaluate(problem, warm)
        result = solve(problem, "bcfw", restarts=1, warm_start=warm)
        if judged.feasible:
            assert result.accuracy >= judged.accuracy - 1e-12
    assert solve(problem, "bcfw", restarts=1, warm_start=best.architecture).accuracy == best.accuracy


def test_no_time_still_gives_an_answer_and_says_so():
    problem = make_problem(make_space(4, 4, 5), 2).with_limits([Limit("latency", 20.0)])
    result = solve(problem, "bcfw", time_limit=0.0)
    assert result.status is Status.STOPPED_WITH_ANSWER
    assert result.details["restarts"] == 1


def test_details_tell_how_the_answer_came_about():
    problem = make_problem(make_space(4, 4, 5), 2).with_limits([Limit("latency", 20.0)])
    details = solve(problem, "bcfw", restarts=3, iterations=50).details
    assert details["restarts"] == 3
    assert 6 <= details["iterations"] <= 150
    assert 0 <= details["fixed_points"] <= 3
    assert list(details["deviation_before_repair"]) == ["latency <= 20 ms"]
    json.dumps(details)


def test_the_deviation_from_a_lower_limit_is_negative_where_it_holds():
    problem = make_problem(SMALL, 2)
    result = solve(problem.with_limits([Limit("latency", 5.5, lower=True)]), "bcfw")
    (deviation,) = result.details["deviation_before_repair"].values()
    assert deviation == pytest.approx(5.5 - result.evaluation.costs["latency"])
    assert deviation < 0


def test_the_deviation_is_that_of_the_argmax_before_any_repair():
    problem, signs = make_problem(make_space(4, 4, 5), 2), set()
    for limit in np.arange(14.0, 26.0):
        result = solve(problem.with_limits([Limit("latency", limit)]), "bcfw", restarts=1)
        (deviation,) = result.details["deviation_before_repair"].values()
        signs.add(deviation > 0)
        if deviation <= 0:  # nothing to repair
            assert result.evaluation.costs["latency"] == pytest.approx(limit + deviation)
        else:
            assert result.evaluation.costs["latency"] <= limit * (1 + 1e-8)
    assert signs == {False, True}


@pytest.mark.parametrize("bad", [{"iterations": 0}, {"restarts": 0}, {"p": 0.0}, {"p": 1.0}])
def test_bad_settings_are_refused(bad):
    with pytest.raises(ProblemError, match="bcfw needs"):
        Bcfw(**bad)


def test_only_bilinear_objectives_are_taken():
    size = SMALL.alpha_size + SMALL.beta_size
    problem = SearchProblem(SMALL, QuadraticObjective(0.0, np.zeros(size), np.zeros((size, size))))
    with pytest.raises(ProblemError, match="bilinear"):
        solve(problem, "bcfw")


@pytest.mark.parametrize("limit", [30, 45, 60, 75])
def test_close_to_the_optimum_on_the_paper_sized_example(limit):
    space = load_space("imagenet-mbconv")
    problem = SearchProblem.build(paper_contributions(space), paper_costs(space), [f"latency={limit}ms"])
    best, found = solve(problem, "auto"), solve(problem, "bcfw")
    assert best.accuracy - 0.25 <= found.accuracy <= best.accuracy + 1e-9


def test_several_limits_on_the_paper_sized_example():
    space = load_space("imagenet-mbconv")
    tables = paper_contributions(space), paper_costs(space)
    problem = SearchProblem.build(*tables, ["latency=50ms", "params=5M", "macs>=200M"])
    best, found = solve(problem, "milp"), solve(problem, "bcfw", restarts=3)
    assert found.status is Status.FEASIBLE
    assert best.accuracy - 0.5 <= found.accuracy <= best.accuracy + 1e-9


def test_a_space_with_one_choice_per_decision():
    space = SearchSpace("one", (Stage("s1", (1,), ((Config("a"),),)), Stage("s2", (0,), ())))
    column = Column.full(space, 1.0)
    unit = make_problem(SMALL, 0).costs["latency"].unit
    problem = SearchProblem(
        space, make_problem(space, 0).objective, {"latency": Cost("latency", unit, 0.0, column)}
    )
    assert str(solve(problem, "bcfw").architecture) == "a_0"
    assert solve(problem.with_limits([Limit("latency", 3.0)]), "bcfw").status is Status.FEASIBLE
    assert solve(problem.with_limits([Limit("latency", 2.9)]), "bcfw").status is Status.INFEASIBLE
