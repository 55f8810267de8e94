"""Which estimator is chosen, how, and what is written about it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from made import UNEVEN, random_column, random_contributions, samples_of, space_of

from binas.base.errors import EstimatorError
from binas.estimators import (
    BilinearEstimator,
    WithinStageEstimator,
    candidates,
    choose_estimator,
    load_choice,
    make_estimator,
    marginal_means,
)
from binas.estimators._base import Estimator
from binas.estimators.choosing import JudgedCandidate, _with_regret, near_rankings
from binas.estimators.judging import report
from binas.estimators.links import get_link
from binas.space import enumerate_all
from binas.tables import Contributions, Samples

EVERY = enumerate_all(UNEVEN)
TABLE = replace(
    random_contributions(UNEVEN, 5), depth_pairs={(0, 1): np.array([[0.2, -0.2], [-0.1, 0.1], [-0.1, 0.1]])}
)


def measured(
    table: Contributions = TABLE, noise: float = 0.05, beyond: float = 0.0, link: str = "log", seed: int = 0
) -> Samples:
    """Accuracies that follow the table on the scale of a link, with noise and pairs inside stages."""
    rng = np.random.default_rng(seed)
    total = BilinearEstimator(table, link).predict(EVERY)  # type: ignore[arg-type]
    rows = UNEVEN.layout.rows(EVERY)
    pairs = WithinStageEstimator.groups(UNEVEN)
    inside = sum(
        ((rows[:, w] @ rng.normal(size=(len(w), len(w)))) * rows[:, w]).sum(axis=1) for w, _ in pairs
    )
    return samples_of(UNEVEN, np.clip(total + beyond * inside + noise * rng.normal(size=len(total)), 1, 99))


class TestRegistry:
    def test_from_the_simplest_to_the_richest(self) -> None:
        order = [item.complexity for item in candidates().values()]
        assert order == sorted(set(order))

    @pytest.mark.parametrize("name", [name for name in candidates() if name != "mlp"])
    def test_each_is_an_estimator_and_refits_alike(self, name: str) -> None:
        samples = measured().split(80, 1)[0]
        first, second = (make_estimator(name, TABLE, samples) for _ in range(2))
        assert isinstance(first, Estimator)
        np.testing.assert_array_equal(first.predict(EVERY), second.predict(EVERY))
        assert first.space is UNEVEN
        assert first.standard_error(EVERY).shape == (len(EVERY),)
        values = [first.objective().accuracy(UNEVEN, item) for item in EVERY]
        np.testing.assert_allclose(values, first.predict(EVERY))

    def test_what_is_missing_is_named(self) -> None:
        with pytest.raises(EstimatorError, match="'additive-log' needs contributions"):
            make_estimator("additive-log", None, measured())
        with pytest.raises(EstimatorError, match="'ridge' learns from samples"):
            make_estimator("ridge", TABLE, None)
        with pytest.raises(EstimatorError, match="there is no estimator 'nonsense'; choose from additive, "):
            make_estimator("nonsense", TABLE, None)


class TestChoice:
    def test_a_table_that_says_everything_is_kept(self) -> None:
        choice = choose_estimator(TABLE, measured(link="identity").split(60, 0)[0], resamples=100)
        assert choice.chosen == "additive"
        assert choice.samples == 60

    def test_the_simplest_within_one_error_of_the_best(self) -> None:
        choice = choose_estimator(TABLE, measured(noise=1.0).split(60, 0)[0], resamples=100)
        best = min(choice.estimators, key=lambda item: item.behind)
        assert best.behind == best.behind_error == 0.0
        simpler = [item for item in choice.estimators if item.as_good]
        assert choice.chosen == simpler[0].name
        assert all(item.behind > item.behind_error for item in choice.estimators if item not in simpler)

    def test_pairs_inside_stages_are_found_out(self) -> None:
        choice = choose_estimator(TABLE, measured(beyond=2.0).split(200, 0)[0], resamples=100)
        assert choice.chosen in ("within-stage", "corrected-within-stage")
        assert choice.chosen in choice.why
        behind = choice.judgement("additive")
        assert behind is not None
        assert behind.behind > 2 * behind.behind_error > 0

    def test_few_samples_do_not_tell_what_is_lost(self) -> None:
        """Of 24 the lowest quartile leaves six: which of them is taken says next to nothing."""
        for count, known in ((24, False), (60, True)):
            samples = measured(noise=1.0).split(count, 0)[0]
            macs = np.arange(count, dtype=float)
            choice = choose_estimator(TABLE, samples, macs=macs, resamples=20)
            assert all((item.lost is not None) == known for item in choice.estimators)

    def test_learned_ones_are_judged_on_what_they_did_not_fit(self) -> None:
        """Accuracies without any order: a fit to all of them would seem to rank them."""
        rng = np.random.default_rng(0)
        samples = samples_of(UNEVEN, 70 + rng.normal(size=len(EVERY)), EVERY).split(80, 2)[0]
        choice = choose_estimator(None, samples, resamples=50)
        assert all(item.learned for item in choice.estimators)
        assert all(abs(item.kendall.value or 0.0) < 0.25 for item in choice.estimators)

    def test_what_cannot_be_judged_says_why(self) -> None:
        low = replace(TABLE, base=1.0)
        choice = choose_estimator(low, measured().split(40, 0)[0], resamples=20)
        assert set(choice.left_out) == {
            "additive-log",
            "additive-logit",
            "corrected",
            "corrected-within-stage",
        }
        assert "needs accuracies between 0 and 100 %" in choice.left_out["additive-log"]
        assert (
            "needs contributions"
            in choose_estimator(None, measured().split(40, 0)[0], resamples=5).left_out["additive"]
        )

    def test_baselines_and_ablation_are_there(self) -> None:
        samples = measured().split(50, 0)[0]
        macs = [len("".join("".join(stage) for stage in item.stages)) for item in samples.architectures]
        choice = choose_estimator(TABLE, samples, macs, resamples=20)
        assert choice.macs_only is not None
        assert choice.macs_only.mse is None
        assert [item.name for item in choice.ablation] == ["q_beta = 0", "Q = 0"]
        assert choice.noise_ceiling is None  # no halves, no errors

    def test_without_samples_the_table_decides(self) -> None:
        assert choose_estimator(TABLE, None).chosen == "additive"
        few = choose_estimator(marginal_means(measured(), "log"), measured().take(range(5)))
        assert few.chosen == "additive-log"
        assert "only 5 measured networks" in few.why
        with pytest.raises(EstimatorError, match="no contributions and 0 samples"):
            choose_estimator(None, None)

    def test_what_is_lost_under_limits_counts(self) -> None:
        """Two rankings as good as each other; one of them takes for best what is among the worst."""
        samples = measured(noise=0.5)
        macs = np.random.default_rng(0).random(len(samples))
        swapped = samples.accuracy.copy()
        worst = np.argsort(swapped)[:12]
        swapped[worst] += 100.0
        predictions = {"additive": swapped, "additive-log": samples.accuracy}
        judged = report(predictions, samples, None, resamples=2)
        even = {"learned": False, "behind": 0.0, "behind_error": 0.01}
        rows = [
            JudgedCandidate.model_validate({**item.model_dump(), **even, "complexity": number})
            for number, item in enumerate(judged.judgements)
        ]
        assert all(row.as_good for row in rows)
        simple, right = _with_regret(rows, predictions, samples, macs, 30, 0)
        assert right.lost == 0.0
        assert simple.lost is not None
        assert simple.lost > 1.0
        assert (simple.as_good, right.as_good) == (False, True)

    def test_the_same_seed_chooses_the_same(self) -> None:
        samples = measured(noise=0.5).split(50, 0)[0]
        first, second = (choose_estimator(TABLE, samples, resamples=30, seed=4) for _ in range(2))
        assert first == second


class TestFile:
    def test_round_trip(self, tmp_path: Path) -> None:
        choice = choose_estimator(TABLE, measured().split(40, 0)[0], resamples=20)
        choice.save(tmp_path / "estimator.json")
        assert load_choice(tmp_path / "estimator.json", UNEVEN) == choice

    @pytest.mark.parametrize(
        "damage",
        [
            lambda text: text.replace('"chosen"', '"taken"'),
            lambda text: text.replace('"version": 1', '"version": 2'),
        ],
    )
    def test_damage_is_refused(self, tmp_path: Path, damage: Callable[[str], str]) -> None:
        path = tmp_path / "estimator.json"
        choose_estimator(TABLE, None).save(path)
        path.write_text(damage(path.read_text(encoding="utf-8")), encoding="utf-8")
        with pytest.raises(EstimatorError, match="is not a choice of estimators"):
            load_choice(path)

    def test_another_space_is_refused(self, tmp_path: Path) -> None:
        choose_estimator(TABLE, None).save(tmp_path / "estimator.json")
        with pytest.raises(EstimatorError, match="made for the space"):
            load_choice(tmp_path / "estimator.json", space_of(((1,), (2,))))


def test_errors_of_a_ridge_cover_the_truth() -> None:
    """Effects drawn from the model it assumes: about two thirds of the truth lie within one standard error."""
    inside = []
    for seed in range(8):
        truth = random_contributions(UNEVEN, 100 + seed)
        samples = measured(truth, noise=0.5, link="identity", seed=seed).split(60, seed)[0]
        estimator = make_estimator("ridge", None, samples)
        miss = estimator.predict(EVERY) - BilinearEstimator(truth).predict(EVERY)
        inside += (np.abs(miss) < estimator.standard_error(EVERY)).tolist()
    assert 0.55 < np.mean(inside) < 0.85


corrections = pytest.mark.parametrize("name", ["corrected", "corrected-within-stage"])


@corrections
def test_a_correction_without_anything_to_correct_changes_little(name: str) -> None:
    samples = measured(noise=0.0).split(60, 0)[0]
    corrected, plain = (make_estimator(which, TABLE, samples) for which in (name, "additive-log"))
    np.testing.assert_allclose(corrected.predict(EVERY), plain.predict(EVERY), atol=1e-6)


@corrections
def test_a_correction_mends_a_wrong_table(name: str) -> None:
    wrong = replace(TABLE, values=random_column(UNEVEN, 77, 1.0))
    samples = measured(noise=0.05).split(120, 0)[0]
    truth = BilinearEstimator(TABLE, "log").predict(EVERY)
    errors = [
        np.abs(make_estimator(which, wrong, samples).predict(EVERY) - truth).mean()
        for which in ("additive-log", name)
    ]
    assert errors[1] < 0.2 * errors[0]


def test_links_know_how_steep_they_are() -> None:
    grid = np.linspace(0.02, 99.98, 5000)
    for name in ("identity", "log", "logit"):
        link = get_link(name)
        assert 1 / link.slope(grid).min() == pytest.approx(link.steepest, rel=1e-3)


def test_the_ranking_near_each_size_is_told_apart() -> None:
    """Predictions that rank across sizes but not within one have no tau near it."""
    samples = samples_of(UNEVEN, np.linspace(1.0, 99.0, len(EVERY)))
    macs = np.repeat([1.0, 2.0], [len(EVERY) // 2, len(EVERY) - len(EVERY) // 2])
    right, wrong = samples.accuracy, np.where(macs == 1, -samples.accuracy, samples.accuracy + 1000)
    taus = [
        [row.kendall.value for row in near_rankings(predicted, samples, macs, {0.3: 1.0, 0.7: 2.0}, 5)]
        for predicted in (right, wrong)
    ]
    np.testing.assert_allclose(taus, [[1.0, 1.0], [-1.0, 1.0]])
    assert near_rankings(right, samples, None, {0.3: 1.0}) == ()
    row = near_rankings(right, samples, macs, {0.3: 1.0}, 5)[0]
    assert row.sentence().startswith("near 30 % of the range of MACs Kendall tau 1.00")
