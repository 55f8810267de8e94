"""Predictors by name and their learning curves."""

from __future__ import annotations

import numpy as np
import pytest
from made import UNEVEN, samples_of

from binas.base.errors import EstimatorError
from binas.estimators.predictors import PREDICTORS, PredictorSettings, learning_curve, make_predictor
from binas.space import enumerate_all
from binas.tables import Samples


def samples() -> Samples:
    every = enumerate_all(UNEVEN)
    accuracy = 70 + np.random.default_rng(0).normal(size=len(every))
    return samples_of(UNEVEN, accuracy, every).split(60, 0)[0]


@pytest.mark.parametrize("name", PREDICTORS)
def test_predictors_by_name(name: str) -> None:
    made = make_predictor(name, link="log", seed=4)
    assert (made.kind, made.link, made.seed) == (name, "log", 4)


def test_solver_is_for_closed_forms() -> None:
    closed = [name for name in PREDICTORS if "solver" in make_predictor(name).settings()]
    assert closed == ["additive", "bilinear", "quadratic", "within-stage"]
    assert make_predictor("quadratic", solver="svd").settings()["solver"] == "svd"


def test_defaults_are_those_that_rank_best() -> None:
    """On NAS-Bench-Macro svd without a link was the worst of all variants."""
    assert {make_predictor(name).link for name in PREDICTORS} == {"log"}
    settings = PredictorSettings()
    assert (settings.link, settings.solver) == ("log", "ridge")
    assert settings.fit == ("additive", "within-stage", "quadratic", "pairs", "gaussian-process")


def test_curve_learns_from_the_first_samples() -> None:
    found = list(learning_curve(samples(), ["additive", "quadratic"], [20, 60], seed=1))
    assert [item.name for item in found] == [
        "additive, 20 samples",
        "additive, 60 samples",
        "quadratic, 20 samples",
        "quadratic, 60 samples",
    ]
    assert [item.file for item in found[::2]] == ["additive.json", "quadratic.json"]
    assert all(item.seconds > 0 for item in found)
    alone = make_predictor("additive", seed=1).fit(samples().take(range(20)))
    every = enumerate_all(UNEVEN)
    np.testing.assert_array_equal(found[0].predictor.predict(every), alone.predict(every))


def test_wrong_names_and_counts_are_found_before_any_fit() -> None:
    with pytest.raises(EstimatorError, match="no predictor 'forest'"):
        next(learning_curve(samples(), ["additive", "forest"], [20]))
    with pytest.raises(EstimatorError, match="cannot learn from 61 samples: there are 60"):
        next(learning_curve(samples(), ["additive"], [20, 61]))
