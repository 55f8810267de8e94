"""The Gram route against what it stands for: features written out, refits, NumPy and scikit-learn."""

from __future__ import annotations

import numpy as np
import pytest
from made import UNEVEN, distinct
from sklearn.linear_model import LinearRegression, Ridge
from sklearn.model_selection import LeaveOneOut, cross_val_predict

from binas.base.errors import EstimatorError
from binas.estimators import BilinearPredictor, QuadraticPredictor, WithinStageEstimator, gram

SAMPLES = 60
ROWS = UNEVEN.layout.rows(distinct(UNEVEN, SAMPLES))
TARGET = np.random.default_rng(0).normal(size=SAMPLES)
CENTRED = TARGET - TARGET.mean()
FORMS = {
    cls.kind: cls.groups(UNEVEN) for cls in (BilinearPredictor, QuadraticPredictor, WithinStageEstimator)
}
forms = pytest.mark.parametrize("groups", FORMS.values(), ids=FORMS)


def written_out(rows: np.ndarray, groups: gram.Groups, weight: float = 1.0) -> np.ndarray:
    """(z, sqrt(weight) z_I x z_J, ...), every product in a column of its own."""
    products = [(rows[:, left, None] * rows[:, None, right]).reshape(len(rows), -1) for left, right in groups]
    return np.column_stack([rows, *(np.sqrt(weight) * block for block in products)])


@forms
@pytest.mark.parametrize("weight", [1.0, 0.1])
def test_inner_products(groups: gram.Groups, weight: float) -> None:
    features = written_out(ROWS, groups, weight)
    features = features - features.mean(axis=0)
    np.testing.assert_allclose(gram.gram_matrix(ROWS, groups, weight), features @ features.T, atol=1e-9)


@forms
def test_components_are_those_of_the_features(groups: gram.Groups) -> None:
    features = written_out(ROWS, groups)
    singular = np.linalg.svd(features - features.mean(axis=0), compute_uv=False)
    values, vectors = gram.leading_components(gram.gram_matrix(ROWS, groups), 1000, 0)
    np.testing.assert_allclose(np.sqrt(values), singular[: len(values)], atol=1e-6)
    assert (singular[len(values) :] < 1e-5).all()
    np.testing.assert_allclose(vectors.T @ vectors, np.eye(len(values)), atol=1e-9)


@forms
def test_subspace_iteration_finds_the_same(monkeypatch: pytest.MonkeyPatch, groups: gram.Groups) -> None:
    matrix = gram.gram_matrix(ROWS, groups)
    exact = gram.leading_components(matrix, 8, 0)
    monkeypatch.setattr(gram, "EXACT", 10)
    found = gram.leading_components(matrix, 8, 0)
    np.testing.assert_allclose(found[0], exact[0])
    np.testing.assert_allclose(np.abs((found[1] * exact[1]).sum(axis=0)), 1.0)


def test_subspace_iteration_on_more_than_it_keeps(monkeypatch: pytest.MonkeyPatch) -> None:
    """With less room than there are components the leading ones still come out nearly right."""
    matrix = gram.gram_matrix(ROWS, FORMS["quadratic"])
    exact, _ = gram.leading_components(matrix, 5, 0)
    monkeypatch.setattr(gram, "EXACT", 10)
    monkeypatch.setattr(gram, "OVERSAMPLING", 15)
    np.testing.assert_allclose(gram.leading_components(matrix, 5, 0)[0], exact, rtol=0.02)


@forms
@pytest.mark.parametrize("ridge", [0.3, 20.0])
@pytest.mark.parametrize("weight", [1.0, 0.1])
def test_ridge_is_scikit_learns(groups: gram.Groups, ridge: float, weight: float) -> None:
    features = written_out(ROWS, groups, weight)
    peer = Ridge(alpha=ridge).fit(features, TARGET)
    dual = gram.ridge_fit(gram.gram_matrix(ROWS, groups, weight), CENTRED, ridge)
    np.testing.assert_allclose(features.T @ dual, peer.coef_, atol=1e-8)


