"""The noise ceiling against simulated truth, and reports that always carry it."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest

from binas.base.errors import EstimatorError
from binas.base.statistics import kendall
from binas.estimators.judging import CostLimit, ceiling_from_halves, noise_ceiling, report, simulated_ceiling
from binas.space import load_space, sample_many
from binas.tables import Sample, Samples

SPACE = load_space("small-28")


def measured(count: int, noise: float, seed: int, halves: bool = True) -> tuple[Samples, np.ndarray]:
    """Samples whose halves carry independent noise of ``noise`` points, and the truth behind them."""
    rng = np.random.default_rng(seed)
    architectures = list(dict.fromkeys(sample_many(SPACE, count + 50, seed)))[:count]
    truth = 70 + rng.normal(size=count)
    parts = truth[:, None] + noise * rng.normal(size=(count, 2))
    error = noise / math.sqrt(2)
    rows = [
        Sample(a, float(p.mean()), error, 100, (float(p[0]), float(p[1])) if halves else None)
        for a, p in zip(architectures, parts, strict=True)
    ]
    return Samples(SPACE, tuple(rows)), truth


@pytest.mark.parametrize("noise", [0.2, 0.6, 1.5])
@pytest.mark.parametrize("halves", [True, False], ids=["split-half", "simulated"])
def test_ceiling_is_what_the_truth_reaches(noise: float, halves: bool) -> None:
    reached, told = [], []
    for seed in range(5):
        samples, truth = measured(300, noise, seed, halves)
        found = noise_ceiling(samples)
        assert found is not None
        assert found.how == ("split-half" if halves else "simulated")
        reached.append(kendall(truth, samples.accuracy))
        told.append(found.kendall)
    assert np.mean(told) == pytest.approx(np.mean(reached), abs=0.03)


def test_ceiling_at_the_ends() -> None:
    assert ceiling_from_halves(1.0) == pytest.approx(1.0)
    assert ceiling_from_halves(-0.1) == ceiling_from_halves(math.nan) == 0.0
    assert simulated_ceiling(np.arange(20.0), np.zeros(20)) == 1.0
    assert simulated_ceiling(np.ones(20), np.ones(20)) == 0.0


def test_no_ceiling_without_errors() -> None:
    samples, _ = measured(10, 0.5, 0)
    bare = Samples(SPACE, tuple(Sample(row.architecture, row.accuracy) for row in samples.rows))
    assert noise_ceiling(bare) is None
    assert report({}, bare, None, resamples=2).to_json()["noise_ceiling"] is None


def test_report_holds_predictions_against_macs_and_noise() -> None:
    samples, truth = measured(120, 0.5, 3)
    costs = np.arange(120.0)
    limits = [CostLimit("latency <= 60 ms", costs, 60.0)]
    found = report({"truth": truth, "noise": costs}, samples, costs, limits, resamples=50)
    good, bad = found.judgements
    assert found.macs is not None
    assert found.ceiling is not None
    assert bad.kendall.value < good.kendall.value == pytest.approx(found.ceiling.kendall, abs=0.05)
    assert bad.kendall == found.macs.kendall
    assert found.macs.mse is None
    assert good.regret["latency <= 60 ms"].value < bad.regret["latency <= 60 ms"].value
    assert good.mse is not None
    assert good.mse.low <= good.mse.value <= good.mse.high
    data = found.to_json()
    assert data["samples"] == 120
    assert data["macs_only"]["r2"] is None
    assert data["estimators"][0]["regret"].keys() == {"latency <= 60 ms"}
    assert data["noise_ceiling"]["how"] == "split-half"


def test_one_sample_ranks_nothing() -> None:
    with pytest.raises(EstimatorError, match="at least two samples, there are 1"):
        report({}, measured(2, 0.1, 0)[0].take([0]), None)


def test_a_judgement_that_is_not_defined_is_written_as_null_and_read_back():
    """All samples are the same: no correlation is defined."""
    space = load_space("small-28")
    same = Samples(space, tuple(Sample(item, 70.0) for item in sample_many(space, 5, 0)))
    (judged,) = report({"flat": np.arange(5.0)}, same, None, resamples=3).judgements
    data = json.loads(json.dumps(judged.model_dump(mode="json"), allow_nan=False))
    assert data["kendall"] == {"value": None, "low": None, "high": None}
    again = type(judged).model_validate(data)
    assert math.isnan(again.kendall.value)
    assert again.mse == judged.mse
