"""The factorial protocol on evaluators whose contributions are known."""

import numpy as np
import pytest
from scipy.stats import kendalltau

from binas.base.errors import ConfigError, EvaluatorError
from binas.contributions import TableEvaluator, factorial, factorial_contributions, paper, paper_passes
from binas.contributions.design import sparse_rows
from binas.contributions.factorial import looks, stability
from binas.contributions.normal import normal_equations
from binas.contributions.shrinkage import choose_settings
from binas.estimators.objective import column_total
from binas.space import sample_many
from binas.testing import make_space
from binas.testing.evaluators import KnownEvaluator, known_contributions

SPACE = make_space(2, 3, 4, 1)
OUTCOMES = ["correct", "probability", "log-probability"]


def errors_of(answer, truth):
    return answer.values.flat() - truth.values.flat()


@pytest.mark.slow
def test_the_plain_fit_is_unbiased_and_its_intervals_cover(record):
    """Without shrinkage: errors over many measurements average to zero, and 95 % intervals cover 95 %."""
    truth, errors, scores, bases = known_contributions(SPACE, 5), [], [], []
    for seed in range(60):
        recorded = record(KnownEvaluator(truth, 120, seed), 4, seed=seed)
        answer, _ = factorial_contributions(recorded, shrink=False)
        errors.append(errors_of(answer, truth))
        scores.append(errors[-1] / answer.stderr.flat())
        bases.append((answer.base - truth.base) / answer.base_stderr)
    mean = np.mean(errors, axis=0) / (np.std(errors, axis=0, ddof=1) / np.sqrt(len(errors)))
    assert np.abs(mean).max() < 3.8
    assert 0.93 < (np.abs(scores) < 1.96).mean() < 0.975
    assert np.abs(bases).max() < 3.5


@pytest.mark.parametrize("outcome", OUTCOMES)
@pytest.mark.parametrize(
    ("images", "passes", "points"),
    [(150, 8, 1.0), pytest.param(150, 24, 3.0, marks=pytest.mark.slow)],
)
def test_intervals_of_shrunken_fits_cover(record, outcome, images, passes, points):
    """Shrinkage biases single contributions; the intervals say so. Predicted differences are covered as well."""
    inside, pairs, sizes = [], [], []
    widest = 4.0 if outcome == "correct" else 2.0  # 0/1 outcomes of few images leave the size of effects open
    rows = sparse_rows(SPACE, *SPACE.to_indices(sample_many(SPACE, 40, 9))).toarray()
    gaps = np.column_stack([np.zeros(20), rows[:20] - rows[20:]])
    for seed in range(12):
        truth = known_contributions(SPACE, seed, points)
        answer, _ = factorial_contributions(
            record(KnownEvaluator(truth, images, seed), passes, outcome, seed)
        )
        errors = errors_of(answer, truth)
        inside.append(np.abs(errors) < 1.96 * answer.stderr.flat())
        spread = np.sqrt(np.einsum("ij,jk,ik->i", gaps, answer.covariance, gaps))
        pairs.append(np.abs(gaps[:, 1:] @ errors) < 1.96 * spread)
        sizes.append((np.square(errors).mean(), np.square(answer.stderr.flat()).mean()))
    assert np.mean(inside) > 0.9
    assert np.mean(pairs) > 0.88
    error, told = np.sqrt(np.mean(sizes, axis=0))
    assert told < widest * error  # and no wider than need be


@pytest.mark.slow
def test_shrunken_fits_are_much_closer_than_plain_ones_and_soft_ones_closer_still(record):
    plain, shrunken, soft = [], [], []
    for seed in range(8):
        truth = known_contributions(SPACE, seed)
        evaluator = KnownEvaluator(truth, 200, seed)
        hard = record(evaluator, 8, seed=seed)
        plain.append(errors_of(factorial_contributions(hard, shrink=False)[0], truth))
        shrunken.append(errors_of(factorial_contributions(hard)[0], truth))
        recorded = record(evaluator, 8, "probability", seed)
        soft.append(errors_of(factorial_contributions(recorded)[0], truth))
    sizes = [np.square(part).mean() for part in (plain, shrunken, soft)]
    assert sizes[1] < sizes[0] / 3
    assert sizes[2] < sizes[1] / 1.3


@pytest.mark.parametrize("outcome", OUTCOMES)
def test_values_stay_in_percent_and_converge_to_the_truth(record, outcome):
    truth = known_contributions(SPACE, 2, points=3.0)
    answer, _ = factorial_contributions(record(KnownEvaluator(truth, 2000, noise=0.02), 80, outcome))
    assert answer.base == pytest.approx(truth.base, abs=0.5)
    slope = np.polyfit(truth.values.flat(), answer.values.flat(), 1)[0]
    assert slope == pytest.approx(1.0, abs=0.12)
    assert np.sqrt(np.square(errors_of(answer, truth)).mean()) < 0.3 * truth.values.flat().std()


