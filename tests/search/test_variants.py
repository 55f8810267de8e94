"""Variants: everything exact over variants x architectures, and nothing changed where there are none."""

import json
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import assume, given, strategies as st
from problems import Ticks, problems

from binas.base.errors import ProblemError, TableError
from binas.base.interval import Taken
from binas.search.alternatives import best_architectures
from binas.search.explain import explain
from binas.search.frontier import Frontier, frontier
from binas.search.infeasible import explain_infeasible
from binas.search.limits import Limit, parse_limits
from binas.search.on_device import keep_limits
from binas.search.problem import SearchProblem, evaluate
from binas.search.result import Status
from binas.search.solve import solve
from binas.search.surroundings import prices
from binas.search.variants import best_of_variants, by_variant, upper_envelope
from binas.space import enumerate_all
from binas.tables.costs import CostTable, costs_from_data, load_costs
from binas.tables.entries import Provenance
from binas.tables.merge import merge, rename_cost
from binas.testing import brute_force, brute_force_frontier, make_problem, make_space
from binas.testing.brute_force import all_values, feasible_mask
from binas.testing.cases import make_cost, random_column


@pytest.mark.parametrize(("gap", "status"), [(5e-7, Status.OPTIMAL), (5e-6, Status.STOPPED_WITH_ANSWER)])
def test_variants_are_proven_to_the_gap(gap, status):
    problem = make_problem(make_space(2, 2, 2), 0)
    problem = replace(problem, variants={name: {"latency": problem.costs["latency"]} for name in "ab"})
    results = {name: solve(part) for name, part in by_variant(problem).items()}
    stopped = {
        name: replace(item, bound=item.accuracy + gap, status=status) for name, item in results.items()
    }
    assert best_of_variants(problem, stopped).status is status
    assert best_of_variants(problem, stopped).gap == pytest.approx(gap)


def add_variants(problem, seed, count):
    """Other latencies in each variant, in some also other energies; the first has the numbers of the problem."""
    rng = np.random.default_rng(seed)
    variants = {"first": {"latency": problem.costs["latency"]}}
    for k in range(1, count):
        latency = random_column(problem.space, rng, 0.0, 4.0)
        variants[f"other {k}"] = {"latency": make_cost(problem.space, "latency", latency, 1.0, "1")}
        if k % 2 and "energy" in problem.costs:
            energy = random_column(problem.space, rng, 0.0, 4.0)
            variants[f"other {k}"]["energy"] = make_cost(problem.space, "energy", energy, 1.0, "1")
    return replace(problem, variants=variants)


@st.composite
def with_variants(draw, **more):
    return add_variants(draw(problems(**more)), draw(st.integers(0, 1000)), draw(st.integers(1, 3)))


def truths(problem):
    return {name: brute_force(single) for name, single in by_variant(problem).items()}


@given(problem=with_variants())
def test_the_best_over_variants_and_architectures(problem):
    result, truth = solve(problem), truths(problem)
    known = [value for value in truth.values() if value is not None]
    if not known:
        assert result.status is Status.INFEASIBLE
        assert result.variant is None
        return
    assert result.status is Status.OPTIMAL
    assert result.accuracy == result.bound == pytest.approx(max(known))
    assert truth[result.variant] == pytest.approx(max(known))
    judged = evaluate(problem.of_variant(result.variant), result.architecture)
    assert judged.feasible
    assert judged.costs == result.evaluation.costs


@given(problem=with_variants(stagewise=True, limits=1))
def test_interactions_inside_a_stage_have_variants_too(problem):
    known = [value for value in truths(problem).values() if value is not None]
    assert solve(problem).accuracy == (pytest.approx(max(known)) if known else None)


@given(problem=with_variants(lower=False))
def test_the_frontier_is_the_upper_envelope(problem):
    traced = frontier(problem, "latency")
    points = sorted(
        (cost, -accuracy)
        for single in by_variant(problem).values()
        for cost, accuracy in brute_force_frontier(single, "latency")
    )
    truth: list[tuple[float, float]] = []
    for cost, negative in points:
        if not truth or -negative > truth[-1][1] + 1e-9 * max(1.0, abs(negative)):
            truth.append((cost, -negative))
    assert [(p.cost, p.accuracy) for p in traced] == [pytest.approx(point) for point in truth]
    for point in traced:
        single = problem.of_variant(point.variant)
        assert single.cost("latency", point.architecture) == pytest.approx(point.cost)
        assert evaluate(single, point.architecture).feasible
    again = Frontier.from_csv(traced.to_csv(), problem)
    assert list(again) == list(traced)
    assert "variant" in traced.to_csv().splitlines()[0]
    assert all("variant" in point for point in traced.to_json()["points"])


