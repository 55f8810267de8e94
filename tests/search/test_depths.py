"""Objectives in which depths of different stages depend on each other: exact, by brute force."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from binas.base.errors import ProblemError
from binas.estimators.objective import MOST_COMBINATIONS, BilinearObjective, DepthsObjective
from binas.search import Status, best_architectures, frontier, solve
from binas.search.depths import by_depths
from binas.search.problem import SearchProblem, evaluate
from binas.search.solvers import make_solver
from binas.space import enumerate_all
from binas.tables import Column
from binas.testing import brute_force_frontier, check_case, depths_cases, make_space
from binas.testing.cases import Case

CASES = depths_cases()
by_name = pytest.mark.parametrize("case", CASES, ids=[case.name for case in CASES])


@by_name
@pytest.mark.parametrize("solver", ["auto", "frontier"])
def test_exact(case: Case, solver: str) -> None:
    check_case(make_solver(solver), case)


@by_name
def test_frontier(case: Case) -> None:
    problem = case.problem.with_limits(limit for limit in case.problem.limits if not limit.lower)
    points = [(point.cost, point.accuracy) for point in frontier(problem, "latency")]
    truth = brute_force_frontier(problem, "latency")
    np.testing.assert_allclose(np.reshape(points, (-1, 2)), np.reshape(truth, (-1, 2)))
    for point in frontier(problem, "latency"):
        assert problem.objective.value(problem.space, point.architecture) == pytest.approx(point.accuracy)


@by_name
def test_alternatives(case: Case) -> None:
    every = [evaluate(case.problem, item) for item in enumerate_all(case.problem.space)]
    values = np.sort([-item.accuracy for item in every if item.feasible])
    top = best_architectures(case.problem, count=5)
    np.testing.assert_allclose([-item.accuracy for item in top.items], values[:5])
    near = best_architectures(case.problem, within=0.5)
    assert len(near.items) == (values <= values[0] + 0.5).sum() if len(values) else not near.items


def test_parts_that_cannot_reach_the_best_are_not_solved() -> None:
    space = make_space(4, 3, 4)
    joint = np.full([len(stage.depths) for stage in space.stages], -50.0)
    joint[(0,) * joint.ndim] = 0.0
    inner = BilinearObjective(70.0, Column.full(space, 0.1))
    result = solve(SearchProblem(space, DepthsObjective(inner, joint)))
    assert result.status is Status.OPTIMAL
    assert result.details["combinations of depths"] == 1


def test_too_many_combinations() -> None:
    space = make_space(12, 2, 2)
    joint = np.zeros([len(stage.depths) for stage in space.stages])
    assert joint.size > MOST_COMBINATIONS
    problem = SearchProblem(space, DepthsObjective(BilinearObjective(0.0, Column.full(space, 0.0)), joint))
    with pytest.raises(ProblemError, match=f"combinations of depths, more than the {MOST_COMBINATIONS}"):
        by_depths(problem)


def test_wrong_shapes_are_refused() -> None:
    problem = CASES[0].problem
    with pytest.raises(ProblemError, match="does not fit the space"):
        replace(problem, objective=replace(problem.objective, joint=np.zeros(3)))  # type: ignore[arg-type]