def test_soft_outcomes_that_mislead_are_overruled_by_correctness(record):
    """The probability says the opposite of correctness in one block: with data, correctness wins there."""
    truth = known_contributions(SPACE, 4, points=3.0)
    where = SPACE.layout.config_slices[0][0]

    class Misleading(KnownEvaluator):
        def outcomes(self, images, depths, configs):
            found = super().outcomes(images, depths, configs)
            wrong = sparse_rows(SPACE, depths, configs).toarray()[:, where] @ truth.values.configs[0][0]
            chance = np.exp(found.log_probability) - 2 * wrong / 100
            return type(found)(found.correct, np.log(np.clip(chance, 0.01, 1)).astype(np.float32))

    signs = []
    for passes in (6, 120):
        answer, _ = factorial_contributions(record(Misleading(truth, 800, noise=0.0), passes, "probability"))
        signs.append(float(answer.values.configs[0][0] @ truth.values.configs[0][0]))
    assert signs[0] < signs[1]
    assert signs[1] > 0


@pytest.mark.slow
def test_it_beats_the_paper_protocol_at_equal_budget(record, memory_journal):
    """Kendall tau with the true ranking, mean over measurements: every outcome above both readings."""
    architectures = sample_many(SPACE, 150, 11)
    taus = {name: [] for name in (*OUTCOMES, "base", "depth")}
    repeats, images = 2, 60
    passes = repeats * paper_passes(SPACE)  # on equally many images
    for seed in range(6):
        truth = known_contributions(SPACE, seed)
        exact = [column_total(SPACE, truth.values, a) for a in architectures]
        evaluator = KnownEvaluator(truth, images, seed)
        for reading in ("base", "depth"):
            *_, answer = paper(evaluator, memory_journal(images), repeats, reading, seed)
            taus[reading].append(_tau(answer, architectures, exact))
        for outcome in OUTCOMES:
            answer, _ = factorial_contributions(record(evaluator, passes, outcome, seed))
            taus[outcome].append(_tau(answer, architectures, exact))
    means = {name: np.mean(values) for name, values in taus.items()}
    assert min(means[outcome] for outcome in OUTCOMES) > max(means["base"], means["depth"]) + 0.1
    assert means["probability"] > means["correct"]


def _tau(answer, architectures, exact):
    return kendalltau([column_total(SPACE, answer.values, a) for a in architectures], exact)[0]


def test_a_table_without_noise_is_found_exactly(record):
    """NAS-Bench-like: additive accuracies, few evaluations."""
    truth = known_contributions(SPACE, 1)
    table = TableEvaluator(SPACE, lambda a: truth.base + column_total(SPACE, truth.values, a), images=50)
    for outcome in ("correct", "probability"):
        answer, stable = factorial_contributions(record(table, 6, outcome))
        assert answer.values.flat() == pytest.approx(truth.values.flat(), abs=0.01)
        assert stable > 0.99


def test_more_data_give_a_more_stable_ranking(record):
    truth, found = known_contributions(SPACE, 3, points=3.0), []
    for passes in (4, 16, 64):
        recorded = record(KnownEvaluator(truth, 200), passes)
        sums = normal_equations(recorded)
        settings = choose_settings(sums, recorded.design.similarities)
        found.append(stability(recorded.design, sums, settings, 0))
    assert found == sorted(found)
    assert found[-1] > found[0] + 0.2


def test_it_stops_when_the_ranking_is_stable_or_the_budget_ends(memory_journal):
    evaluator = KnownEvaluator(known_contributions(SPACE, 0, points=5.0), 100, noise=0.01)
    journal = memory_journal(100)
    *_, answer = factorial(evaluator, journal, 50, "probability", target=0.8)
    assert answer.provenance.to_data()["stability"] >= 0.8
    assert len(journal.recorded) < 50
    *_, answer = factorial(evaluator, journal, 10, "probability", target=1.0)
    assert answer.provenance.to_data()["evaluations"] == 1000
    assert looks(10) == [4, 6, 9, 10]
    assert looks(3) == [3]


def test_an_interrupted_measurement_goes_on_and_ends_the_same(journal):
    truth = known_contributions(SPACE, 0)

    class Dying(KnownEvaluator):
        left = 7

        def outcomes(self, images, depths, configs):
            self.left -= 1
            if self.left < 0:
                raise KeyboardInterrupt
            return super().outcomes(images, depths, configs)

    whole = [answer.to_data() for answer in factorial(KnownEvaluator(truth, 80), journal(80, "whole"), 12)]
    answers, seen = factorial(Dying(truth, 80), journal(80), 12), []
    with pytest.raises(KeyboardInterrupt):
        seen.extend(answer.to_data() for answer in answers)
    assert len(whole) == len(looks(12))
    resumed = [answer.to_data() for answer in factorial(KnownEvaluator(truth, 80), journal(80), 12)]
    assert resumed == whole[-len(resumed) :]  # only what is new

    class Refusing(KnownEvaluator):
        def outcomes(self, images, depths, configs):
            raise AssertionError("what is recorded is measured again")

    *_, last = factorial(Refusing(truth, 80), journal(80), 12)
    assert last.to_data() == whole[-1]


def test_one_pass_is_too_little(memory_journal):
    evaluator = KnownEvaluator(known_contributions(SPACE, 0), 10)
    with pytest.raises(ConfigError, match="at least 2 passes"):
        next(factorial(evaluator, memory_journal(10), 1))