@given(problem=with_variants(limits=1))
def test_the_frontier_says_at_every_limit_what_the_search_says(problem):
    problem = problem.with_limits(limit for limit in problem.limits if limit.cost != "latency")
    for point in list(frontier(problem, "latency"))[:4]:
        result = solve(problem.with_limits([*problem.limits, Limit("latency", point.cost)]))
        assert result.accuracy == pytest.approx(point.accuracy)


@given(problem=with_variants(), count=st.integers(1, 8))
def test_the_k_best_over_variants(problem, count):
    values: dict[str, float] = {}
    for single in by_variant(problem).values():
        architectures, accuracies, costs = all_values(single)
        for k in np.flatnonzero(feasible_mask(single, costs)):
            values[str(architectures[k])] = float(accuracies[k])
    truth = sorted(values.values(), reverse=True)
    listed = best_architectures(problem, count)
    assert [item.accuracy for item in listed.items] == [pytest.approx(value) for value in truth[:count]]
    assert listed.complete
    assert len({item.architecture for item in listed.items}) == len(listed.items)
    for item in listed.items:
        assert evaluate(problem.of_variant(item.variant), item.architecture).feasible
    near = best_architectures(problem, within=0.7)
    assert len(near.items) == sum(value >= truth[0] - 0.7 - 1e-9 for value in truth[:1000]) if truth else True


@given(problem=with_variants(limits=2))
def test_an_architecture_is_judged_in_the_variant_that_suits_it(problem):
    for architecture in enumerate_all(problem.space)[:20]:
        judged = evaluate(problem, architecture)
        every = [evaluate(single, architecture) for single in by_variant(problem).values()]
        assert judged.feasible == any(item.feasible for item in every)
        assert judged.variant in problem.variants


@given(problem=with_variants(limits=2))
def test_why_nothing_keeps_the_limits_in_any_variant(problem):
    assume(solve(problem).status is Status.INFEASIBLE)
    report = explain_infeasible(problem)
    assert report.sentence().startswith("no architecture keeps")
    for name, (least, most) in report.extremes.items():
        reached = [single.costs[name].range(problem.space) for single in by_variant(problem).values()]
        assert least == pytest.approx(min(low for low, _ in reached))
        assert most == pytest.approx(max(high for _, high in reached))
    for item in report.relaxations:
        eased = [Limit(x.cost, item.value, x.lower) if x is item.limit else x for x in problem.limits]
        assert solve(problem.with_limits(eased)).status is Status.OPTIMAL
    if not report.relaxations:
        eased = {item.limit: Limit(item.limit.cost, item.value, item.limit.lower) for item in report.together}
        assert solve(problem.with_limits(eased.get(x, x) for x in problem.limits)).status is Status.OPTIMAL


def threads(slower=1.0):
    """1 thread, 2 threads that are quicker for large networks only, and a third that is always ``slower`` by 10 %."""
    problem = make_problem(make_space(3, 3, 4), 0)
    one = problem.costs["latency"]
    two = replace(one, fixed=one.fixed + 8.0, values=one.values.map(lambda x: 0.4 * x))
    three = replace(one, fixed=1.1 * slower * one.fixed, values=one.values.map(lambda x: 1.1 * slower * x))
    tables = {"1 thread": one, "2 threads": two, "old runtime": three}
    stated = {
        name: {"latency": replace(cost, provenance=Provenance(threads=2 if "2" in name else 1, batch=1))}
        for name, cost in tables.items()
    }
    return replace(problem, variants=stated)


def test_an_explanation_says_which_variants_are_dominated():
    problem = threads()
    low, high = problem.costs["latency"].range(problem.space)
    for limit, chosen in ((low + 0.2 * (high - low), "1 thread"), (20.0, "2 threads")):
        limited = problem.with_limits([Limit("latency", limit)])
        result = solve(limited)
        assert result.variant == chosen
        report = explain(limited, result.architecture)
        standing = {item.name: item for item in report.variants}
        assert [name for name, item in standing.items() if item.chosen] == [chosen]
        assert standing[chosen].here
        assert standing["1 thread"].somewhere
        assert standing["2 threads"].somewhere
        assert standing["old runtime"].somewhere is False
        words = standing["old runtime"].sentence(limited.describe_limits())
        assert "dominated at every limit on latency" in words
        assert "the one chosen" in standing[chosen].sentence("")
        data = json.loads(json.dumps(report.to_json()))
        assert data["variant"] == chosen
        assert data["variants"][2]["dominated_at_every_limit"]
        # decisions are explained with the costs of the chosen variant
        own = problem.variants[chosen]["latency"].values
        first = report.decisions[1]
        index = problem.space.config_index(0, 0, first.choice)
        assert first.costs["latency"] == pytest.approx(float(own.configs[0][0][index]))


