"""Learned predictors: the paper's algorithm, scikit-learn, what they can learn, files, search."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from made import UNEVEN, distinct, random_contributions, samples_of
from sklearn.decomposition import PCA
from sklearn.linear_model import LinearRegression, Ridge
from sklearn.pipeline import make_pipeline

from binas.base.errors import EstimatorError, FileError
from binas.base.statistics import kendall
from binas.estimators import (
    AdditivePredictor,
    BilinearEstimator,
    BilinearPredictor,
    QuadraticPredictor,
    WithinStageEstimator,
    load_predictor,
)
from binas.estimators.closed_form import ClosedFormPredictor
from binas.estimators.links import LINKS, LinkName, get_link
from binas.estimators.predictors import form_from_data
from binas.search import SearchProblem, evaluate, solve
from binas.space import enumerate_all
from binas.tables import Samples
from binas.testing import brute_force

KINDS: list[type[ClosedFormPredictor]] = [
    AdditivePredictor,
    BilinearPredictor,
    QuadraticPredictor,
    WithinStageEstimator,
]
kinds = pytest.mark.parametrize("kind", KINDS, ids=lambda cls: cls.kind)
solvers = pytest.mark.parametrize("solver", ["svd", "ridge"])

EVERY = enumerate_all(UNEVEN)
ROWS = UNEVEN.layout.rows(EVERY)


def quadratic_truth(seed: int = 0, noise: float = 0.0) -> np.ndarray:
    """Accuracies of every architecture: a random quadratic form of z, main effects larger than products."""
    rng = np.random.default_rng(seed)
    size = ROWS.shape[1]
    products = ((ROWS @ (0.3 * rng.normal(size=(size, size)))) * ROWS).sum(axis=1)
    return np.asarray(70 + ROWS @ rng.normal(size=size) + products + noise * rng.normal(size=len(EVERY)))


def some(count: int, seed: int = 0, noise: float = 0.0) -> Samples:
    truth = dict(zip(EVERY, quadratic_truth(seed, noise), strict=True))
    return samples_of(UNEVEN, truth.__getitem__, distinct(UNEVEN, count, seed))


def algorithm_2(x: np.ndarray, y: np.ndarray, k: int) -> tuple[float, np.ndarray, np.ndarray]:
    """The paper's closed form, line by line."""
    tilde = np.array([np.concatenate([row, np.kron(row, row)]) for row in x])
    hat, centred = tilde - tilde.mean(axis=0), y - y.mean()
    u, s, vt = np.linalg.svd(hat, full_matrices=False)
    w = vt[:k].T @ np.diag(1 / s[:k]) @ u[:, :k].T @ centred
    n = x.shape[1]
    return float(np.mean(y - tilde @ w)), w[:n], w[n:].reshape(n, n)


@pytest.mark.parametrize("k", [1, 5, 20])
def test_algorithm_2_of_the_paper(k: int) -> None:
    samples = some(50)
    found = QuadraticPredictor("identity", "svd", components=k).fit(samples)
    b, a, q = algorithm_2(UNEVEN.layout.rows(samples.architectures), samples.accuracy, k)
    assert found.constant_ == pytest.approx(b)
    np.testing.assert_allclose(found.linear_, a, atol=1e-9)
    np.testing.assert_allclose(found.quadratic_, q, atol=1e-9)
    assert found.chosen_.components == k


def features(rows: np.ndarray, kind: type[ClosedFormPredictor]) -> np.ndarray:
    products = [
        (rows[:, left, None] * rows[:, None, right]).reshape(len(rows), -1)
        for left, right in kind.groups(UNEVEN)
    ]
    return np.column_stack([rows, *products])


@kinds
def test_svd_is_principal_component_regression(kind: type[ClosedFormPredictor]) -> None:
    samples = some(50)
    rows = UNEVEN.layout.rows(samples.architectures)
    peer = make_pipeline(PCA(n_components=6, svd_solver="full"), LinearRegression())
    peer.fit(features(rows, kind), samples.accuracy)
    found = kind("identity", "svd", components=6).fit(samples)
    np.testing.assert_allclose(found.predict(EVERY), peer.predict(features(ROWS, kind)))


