"""evolution: never breaks a limit, never beats brute force, always ends, repeats itself for a seed."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import replace

import numpy as np
import pytest

from binas.base.errors import ProblemError
from binas.estimators.objective import CallableObjective, QuadraticObjective
from binas.search.limits import Limit
from binas.search.problem import SearchProblem, evaluate
from binas.search.result import Status
from binas.search.solve import solve
from binas.search.solvers._base import Options
from binas.search.solvers.evolution import Drawing, Evolution, Genes, Judge, seed_genes
from binas.space import enumerate_all, load_space
from binas.testing import bilinear_cases, brute_force, check_case, stagewise_cases
from binas.testing.cases import VANISHING, make_cost, random_column, small_space
from binas.testing.paper_example import paper_contributions, paper_costs

CASES = {case.name: case for case in [*bilinear_cases(), *stagewise_cases()]}
SHORT = {"population": 30, "iterations": 30}


@pytest.fixture(scope="module")
def paper_problem():
    space = load_space("imagenet-mbconv")
    return SearchProblem.build(paper_contributions(space), paper_costs(space), ["latency=50ms"])


@pytest.fixture
def vanishing():
    """Depth zero, costs per depth (some negative), an upper and a lower limit."""
    space, rng = small_space(VANISHING), np.random.default_rng(3)
    costs = {
        "latency": make_cost(space, "latency", random_column(space, rng, 0.5, 5.0, depth=2.0)),
        "energy": make_cost(space, "energy", random_column(space, rng, 0.5, 5.0), unit="mJ"),
    }
    size = space.alpha_size + space.beta_size
    objective = QuadraticObjective(70.0, rng.normal(size=size), rng.normal(size=(size, size)))
    return SearchProblem(space, objective, costs, (Limit("latency", 9.0), Limit("energy", 6.0, lower=True)))


def genes_of(space, architectures):
    depths, configs = space.to_indices(architectures)
    return Genes(depths, np.maximum(configs, 0))


@pytest.mark.parametrize("name", CASES)
def test_finds_the_optimum_of_small_problems(name):
    result = check_case(Evolution(**SHORT), CASES[name])
    optimum = CASES[name].optimum
    assert (result.accuracy is None) == (optimum is None)
    assert optimum is None or result.accuracy == pytest.approx(optimum)


def test_quadratic_objective(vanishing):
    result = solve(vanishing, "evolution", **SHORT)
    assert result.status is Status.FEASIBLE
    assert result.accuracy == pytest.approx(brute_force(vanishing))


def test_callable_objective_is_asked_once_per_architecture(vanishing):
    asked = Counter()

    def function(architecture):
        asked[architecture] += 1
        return math.sin(hash_free(architecture))

    problem = replace(vanishing, objective=CallableObjective(function))
    result = solve(problem, "evolution", **SHORT)
    kept = [a for a in enumerate_all(problem.space) if evaluate(vanishing, a).feasible]
    assert result.accuracy == max(math.sin(hash_free(a)) for a in kept)
    answer = result.architecture
    assert all(count == 1 for a, count in asked.items() if a != answer)
    assert result.details["evaluations"] <= len(kept)


def hash_free(architecture):
    """A number that depends on every decision, the same in every process."""
    return sum((k + 1) * ord(letter) for k, letter in enumerate(str(architecture)))


def test_settings_are_the_papers():
    solver = Evolution()
    assert (solver.population, solver.iterations, solver.parents) == (100, 500, 25)
    assert (solver.mutation_probability, solver.mutation_ratio) == (0.1, 0.5)


def test_paper_sized_problem(paper_problem):
    best = solve(paper_problem, "milp").accuracy
    result = solve(paper_problem, "evolution")
    assert result.status is Status.FEASIBLE
    assert best - 0.5 < result.accuracy <= best + 1e-9


def test_same_seed_same_answer(paper_problem):
    first, again, other = (solve(paper_problem, "evolution", seed=s, iterations=5) for s in (1, 1, 2))
    assert (first.architecture, first.details) == (again.architecture, again.details)
    assert first.architecture != other.architecture


def test_the_best_is_never_lost(paper_problem):
    values = [solve(paper_problem, "evolution", iterations=k).accuracy for k in (0, 5, 20)]
    assert values == sorted(values)
    assert values[0] < values[-1]


def test_a_start_is_never_lost(paper_problem):
    start = solve(paper_problem, "milp")
    result = solve(paper_problem, "evolution", iterations=2, warm_start=start.architecture)
    assert result.accuracy == start.accuracy


def test_a_start_over_the_limit_is_not_returned(paper_problem):
    heaviest = paper_problem.space.extreme()
    assert not evaluate(paper_problem, heaviest).feasible
    result = solve(paper_problem, "evolution", iterations=2, warm_start=heaviest)
    assert result.evaluation.feasible


def test_one_feasible_architecture_is_found_in_bounded_work(paper_problem):
    costs = seed_genes(paper_problem, Options())
    cheapest = paper_problem.space.from_indices(costs.depths[0].tolist(), costs.configs[0].tolist())
    tight = paper_problem.with_limits([Limit("latency", paper_problem.cost("latency", cheapest))])
    result = solve(tight, "evolution", **SHORT)
    assert (result.status, result.architecture) == (Status.FEASIBLE, cheapest)
    assert result.details["generations"] == SHORT["iterations"]


def test_narrow_window_between_two_limits_is_reached(paper_problem):
    """Random architectures miss this window; walking towards the limits finds it."""
    window = [Limit("latency", 45.0), Limit("latency", 44.9, lower=True), Limit("params", 5.2e6)]
    result = solve(paper_problem.with_limits(window), "evolution", iterations=60)
    assert result.status is Status.FEASIBLE


def test_limits_that_exclude_each_other_end_without_an_answer():
    problem = CASES["infeasible only together"].problem
    result = solve(problem, "evolution", **SHORT)
    assert result.status is Status.STOPPED_WITHOUT_ANSWER
    assert result.details["generations"] == SHORT["iterations"]


@pytest.mark.parametrize("kind", ["bilinear", "quadratic", "callable"])
def test_infeasible_is_said_when_one_limit_proves_it(vanishing, kind):
    problem = vanishing.with_limits([Limit("latency", -20.0)])
    if kind == "callable":
        problem = replace(problem, objective=CallableObjective(lambda a: 1.0))
    elif kind == "bilinear":
        problem = CASES["infeasible"].problem
    assert solve(problem, "evolution").status is Status.INFEASIBLE


def test_out_of_time(paper_problem):
    result = solve(paper_problem, "evolution", time_limit=0.0)
    assert result.status is Status.STOPPED_WITH_ANSWER
    assert result.details["generations"] == 0


@pytest.mark.parametrize(
    "settings",
    [{"population": 0}, {"iterations": -1}, {"attempts": 0}, {"mutation_ratio": 1.5}, {"parent_ratio": -0.1}],
)
def test_impossible_settings_are_refused(paper_problem, settings):
    with pytest.raises(ProblemError, match="evolution needs"):
        solve(paper_problem, "evolution", **settings)


@pytest.mark.parametrize("settings", [{"mutation_ratio": 0.0}, {"mutation_ratio": 1.0}, {"population": 1}])
def test_extreme_settings_work(settings):
    check_case(Evolution(iterations=5, **settings), CASES["depth zero"])


def test_draws_belong_to_the_space_and_are_uniform_over_decisions():
    space = small_space(VANISHING)
    genes = Drawing(space).fresh(np.random.default_rng(0), 20_000)
    for depths, configs in zip(genes.depths[:200].tolist(), genes.configs[:200].tolist(), strict=True):
        space.check(space.from_indices(depths, configs))
    for s, stage in enumerate(space.stages):
        for depth in stage.depths:
            assert np.mean(genes.depths[:, s] == depth) == pytest.approx(1 / len(stage.depths), abs=0.02)
        for b, block in enumerate(stage.blocks):
            shares = np.bincount(genes.configs[:, s, b], minlength=len(block)) / len(genes)
            assert shares == pytest.approx(np.full(len(block), 1 / len(block)), abs=0.02)


def test_mutation_redraws_with_its_probability():
    drawing, rng = Drawing(small_space(VANISHING)), np.random.default_rng(0)
    genes = drawing.fresh(rng, 5000)
    same = drawing.mutated(rng, genes, 0.0)
    assert (same.depths == genes.depths).all()
    assert (same.configs == genes.configs).all()
    changed = np.mean(drawing.mutated(rng, genes, 0.1).configs[:, 0, 0] != genes.configs[:, 0, 0])
    assert changed == pytest.approx(0.1 * 2 / 3, abs=0.015)  # one redraw in three draws the old config


def test_crossing_takes_every_decision_from_a_parent():
    drawing, rng = Drawing(small_space(VANISHING)), np.random.default_rng(0)
    one, two = drawing.fresh(rng, 500), drawing.fresh(rng, 500)
    child = drawing.crossed(rng, one, two)
    assert ((child.depths == one.depths) | (child.depths == two.depths)).all()
    assert ((child.configs == one.configs) | (child.configs == two.configs)).all()
    differ = one.configs != two.configs
    assert np.mean(child.configs[differ] == one.configs[differ]) == pytest.approx(0.5, abs=0.05)


def test_keys_tell_architectures_apart_and_ignore_blocks_that_do_not_run():
    space, rng = small_space(VANISHING), np.random.default_rng(0)
    architectures = enumerate_all(space)
    genes = genes_of(space, architectures)
    keys = Drawing(space).keys(genes)
    assert len(set(keys.tolist())) == len(architectures)
    running = np.arange(space.max_depth) < genes.depths[:, :, None]
    noise = Drawing(space).fresh(rng, len(genes)).configs
    other = Genes(genes.depths, np.where(running, genes.configs, noise))
    assert (Drawing(space).keys(other) == keys).all()


def test_excess_is_zero_exactly_where_the_limits_hold(vanishing):
    architectures = enumerate_all(vanishing.space)
    excess = Judge(vanishing).excess(genes_of(vanishing.space, architectures))
    kept = [evaluate(vanishing, a).feasible for a in architectures]
    assert (excess == 0.0).tolist() == kept
    assert any(kept)
    assert not all(kept)
