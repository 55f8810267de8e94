"""Predictions held against measured networks: the line, its errors, and that the search stays what it is."""

import math

import numpy as np
import pytest
from made import distinct, random_contributions, samples_of, space_of

from binas.estimators import BilinearEstimator, choose_estimator, make_estimator
from binas.estimators.calibration import CalibratedEstimator, Calibration, calibrate
from binas.estimators.leftover import own_leftover, shared_leftover
from binas.search import Frontier, SearchProblem, evaluate, explain, frontier, solve
from binas.search.alternatives import best_architectures
from binas.tables import Column, Cost, Sample, Samples
from binas.tables.samples import pack
from binas.tables.units import parse_unit

SPACE = space_of(((1, 2), (3, 3)), ((1, 2, 3), (2, 3, 2)))
DRAWN = distinct(SPACE, 40)
CONTRIBUTIONS = random_contributions(SPACE)
LINE = Calibration(
    centre=70.0,
    level=66.0,
    slope=0.5,
    covariance=((0.04, 0.0), (0.0, 0.01)),
    lack_of_fit=0.3,
    trust=1.0,
    samples=40,
)


def measured(truth, images, rng, architectures=DRAWN):
    """Samples of given true accuracies on images that all networks share: most are right for all networks, or wrong."""
    right = rng.beta(0.8, 0.2, images)
    moved = right * (1 - right) / 0.08
    rows = []
    for item, accuracy in zip(architectures, truth, strict=True):
        correct = rng.random(images) < np.clip(right + moved * (accuracy - 80.0) / 100, 0, 1)
        share = 100 * correct.mean()
        rows.append(Sample(item, share, 40 / math.sqrt(images), images, correct=pack(correct)))
    return Samples(SPACE, tuple(rows))


def test_it_is_the_least_squares_line():
    predicted = np.linspace(60.0, 80.0, len(DRAWN))
    found = calibrate(predicted, samples_of(SPACE, list(40.0 + 0.5 * predicted), DRAWN))
    assert (found.slope, found.level, found.centre) == pytest.approx((0.5, 75.0, 70.0))
    assert found.lack_of_fit == pytest.approx(0.0, abs=1e-6)
    assert found.of(np.array([60.0])) == pytest.approx(70.0)
    assert found.before(70.0) == pytest.approx(60.0)
    assert not found.why
    assert "as 40 measured networks say" in found.sentence()


def saturating(predicted):
    """A truth with a ceiling at 82 %, which sums do not know."""
    return 82.0 - 6.0 * np.exp(-0.12 * (predicted - 76.0))


def test_predictions_flatten_where_measured_networks_do():
    """Beyond the best sample a line is two points too high; the curve is within its own error."""
    rng, predicted = np.random.default_rng(5), np.linspace(66.0, 80.0, len(DRAWN))
    samples = samples_of(SPACE, list(saturating(predicted) + 0.3 * rng.normal(size=len(DRAWN))), DRAWN)
    found, best = calibrate(predicted, samples), np.array([84.0])
    error = found.errors(best, np.zeros(1), np.ones(1))[0]
    assert abs(found.of(best)[0] - saturating(best)[0]) < 2 * error < 2.0
    line = np.polyval(np.polyfit(predicted, samples.accuracy, 1), best)[0]
    assert line - saturating(best)[0] > 2.0
    assert found.bend == pytest.approx(0.12, abs=0.04)
    assert "flattening: a point is worth" in found.sentence()
    assert Calibration.model_validate_json(found.model_dump_json()) == found


@pytest.mark.parametrize(
    "wrong", [{"bend": 1e300}, {"bend": math.inf}, {"covariance": ((1.0, 0.0), (0.0, 1.0))}]
)
def test_a_curve_from_a_changed_file_is_refused(wrong):
    with pytest.raises(ValueError, match=r"steeper than any|not one of 3"):
        Calibration.model_validate({**CURVE.model_dump(), **wrong})


