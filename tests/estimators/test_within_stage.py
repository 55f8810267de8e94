"""Interactions inside a stage: exactly searched, by brute force, also under limits."""

from __future__ import annotations

import numpy as np
import pytest
from made import UNEVEN, distinct, samples_of, space_of

from binas.base.errors import EstimatorError
from binas.estimators import WithinStageEstimator
from binas.search import SearchProblem, frontier, solve
from binas.search.limits import Limit
from binas.space import enumerate_all
from binas.tables import Cost, parse_unit
from binas.testing import brute_force, brute_force_frontier
from binas.testing.cases import random_column

EVERY = enumerate_all(UNEVEN)


def fitted(seed: int) -> WithinStageEstimator:
    """Learned from accuracies with strong interactions inside stages."""
    rng, rows = np.random.default_rng(seed), UNEVEN.layout.rows(EVERY)
    accuracy = np.full(len(EVERY), 70.0)
    for s in range(len(UNEVEN.stages)):
        own = rows[:, UNEVEN.layout.stage_entries(s)]
        size = own.shape[1]
        accuracy += ((own @ rng.normal(size=(size, size))) * own).sum(axis=1)
    return WithinStageEstimator("identity", ridge=1e-6).fit(samples_of(UNEVEN, accuracy, EVERY))


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("limit", [4.0, 9.0, 100.0])
def test_search_is_exact_under_limits(seed: int, limit: float) -> None:
    estimator = fitted(seed)
    cost = Cost(
        "latency", parse_unit("ms"), 1.0, random_column(UNEVEN, np.random.default_rng(seed), 0.5, 3.0)
    )
    problem = SearchProblem(UNEVEN, estimator.objective(), {"latency": cost}, (Limit("latency", limit),))
    best = brute_force(problem)
    found = solve(problem)
    assert (found.accuracy is None) == (best is None)
    if best is not None:
        assert found.accuracy == pytest.approx(best)
        assert found.architecture is not None
        assert estimator.predict([found.architecture])[0] == pytest.approx(best)
    points = [(point.cost, point.accuracy) for point in frontier(problem, "latency")]
    truth = brute_force_frontier(problem, "latency")
    np.testing.assert_allclose(np.reshape(points, (-1, 2)), np.reshape(truth, (-1, 2)))


def test_interactions_are_learned_that_an_additive_form_cannot_hold() -> None:
    """Accuracy that is high only where two blocks of a stage agree."""
    space = space_of(((2,), (3, 3)), ((1, 2), (2, 2)))
    every = enumerate_all(space)
    accuracy = [90.0 if len(set(item.stages[0])) == 1 else 80.0 for item in every]
    estimator = WithinStageEstimator().fit(samples_of(space, accuracy, every))
    np.testing.assert_allclose(estimator.predict(every), accuracy, atol=0.3)


def test_nothing_across_stages() -> None:
    estimator = fitted(0)
    inside = np.zeros_like(estimator.quadratic_, dtype=bool)
    for s in range(len(UNEVEN.stages)):
        inside[np.ix_(UNEVEN.layout.stage_entries(s), UNEVEN.layout.stage_entries(s))] = True
    assert not estimator.quadratic_[~inside].any()


def test_tables_have_a_value_for_every_variant() -> None:
    tables = fitted(0).stage_tables()
    for stage, table in zip(UNEVEN.stages, tables, strict=True):
        assert sorted(table) == list(stage.depths)
        assert sum(array.size for array in table.values()) == stage.count


def test_stages_too_large_to_list() -> None:
    space = space_of(((7,), (12,) * 7))
    estimator = WithinStageEstimator(ridge=1.0).fit(
        samples_of(space, np.linspace(60, 80, 15).tolist(), distinct(space, 15))
    )
    with pytest.raises(EstimatorError, match="stage 's1' has 35831808 variants"):
        estimator.stage_tables()