@kinds
@pytest.mark.parametrize("link", LINKS)
def test_ridge_is_scikit_learns(kind: type[ClosedFormPredictor], link: LinkName) -> None:
    samples = some(50)
    rows = UNEVEN.layout.rows(samples.architectures)
    scale = get_link(link)
    peer = Ridge(alpha=2.0).fit(features(rows, kind), scale.forward(samples.accuracy))
    found = kind(link=link, solver="ridge", ridge=2.0).fit(samples)
    np.testing.assert_allclose(found.predict(EVERY), scale.inverse(peer.predict(features(ROWS, kind))))
    assert (found.chosen_.ridge, found.chosen_.weight) == (2.0, 1.0)


@solvers
def test_a_quadratic_truth_is_learned(solver: Any) -> None:
    """Without noise and with enough samples the quadratic form is found; the others do not hold it."""
    samples, truth = some(len(EVERY) - 20), quadratic_truth()
    errors = {
        kind.kind: float(np.abs(kind("identity", solver).fit(samples).predict(EVERY) - truth).max())
        for kind in KINDS
    }
    assert errors["quadratic"] < 0.01
    assert min(errors["within-stage"], errors["bilinear"]) < errors["additive"]
    assert errors["additive"] > 0.5


@solvers
def test_noise_is_regularised_away(solver: Any) -> None:
    """What is chosen on held-out samples ranks better than next to no regularisation."""
    kind, free = QuadraticPredictor, {"components": 1000} if solver == "svd" else {"ridge": 1e-6}
    truth, chosen, loose = quadratic_truth(1), [], []
    for seed in range(4):
        samples = samples_of(UNEVEN, quadratic_truth(1, noise=3.0), EVERY).split(60, seed)[0]
        chosen.append(kendall(kind(solver=solver).fit(samples).predict(EVERY), truth))
        loose.append(kendall(kind(solver=solver, **free).fit(samples).predict(EVERY), truth))
    assert np.mean(chosen) > np.mean(loose)


@kinds
@solvers
def test_fits_repeat(kind: type[ClosedFormPredictor], solver: Any) -> None:
    samples = some(40, noise=1.0)
    one = kind(solver=solver, seed=5)
    assert one.fit(samples) is one
    two = kind(solver=solver, seed=5).fit(samples)
    np.testing.assert_array_equal(one.predict(EVERY), two.predict(EVERY))
    assert one.chosen_ == two.chosen_


@pytest.mark.parametrize("link", LINKS)
def test_additive_gives_contributions(link: LinkName) -> None:
    predictor = AdditivePredictor(link=link).fit(some(60, noise=0.5))
    table = predictor.contributions()
    np.testing.assert_allclose(BilinearEstimator(table, link).predict(EVERY), predictor.predict(EVERY))
    assert table.provenance.to_data()["link"] == link
    assert 60.0 < table.base < 80.0


def test_additive_recovers_contributions() -> None:
    truth = BilinearEstimator(random_contributions(UNEVEN), "log")
    samples = samples_of(UNEVEN, truth.predict(EVERY), EVERY).split(80, 0)[0]
    found = AdditivePredictor(link="log").fit(samples)
    np.testing.assert_allclose(found.predict(EVERY), truth.predict(EVERY), atol=1e-3)


