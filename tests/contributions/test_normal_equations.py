"""Streaming sums equal the regression with a constant per image, written out."""

import numpy as np
import pytest

from binas.contributions import normal
from binas.contributions.design import sparse_rows
from binas.contributions.normal import normal_equations, score_products
from binas.contributions.outcomes import outcome_values
from binas.contributions.paths import balanced_paths
from binas.testing import make_space
from binas.testing.evaluators import KnownEvaluator, known_contributions

SPACE = make_space(2, 2, 3, 1)


@pytest.fixture
def recorded(record):
    return record(KnownEvaluator(known_contributions(SPACE, 0), 60), 5, "probability")


def written_out(recorded):
    """Contrasts x and outcomes y of all evaluations, minus image means; and the image of each."""
    images, parts = np.arange(recorded.journal.images), []
    for number in range(recorded.passes):
        rows = sparse_rows(SPACE, *balanced_paths(SPACE, images, number, recorded.seed)).toarray()
        outcomes = recorded.journal.read(number, 0, len(images))
        values = [outcome_values(outcomes, kind) for kind in recorded.kinds]
        parts.append((rows @ recorded.design.contrasts, np.stack(values, 1)))
    x, y = (np.stack(items) for items in zip(*parts, strict=True))
    return x - x.mean(0), y - y.mean(0), y


def test_sums_equal_the_regression_with_a_constant_per_image(recorded):
    sums = normal_equations(recorded)
    x, y, raw = written_out(recorded)
    flat, outcomes = x.reshape(-1, x.shape[2]), y.reshape(-1, 2)
    assert sums.gram == pytest.approx(flat.T @ flat)
    assert sums.moment == pytest.approx(outcomes.T @ flat)
    assert sums.means == pytest.approx(raw.mean((0, 1)))
    assert sums.spreads == pytest.approx((outcomes**2).sum(0))
    constants = np.tile(np.eye(60), (5, 1))
    design = np.column_stack([x.reshape(300, -1) + 0.3, constants])  # a shift the constants take up
    expected = np.linalg.lstsq(design, raw.reshape(300, 2), rcond=None)[0][: x.shape[2]].T
    solved = np.linalg.solve(sums.gram, sums.moment.T).T
    assert solved == pytest.approx(expected)


def test_groups_and_folds_add_up(recorded):
    sums = normal_equations(recorded)
    for rest, held in sums.folds():
        assert rest.gram + held.gram == pytest.approx(sums.gram)
        assert rest.moment + held.moment == pytest.approx(sums.moment)
    assert sums.counts[SPACE.layout.depth_slices[0]].sum() == recorded.evaluations


def test_scores_are_sums_of_residuals_per_image(recorded):
    x, y, raw = written_out(recorded)
    gammas = np.random.default_rng(0).normal(size=(2, x.shape[2])) / 50
    residuals = y - x @ gammas.T
    scores = np.concatenate(
        [*(np.einsum("pnq,pn->nq", x, residuals[:, :, k]) for k in range(2)), raw[:, :, :1].mean(0) - 0.6], 1
    )
    assert score_products(recorded, gammas, 0.6) == pytest.approx(scores.T @ scores)


def test_memory_is_bounded_by_stretches_that_change_nothing(recorded, monkeypatch):
    whole, gammas = normal_equations(recorded), np.zeros((2, recorded.design.contrasts.shape[1]))
    products = score_products(recorded, gammas, 0.6)
    monkeypatch.setattr(normal, "AT_ONCE", 35)  # 7 images at a time
    assert max(stretch.rows.shape[0] for stretch in recorded.stretches()) == 35
    parts = normal_equations(recorded)
    assert parts.grams == pytest.approx(whole.grams)
    assert parts.moments == pytest.approx(whole.moments)
    assert score_products(recorded, gammas, 0.6) == pytest.approx(products)
