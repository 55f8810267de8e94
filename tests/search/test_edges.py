"""Cases a reviewer found: contradictory limits, completeness of lists, negative costs, huge numbers, deep stages."""

import json
import subprocess
import sys

import numpy as np
import pytest

from binas.base.errors import ArchitectureError, ProblemError
from binas.estimators.objective import BilinearObjective
from binas.search.alternatives import best_architectures
from binas.search.explain import explain
from binas.search.frontier import frontier
from binas.search.infeasible import explain_infeasible
from binas.search.limits import Limit
from binas.search.problem import SearchProblem, evaluate
from binas.search.result import Status, costs_json
from binas.search.solve import solve
from binas.search.surroundings import prices, step_for
from binas.space import load_space
from binas.tables.entries import Column
from binas.testing import make_problem, make_space, small_space
from binas.testing.cases import make_cost
from binas.testing.paper_example import paper_contributions, paper_costs, write_paper_example


def test_contradictory_limits_on_one_cost_are_explained_exactly():
    """The narrowest of all bands: no solver would find what is between 50 ms and the next network above them."""
    space = load_space("imagenet-mbconv")
    limits = ["latency>=50ms", "latency<=40ms"]
    problem = SearchProblem.build(paper_contributions(space), paper_costs(space), limits)
    assert solve(problem).status is Status.INFEASIBLE
    report = explain_infeasible(problem)
    assert len(report.relaxations) == 2
    for item in report.relaxations:
        eased = [Limit(x.cost, item.value, x.lower) if x is item.limit else x for x in problem.limits]
        result = solve(problem.with_limits(eased))
        assert result.status is Status.OPTIMAL
        assert result.details["method"] == "band"
        assert item.proven
        assert item.value == pytest.approx({True: 40.0, False: 50.0}[item.limit.lower], rel=1e-8)
    assert "The smallest change" in report.sentence()


def knapsack_with_unused_budget():
    """Values of feasible architectures lie far below the bound because the multiplier prices unused budget."""
    space = small_space([((1,), (3,)), *[((1,), (2,))] * 15])
    values = Column.build(space, lambda s, i: 0.0, lambda s, b, c: (1.0, 2.0, 3.0)[c] if s == 0 else 10.0 * c)
    costs = Column.build(space, lambda s, i: 0.0, lambda s, b, c: (0.0, 1.01, 2.0)[c] if s == 0 else 10.0 * c)
    cost = make_cost(space, "latency", costs, 0.0)
    return SearchProblem(space, BilinearObjective(0.0, values), {"latency": cost}, (Limit("latency", 1.5),))


@pytest.mark.parametrize("question", [{"count": 10}, {"within": 5.0}])
def test_lists_are_complete_when_they_say_so(question):
    found = best_architectures(knapsack_with_unused_budget(), **question)
    assert [item.accuracy for item in found.items] == [2.0, 1.0]
    assert found.complete


def test_a_cut_list_says_so_in_small_spaces_too():
    problem = make_problem(make_space(2, 2, 7, min_depth=1), 0)
    assert problem.space.count > 1000
    for question in ({"within": 1000.0}, {"count": 100_000}):
        found = best_architectures(problem, **question)
        assert len(found.items) == 1000
        assert not found.complete


@pytest.mark.parametrize("question", [{}, {"count": 2.5}, {"count": 0}, {"within": float("nan")}])
def test_questions_without_an_answer_are_refused(question):
    with pytest.raises(ProblemError, match="ask for"):
        best_architectures(make_problem(make_space(2, 2, 3), 0), **question)


def test_negative_totals_are_read_from_the_frontier():
    space = small_space([((1, 2), (2, 2))])
    values = Column.build(space, lambda s, i: float(i), lambda s, b, c: float(c))
    costs = Column.build(space, lambda s, i: -5.0 + i, lambda s, b, c: 1.1 * c)
    cost = make_cost(space, "latency", costs, 0.0)
    problem = SearchProblem(space, BilinearObjective(0.0, values), {"latency": cost})
    found = frontier(problem, "latency")
    for point in found:
        assert point.cost < 0
        assert found.at(point.cost) == point


@pytest.mark.parametrize("value", [1e308, float("nan"), float("inf")])
def test_numbers_that_cannot_be_added_up_are_refused(value):
    made = make_problem(make_space(2, 2, 3), 0)
    cost = make_cost(made.space, "latency", made.costs["latency"].values, value)
    with pytest.raises(ProblemError, match="too large"):
        SearchProblem(made.space, made.objective, {"latency": cost})
    with pytest.raises(ProblemError, match="too large"):
        SearchProblem(made.space, BilinearObjective(value, made.objective.values), made.costs)


def test_misuse_from_python_is_explained():
    problem = make_problem(make_space(2, 2, 3), 0)
    with pytest.raises(ProblemError, match="not a Limit"):
        SearchProblem(problem.space, problem.objective, problem.costs, ("latency=45ms",))
    with pytest.raises(ArchitectureError, match=r"space\.parse"):
        evaluate(problem, "c0-c0_c0-c0")
    with pytest.raises(ProblemError, match="another space"):
        SearchProblem(problem.space, problem.objective, make_problem(make_space(3, 2, 3), 0).costs)
    with pytest.raises(ProblemError, match="time limit"):
        solve(problem, time_limit=-1)
    with pytest.raises(ProblemError, match="nothing to explain"):
        explain_infeasible(problem)
    with pytest.raises(ProblemError, match="tolerance"):
        frontier(problem, "latency", tolerance=float("inf"))