def test_a_straight_relation_is_seldom_bent_and_then_little():
    rng, predicted, top = np.random.default_rng(6), np.linspace(66.0, 80.0, len(DRAWN)), np.array([84.0])
    drawn = [list(predicted + rng.normal(size=len(DRAWN))) for _ in range(200)]
    found = [calibrate(predicted, samples_of(SPACE, accuracy, DRAWN)) for accuracy in drawn]
    assert np.mean([item.bend > 0 for item in found]) < 0.25
    assert np.mean([item.of(top) for item in found]) == pytest.approx(84.0, abs=0.4)


def test_intervals_of_a_curve_cover_new_networks():
    rng, inside, beyond = np.random.default_rng(7), [], []
    for _ in range(150):
        predicted, new = 74.0 + 3 * rng.normal(size=len(DRAWN)), 74.0 + 3 * rng.normal(size=20)
        samples = measured(saturating(predicted) + 0.5 * rng.normal(size=len(DRAWN)), 1000, rng)
        found = calibrate(predicted, samples)
        truth, top = saturating(new) + 0.5 * rng.normal(size=20), np.array([84.0])
        inside.append(
            np.mean(abs(found.of(new) - truth) < 1.96 * found.errors(new, np.zeros(20), np.ones(20)))
        )
        beyond.append(
            abs(found.of(top) - saturating(top))[0] < 1.96 * found.errors(top, np.zeros(1), np.ones(1))[0]
        )
    assert 0.92 < np.mean(inside) < 0.98
    assert np.mean(beyond) > 0.93


@pytest.mark.parametrize("sign", [-0.5, 0.0])
def test_a_slope_that_is_not_clearly_positive_is_not_used(sign):
    rng, predicted = np.random.default_rng(0), np.linspace(69.0, 71.0, len(DRAWN))
    accuracy = 70.0 + sign * (predicted - 70.0) + rng.normal(size=len(DRAWN))
    found = calibrate(predicted, samples_of(SPACE, list(accuracy), DRAWN))
    assert found.slope == 1.0
    assert "only shifted" in found.sentence()
    assert found.level == pytest.approx(accuracy.mean())
    same = calibrate(np.full(len(DRAWN), 70.0), samples_of(SPACE, list(accuracy), DRAWN))
    assert (same.slope, "do not differ" in same.why) == (1.0, True)


def test_lack_of_fit_is_what_images_and_the_estimator_do_not_explain():
    """Networks 0.8 points around the line: found beyond the noise of images, and shared with the estimator's own error."""
    rng, found, told = np.random.default_rng(1), [], []
    for _ in range(30):
        predicted = 80.0 + rng.normal(size=len(DRAWN))
        samples = measured(predicted + 0.8 * rng.normal(size=len(DRAWN)), 2000, rng)
        found.append(calibrate(predicted, samples).lack_of_fit ** 2)
        told.append(calibrate(predicted, samples, np.full(len(DRAWN), 0.6)).lack_of_fit ** 2)
    assert np.mean(found) == pytest.approx(0.64, abs=0.12)
    assert np.mean(told) == pytest.approx(0.64 - 0.36, abs=0.12)


def test_an_estimator_that_overstates_its_errors_is_trusted_less():
    rng = np.random.default_rng(2)
    predicted = 80.0 + rng.normal(size=len(DRAWN))
    samples = measured(predicted + 0.5 * rng.normal(size=len(DRAWN)), 4000, rng)
    found = calibrate(predicted, samples, np.full(len(DRAWN), 2.0))
    assert found.lack_of_fit == 0.0
    assert 0.02 < found.trust < 0.2


def test_intervals_cover_new_networks_and_new_images():
    """95 % intervals of what is shown hold the true accuracy; without lack of fit, or with it."""
    rng, inside = np.random.default_rng(3), []
    for _ in range(150):
        beyond = rng.choice([0.0, 1.0])
        predicted, new = 80.0 + 2 * rng.normal(size=len(DRAWN)), 80.0 + 2 * rng.normal(size=20)
        samples = measured(79.0 + 0.7 * (predicted - 80.0) + beyond * rng.normal(size=len(DRAWN)), 1000, rng)
        found = calibrate(predicted, samples)
        truth = 79.0 + 0.7 * (new - 80.0) + beyond * rng.normal(size=20)
        inside.append(
            np.mean(abs(found.of(new) - truth) < 1.96 * found.errors(new, np.zeros(20), np.ones(20)))
        )
    assert 0.92 < np.mean(inside) < 0.98


