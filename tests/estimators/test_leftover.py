"""What main effects leave over: centred, scaled, and what interactions of known size really do."""

import numpy as np
import pytest
from made import space_of

from binas.estimators import leftover
from binas.estimators.leftover import own_leftover, shared_leftover
from binas.space import sample_many
from binas.testing import make_space

SPACE = make_space(2, 2, 3, 1)
DRAWN = sample_many(SPACE, 150, 1)


def test_it_is_a_covariance_of_mean_variance_one():
    kappa = shared_leftover(SPACE, DRAWN)
    assert kappa == pytest.approx(kappa.T)
    assert np.linalg.eigvalsh(kappa).min() > -1e-9
    assert np.diag(kappa) == pytest.approx(own_leftover(SPACE, DRAWN))
    assert np.diag(kappa).mean() == pytest.approx(1.0, abs=0.1)


def test_main_effects_are_not_in_it():
    """Over the networks it was made with nothing that single choices explain is left; of raw pairs most is."""
    known = leftover._leftover(SPACE)
    design = np.column_stack([np.ones(len(known.rows)), known.rows])
    assert np.abs(design.T @ known.of(known.rows)).max() < 1e-6
    assert np.trace(design @ np.linalg.pinv(design) @ known.pairs) > 0.6 * np.trace(known.pairs)


def test_it_says_how_far_interactions_move_networks_apart():
    """Over made-up effects of pairs the covariance of what main effects leave over of them is kappa."""
    rng, few = np.random.default_rng(0), SPACE.layout.rows(DRAWN[:12])
    rows = SPACE.layout.rows(sample_many(SPACE, 600, 9))
    effects = rng.normal(size=(400, rows.shape[1], rows.shape[1]))
    raw, own = (np.einsum("ni,kij,nj->nk", part, effects, part, optimize=True) for part in (rows, few))
    design, asked = (np.column_stack([np.ones(len(part)), part]) for part in (rows, few))
    single = np.linalg.lstsq(design, raw, rcond=None)[0]
    seen = np.cov(own - asked @ single) / (raw - design @ single).var()
    kappa = shared_leftover(SPACE, DRAWN[:12])
    assert seen == pytest.approx(kappa, abs=0.3)
    assert np.corrcoef(seen.ravel(), kappa.ravel())[0, 1] > 0.97


def test_where_nothing_can_be_left_over_pairs_count_as_they_are(monkeypatch):
    single = space_of(((1,), (3,)))
    kappa = shared_leftover(single, sample_many(single, 5, 0))
    assert np.diag(kappa) == pytest.approx(1.0)
    monkeypatch.setattr(leftover, "LARGEST", 1)
    leftover._leftover.cache_clear()
    assert np.diag(shared_leftover(SPACE, DRAWN)) == pytest.approx(1.0)
    assert own_leftover(SPACE, DRAWN) == pytest.approx(1.0)
    leftover._leftover.cache_clear()
