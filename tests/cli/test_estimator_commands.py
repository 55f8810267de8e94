"""``binas predictors`` and ``binas evaluate-estimator`` on a folder made for the purpose."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

from binas.base.errors import BinasError, EstimatorError, FileError, ProblemError
from binas.cli.main import app
from binas.costs import analytic_costs
from binas.estimators import BilinearEstimator, load_predictor
from binas.space import Config, SearchSpace, Stage, enumerate_all, load_space, sample_many, save_space
from binas.tables import Column, Contributions, Sample, Samples

SPACE = load_space("demo")


def make_run(folder: Path, halves: bool = True) -> Path:
    """Accuracy that grows with MACs and has effects of its own; contributions that know it."""
    rng = np.random.default_rng(0)
    macs = analytic_costs(SPACE)["macs"].values
    values = Column.build(
        SPACE,
        lambda s, i: 0.4 * i,
        lambda s, b, c: float(0.4 * np.log(macs.configs[s][b][c] / 1e5) + 0.3 * rng.normal()),
    )
    contributions = Contributions(SPACE, 85.0, values)
    architectures = list(dict.fromkeys(sample_many(SPACE, 160, 1)))[:150]
    truth = BilinearEstimator(contributions).predict(architectures)
    rows = []
    for item, accuracy in zip(architectures, truth, strict=True):
        one, two = (accuracy + 0.4 * rng.normal(size=2)).tolist()
        rows.append(Sample(item, (one + two) / 2, 0.28, 2000, (one, two) if halves else None))
    save_space(SPACE, folder / "space.yaml")
    contributions.save(folder / "contributions.json")
    Samples(SPACE, tuple(rows)).save(folder / "samples.json")
    return folder


@pytest.fixture
def run(tmp_path: Path) -> Path:
    return make_run(tmp_path)


def binas(*arguments: object) -> str:
    """Standard output of a command; its error is raised."""
    result = CliRunner().invoke(app, [*map(str, arguments)])
    if isinstance(result.exception, BinasError):
        raise result.exception
    assert result.exit_code == 0, result.output
    return result.stdout


def answer(*arguments: object) -> Any:
    return json.loads(binas(*arguments, "--resamples", 20, "--json"))


class TestEvaluateEstimator:
    def test_report(self, run: Path) -> None:
        found = answer("evaluate-estimator", run, "--limit", "macs=2.5M", "--limit", "params>=50k")
        assert found["links"] == ["identity", "log", "logit"]
        named = {item["name"]: item for item in found["estimators"]}
        assert list(named)[:3] == [f"estimator, link {name}" for name in found["links"]]
        assert list(named)[3:] == found["ablation"] == ["q_beta = 0", "Q = 0"]
        tau = named["estimator, link identity"]["kendall"]
        assert tau["low"] < tau["value"] < tau["high"]
        assert found["macs_only"]["kendall"]["value"] < tau["value"]
        assert tau["value"] == pytest.approx(found["noise_ceiling"]["kendall"], abs=0.06)
        assert found["noise_ceiling"]["how"] == "split-half"
        assert named["Q = 0"]["kendall"]["value"] < tau["value"]
        assert set(named["Q = 0"]["regret"]) == {"macs=2.5M", "params>=50k"}

    def test_text(self, run: Path) -> None:
        text = binas("evaluate-estimator", run, "--link", "log", "--resamples", 5)
        assert "estimator, link log" in text
        assert "link logit" not in text
        assert "MACs only" in text
        assert "Noise ceiling: a perfect predictor would reach Kendall 0." in text
        assert "from two halves of the images" in text

    def test_simulated_ceiling(self, tmp_path: Path) -> None:
        text = binas("evaluate-estimator", make_run(tmp_path, halves=False), "--resamples", 2)
        assert "simulated from the samples' errors" in text

    def test_what_is_missing_is_said(self, tmp_path: Path) -> None:
        """A space of names only whose stage has one depth, samples without errors."""
        space = SearchSpace("names", (Stage("s1", (1,), ((Config("a"), Config("b"), Config("c")),)),))
        samples = Samples(space, tuple(Sample(item, 50.0 + i) for i, item in enumerate(enumerate_all(space))))
        save_space(space, tmp_path / "space.yaml")
        samples.save(tmp_path / "samples.json")
        values = Column.build(space, lambda s, i: 0.0, lambda s, b, c: 0.1 * c)
        Contributions(space, 50.0, values).save(tmp_path / "contributions.csv")
        text = binas("evaluate-estimator", tmp_path, "--resamples", 2)
        assert "MACs only: not known" in text
        assert "Noise ceiling: not known" in text
        assert "Not shown: q_beta = 0;" in text
        assert answer("evaluate-estimator", tmp_path)["ablation"] == ["Q = 0"]

    def test_no_contributions(self, run: Path) -> None:
        (run / "contributions.json").unlink()
        with pytest.raises(FileError, match="has no contributions yet"):
            binas("evaluate-estimator", run)

    def test_costs_of_the_folder(self, run: Path) -> None:
        costs = analytic_costs(SPACE)
        (run / "costs.json").write_text(json.dumps(costs.to_data()).replace('"params": {', '"weights": {', 1))
        found = answer("evaluate-estimator", run, "--link", "identity", "--limit", "weights=60k")
        assert "weights=60k" in found["estimators"][0]["regret"]
        with pytest.raises(ProblemError, match="no cost 'latency'"):
            binas("evaluate-estimator", run, "--limit", "latency=3ms")


class TestPredictors:
    def test_fits_judges_and_saves(self, run: Path) -> None:
        found = answer(
            "predictors", run, "--fit", "additive,within-stage", "--samples", "40,110", "--test", 40
        )
        names = [f"{kind}, {count} samples" for kind in ("additive", "within-stage") for count in (40, 110)]
        assert [item["name"] for item in found["estimators"]] == names == list(found["seconds"])
        assert found["samples"] == 40
        assert found["macs_only"]["mse"] is None
        assert found["noise_ceiling"]["kendall"] > 0.7
        saved = load_predictor(run / "predictors" / "additive.json", SPACE)
        samples = json.loads((run / "samples.json").read_text())["samples"]
        assert saved.predict([SPACE.parse(samples[0]["architecture"])])[0] == pytest.approx(
            samples[0]["accuracy"], abs=3.0
        )

    def test_text_and_defaults(self, run: Path) -> None:
        text = binas("predictors", run, "--link", "log", "--resamples", 5)
        assert "30 held-out samples, link log" in text
        assert "quadratic, 120 samples" in text
        assert "additive.json, bilinear.json, within-stage.json, quadratic.json" in text

    def test_solver(self, run: Path) -> None:
        binas("predictors", run, "--fit", "quadratic", "--solver", "ridge", "--resamples", 2)
        assert load_predictor(run / "predictors" / "quadratic.json", SPACE).settings()["solver"] == "ridge"

    def test_mlp(self, run: Path) -> None:
        found = answer("predictors", run, "--fit", "mlp", "--samples", "30")
        assert [item["name"] for item in found["estimators"]] == ["mlp, 30 samples"]
        assert load_predictor(run / "predictors" / "mlp.safetensors", SPACE).kind == "mlp"

    @pytest.mark.parametrize(
        ("options", "message"),
        [
            (
                ["--fit", "forest"],
                "no predictor 'forest'; choose from additive, bilinear, quadratic, within-stage, mlp",
            ),
            (["--samples", "many"], "cannot read --samples 'many'"),
            (["--samples", "5000"], "cannot learn from 5000 samples: there are 120 that are not held out"),
            (["--samples", "0"], "at least 10 samples; there are 0"),
        ],
    )
    def test_bad_input(self, run: Path, options: list[str], message: str) -> None:
        with pytest.raises(EstimatorError, match=message):
            binas("predictors", run, *options)
        assert not (run / "predictors").exists()

    def test_no_samples(self, run: Path) -> None:
        (run / "samples.json").unlink()
        with pytest.raises(FileError, match=r"has no samples\.json; `binas sample"):
            binas("predictors", run)

    def test_more_held_out_than_there_are(self, run: Path) -> None:
        with pytest.raises(BinasError, match="cannot take 500 of 150 samples"):
            binas("predictors", run, "--test", 500)
