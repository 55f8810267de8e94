"""Exact search on tables measured by others: NAS-Bench-Macro (all networks known) and TF-NAS latencies."""

from dataclasses import replace

import numpy as np
import pytest

from binas.estimators.objective import BilinearObjective, CallableObjective, StagewiseObjective
from binas.search.frontier import frontier
from binas.search.limits import Limit
from binas.search.problem import SearchProblem
from binas.search.solve import solve
from binas.space import load_space
from binas.tables.costs import Cost
from binas.tables.entries import Column
from binas.tables.units import parse_unit
from binas.testing import brute_force, brute_force_frontier, make_problem
from binas.testing.tables import read_nas_bench_macro, read_tfnas


@pytest.fixture(scope="module")
def macro(nas_bench_macro_path):
    return read_nas_bench_macro(nas_bench_macro_path)


def fitted(space, items, numbers, exact):
    """Least-squares fit of a number per (block, config) and depth; ``exact`` asks that it reproduces the table."""
    design = np.column_stack([np.ones(len(items)), space.layout.rows(items)])
    solution, *_ = np.linalg.lstsq(design, numbers, rcond=None)
    if exact:
        np.testing.assert_allclose(design @ solution, numbers, rtol=1e-9)
    sizes = [len(block) for stage in space.stages for block in stage.blocks]
    parts = iter(np.split(solution[1 : 1 + sum(sizes)], np.cumsum(sizes)[:-1]))
    columns = tuple(tuple(next(parts) for _ in stage.blocks) for stage in space.stages)
    ends = np.cumsum([len(stage.depths) for stage in space.stages])[:-1]
    return float(solution[0]), Column(tuple(np.split(solution[1 + sum(sizes) :], ends)), columns)


@pytest.fixture(scope="module")
def macro_problem(macro):
    space, items = load_space("nas-bench-macro"), list(macro)
    base, values = fitted(space, items, np.array([macro[a].accuracy for a in items]), exact=False)
    costs = {}
    for name, unit in (("flops", "FLOPs"), ("params", "params")):
        fixed, column = fitted(
            space, items, np.array([getattr(macro[a], name) for a in items], float), exact=True
        )
        costs[name] = Cost(name, parse_unit(unit), fixed, column)
    return SearchProblem(space, BilinearObjective(base, values), costs)


@pytest.mark.parametrize("fraction", [0.15, 0.3, 0.5, 0.9])
def test_macro_additive_fit_is_searched_exactly(macro, macro_problem, fraction):
    flops = np.quantile([record.flops for record in macro.values()], fraction)
    problem = macro_problem.with_limits([Limit("flops", float(flops)), Limit("params", 1.6e6)])
    best = brute_force(problem)
    for solver in ("auto", "frontier", "milp", "miqcp"):
        assert solve(problem, solver).accuracy == pytest.approx(best, abs=1e-6)


def test_macro_frontier_is_exact(macro_problem):
    found = frontier(macro_problem, "flops")
    truth = brute_force_frontier(macro_problem, "flops")
    assert found.exact
    assert len(found) > 40
    for cost, accuracy in truth:
        assert found.at(cost).accuracy >= accuracy - 1e-8
    best = dict(truth)
    for point in found:
        assert point.accuracy <= max(y for x, y in best.items() if x <= point.cost * (1 + 1e-9)) + 1e-8


def test_macro_with_interactions_inside_stages(macro, macro_problem):
    """A per-stage table (mean accuracy of every variant of a stage) is searched as exactly as an additive one."""
    means = {}
    for s in range(3):
        for architecture, record in macro.items():
            means.setdefault((s, architecture.stages[s]), []).append(record.accuracy)
    overall = np.mean([record.accuracy for record in macro.values()])
    space = macro_problem.space

    def gain(s, index):
        names = tuple(space.stages[s].blocks[b][c].name for b, c in enumerate(index))
        return float(np.mean(means[s, names]) - overall)

    objective = StagewiseObjective.from_function(space, gain, float(overall))
    problem = replace(macro_problem, objective=objective, limits=(Limit("flops", 40e6),))
    assert solve(problem).accuracy == pytest.approx(brute_force(problem), abs=1e-9)


def test_macro_true_accuracy_by_evolution_never_beats_the_best(macro, macro_problem):
    truth = CallableObjective(lambda architecture: macro[architecture].accuracy)
    problem = replace(macro_problem, objective=truth, limits=(Limit("flops", 45e6),))
    best = max(record.accuracy for record in macro.values() if record.flops <= 45e6)
    found = solve(problem, "evolution", iterations=40)
    assert best - 1.0 <= found.accuracy <= best


@pytest.mark.parametrize("seed", [0, 1])
def test_tfnas_latency_on_two_devices_at_once(tfnas_path, seed):
    space, cpu = read_tfnas(tfnas_path, "cpu")
    _, gpu = read_tfnas(tfnas_path, "gpu")
    costs = {"xeon": cpu["latency"], "titan": gpu["latency"]}
    problem = SearchProblem(space, make_problem(space, seed).objective, costs)
    curve = frontier(problem, "xeon")
    middle = curve.costs[0] + 0.4 * (curve.costs[-1] - curve.costs[0])
    free = solve(problem.with_limits([Limit("xeon", float(middle))]))
    assert free.accuracy == pytest.approx(curve.at(float(middle)).accuracy, abs=1e-9)
    tight = Limit("titan", 0.97 * free.evaluation.costs["titan"])
    both = problem.with_limits([Limit("xeon", float(middle)), tight])
    one, two = solve(both, "auto"), solve(both, "milp")
    assert one.accuracy == pytest.approx(two.accuracy, abs=1e-7)
    assert one.accuracy <= free.accuracy
    assert frontier(both, "xeon").at(float(middle)).accuracy == pytest.approx(one.accuracy, abs=1e-7)


def test_tfnas_has_a_larger_config_that_is_cheaper(tfnas_path):
    """Real tables are not monotone: the first block's k3e6 is slower than k5e6 on the Xeon."""
    space, cpu = read_tfnas(tfnas_path, "cpu")
    first = cpu["latency"].values.configs[0][0]
    index = {config.name: c for c, config in enumerate(space.stages[0].blocks[0])}
    assert first[index["k3e6"]] > first[index["k5e6"]]
