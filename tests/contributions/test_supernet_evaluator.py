"""Outcomes of a supernet: each image on its own path, as the extracted network would answer."""

import numpy as np
import pytest
import torch
from small_data import bar_data
from small_networks import MBCONV

from binas.base.errors import DataError
from binas.contributions import SupernetEvaluator, balanced_paths
from binas.contributions.outcomes import first_impossible
from binas.contributions.sampling import correct_images
from binas.contributions.supernet_evaluator import indexed
from binas.data.augment import normalise
from binas.space import sample_many
from binas.supernet import Supernet, extract


@pytest.fixture(scope="module")
def supernet() -> Supernet:
    torch.manual_seed(0)
    return Supernet(MBCONV).eval()


@pytest.fixture(scope="module")
def data():
    return bar_data(400)


def test_outcomes_are_those_of_the_network_on_each_path(supernet, data):
    evaluator = SupernetEvaluator(supernet, data, weights="w")
    images = np.array([3, 0, 17, 5, 5])
    depths, configs = MBCONV.to_indices(sample_many(MBCONV, len(images), 1))
    found = evaluator.outcomes(images, depths, configs)
    chosen = data.validation.take(images)
    for i, (depth, config) in enumerate(zip(depths.tolist(), configs.tolist(), strict=True)):
        network = extract(supernet, MBCONV.from_indices(depth, config))
        batch = next(iter(chosen.take(np.array([i])).batches(1)))
        with torch.inference_mode():
            scores = network(normalise(batch.images, data.mean, data.std)).log_softmax(1)[0]
        label = int(batch.labels[0])
        assert found.correct[i] == (int(scores.argmax()) == label)
        assert found.log_probability[i] == pytest.approx(float(scores[label]), abs=1e-4)


def test_outcomes_do_not_depend_on_what_is_asked_beside(supernet, data):
    evaluator = SupernetEvaluator(supernet, data)
    everything = np.arange(evaluator.images)
    whole = evaluator.outcomes(everything, *balanced_paths(MBCONV, everything, 2, 0))
    some = everything[::3]
    part = evaluator.outcomes(some, *balanced_paths(MBCONV, some, 2, 0))
    np.testing.assert_array_equal(part.correct, whole.correct[::3])
    np.testing.assert_allclose(part.log_probability, whole.log_probability[::3], atol=1e-4)


def test_one_path_for_all_images_is_the_accuracy_of_its_network(supernet, data):
    architecture, count = MBCONV.extreme(), len(data.validation)
    depths, configs = (np.repeat(x, count, axis=0) for x in MBCONV.to_indices([architecture]))
    found = SupernetEvaluator(supernet, data).outcomes(np.arange(count), depths, configs)
    np.testing.assert_array_equal(
        found.correct, correct_images(supernet, architecture, data, [data.validation])[0]
    )


def test_the_fingerprint_names_weights_and_images(supernet, data):
    first = SupernetEvaluator(supernet, data, weights="a").fingerprint
    half = data.validation.take(np.arange(10))
    others = [
        SupernetEvaluator(supernet, data, weights="b").fingerprint,
        SupernetEvaluator(supernet, data, half, weights="a").fingerprint,
    ]
    assert first not in others


def test_a_stream_is_refused():
    class Stream:
        indexed = False

    with pytest.raises(DataError, match="are a stream"):
        indexed(Stream(), "mine")


def test_a_logit_that_is_no_number_spoils_an_outcome_whatever_its_class(supernet, data, monkeypatch):
    """-inf on another class leaves the log-probability of the true one finite."""
    evaluator, everything = SupernetEvaluator(supernet, data), np.arange(4)

    def lost(*_):
        logits = torch.zeros(4, 5)
        logits[2, (int(labels[2]) + 1) % 5] = -torch.inf
        return logits

    labels = next(iter(data.validation.take(everything).batches(4))).labels
    monkeypatch.setattr(supernet, "forward", lost)
    found = evaluator.outcomes(everything, *balanced_paths(MBCONV, everything, 2, 0))
    assert first_impossible(found) == 2
