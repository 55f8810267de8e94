"""All pairs of choices: the form is the posterior mean, alike choices help each other, files read back, tables are met."""

import numpy as np
import pytest

from binas.base.errors import EstimatorError
from binas.base.statistics import kendall
from binas.estimators import AdditivePredictor, PairsEstimator, load_predictor
from binas.estimators.pairs import effects_of, observed
from binas.estimators.variances import Observed, choose_variances, step
from binas.search import SearchProblem, solve
from binas.space import Config, SearchSpace, Stage, enumerate_all, load_space
from binas.tables import Sample, Samples
from binas.testing import small_space
from binas.testing.tables import accel_architecture, accel_space, read_accel_nasbench, read_nas_bench_macro


def optioned() -> SearchSpace:
    """Two stages of depth 1 or 2, configs that share expansions and kernels: 1,764 architectures."""
    configs = tuple(Config(f"e{e}k{k}", (("expansion", e), ("kernel", k))) for e in (2, 4, 6) for k in (3, 5))
    return SearchSpace("optioned", tuple(Stage(f"s{i}", (1, 2), (configs, configs)) for i in range(2)))


SPACE = optioned()
EVERY = enumerate_all(SPACE)
ITEMS = [EVERY[i] for i in np.random.default_rng(0).permutation(len(EVERY))[:800]]


def truth(items: list) -> np.ndarray:
    """Expansions help everywhere, kernels more where another block is wide, depth, and a little noise; in percent."""
    rows = SPACE.layout.rows(items)
    values = rows @ SPACE.layout.shared_options  # expansions 2, 4, 6, then kernels 3, 5
    total = (
        0.05 * values[:, 1] + 0.12 * values[:, 2] + 0.03 * values[:, 4] + 0.02 * values[:, 2] * values[:, 4]
    )
    noise = np.random.default_rng(1).normal(size=len(items))
    return np.asarray(100 * (1 - np.exp(-(1.0 + total + 0.01 * noise))))


ACCURACY = truth(ITEMS)
SAMPLES = Samples(SPACE, tuple(Sample(a, float(y)) for a, y in zip(ITEMS, ACCURACY, strict=True)))


@pytest.fixture(scope="module")
def fitted() -> PairsEstimator:
    return PairsEstimator().fit(SAMPLES.take(range(40)))


def test_kinds_of_effects() -> None:
    names = [kind.name for kind in effects_of(SPACE)]
    assert names == [
        "depth", "config", "option in a block", "option", "two options in a block", "two options",
        "pairs, config", "pairs, option in a block", "pairs, option", "pairs, two options in a block", "pairs, two options",
    ]  # fmt: skip
    plain = [kind.name for kind in effects_of(small_space((((1,), (3,)), ((2,), (2, 2)))))]
    assert plain == ["config", "pairs, config"]  # no options, one depth each


def test_sums_over_choices_are_looked_at_where_they_lie() -> None:
    """In the span of the choices the likelihood is, but for a constant, that of all samples; so are the variances."""
    rows, effects = SPACE.layout.rows(ITEMS[:150]), effects_of(SPACE, with_pairs=False)
    values = -np.log(1 - ACCURACY[:150] / 100)
    small = observed(effects, rows, values)
    whole = Observed.of([kind.between(rows, rows) for kind in effects], values)
    assert len(small.values) < small.count == whole.count == 150
    assert small.spread == pytest.approx(whole.spread)
    tried = [np.full(len(effects) + 1, 0.1), np.linspace(0.01, 1.0, len(effects) + 1)]
    few, all_of_them = ([step(item, v) for v in tried] for item in (small, whole))
    assert few[0][0] - few[1][0] == pytest.approx(all_of_them[0][0] - all_of_them[1][0])
    for own, other in zip(few, all_of_them, strict=True):
        np.testing.assert_allclose(own[1], other[1], rtol=1e-6, atol=1e-9)
    (found, noise), (expected, also) = choose_variances(small), choose_variances(whole)
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-9)
    assert noise == pytest.approx(also, rel=1e-4)


def test_the_form_is_what_the_posterior_says(fitted: PairsEstimator) -> None:
    rows = SPACE.layout.rows(ITEMS[:50])
    assert fitted.posterior_ is not None
    np.testing.assert_allclose(fitted.totals(rows), fitted.posterior_.totals(rows), rtol=1e-9)