def test_variants_that_were_not_searched_are_not_called_dominated():
    problem = threads()
    problem = problem.with_limits(
        [Limit("latency", 1.001 * problem.costs["latency"].range(problem.space)[0])]
    )
    whole = explain(problem, problem.space.extreme(heaviest=False))
    hurried = explain(problem, problem.space.extreme(heaviest=False), time_limit=Ticks(0).deadline)
    assert whole.complete
    assert not hurried.complete
    for item, known in zip(hurried.variants, whole.variants, strict=True):
        assert item.best is None or known.best is None or item.best <= known.best + 1e-9
        assert item.here in (known.here, None)
        if not item.complete:
            assert "keeps nothing" not in item.sentence("")
            assert item.to_json()["dominated_here"] is not True or known.here is False


def test_results_name_their_variant_and_what_it_was_measured_on():
    problem = threads().with_limits([Limit("latency", 20.0)])
    result = solve(problem)
    data = result.to_json()
    assert data["variant"] == result.variant == "2 threads"
    assert data["costs"]["latency"]["conditions"] == {"threads": 2, "batch": 1}
    assert data["details"]["variants"]["1 thread"]["status"] == "optimal"
    (price,) = prices(result)
    moved = solve(problem.with_limits([Limit("latency", 20.0 + price.more)]))
    assert price.gain == pytest.approx(moved.accuracy - result.accuracy)
    heuristic = solve(problem, "random", samples=50)
    assert heuristic.status in (Status.FEASIBLE, Status.STOPPED_WITH_ANSWER)
    assert heuristic.variant in problem.variants


def test_percent_is_of_the_range_over_all_variants_and_conditions_hold_in_all():
    problem = threads()
    reached = [own["latency"].range(problem.space) for own in problem.variants.values()]
    low, high = min(low for low, _ in reached), max(high for _, high in reached)
    table = CostTable(problem.space, problem.costs, problem.variants)
    built = SearchProblem.build(
        problem.objective, table, ["latency=25%", "latency=9ms@batch=1"], problem.space
    )
    assert built.variants == problem.variants
    assert built.limits[0].value == pytest.approx(low + 0.25 * (high - low))
    with pytest.raises(TableError, match="wanted for threads 1, but the table is of threads 2"):
        parse_limits("latency=9ms@threads=1", problem.space, problem.costs, problem.variants)


def test_on_the_device_the_winner_is_measured_in_its_variant():
    problem = threads().with_limits([Limit("latency", 20.0)])
    seen = []

    def measure(cost, architecture):
        seen.append(cost.provenance.threads)
        value = 1.2 * replace(problem, costs={"latency": cost}, variants={}).cost("latency", architecture)
        return Taken(value, value, value)

    done = keep_limits(problem, ["latency"], measure, solve)
    assert done.kept
    assert done.result.variant in problem.variants
    assert set(seen) <= {1, 2}
    assert done.steps[-1].variant == done.result.variant
    assert done.steps[-1].high <= 20.0


def test_of_equals_the_first_has_the_point():
    costs, accuracies = np.array([1.0, 2.0]), np.array([5.0, 6.0])
    owner, place = upper_envelope([costs, costs, costs - 0.5], [accuracies, accuracies, accuracies - 0.5])
    assert owner.tolist() == [2, 0, 2, 0]
    assert place.tolist() == [0, 0, 1, 1]


def test_tables_with_variants_are_saved_and_read(tmp_path):
    problem = threads()
    table = CostTable(problem.space, problem.costs, problem.variants)
    table.save(tmp_path / "costs.json")
    again = load_costs(tmp_path / "costs.json", problem.space)
    assert list(again.variants) == list(problem.variants)
    assert again.to_data() == table.to_data()
    plain = CostTable(problem.space, problem.costs)
    assert "variants" not in plain.to_data()
    with pytest.raises(TableError, match=r"ends in \.json"):
        table.save(tmp_path / "costs.csv")
    for refused in (lambda: merge([table, plain]), lambda: rename_cost(table, "latency", "time")):
        with pytest.raises(TableError, match="neither merged nor renamed"):
            refused()


def test_variants_of_costs_that_are_not_there_are_refused():
    problem = threads()
    energy = make_cost(problem.space, "energy", problem.costs["latency"].values, 0.0, "mJ")
    with pytest.raises(ProblemError, match="has energy in mJ"):
        replace(problem, variants={"x": {"energy": energy}})
    with pytest.raises(ProblemError, match="no costs of its own"):
        replace(problem, variants={"x": {}})
    data = CostTable(problem.space, problem.costs, problem.variants).to_data()
    data["variants"]["1 thread"]["latency"]["unit"] = "us"
    with pytest.raises(TableError, match="1 thread"):
        costs_from_data(data, problem.space, "costs.json")


@given(problem=problems())
def test_without_variants_nothing_is_said_of_them(problem):
    result = solve(problem)
    said = json.dumps([result.to_json(), explain(problem, enumerate_all(problem.space)[0]).to_json()])
    assert "variant" not in said
