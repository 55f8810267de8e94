"""branch-bound: bounds that hold, proofs that agree with brute force, honest answers when it is stopped."""

import numpy as np
import pytest

from binas.estimators.objective import QuadraticObjective
from binas.search import Limit, SearchProblem, solve
from binas.search.network import network_of, tightened
from binas.search.problem import evaluate
from binas.search.result import Status
from binas.search.solvers import Options, branch_bound
from binas.space import enumerate_all
from binas.testing import brute_force, small_space
from binas.testing.cases import make_cost, quadratic_cases, random_column

SHAPE = (((1, 2), (3, 3)), ((0, 1, 2), (4, 3)), ((1, 2), (3, 2)))


def problem(seed: int, limit: float | None = 9.0, strength: float = 1.0) -> SearchProblem:
    space, rng = small_space(SHAPE), np.random.default_rng(seed)
    size = space.layout.size
    objective = QuadraticObjective(50.0, rng.normal(size=size), strength * rng.normal(size=(size, size)))
    cost = make_cost(space, "latency", random_column(space, rng, 0.5, 4.0))
    return SearchProblem(
        space, objective, {"latency": cost}, () if limit is None else (Limit("latency", limit),)
    )


def assignments(item: SearchProblem) -> np.ndarray:
    network, layout = network_of(item), item.space.layout
    return np.array([network.assignment(row) for row in layout.positions_of(enumerate_all(item.space))])


def test_the_network_says_what_the_objective_says() -> None:
    item = problem(0)
    every, network = enumerate_all(item.space), network_of(item)
    expected = [item.objective.value(item.space, architecture) for architecture in every]
    np.testing.assert_allclose(network.values(assignments(item)), expected)
    spent = [item.cost("latency", architecture) - 9.0 for architecture in every]
    np.testing.assert_allclose(network.costs(assignments(item))[:, 0] - network.room[0], spent, atol=1e-6)


@pytest.mark.parametrize("seed", range(5))
def test_tightening_keeps_every_value_and_lowers_the_bound(seed: int) -> None:
    """With prices the value of what keeps the limits can only rise, by price times what is left of the limit."""
    item = problem(seed)
    plain, every = network_of(item), assignments(item)
    better = tightened(plain)
    within = every[(plain.costs(every) <= plain.room).all(axis=1)]
    assert better.bound <= plain.bound
    assert (better.values(within) >= plain.values(within) - 1e-9).all()
    assert better.bound >= plain.values(within).max() - 1e-9
    free = problem(seed, limit=None)
    np.testing.assert_allclose(
        tightened(network_of(free)).values(every), network_of(free).values(every), atol=1e-9
    )


@pytest.mark.parametrize("seed", range(12))
def test_the_optimum_is_that_of_brute_force(seed: int) -> None:
    item = problem(seed, limit=[None, 6.0, 9.0, 1.5][seed % 4], strength=[0.1, 1.0, 3.0][seed % 3])
    result, best = solve(item, "branch-bound"), brute_force(item)
    assert str(result.status) == ("infeasible" if best is None else "optimal")
    assert best is None or result.accuracy == pytest.approx(best, abs=1e-8)


def test_stopped_early_it_says_how_far_it_may_be() -> None:
    item = problem(3)
    result, best = solve(item, "branch-bound", max_partial=0), brute_force(item)
    assert str(result.status) == "stopped-with-answer"
    assert best is not None
    assert result.bound is not None
    assert result.accuracy is not None
    assert result.accuracy <= best + 1e-9 <= result.bound + 2e-9


@pytest.mark.parametrize("seed", range(4))
def test_the_bound_of_a_proof_holds_for_what_was_left_out_as_no_better(
    seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Rounding as wide as from the second best to the best."""
    item = problem(seed)
    every = [evaluate(item, architecture) for architecture in enumerate_all(item.space)]
    best, second = sorted((e for e in every if e.feasible), key=lambda e: -e.accuracy)[:2]
    monkeypatch.setattr(branch_bound, "PROVEN", 1.1 * (best.accuracy / second.accuracy - 1.0))
    monkeypatch.setattr(branch_bound._Search, "dive", lambda *_: None)
    answer = branch_bound.BranchBound().solve(item, Options(warm_start=second.architecture))
    assert answer.status is Status.OPTIMAL
    assert answer.bound is not None
    assert best.accuracy <= answer.bound + 1e-9


def test_a_warm_start_is_not_forgotten() -> None:
    item = problem(4)
    best = solve(item, "branch-bound").architecture
    again = solve(item, "branch-bound", warm_start=best, max_partial=0)
    assert again.accuracy == pytest.approx(brute_force(item))


def test_pieces_do_not_change_the_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    expected = [solve(case.problem, "branch-bound").accuracy for case in quadratic_cases()]
    for name, size in (("CHUNK", 3), ("AT_ONCE", 20), ("BEAM", 1)):
        monkeypatch.setattr(branch_bound, name, size)
    found = [solve(case.problem, "branch-bound").accuracy for case in quadratic_cases()]
    assert found == pytest.approx(expected)