def test_alike_choices_help_each_other(fitted: PairsEstimator) -> None:
    """40 networks for 28 choices and hundreds of pairs."""
    fresh, additive = ITEMS[200:], AdditivePredictor().fit(SAMPLES.take(range(40)))
    ours, theirs = (kendall(each.predict(fresh), ACCURACY[200:]) for each in (fitted, additive))
    assert ours > theirs + 0.03
    assert ours > 0.9
    assert fitted.variances_["option"] > 10 * fitted.variances_["config"]


def test_errors_cover_what_is_not_known(fitted: PairsEstimator) -> None:
    """Of the true accuracies, their noise included, about two thirds lie within one standard error and noise."""
    apart = fitted.predict(ITEMS[200:]) - ACCURACY[200:]
    noise = 100 * np.exp(-1.0) * np.sqrt(fitted.variances_["noise"])
    scaled = apart / np.hypot(fitted.standard_error(ITEMS[200:]), noise)
    assert 0.5 < np.mean(np.abs(scaled) < 1) < 0.95


def test_files_read_back(fitted: PairsEstimator, tmp_path) -> None:
    fitted.save(tmp_path / "pairs.json")
    again = load_predictor(tmp_path / "pairs.json", SPACE)
    assert isinstance(again, PairsEstimator)
    assert again.variances_ == fitted.variances_
    np.testing.assert_array_equal(again.predict(ITEMS[:20]), fitted.predict(ITEMS[:20]))
    assert np.isnan(again.standard_error(ITEMS[:3])).all()
    with pytest.raises(EstimatorError, match="another"):
        load_predictor(tmp_path / "pairs.json", load_space("small-28"))


def test_a_search_with_it_is_proven(fitted: PairsEstimator) -> None:
    result = solve(SearchProblem.build(fitted, {}), "auto")
    assert result.status == "optimal"
    assert result.accuracy == pytest.approx(float(fitted.predict(EVERY).max()))
    assert result.details["method"] == "branch-bound"


def test_too_few_samples() -> None:
    with pytest.raises(
        EstimatorError, match="the pairs predictor learns from at least 10 samples; there are 9"
    ):
        PairsEstimator().fit(SAMPLES.take(range(9)))
    with pytest.raises(EstimatorError, match="has learned nothing yet"):
        PairsEstimator().predict(ITEMS[:1])


def test_nas_bench_macro_with_100_look_ups(nas_bench_macro_path) -> None:
    """Additive least squares 0.825; at least 0.86 was asked for. Mean of five seeds, on the networks not looked up."""
    records = read_nas_bench_macro(nas_bench_macro_path)
    space, items = load_space("nas-bench-macro"), list(records)
    accuracy = np.array([record.accuracy for record in records.values()])
    taus = []
    for seed in range(5):
        order = np.random.default_rng(seed).permutation(len(items))
        known = Samples(space, tuple(Sample(items[i], float(accuracy[i])) for i in order[:100]))
        fresh = order[100:]
        taus.append(kendall(PairsEstimator().fit(known).predict([items[i] for i in fresh]), accuracy[fresh]))
    assert np.mean(taus) >= 0.86


def test_accel_nasbench_with_100_networks(accel_nasbench_path) -> None:
    """The prototype of all pairs: 0.730."""
    records = read_accel_nasbench(accel_nasbench_path)
    items, accuracy = list(records), np.array([record.accuracy for record in records.values()])
    assert (len(items), accel_space().count) == (4616, 36**6 * 48)
    first = "e6k3_e4k5-e4k5_e6k3-e6k3-e6k3_e6k5-e6k5-e6k5_e6k5-e6k5_e1k3-e1k3_e1k3-e1k3"
    assert records[accel_architecture(first)].accuracy == 59.368
    order = np.random.default_rng(0).permutation(len(items))
    known = Samples(accel_space(), tuple(Sample(items[i], float(accuracy[i])) for i in order[:100]))
    fresh = order[100:1100]
    assert kendall(PairsEstimator().fit(known).predict([items[i] for i in fresh]), accuracy[fresh]) > 0.75