def test_halves_and_errors_stand_in_for_outcomes_of_single_images():
    rng, predicted = np.random.default_rng(4), np.linspace(75.0, 85.0, len(DRAWN))
    noise = rng.normal(size=(len(DRAWN), 2))
    halves = predicted[:, None] + noise
    rows = [
        Sample(a, float(h.mean()), 1.0, 100, tuple(h.tolist())) for a, h in zip(DRAWN, halves, strict=True)
    ]
    by_halves = calibrate(predicted, Samples(SPACE, tuple(rows)))
    plain = calibrate(
        predicted, Samples(SPACE, tuple(Sample(row.architecture, row.accuracy) for row in rows))
    )
    assert by_halves.lack_of_fit < plain.lack_of_fit
    assert (
        by_halves.covariance[0][0] >= 1.0
    )  # the images are the same for all: their error is no smaller for 40 networks


CURVE = LINE.model_copy(
    update={
        "bend": 0.1,
        "lowest": -6.0,
        "middle": 0.2,
        "covariance": tuple(map(tuple, np.diag([0.04, 0.01, 1e-4]))),
    }
)


class TestShown:
    """What people see is on the line; what is searched is not."""

    estimator = CalibratedEstimator(BilinearEstimator(CONTRIBUTIONS), LINE, DRAWN)
    values = Column.build(SPACE, lambda s, i: 0.1 * i, lambda s, b, c: 1.0 + c)
    cost = Cost("latency", parse_unit("ms"), 1.0, values)

    def problem(self, *limits, estimator=None):
        return SearchProblem.build(estimator or self.estimator, {"latency": self.cost}, limits)

    def test_the_answer_is_the_same_and_its_accuracy_recalibrated(self):
        plain = solve(self.problem("latency=8ms", estimator=self.estimator.estimator))
        found = solve(self.problem("latency=8ms"))
        assert found.architecture == plain.architecture
        assert found.accuracy == pytest.approx(66.0 + 0.5 * (plain.accuracy - 70.0))
        assert found.bound == pytest.approx(found.accuracy)
        data = found.to_json()
        assert data["accuracy_raw"] == pytest.approx(plain.accuracy)
        assert "accuracy_raw" not in plain.to_json()
        assert data["accuracy_stderr"] == pytest.approx(
            self.estimator.standard_error([found.architecture])[0]
        )

    def test_the_frontier_is_read_back(self):
        traced = frontier(self.problem(), "latency")
        plain = frontier(self.problem(estimator=self.estimator.estimator), "latency")
        np.testing.assert_array_equal(traced.costs, plain.costs)
        np.testing.assert_allclose(traced.accuracies, LINE.of(plain.accuracies))
        again = Frontier.from_csv(traced.to_csv(), self.problem())
        np.testing.assert_allclose(again.accuracies, traced.accuracies)

    @pytest.mark.parametrize("shown", [LINE, CURVE])
    @pytest.mark.parametrize("link", ["identity", "log"])
    def test_alternatives_within_points_are_points_as_shown(self, link, shown):
        estimator = CalibratedEstimator(BilinearEstimator(CONTRIBUTIONS, link), shown, DRAWN)
        near = best_architectures(self.problem("latency=8ms", estimator=estimator), within=0.6)
        every = best_architectures(self.problem("latency=8ms", estimator=estimator), 1000).items
        inside = [item for item in every if item.accuracy >= every[0].accuracy - 0.6 - 1e-9]
        assert [item.architecture for item in near.items] == [item.architecture for item in inside]

    def test_explanations_are_in_points_as_shown(self):
        best = solve(self.problem("latency=8ms")).architecture
        shown, plain = (
            explain(self.problem(estimator=e), best) for e in (self.estimator, self.estimator.estimator)
        )
        for one, two in zip(shown.decisions, plain.decisions, strict=True):
            assert one.contribution == pytest.approx(0.5 * two.contribution)
        assert shown.to_json()["accuracy_raw"] == pytest.approx(evaluate(plain.problem, best).accuracy)

    def test_what_all_networks_share_does_not_count_twice(self):
        """A base of unknown size is measured again by the level: it is in no error."""
        vague = random_contributions(SPACE)
        vague = type(vague)(SPACE, vague.base, vague.values, 50.0, vague.stderr)
        errors = CalibratedEstimator(BilinearEstimator(vague), LINE, DRAWN).standard_error(DRAWN)
        assert errors.max() < 2.0
        assert BilinearEstimator(vague).standard_error(DRAWN).min() > 40.0

    def test_a_curve_finds_the_same_networks_and_is_read_back(self):
        bent = CalibratedEstimator(BilinearEstimator(CONTRIBUTIONS), CURVE, DRAWN)
        found, plain = (solve(self.problem("latency=8ms", estimator=e)) for e in (bent, bent.estimator))
        assert found.architecture == plain.architecture
        assert found.accuracy == pytest.approx(CURVE.of(np.array([plain.accuracy]))[0])
        traced = frontier(self.problem(estimator=bent), "latency")
        again = Frontier.from_csv(traced.to_csv(), self.problem(estimator=bent))
        np.testing.assert_allclose(again.accuracies, traced.accuracies)

    def test_differences_on_a_curve_are_those_of_what_is_shown(self):
        bent, (one, two) = CalibratedEstimator(BilinearEstimator(CONTRIBUTIONS), CURVE, DRAWN), DRAWN[:2]
        gap, error = bent.compare(one, two)
        predicted = bent.predict([one, two])
        assert gap == pytest.approx(predicted[0] - predicted[1])
        doubt = bent.doubt([one, two])
        assert error**2 == pytest.approx(doubt[0, 0] + doubt[1, 1] - 2 * doubt[0, 1], rel=0.1)
        assert bent.compare(one, one) == pytest.approx((0.0, 0.0), abs=1e-7)

    def test_differences(self):
        one, two = DRAWN[:2]
        gap, error = self.estimator.compare(one, two)
        predicted = self.estimator.predict([one, two])
        assert gap == pytest.approx(predicted[0] - predicted[1])
        _, own = self.estimator.estimator.compare(one, two)
        raw = self.estimator.estimator.predict([one, two])
        kappa = shared_leftover(SPACE, [one, two])
        fit = 0.3**2 * (kappa[0, 0] + kappa[1, 1] - 2 * kappa[0, 1])
        assert error**2 == pytest.approx(0.25 * own**2 + 0.01 * (raw[0] - raw[1]) ** 2 + fit)
        assert self.estimator.compare(one, one) == pytest.approx((0.0, 0.0), abs=1e-7)


