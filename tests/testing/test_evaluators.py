"""Simulated supernets: that they are what they say."""

import numpy as np
import pytest

from binas.space import sample_many
from binas.testing import make_space
from binas.testing.evaluators import Interactions, PopulationEvaluator, known_contributions

SPACE = make_space(2, 3, 4, 1)


def test_interactions_leave_contributions_as_they_are():
    pairs, rows = Interactions(SPACE, 0.6, 1), SPACE.layout.rows(sample_many(SPACE, 4000, 1))
    found = pairs.total(rows)
    design = np.column_stack([np.ones(len(rows)), rows])
    assert np.linalg.norm(design.T @ found) < 1e-6 * len(rows)
    assert abs(found.std() - 0.6) < 1e-6


@pytest.mark.slow
def test_a_network_has_its_accuracy_in_the_population():
    truth, drawn = known_contributions(SPACE, 0, 2.0, 80.0), sample_many(SPACE, 3, 2)
    errors = []
    for seed in range(60):
        images = PopulationEvaluator(truth, 500, seed, Interactions(SPACE, 1.0, 0))
        errors.append([100 * images.correct(item).mean() for item in drawn] - images.accuracy(drawn))
    assert np.abs(np.mean(errors, axis=0)).max() < 4 * 100 * 0.4 / np.sqrt(500 * 60)
    # images are the same for all networks: errors go together
    assert np.corrcoef(np.array(errors).T)[0, 1] > 0.3


def test_it_is_known_how_much_easier_the_images_are():
    truth, drawn = known_contributions(SPACE, 0, 2.0, 80.0), sample_many(SPACE, 4, 2)
    images = [PopulationEvaluator(truth, 400, seed) for seed in range(30)]
    easier = np.array([item.easier(drawn) for item in images])
    found = np.array(
        [[100 * item.correct(one).mean() for one in drawn] - item.accuracy(drawn) for item in images]
    )
    assert np.corrcoef(easier.ravel(), found.ravel())[0, 1] > 0.7
    assert np.abs(easier.mean(axis=0)).max() < 4 * 100 * 0.3 / np.sqrt(400 * 30)