@forms
@pytest.mark.parametrize("ridge", [0.3, 20.0])
def test_leave_one_out_is_exact(groups: gram.Groups, ridge: float) -> None:
    features = written_out(ROWS, groups)
    refits = cross_val_predict(Ridge(alpha=ridge), features, TARGET, cv=LeaveOneOut())
    values, vectors = np.linalg.eigh(gram.gram_matrix(ROWS, groups))
    found = gram.leave_one_out(values, vectors, CENTRED, ridge)
    assert found == pytest.approx(np.mean((refits - TARGET) ** 2))


def test_the_ridge_chosen_is_the_best_of_those_tried() -> None:
    groups = FORMS["quadratic"]
    weight, ridge = gram.choose_ridge(ROWS, groups, CENTRED, (0.1, 1.0), 0)
    errors = {}
    for tried in (0.1, 1.0):
        values, vectors = np.linalg.eigh(gram.gram_matrix(ROWS, groups, tried))
        for each in gram.RIDGES * values.mean():
            errors[tried, float(each)] = gram.leave_one_out(values, vectors, CENTRED, float(each))
    best = min(errors, key=errors.__getitem__)
    assert (weight, ridge) == pytest.approx(best)


def test_of_many_samples_some_parts_choose_the_ridge(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gram, "CHOOSING", 15)
    monkeypatch.setattr(gram, "PARTS", 2)
    _, found = gram.choose_ridge(ROWS, [], CENTRED, (1.0,), seed=2)
    order = np.random.default_rng(2).permutation(SAMPLES)[:30]
    parts = [
        gram.ridge_errors(gram.gram_matrix(ROWS[p], []), TARGET[p])
        for p in np.sort(order.reshape(2, 15), axis=1)
    ]
    errors = np.mean([errors for _, errors in parts], axis=0)
    assert found == pytest.approx(float(np.mean([ridges for ridges, _ in parts], axis=0)[np.argmin(errors)]))


def test_held_out_errors_by_number_of_components() -> None:
    """One factorisation per split against a regression for every split and number."""
    _, vectors = gram.leading_components(gram.gram_matrix(ROWS, FORMS["quadratic"]), 25, 0)
    folds = 4
    found = gram.component_errors(vectors, CENTRED, folds, seed=3)
    parts = np.array_split(np.random.default_rng(3).permutation(SAMPLES), folds)
    for count in (1, 2, 7, 25):
        errors = []
        for held in parts:
            used = np.setdiff1d(np.arange(SAMPLES), held)
            peer = LinearRegression().fit(vectors[used, :count], CENTRED[used])
            errors.append((peer.predict(vectors[held, :count]) - CENTRED[held]) ** 2)
        assert found[count - 1] == pytest.approx(np.concatenate(errors).mean())


def test_one_split_is_enough_of_many_samples(monkeypatch: pytest.MonkeyPatch) -> None:
    _, vectors = gram.leading_components(gram.gram_matrix(ROWS, FORMS["quadratic"]), 5, 0)
    monkeypatch.setattr(gram, "EXACT", 10)
    held = np.array_split(np.random.default_rng(0).permutation(SAMPLES), 5)[0]
    used = np.setdiff1d(np.arange(SAMPLES), held)
    peer = LinearRegression().fit(vectors[used], CENTRED[used])
    expected = np.mean((peer.predict(vectors[held]) - CENTRED[held]) ** 2)
    assert gram.component_errors(vectors, CENTRED, 5, 0)[-1] == pytest.approx(expected)


def test_no_more_components_than_a_split_can_tell() -> None:
    _, vectors = gram.leading_components(gram.gram_matrix(ROWS, FORMS["quadratic"]), 1000, 0)
    found = gram.component_errors(vectors, CENTRED, 2, seed=0)
    assert len(found) == min(vectors.shape[1], SAMPLES // 2 - 1)
    assert np.isfinite(found).all()


@forms
def test_no_more_features_than_counted(groups: gram.Groups) -> None:
    features = written_out(ROWS, groups)
    differing = len(np.unique(features, axis=1).T)
    assert np.linalg.matrix_rank(features) <= differing <= gram.feature_count(ROWS.shape[1], groups)


def test_samples_that_are_all_the_same() -> None:
    same = np.ones((12, 3))
    with pytest.raises(EstimatorError, match="nothing to learn from"):
        gram.leading_components(gram.gram_matrix(same, []), 5, 0)
    with pytest.raises(EstimatorError, match="nothing to learn from"):
        gram.choose_ridge(same, [], np.zeros(12), (1.0,), 0)
