"""``binas published`` and ``binas predictors``: networks and predictors of others."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pytest
from calling import answer, refusal, said

from binas.base.interval import Interval
from binas.costs import analytic_costs
from binas.costs.published.build import count
from binas.estimators import BilinearEstimator, load_predictor
from binas.report.published import Builder
from binas.space import Config, SearchSpace, Stage, enumerate_all, load_space, sample_many, save_space
from binas.tables import Column, Contributions, Sample, Samples

SPACE = load_space("small-28")


class TestPublished:
    @pytest.fixture(autouse=True)
    def device(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """0.2 ms per million multiply-accumulates."""

        def measure(builders: Mapping[str, Builder]) -> dict[str, Interval]:
            times = {name: count(*build()).macs / 5e6 for name, build in builders.items()}
            return {name: Interval(ms, 0.99 * ms, 1.01 * ms) for name, ms in times.items()}

        monkeypatch.setattr("binas.report.published.measure_networks", lambda how: measure)

    def test_json(self, example: Path) -> None:
        found = answer("published", "--networks", "BINAS-A", "--run", example)
        assert found["reference"] == "MobileNetV3-Large"
        assert [item["ours"] for item in found["networks"]].count(True) >= 1
        published = next(item for item in found["networks"] if item["name"] == "BINAS-A")
        assert published["low_ms"] < published["latency_ms"] < published["high_ms"]

    def test_for_people(self, example: Path) -> None:
        text = said("published", "--networks", "BINAS-A", "--run", example)
        assert "ratio to MobileNetV3-Large" in text
        assert "predicted" in text
        assert "is as fast as" in text

    def test_tables_of_another_batch(self, example: Path) -> None:
        message = refusal("published", "--batch", 8, "--run", example)
        assert "latency is wanted for batch 8, but the table is of batch 1" in message

    def test_unknown_networks_and_wrong_values(self) -> None:
        assert "no published network 'ResNet'" in refusal("published", "--networks", "ResNet")
        assert "--threads: must be" in refusal("published", "--threads", "many")


def make_tables(folder: Path, halves: bool = True) -> Path:
    """Accuracy that grows with MACs and has effects of its own; contributions that know it."""
    rng = np.random.default_rng(0)
    costs = analytic_costs(SPACE)
    macs = costs["macs"].values
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
    costs.save(folder / "costs.json")
    Samples(SPACE, tuple(rows)).save(folder / "samples.json")
    return folder


@pytest.fixture
def tables(tmp_path: Path) -> Path:
    return make_tables(tmp_path)


class TestCheckOfTables:
    """``binas check`` on a folder that is no run: estimators are judged, nothing is written."""

    def test_every_estimator_is_judged(self, tables: Path) -> None:
        before = sorted(tables.iterdir())
        limits = ("--limit", "macs=2.5M", "--limit", "params>=50k")
        found = answer("check", tables, "--resamples", 20, *limits)
        named = {item["name"]: item for item in found["estimators"]}
        assert list(named)[:3] == ["additive", "additive-log", "additive-logit"]
        assert found["chosen"] in named
        assert [item["name"] for item in found["ablation"]] == ["q_beta = 0", "Q = 0"]
        tau = named["additive"]["kendall"]
        assert tau["low"] < tau["value"] < tau["high"]
        assert found["macs_only"]["kendall"]["value"] < tau["value"]
        assert tau["value"] == pytest.approx(found["noise_ceiling"]["kendall"], abs=0.06)
        assert found["noise_ceiling"]["how"] == "split-half"
        parts = {item["name"]: item for item in found["ablation"]}
        assert parts["Q = 0"]["kendall"]["value"] < tau["value"]
        assert set(parts["Q = 0"]["regret"]) == {"macs=2.5M", "params>=50k"}
        assert sorted(tables.iterdir()) == before

    def test_for_people(self, tables: Path) -> None:
        text = said("check", tables, "--resamples", 5)
        assert "additive-log" in text
        assert "MACs only" in text
        assert "Noise ceiling: a perfect predictor would reach Kendall 0." in text
        assert "from two halves of the images" in text

    def test_the_choice_as_a_file_is_believed_by_the_search(self, tables: Path) -> None:
        chosen = answer("check", tables, "--resamples", 5, "--out", tables / "estimator.json")["chosen"]
        assert f"the estimator {chosen}" in said("explain", tables, "best", "-l", "macs=2.5M")

    def test_simulated_ceiling(self, tmp_path: Path) -> None:
        text = said("check", make_tables(tmp_path, halves=False), "--resamples", 2)
        assert "simulated from the samples' errors" in text

    def test_what_is_missing_is_said(self, tmp_path: Path) -> None:
        """A space of names only whose stage has one depth, samples without errors."""
        configs = tuple(Config(name) for name in "abcdefghijkl")
        space = SearchSpace("names", (Stage("s1", (1,), (configs,)),))
        rows = tuple(Sample(item, 50.0 + i) for i, item in enumerate(enumerate_all(space)))
        save_space(space, tmp_path / "space.yaml")
        Samples(space, rows).save(tmp_path / "samples.json")
        values = Column.build(space, lambda s, i: 0.0, lambda s, b, c: 0.1 * c)
        Contributions(space, 50.0, values).save(tmp_path / "contributions.csv")
        text = said("check", tmp_path, "--resamples", 2)
        assert "MACs only" not in text
        assert "Noise ceiling: not known" in text
        found = answer("check", tmp_path, "--resamples", 2)
        assert [item["name"] for item in found["ablation"]] == ["Q = 0"]
        assert found["macs_only"] is None

    def test_no_contributions(self, tables: Path) -> None:
        (tables / "contributions.json").unlink()
        assert "has no contributions" in refusal("check", tables)

    def test_costs_of_the_folder(self, tables: Path) -> None:
        text = (tables / "costs.json").read_text()
        (tables / "costs.json").write_text(text.replace('"params": {', '"weights": {', 1))
        found = answer("check", tables, "--resamples", 2, "--limit", "weights=60kparams")
        assert "weights=60kparams" in found["estimators"][0]["regret"]
        assert "no cost 'latency'" in refusal("check", tables, "--limit", "latency=3ms")


class TestPredictors:
    def test_fits_judges_and_saves(self, tables: Path) -> None:
        options = (
            "--fit",
            "additive",
            "--fit",
            "within-stage",
            "--samples",
            40,
            "--samples",
            110,
            "--test",
            40,
        )
        found = answer("predictors", tables, *options, "--resamples", 20)
        names = [f"{kind}, {count} samples" for kind in ("additive", "within-stage") for count in (40, 110)]
        assert [item["name"] for item in found["estimators"]] == names == list(found["seconds"])
        assert found["samples"] == 40
        assert found["learned_from"] == [40, 110]
        assert found["macs_only"]["mse"] is None
        assert found["noise_ceiling"]["kendall"] > 0.7
        saved = load_predictor(tables / "predictors" / "additive.json", SPACE)
        samples = json.loads((tables / "samples.json").read_text())["samples"]
        predicted = saved.predict([SPACE.parse(samples[0]["architecture"])])[0]
        assert predicted == pytest.approx(samples[0]["accuracy"], abs=3.0)

    def test_text_and_defaults(self, tables: Path) -> None:
        text = said("predictors", tables, "--resamples", 5)
        assert "30 held-out samples, link log" in text
        assert "quadratic, 120 samples" in text
        assert "additive.json, within-stage.json, quadratic.json, pairs.json, gaussian-process.json" in text

    def test_solver(self, tables: Path) -> None:
        said("predictors", tables, "--fit", "quadratic", "--solver", "svd", "--resamples", 2)
        saved = load_predictor(tables / "predictors" / "quadratic.json", SPACE)
        assert saved.settings()["solver"] == "svd"

    def test_mlp(self, tables: Path) -> None:
        found = answer("predictors", tables, "--fit", "mlp", "--samples", 30, "--resamples", 2)
        assert [item["name"] for item in found["estimators"]] == ["mlp, 30 samples"]
        assert load_predictor(tables / "predictors" / "mlp.safetensors", SPACE).kind == "mlp"

    @pytest.mark.parametrize(
        ("options", "message"),
        [
            (["--fit", "forest"], "forest"),
            (["--samples", "many"], "--samples: must be"),
            (["--samples", 5000], "cannot learn from 5000 samples: there are 120 that are not held out"),
            (["--samples", 0], "0"),
            (["--test", 500], "cannot take 500 of 150 samples"),
        ],
        ids=lambda item: " ".join(map(str, item)) if isinstance(item, list) else "",
    )
    def test_bad_input(self, tables: Path, options: list[object], message: str) -> None:
        assert message in refusal("predictors", tables, *options)
        assert not (tables / "predictors").exists()

    def test_no_samples(self, tables: Path) -> None:
        (tables / "samples.json").unlink()
        assert "has no samples.json; `binas sample" in refusal("predictors", tables)