def test_the_answer_says_where_it_comes_from(record):
    answer, stable = factorial_contributions(
        record(KnownEvaluator(known_contributions(SPACE, 0, 3.0), 200), 6, "probability", 2)
    )
    about = answer.provenance.to_data()
    assert about["evaluations"] == 1200
    assert (about["protocol"], about["outcome"], about["images"], about["passes"], about["seed"]) == (
        "factorial",
        "probability",
        200,
        6,
        2,
    )
    assert about["stability"] == stable
    assert answer.base_count == 1200
    assert sum(depths.sum() for depths in answer.count.depths) == 2 * 1200


def test_a_soft_outcome_that_says_nothing_is_left_out(record):
    """All log-probabilities below the clipping point, or those of the image only: the fit is that of correctness."""
    truth = known_contributions(SPACE, 4, points=3.0)

    class Hopeless(KnownEvaluator):
        def outcomes(self, images, depths, configs):
            found = super().outcomes(images, depths, configs)
            return type(found)(found.correct, np.full(len(images), -9.0, np.float32))

    hopeless = Hopeless(truth, 300)
    soft, _ = factorial_contributions(record(hopeless, 6, "log-probability"))
    hard, _ = factorial_contributions(record(hopeless, 6, "correct"))
    np.testing.assert_array_equal(soft.values.flat(), hard.values.flat())
    assert soft.provenance.to_data()["outcome"] == "correct"
    assert "does not go with correctness" in soft.provenance.to_data()["left_out"]


def test_a_soft_outcome_whose_noise_is_unrelated_to_correctness_is_left_out(record):
    """Log-probabilities with noise of their own: within an image they hardly go with correctness, effects do.

    The slope to accuracy was then pulled towards nothing: contributions of half their size, and intervals that covered 70 %.
    """

    class Unrelated(KnownEvaluator):
        def outcomes(self, images, depths, configs):
            found = super().outcomes(images, depths, configs)
            key = self._key(images, SPACE.layout.positions(depths, configs)) + np.uint64(7)
            noisy = found.log_probability - 0.6 * (key % np.uint64(1000)).astype(np.float32) / 1000
            return type(found)(found.correct, noisy)

    covered = []
    for seed in (3, 5, 8, 9):
        truth = known_contributions(SPACE, seed, points=3.0)
        answer, _ = factorial_contributions(
            record(Unrelated(truth, 400, seed, noise=0.02), 24, "log-probability", seed)
        )
        about = answer.provenance.to_data()
        assert about["outcome"] == "correct"
        assert "on held-out images" in about["left_out"]
        assert "fitted to 0/1 outcomes, without the log-probability" in answer.sentence()
        covered.append(np.abs(errors_of(answer, truth)) < 1.96 * answer.stderr.flat())
    assert np.mean(covered) > 0.9


def test_a_larger_budget_never_replaces_an_answer_by_a_poorer_one(memory_journal):
    evaluator, journal = KnownEvaluator(known_contributions(SPACE, 0), 40), memory_journal(40)
    *_, first = factorial(evaluator, journal, 12)
    more = [answer.provenance.to_data()["passes"] for answer in factorial(evaluator, journal, 20)]
    assert first.provenance.to_data()["passes"] == 12
    assert more == [look for look in looks(20) if look >= 12]


def test_a_stable_ranking_is_recognised_again(memory_journal):
    evaluator, journal = (
        KnownEvaluator(known_contributions(SPACE, 0, points=5.0), 100, noise=0.01),
        memory_journal(100),
    )
    *_, first = factorial(evaluator, journal, 50, "probability", target=0.8)
    *_, again = factorial(evaluator, journal, 50, "probability", target=0.8)
    assert again.to_data() == first.to_data()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda o: type(o)(o.correct * np.nan, o.log_probability), "correct=nan"),
        (lambda o: type(o)(o.correct + 1, o.log_probability), "must be between 0 and 1"),
        (lambda o: type(o)(o.correct, o.log_probability + 5), "at most 0"),
        (lambda o: type(o)(o.correct[1:], o.log_probability), r"\(39, 40\) outcomes for 40 images"),
    ],
)
def test_answers_that_are_no_outcomes_are_not_recorded(memory_journal, change, message):
    class Broken(KnownEvaluator):
        def outcomes(self, images, depths, configs):
            return change(super().outcomes(images, depths, configs))

    journal = memory_journal(40)
    with pytest.raises(EvaluatorError, match=message):
        next(factorial(Broken(known_contributions(SPACE, 0), 40), journal, 4))
    assert not journal.recorded


def test_too_few_images_and_nothing_to_choose(memory_journal):
    with pytest.raises(ConfigError, match="9 images are too few"):
        next(factorial(KnownEvaluator(known_contributions(SPACE, 0), 9), memory_journal(9), 4))
    single = make_space(1, 1, 1, 1)
    with pytest.raises(ConfigError, match="single architecture"):
        next(factorial(KnownEvaluator(known_contributions(single, 0), 20), memory_journal(20), 4))
