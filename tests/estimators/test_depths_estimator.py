"""Pairs of depths beside contributions: weighed by samples, searched exactly."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from made import random_column, random_contributions, samples_of, space_of

from binas.base.errors import EstimatorError
from binas.estimators import DepthsEstimator, make_estimator
from binas.estimators.calibration import mean_gradient, own_errors
from binas.search import Limit, SearchProblem, solve
from binas.space import enumerate_all
from binas.tables import Contributions, Cost
from binas.tables.units import parse_unit
from binas.testing import brute_force

SPACE = space_of(((1, 2), (2, 2)), ((0, 1, 2), (2, 3)), ((1,), (2,)))
EVERY = enumerate_all(SPACE)
PAIR = np.array([[1.0, -0.5, -0.5], [-1.0, 0.5, 0.5]])


def table(seed: int = 0) -> Contributions:
    return replace(random_contributions(SPACE, seed), depth_pairs={(0, 1): PAIR})


def test_before_samples_both_count_in_full() -> None:
    estimator = DepthsEstimator(table())
    for item, found in zip(EVERY, estimator.predict(EVERY), strict=True):
        together = PAIR[item.depths[0] - 1, item.depths[1]]
        assert found == pytest.approx(table().predict([item])[0][0] + together)


@pytest.mark.parametrize(("own", "pairs", "expected"), [(0.6, 0.3, 0.3), (0.8, 0.0, 0.0), (0.6, -0.5, 0.0)])
def test_samples_say_how_far_each_holds(own: float, pairs: float, expected: float) -> None:
    parts = DepthsEstimator(table())._parts(EVERY)
    samples = samples_of(SPACE, 20 + parts @ [own, pairs], EVERY)
    fitted = DepthsEstimator(table()).fit(samples)
    assert fitted.slopes_[1] == pytest.approx(expected, abs=1e-9)
    if pairs >= 0:
        assert fitted.slopes_[0] == pytest.approx(own)
        np.testing.assert_allclose(fitted.predict(EVERY), samples.accuracy)
    assert fitted.standard_error(EVERY) == pytest.approx(fitted.slopes_[0] * table().predict(EVERY)[1])


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("limit", [5.0, 9.0])
def test_search_is_exact(seed: int, limit: float) -> None:
    samples = samples_of(SPACE, 70 + np.random.default_rng(seed).normal(size=len(EVERY)), EVERY)
    estimator = make_estimator("depths", table(seed), samples)
    cost = Cost("latency", parse_unit("ms"), 1.0, random_column(SPACE, seed, 1.0).map(np.abs))
    problem = SearchProblem.build(estimator, {"latency": cost}, [Limit("latency", limit)])
    best, found = brute_force(problem), solve(problem)
    assert found.accuracy == (None if best is None else pytest.approx(best))
    if found.architecture is not None:
        assert estimator.predict([found.architecture])[0] == pytest.approx(best)


def test_what_all_networks_share_is_not_in_the_errors_of_what_is_shown() -> None:
    """The error of the base accuracy, however large: the level of the samples replaces it."""
    vague = replace(table(), base_stderr=50.0)
    samples = samples_of(SPACE, vague.predict(EVERY)[0], EVERY)
    estimator = make_estimator("depths", vague, samples)
    mean = mean_gradient(estimator, EVERY)
    assert own_errors(estimator, EVERY, mean).max() < 2.0 < 40.0 < estimator.standard_error(EVERY).min()


def test_tables_without_pairs() -> None:
    with pytest.raises(EstimatorError, match="hold no pairs of depths"):
        DepthsEstimator(random_contributions(SPACE))


def test_too_many_combinations() -> None:
    space = space_of(*(((1, 2, 3), (1, 1, 1)),) * 7)
    contributions = replace(random_contributions(space), depth_pairs={})
    with pytest.raises(EstimatorError, match="more than 2000 combinations"):
        DepthsEstimator(contributions)
