"""The MLP predictor: learns what no quadratic form holds, repeats by seed, stops early, files, search."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from made import UNEVEN, samples_of
from safetensors.torch import save_file

from binas.base.errors import EstimatorError, FileError
from binas.base.statistics import kendall
from binas.estimators import QuadraticPredictor, load_predictor
from binas.estimators.links import LINKS, LinkName, get_link
from binas.estimators.mlp import MLPPredictor
from binas.estimators.objective import CallableObjective
from binas.search import SearchProblem, evaluate, solve
from binas.space import enumerate_all, load_space
from binas.tables import Samples

EVERY = enumerate_all(UNEVEN)
SMALL: dict[str, Any] = {"hidden": (32, 32), "epochs": 60, "patience": 10, "learning_rate": 3e-3}


def accuracies() -> np.ndarray:
    """A product over stages: interactions of every order."""
    rows, rng = UNEVEN.layout.rows(EVERY), np.random.default_rng(0)
    parts = [1 + 0.3 * rows @ rng.normal(size=rows.shape[1]) for _ in range(3)]
    return np.asarray(80 + 5 * np.tanh(np.prod(parts, axis=0)))


def training(count: int = 360) -> Samples:
    return samples_of(UNEVEN, accuracies(), EVERY).split(count, 0)[0]


@pytest.fixture(scope="module")
def fitted() -> MLPPredictor:
    return MLPPredictor("identity", **SMALL).fit(training())


def test_learns_more_than_a_quadratic_form(fitted: MLPPredictor) -> None:
    known = set(training().architectures)
    fresh = [item not in known for item in EVERY]
    truth = accuracies()[fresh]
    mine = kendall(fitted.predict(EVERY)[fresh], truth)
    assert mine > 0.8
    assert mine > kendall(QuadraticPredictor("identity").fit(training()).predict(EVERY)[fresh], truth)


def test_repeats_by_seed_and_leaves_the_global_seed_alone() -> None:
    torch.manual_seed(5)
    before = torch.get_rng_state()
    one, two = (MLPPredictor(**{**SMALL, "epochs": 3}).fit(training(60)) for _ in range(2))
    assert torch.equal(before, torch.get_rng_state())
    other = MLPPredictor(**{**SMALL, "epochs": 3}, seed=1).fit(training(60))
    np.testing.assert_array_equal(one.predict(EVERY), two.predict(EVERY))
    assert (one.predict(EVERY) != other.predict(EVERY)).any()


def test_stops_early_with_the_best_weights() -> None:
    """On pure noise the held-out error is least near the start, however many epochs are allowed."""
    noise = 70 + np.random.default_rng(0).normal(size=len(EVERY))
    settings = {**SMALL, "epochs": 400, "patience": 5}
    found = MLPPredictor(**settings).fit(samples_of(UNEVEN, noise, EVERY).split(100, 0)[0])
    assert found.epochs_ < 50


@pytest.mark.parametrize("link", LINKS)
def test_links(link: LinkName) -> None:
    found = MLPPredictor(link=link, **SMALL).fit(training())
    predicted = found.predict(EVERY)
    np.testing.assert_allclose(
        found.totals(UNEVEN.layout.rows(EVERY)), get_link(link).forward(predicted), rtol=1e-6
    )
    assert kendall(predicted, accuracies()) > 0.8


class TestSearch:
    def test_objective_is_the_prediction(self, fitted: MLPPredictor) -> None:
        problem = SearchProblem(UNEVEN, fitted.objective())
        values = [evaluate(problem, item).accuracy for item in EVERY[:20]]
        np.testing.assert_allclose(values, fitted.predict(EVERY[:20]), rtol=1e-6)

    def test_relaxed_values_and_gradients(self, fitted: MLPPredictor) -> None:
        objective = fitted.objective()
        assert isinstance(objective, CallableObjective)
        assert objective.relaxed is not None
        assert objective.gradient is not None
        layout = UNEVEN.layout
        for item in EVERY[::97]:
            relaxed = objective.percent(objective.relaxed(*layout.encode(item)))
            assert relaxed == pytest.approx(fitted.predict([item])[0], rel=1e-6)
        alpha, beta = layout.uniform()
        of_alpha, of_beta = objective.gradient(alpha, beta)
        step = 1e-3
        for vector, slopes in ((alpha, of_alpha), (beta, of_beta)):
            for i in range(0, len(vector), 3):
                vector[i] += step
                up = objective.relaxed(alpha, beta)
                vector[i] -= 2 * step
                down = objective.relaxed(alpha, beta)
                vector[i] += step
                assert slopes[i] == pytest.approx((up - down) / (2 * step), abs=0.05 * np.abs(slopes).max())

    @pytest.mark.parametrize("solver", ["evolution", "frank-wolfe"])
    def test_solvers_take_it(self, fitted: MLPPredictor, solver: str) -> None:
        settings = {"iterations": 30}
        found = solve(SearchProblem(UNEVEN, fitted.objective()), solver, **settings)
        assert found.architecture is not None
        assert found.accuracy is not None
        assert found.accuracy > np.quantile(fitted.predict(EVERY), 0.9)


class TestFiles:
    def test_round_trip(self, fitted: MLPPredictor, tmp_path: Path) -> None:
        fitted.save(tmp_path / "mlp.safetensors")
        again = load_predictor(tmp_path / "mlp.safetensors", UNEVEN)
        assert isinstance(again, MLPPredictor)
        assert again.settings() == fitted.settings()
        assert again.epochs_ == fitted.epochs_
        np.testing.assert_array_equal(again.predict(EVERY), fitted.predict(EVERY))

    def test_other_space(self, fitted: MLPPredictor, tmp_path: Path) -> None:
        fitted.save(tmp_path / "mlp.safetensors")
        with pytest.raises(EstimatorError, match="made for the space 'made'"):
            load_predictor(tmp_path / "mlp.safetensors", load_space("small-28"))

    def test_damaged(self, fitted: MLPPredictor, tmp_path: Path) -> None:
        path = tmp_path / "mlp.safetensors"
        with pytest.raises(FileError, match="no such file"):
            load_predictor(path, UNEVEN)
        fitted.save(path)
        path.write_bytes(path.read_bytes()[:-100])
        with pytest.raises(EstimatorError, match="is not a binas MLP predictor"):
            load_predictor(path, UNEVEN)
        save_file({"x": torch.zeros(2)}, path)
        with pytest.raises(EstimatorError, match="is not a binas MLP predictor"):
            load_predictor(path, UNEVEN)

    def test_tensors_of_another_network(self, tmp_path: Path) -> None:
        found = MLPPredictor(**{**SMALL, "epochs": 1}).fit(training(40))
        found.hidden = (8,)
        found.save(tmp_path / "mlp.safetensors")
        with pytest.raises(EstimatorError, match="are not those of its network"):
            load_predictor(tmp_path / "mlp.safetensors", UNEVEN)


@pytest.mark.parametrize(
    "change", [{"hidden": (0,)}, {"validation": 0.0}, {"epochs": 0}, {"weight_decay": -1.0}]
)
def test_bad_settings(change: dict[str, Any]) -> None:
    with pytest.raises(EstimatorError, match="the mlp predictor needs"):
        MLPPredictor(**{**SMALL, **change}).fit(training())


def test_too_few_samples() -> None:
    with pytest.raises(EstimatorError, match="at least 10 samples and holds some out; there are 9"):
        MLPPredictor().fit(training(9))
    with pytest.raises(EstimatorError, match=r"validation is 0.01"):
        MLPPredictor(validation=0.01).fit(training(20))


def test_nothing_before_fitting() -> None:
    for use in (lambda: MLPPredictor().predict(EVERY), lambda: MLPPredictor().objective()):
        with pytest.raises(EstimatorError, match="this mlp predictor has learned nothing yet"):
            use()
