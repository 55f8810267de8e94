"""Near-optimal networks measured: which of them is the answer, and what may be said about it."""

import numpy as np
import pytest

from binas.search.confirming import CandidateRecord, Candidates, Confirmed, measure_candidates
from binas.search.rivals import difference

IMAGES = 1000


def outcomes(*shares, seed=0):
    """Networks that are right on given shares of the images, each on images of its own."""
    rng = np.random.default_rng(seed)
    return np.stack([rng.random(IMAGES) < share for share in shares])


def test_where_predictions_are_sure_the_optimum_stays():
    found = Candidates(np.array([80.0, 79.9]), outcomes(0.7, 0.9), None, np.zeros((2, 2)))
    assert found.order() == [0, 1]


def test_what_was_measured_counts_as_far_as_it_is_surer_than_predictions():
    correct = outcomes(0.7, 0.9)
    wide, narrow = (
        Candidates(np.array([80.0, 79.0]), correct, None, scale * np.eye(2)) for scale in (4.0, 0.01)
    )
    assert wide.order() == [1, 0]
    assert narrow.order() == [0, 1]
    unknown = Candidates(np.array([80.0, 60.0]), correct)
    assert unknown.order() == [1, 0]


def test_networks_that_are_alike_are_not_told_apart_by_luck():
    """What two almost equal networks leave over is almost the same: the difference that was measured is noise."""
    correct = outcomes(0.78, 0.82)
    alike = 4.0 * np.array([[1.0, 0.999], [0.999, 1.0]])
    assert Candidates(np.array([80.0, 79.8]), correct, None, alike).order() == [0, 1]
    assert Candidates(np.array([80.0, 79.8]), correct, None, 4.0 * np.eye(2)).order() == [1, 0]


def test_the_lead_of_a_single_candidate_is_paired_over_images():
    correct, reference = outcomes(0.8), np.random.default_rng(1).random(IMAGES)
    expected = pytest.approx(difference(correct[0], reference))
    assert Candidates(np.array([80.0]), correct, reference).lead(0) == expected
    assert Candidates(np.array([80.0]), correct, reference, np.eye(1)).lead(0) == expected
    assert Candidates(np.array([80.0]), correct).lead(0) is None
    assert Candidates(np.array([80.0, 79.0]), outcomes(0.8, 0.8), reference).lead(0) is None


@pytest.mark.parametrize("beyond", [0.0, 1.0])
def test_the_lead_of_the_best_of_many_is_not_that_of_the_luckiest(beyond):
    """Candidates around a common truth: the winner's own lead is partly luck, that of the score is not."""
    rng, naive, fitted, inside = np.random.default_rng(0), [], [], []
    for seed in range(80):
        truth = 82.0 + beyond * rng.normal(size=12)
        correct = outcomes(*truth / 100, seed=seed)
        found = Candidates(np.full(12, 84.0), correct, np.full(IMAGES, 0.8), beyond**2 * np.eye(12))
        best = found.order()[0]
        lead, error = found.lead(best)
        naive.append(100 * correct[best].mean() - truth[best])
        fitted.append(lead - (truth[best] - 80.0))
        inside.append(abs(fitted[-1]) < 1.96 * error)
    assert abs(np.mean(fitted)) < 0.25
    assert abs(np.mean(naive)) > 1.0 or not beyond
    assert 0.88 < np.mean(inside) < 1.0


def test_what_is_said():
    rows = [CandidateRecord(architecture=name, predicted=80.0, measured=79.0) for name in "ab"]
    found = Confirmed.of("test", np.array([True, True, True, False]), (1.25, 0.5), 100, rows)
    assert (found.accuracy, found.images) == (75.0, 4)
    assert found.error == pytest.approx(100 * np.sqrt(0.75 * 0.25 / 4))
    said = found.sentence()
    assert (
        "75.00 ± 21.65 % on 4 test images, +1.25 ± 0.50 points over 100 random networks of any cost" in said
    )
    assert "chosen among 2 candidates" in said
    assert Confirmed.model_validate_json(found.model_dump_json()) == found
    assert "random" not in Confirmed.of("check", np.array([True, False]), None, 100, []).sentence()


def measured(count, predicted, doubt, shares):
    """Candidates of which each is right on a share of the images, on images of its own."""
    correct = outcomes(*shares)
    return measure_candidates(count, np.array(predicted), None, doubt, lambda places: correct[places])


def test_the_second_half_is_of_those_that_the_first_speaks_for():
    """The last network is predicted worst, but it is like the second, which turns out far better than predicted."""
    alike = 4.0 * np.eye(5)
    alike[1, 4] = alike[4, 1] = 3.9
    predicted, shares = [80.0, 79.9, 79.8, 79.7, 79.0], [0.78, 0.9, 0.78, 0.78, 0.92]
    assert measured(4, predicted, alike, shares).measured == (0, 1, 4, 2)
    assert measured(4, predicted, 4.0 * np.eye(5), shares).measured[:2] == (0, 1)


def test_where_nothing_is_known_of_predictions_the_best_by_prediction_are_measured():
    found = measured(3, [80.0, 79.0, 78.0, 77.0], None, [0.7, 0.8, 0.9, 0.95])
    assert found.measured == (0, 1, 2)
    assert found.order() == [2, 1, 0]


@pytest.mark.parametrize("count", [1, 2, 7])
def test_no_network_is_measured_twice_and_no_more_than_there_are(count):
    asked = []
    correct = outcomes(0.7, 0.8, 0.9)

    def measure(places):
        asked.extend(places)
        return correct[places]

    found = measure_candidates(count, np.array([80.0, 79.0, 78.0]), None, np.eye(3), measure)
    assert list(found.measured) == asked
    assert sorted(asked) == list(range(min(count, 3)))