def test_doubt_of_networks_is_that_of_their_parts():
    plain = BilinearEstimator(CONTRIBUTIONS)
    found = CalibratedEstimator(plain, LINE, DRAWN).doubt(DRAWN[:5])
    away, mean = plain.predict(DRAWN[:5]) - LINE.centre, plain.gradients(DRAWN).mean(axis=0)
    own = plain.errors(plain.gradients(DRAWN[:5]) - mean)
    expected = 0.25 * own**2 + 0.3**2 * own_leftover(SPACE, DRAWN[:5]) + 0.01 * away**2
    assert np.diag(found) == pytest.approx(expected)
    assert np.linalg.eigvalsh(found).min() > -1e-9


def test_the_choice_carries_a_line_for_every_estimator(tmp_path):
    rng = np.random.default_rng(0)
    own = BilinearEstimator(CONTRIBUTIONS).predict(DRAWN)
    samples = samples_of(SPACE, list(60.0 + 0.6 * (own - 70.0) + 0.1 * rng.normal(size=len(DRAWN))), DRAWN)
    choice = choose_estimator(CONTRIBUTIONS, samples, resamples=5)
    assert all(item.calibration is not None for item in choice.estimators)
    assert choice.judgement("additive").calibration.slope == pytest.approx(0.6, abs=0.1)
    made = choice.calibrated("additive", make_estimator("additive", CONTRIBUTIONS, samples), samples)
    assert abs(made.predict(DRAWN) - samples.accuracy).mean() < 0.2
    plain = make_estimator("quadratic", CONTRIBUTIONS, samples)
    assert choice.calibrated("quadratic", plain, samples) is plain  # was not judged
