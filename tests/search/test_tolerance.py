"""The edge of a limit is the same for whoever judges: solvers, lists, frontiers, the verifier's evaluation, brute force."""

import pytest

from binas.search.alternatives import best_architectures
from binas.search.frontier import frontier
from binas.search.limits import Limit
from binas.search.problem import evaluate
from binas.search.result import Status
from binas.search.solve import solve
from binas.search.solvers import SOLVERS, solver_class
from binas.testing import brute_force, make_problem, make_space

USABLE = [
    name
    for name in SOLVERS
    if solver_class(name).missing() is None and not solver_class(name).capabilities.supernet
]
EXACT = [name for name in USABLE if solver_class(name).capabilities.exact]
PARTS = [0.5, 0.99, 1.01, 1.5, 1.99, 3.0]  # of the tolerance of 1e-9 by which the limit is below a cost


def edge(part, limits=1):
    """A limit that the best architecture (of two limits: under the first) oversteps by so much of its tolerance."""
    problem = make_problem(make_space(2, 2, 3), 0, extra_costs=1)
    problem = problem.with_limits([Limit("latency", 0.6 * problem.scales["latency"])])
    cost = "latency" if limits == 1 else "cost1"
    best = solve(problem, "milp").evaluation
    limit = Limit(cost, best.costs[cost] * (1 - 1e-9 * part))
    return problem.with_limits([limit] if limits == 1 else [*problem.limits, limit]), best.architecture


@pytest.mark.parametrize("limits", [1, 2])
@pytest.mark.parametrize("part", PARTS)
def test_everyone_draws_the_line_at_the_same_place(part, limits):
    problem, architecture = edge(part, limits)
    best, judged = brute_force(problem), evaluate(problem, architecture)
    assert judged.feasible is (part < 1)
    assert (judged.accuracy == pytest.approx(best)) is judged.feasible
    assert best_architectures(problem, 1).items[0].accuracy == pytest.approx(best, abs=1e-9)
    for name in EXACT:
        found = solve(problem, name)
        assert (name, found.status) == (name, Status.OPTIMAL)
        assert (name, found.accuracy) == (name, pytest.approx(best, abs=1e-9))


@pytest.mark.parametrize("name", USABLE)
@pytest.mark.parametrize("part", PARTS)
def test_no_solver_oversteps_it(name, part):
    problem, _ = edge(part, 2)
    found = solve(problem, name)
    assert found.evaluation is None or found.evaluation.feasible
    assert found.accuracy is None or found.accuracy <= brute_force(problem) + 1e-9


@pytest.mark.parametrize("part", PARTS)
def test_the_edge_of_what_is_possible_at_all(part):
    problem = make_problem(make_space(2, 2, 3), 0)
    lightest = problem.costs["latency"].cheapest(problem.space)
    limit = problem.cost("latency", lightest) * (1 - 1e-9 * part)
    limited, possible = problem.with_limits([Limit("latency", limit)]), part < 1
    assert evaluate(limited, lightest).feasible is possible
    assert (brute_force(limited) is not None) is possible
    assert (frontier(problem, "latency").at(limit) is not None) is possible
    for name in EXACT:
        assert (name, solve(limited, name).status.has_answer) == (name, possible)
