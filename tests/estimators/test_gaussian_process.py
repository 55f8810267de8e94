"""The Gaussian process: scikit-learn, likelihood, errors, files, search."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from made import UNEVEN, samples_of, space_of
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, DotProduct

from binas.base.errors import EstimatorError
from binas.base.statistics import kendall
from binas.estimators import AdditivePredictor, GaussianProcess, load_predictor
from binas.estimators.gaussian_process import Kernel, Posterior, choose_kernel, extended
from binas.estimators.links import LINKS, get_link
from binas.search import Limit, SearchProblem, solve
from binas.space import Config, SearchSpace, Stage, enumerate_all
from binas.tables import Column, Cost, Samples
from binas.tables.units import parse_unit

EVERY = enumerate_all(UNEVEN)
ROWS = UNEVEN.layout.rows(EVERY)


def accuracies(noise: float = 0.0) -> np.ndarray:
    """A product over choices: interactions of every order."""
    rng = np.random.default_rng(0)
    parts = [1 + 0.3 * ROWS @ rng.normal(size=ROWS.shape[1]) for _ in range(3)]
    return np.asarray(80 + 5 * np.tanh(np.prod(parts, axis=0)) + noise * rng.normal(size=len(EVERY)))


def training(count: int, noise: float = 0.0) -> Samples:
    return samples_of(UNEVEN, accuracies(noise), EVERY).split(count, 0)[0]


def test_mean_and_error_are_scikit_learns() -> None:
    """With the constant known both are the same; ours also knows that the constant is estimated."""
    kernel, rows, rng = Kernel(0.2, 0.1, 0.05), ROWS[:60], np.random.default_rng(0)
    values = rng.normal(size=60)
    ours = Posterior(kernel, rows, values)
    both = ConstantKernel(0.2) * DotProduct(0.0, "fixed") + RBF(np.sqrt(0.5 / 0.1), "fixed")
    peer = GaussianProcessRegressor(both, alpha=0.05, optimizer=None).fit(rows, values - ours.constant)
    mean, error = peer.predict(ROWS, return_std=True)
    np.testing.assert_allclose(ours.totals(ROWS), ours.constant + mean, atol=1e-9)
    assert (ours.errors(ROWS) >= np.sqrt(ours.scale) * error - 1e-6).all()
    np.testing.assert_allclose(ours.errors(ROWS), np.sqrt(ours.scale) * error, rtol=0.5)


def test_likelihood_is_that_of_contrasts() -> None:
    """The restricted likelihood is the likelihood of differences that no constant moves."""
    rng, rows = np.random.default_rng(1), ROWS[:30]
    values = rng.normal(size=30)
    differences = np.linalg.qr(np.column_stack([np.ones(30), rng.normal(size=(30, 29))]))[0][:, 1:]

    def direct(kernel: Kernel) -> float:
        matrix = differences.T @ (kernel.between(rows, rows) + kernel.noise * np.eye(30)) @ differences
        left = differences.T @ values
        scale = left @ np.linalg.solve(matrix, left) / 29
        return float(-0.5 * (29 * np.log(scale) + np.linalg.slogdet(matrix)[1]))

    one, two = Kernel(0.2, 0.1, 0.05), Kernel(1.0, 0.02, 0.3)
    ours = [Posterior(kernel, rows, values).log_likelihood() for kernel in (one, two)]
    assert ours[0] - ours[1] == pytest.approx(direct(one) - direct(two))


def test_chosen_kernel_is_no_worse_than_its_neighbours() -> None:
    values = get_link("log").forward(accuracies(0.2))[:150]
    chosen = choose_kernel(ROWS[:150], values, 10)
    most = Posterior(chosen, ROWS[:150], values).log_likelihood()
    for name in ("linear", "rate", "noise"):
        for factor in (0.5, 2.0):
            other = Kernel(**{**vars(chosen), name: getattr(chosen, name) * factor})
            assert Posterior(other, ROWS[:150], values).log_likelihood() <= most + 1e-6


def test_learns_what_an_additive_form_cannot_hold() -> None:
    samples, truth = training(200), accuracies()
    ours = kendall(GaussianProcess().fit(samples).predict(EVERY), truth)
    assert ours > 0.8
    assert ours > kendall(AdditivePredictor().fit(samples).predict(EVERY), truth)


def test_errors_cover() -> None:
    """Functions drawn from the process itself, a constant added, measured at 60 architectures with noise."""
    kernel, rng, inside = Kernel(0.05, 0.1, 0.1), np.random.default_rng(0), []
    root = np.linalg.cholesky(kernel.between(ROWS, ROWS) + 1e-9 * np.eye(len(ROWS)))
    for _ in range(30):
        truth = 3.0 + root @ rng.normal(size=len(ROWS))
        known = rng.permutation(len(ROWS))[:60]
        measured = truth[known] + np.sqrt(kernel.noise) * rng.normal(size=60)
        posterior = Posterior(kernel, ROWS[known], measured)
        inside.append(np.abs(posterior.totals(ROWS) - truth) < 1.96 * posterior.errors(ROWS))
    assert 0.92 < np.mean(inside) < 0.97


def test_errors_in_points() -> None:
    samples = training(80, noise=0.3)
    errors = {link: GaussianProcess(link).fit(samples).standard_error(EVERY) for link in LINKS}
    assert all(0.1 < error.mean() < 3.0 for error in errors.values())
    assert errors["log"].mean() == pytest.approx(errors["identity"].mean(), rel=0.3)


def three_blocks(options: bool) -> SearchSpace:
    configs = tuple(
        Config(f"e{e}k{k}", (("expansion", e), ("kernel", k)) if options else ())
        for e in (2, 4)
        for k in (3, 5)
    )
    return SearchSpace("three", (Stage("s1", (3,), (configs,) * 3),))


def test_options_make_configs_alike() -> None:
    """What was learned of one config with an option value says something of another that has it, never measured."""
    every, errors = enumerate_all(three_blocks(True)), []
    truth = {item: 80.0 + 2.0 * sum(name.startswith("e4") for name in item.stages[0]) for item in every}
    known = [item for item in every if item.stages[0][0] != "e4k5"]
    unseen = [item for item in every if item.stages[0][0] == "e4k5"]
    for options in (True, False):
        fitted = GaussianProcess().fit(samples_of(three_blocks(options), truth.__getitem__, known))
        errors.append(np.abs(fitted.predict(unseen) - [truth[item] for item in unseen]).mean())
    assert errors[0] < 0.8 * errors[1]


def test_gradients() -> None:
    fitted, step = GaussianProcess().fit(training(60)), 1e-6
    row = UNEVEN.layout.uniform()
    point = np.concatenate(row)[None]
    numeric = [
        (fitted.totals(point + step * one) - fitted.totals(point - step * one))[0] / (2 * step)
        for one in np.eye(point.shape[1])
    ]
    np.testing.assert_allclose(fitted.gradients(point)[0], numeric, rtol=1e-5, atol=1e-8)


def test_file(tmp_path: Path) -> None:
    fitted = GaussianProcess("logit", seed=3).fit(training(40))
    fitted.save(tmp_path / "gp.json")
    again = load_predictor(tmp_path / "gp.json", UNEVEN)
    assert isinstance(again, GaussianProcess)
    assert again.settings() == {"link": "logit", "seed": 3}
    np.testing.assert_allclose(again.predict(EVERY), fitted.predict(EVERY))
    np.testing.assert_allclose(again.standard_error(EVERY), fitted.standard_error(EVERY))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"noise": 0.0}, "greater than 0"),
        ({"noise": 1e-20, "rate": 1e-14}, "positive definite"),
        ({"values": [1.0, 2.0]}, "40 architectures and 2 values"),
        ({"architectures": ["!"] * 40}, "not a Gaussian process"),
        ({"space": {"name": "other", "fingerprint": "0"}}, "other"),
    ],
)
def test_wrong_files(tmp_path: Path, change: dict[str, object], message: str) -> None:
    data = {**GaussianProcess().fit(training(40)).to_data(), **change}
    (tmp_path / "gp.json").write_text(json.dumps(data))
    with pytest.raises(EstimatorError, match=message):
        load_predictor(tmp_path / "gp.json", UNEVEN)


def test_search_takes_it() -> None:
    fitted = GaussianProcess().fit(training(100))
    cost = Cost("latency", parse_unit("ms"), 0.0, Column.full(UNEVEN, 1.0))
    problem = SearchProblem(UNEVEN, fitted.objective(), {"latency": cost}, (Limit("latency", 8.0),))
    best = max(float(fitted.predict([a])[0]) for a in EVERY if cost.of(UNEVEN, [a])[0] <= 8.0)
    assert solve(problem, "evolution", seed=0).accuracy == pytest.approx(best, abs=0.05)


def test_too_few_and_nothing_to_learn() -> None:
    with pytest.raises(EstimatorError, match="at least 10 samples; there are 9"):
        GaussianProcess().fit(training(9))
    with pytest.raises(EstimatorError, match="nothing to learn from"):
        GaussianProcess().fit(samples_of(UNEVEN, [70.0] * len(EVERY), EVERY))
    with pytest.raises(EstimatorError, match="learned nothing yet"):
        GaussianProcess().predict(EVERY)


def test_spaces_without_options_have_no_option_entries() -> None:
    space = space_of(((1,), (3,)))
    rows = space.layout.rows(enumerate_all(space))
    np.testing.assert_array_equal(extended(space, rows), rows)