class TestSearch:
    @pytest.mark.parametrize("link", LINKS)
    @pytest.mark.parametrize(("kind", "solver"), [(AdditivePredictor, "auto"), (WithinStageEstimator, "auto"),
        (BilinearPredictor, "miqcp"), (QuadraticPredictor, "miqcp")], ids=lambda x: getattr(x, "kind", x))  # fmt: skip
    def test_the_optimum_is_found(self, kind: type[ClosedFormPredictor], solver: str, link: LinkName) -> None:
        predictor = kind(link=link).fit(some(70, noise=0.3))
        problem = SearchProblem(UNEVEN, predictor.objective())
        predicted = predictor.predict(EVERY)
        found = solve(problem, solver)
        assert found.status == "optimal"
        assert found.architecture is not None
        assert predictor.predict([found.architecture])[0] == pytest.approx(predicted.max(), abs=1e-6)
        assert brute_force(problem) == pytest.approx(float(get_link(link).forward(predicted.max())))

    @kinds
    def test_objectives_have_the_values_of_predictions(self, kind: type[ClosedFormPredictor]) -> None:
        predictor = kind(link="log").fit(some(50, noise=0.5))
        problem = SearchProblem(UNEVEN, predictor.objective())
        values = [evaluate(problem, item).accuracy for item in EVERY]
        np.testing.assert_allclose(values, predictor.predict(EVERY))

    def test_not_before_fitting(self) -> None:
        with pytest.raises(EstimatorError, match="this quadratic predictor has learned nothing yet"):
            QuadraticPredictor().objective()


class TestFiles:
    @kinds
    def test_round_trip(self, kind: type[ClosedFormPredictor], tmp_path: Path) -> None:
        predictor = kind(link="logit", seed=3).fit(some(50, noise=0.5))
        predictor.save(tmp_path / "p.json")
        again = load_predictor(tmp_path / "p.json", UNEVEN)
        assert type(again) is kind
        assert again.settings() == predictor.settings()
        assert again.chosen_ == predictor.chosen_
        np.testing.assert_array_equal(again.predict(EVERY), predictor.predict(EVERY))

    def data(self) -> dict[str, Any]:
        return QuadraticPredictor().fit(some(30)).to_data()

    @pytest.mark.parametrize(
        ("change", "message"),
        [
            ({"kind": "cubic"}, "is not a binas predictor: kind: Input should be 'additive'"),
            ({"version": 2}, "version"),
            ({"linear": [1.0]}, "coefficients for another number of choices"),
            ({"quadratic": [[0.0]]}, "coefficients for another number of choices"),
            ({"constant": float("nan")}, "constant: Input should be a finite number"),
            ({"settings": {}}, "settings.link: Field required"),
            ({"extra": 1}, "extra: Extra inputs"),
        ],
    )
    def test_damaged(self, change: dict[str, Any], message: str) -> None:
        with pytest.raises(EstimatorError, match=message):
            form_from_data({**self.data(), **change}, UNEVEN, "file")

    def test_other_space(self) -> None:
        data = self.data()
        data["space"]["fingerprint"] = "0" * 16
        with pytest.raises(EstimatorError, match="it was made for the space 'made'"):
            form_from_data(data, UNEVEN, "file")

    def test_cut_off(self, tmp_path: Path) -> None:
        path = tmp_path / "p.json"
        path.write_text(json.dumps(self.data())[:-10])
        with pytest.raises(FileError, match="not complete JSON"):
            load_predictor(path, UNEVEN)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"solver": "lasso"}, "no solver 'lasso'; choose one of svd, ridge"),
        ({"components": 0}, "components is 0; it must be at least 1"),
        ({"ridge": 0.0}, "ridge is 0.0; it must be above 0"),
        ({"weight": float("nan")}, "weight is nan"),
        ({"folds": 1}, "folds is 1; it must be at least 2"),
        ({"link": "probit"}, "no link 'probit'"),
    ],
)
def test_bad_settings(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(EstimatorError, match=message):
        QuadraticPredictor(**settings).fit(some(30))


def test_too_few_samples() -> None:
    with pytest.raises(EstimatorError, match="learns from at least 10 samples; there are 9"):
        AdditivePredictor().fit(some(9))
    with pytest.raises(EstimatorError, match="at least 25 samples"):
        AdditivePredictor(folds=25).fit(some(12))


def test_predicting_before_fitting() -> None:
    with pytest.raises(EstimatorError, match="this additive predictor has learned nothing yet"):
        AdditivePredictor().predict(EVERY)
    with pytest.raises(EstimatorError, match="has learned nothing yet"):
        AdditivePredictor().contributions()