def test_a_limit_at_the_edge_of_its_tolerance_is_judged_alike_by_solver_and_verifier():
    problem = make_problem(make_space(3, 3, 5), 2)
    for point in frontier(problem, "latency")[::10]:
        edge = problem.with_limits([Limit("latency", point.cost / (1 + 1e-9))])
        for solver in ("auto", "milp"):
            assert solve(edge, solver).status is Status.OPTIMAL


def test_prices_of_extreme_limits():
    problem = make_problem(make_space(2, 2, 3), 0)
    assert step_for(5e-324) == 1.0
    huge = solve(problem.with_limits([Limit("latency", 1.7e308)]))
    assert [price.gain for price in prices(huge)] in ([], [0.0])
    twice = solve(problem.with_limits([Limit("latency", 14.0), Limit("latency", 14.0)]))
    assert len(list(prices(twice))) == 1


def test_of_several_limits_on_one_cost_the_tightest_is_reported():
    problem = make_problem(make_space(2, 2, 3), 0)
    limits = [
        Limit("latency", 14.0),
        Limit("latency", 15.0),
        Limit("latency", 1.0, True),
        Limit("latency", 0.5, True),
    ]
    problem = problem.with_limits(limits)
    shown = costs_json(problem, solve(problem).evaluation)["latency"]
    assert (shown["limit"], shown["lower_limit"]) == (14.0, 1.0)


def test_a_stage_of_a_thousand_blocks():
    space = small_space([((999, 1000), (2,) * 1000)])
    ones = Column.build(space, lambda s, i: 0.0, lambda s, b, c: float(c))
    cost = make_cost(space, "latency", ones, 0.0)
    problem = SearchProblem(space, BilinearObjective(0.0, ones), {"latency": cost})
    found = frontier(problem, "latency")
    assert len(found) == 1001
    assert evaluate(problem, found[-1].architecture).accuracy == pytest.approx(1000.0)


def test_too_many_pairs_are_thinned_with_a_certificate(monkeypatch):
    problem = make_problem(make_space(5, 4, 8), 3)
    exact = frontier(problem, "latency")
    monkeypatch.setattr("binas.search.fold.MAX_PAIRS", 1000)
    monkeypatch.setattr("binas.search.fold.LEAST_LABELS", 20)
    rough = frontier(problem, "latency")
    worst = max(p.accuracy - q.accuracy for p in exact if (q := rough.at(p.cost)) is not None)
    assert 0 < worst <= rough.error


def test_a_deeper_stage_may_mix_configs_in_an_explanation():
    space = small_space([((1, 3), (1, 2, 2))])
    values = Column.build(space, lambda s, i: 0.0, lambda s, b, c: float(c if b == 1 else -c))
    costs = Column.build(space, lambda s, i: 0.0, lambda s, b, c: 1.0 + c)
    cost = make_cost(space, "latency", costs, 0.0)
    problem = SearchProblem(space, BilinearObjective(0.0, values), {"latency": cost})
    report = explain(problem, space.parse("c0"))
    assert report.decisions[0].best.choice == "3 (+c1-c0)"
    assert report.decisions[0].best.accuracy == 1.0


def run(arguments, **more):
    command = [sys.executable, "-m", "binas.cli.main", *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False, **more)


def test_command_line_edges(tmp_path):
    write_paper_example(tmp_path)
    many = "\n".join(
        f"  - {{name: s{s}, depths: [100], configs: {{e: [{', '.join(map(str, range(50)))}]}}}}"
        for s in range(30)
    )
    (tmp_path / "many.yaml").write_text(f"format: binas/space\nversion: 1\nname: many\nstages:\n{many}\n")
    counted = run(["space", "count", str(tmp_path / "many.yaml")])
    assert counted.returncode == 0
    assert len(counted.stdout.strip()) > 4300
    none = run(["frontier", str(tmp_path), "-l", "params=1k", "--json"])
    assert none.returncode == 2
    assert json.loads(none.stdout)["points"] == []
    best = run(["explain", str(tmp_path), "best", "-l", "latency=1ms"])
    assert best.returncode == 2
    assert "The smallest change" in best.stderr
    endless = run(["frontier", str(tmp_path), "--tolerance", "inf"])
    assert endless.returncode == 2
    assert "Traceback" not in endless.stderr


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="needs /dev/full")
def test_a_full_disk_is_no_traceback(tmp_path):
    write_paper_example(tmp_path)
    command = f"{sys.executable} -m binas.cli.main frontier {tmp_path} --json > /dev/full"
    done = subprocess.run(["bash", "-c", command], capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert "Traceback" not in done.stderr
    assert "could not be written" in done.stderr


def test_snapping_keeps_sums_exact():
    from binas.search.terms import build_terms, cost_row

    terms = build_terms(make_problem(make_space(4, 4, 6), 1), [cost_row("latency")])
    numbers = np.concatenate([block[1] for stage in terms.stages for block in stage.blocks])
    rng = np.random.default_rng(0)
    assert len({float(sum(rng.permutation(numbers).tolist())) for _ in range(20)}) == 1
