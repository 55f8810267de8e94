"""What a table says about how it was measured and verified survives its files and keeps to its schema."""

from __future__ import annotations

import json
from typing import Any

import pytest
from jsonschema import Draft202012Validator, ValidationError
from test_table_files import SPACE, changed, example_costs

from binas.base.errors import TableError
from binas.base.interval import Interval
from binas.tables import Calibration, CostTable, NetworkCheck, Verification, load_costs, schema
from binas.tables.costs import costs_from_data


def verified() -> CostTable:
    one = Interval(value=1.0, low=0.5, high=1.5)
    check = NetworkCheck(architecture="a_b", predicted=2.0, measured=2.1, low=2.0, high=2.2, part="held-out")
    verification = Verification(
        networks=1,
        bias_percent=one,
        mape_percent=one,
        worst_percent=4.8,
        spearman=one,
        kendall=one,
        retest_percent=0.5,
        sum_percent=40.0,
        date="2025-01-01",
        checks=(check,),
    )
    calibration = Calibration(
        form="per-block",
        scale=0.9,
        per_block=(0.1,) * len(SPACE.stages),
        constant=1.0,
        networks=12,
        tried={"sum": 40.0, "per-block": 1.0},
    )
    table = example_costs()
    name, cost = next(iter(table.costs.items()))
    known = {
        "backend": "onnxruntime",
        "processor": "cpu",
        "memory_format": "contiguous",
        "onednn": True,
        "statistic": "quantile 0.1",
        "calibration": calibration,
        "verification": verification,
    }
    object.__setattr__(cost, "provenance", cost.provenance.model_copy(update=known))
    return CostTable(SPACE, {**table.costs, name: cost})


@pytest.mark.parametrize("name", ["costs.json", "costs.csv"])
def test_it_survives_its_file(tmp_path: Any, name: str) -> None:
    table = verified()
    table.save(tmp_path / name)
    again = load_costs(tmp_path / name, SPACE)
    for key, cost in table.costs.items():
        assert again[key].provenance == cost.provenance


def test_it_keeps_to_the_schema() -> None:
    data = json.loads(json.dumps(verified().to_data()))
    Draft202012Validator(schema("costs")).validate(data)


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("verification", {"networks": 3}),
        ("verification", "good"),
        ("calibration", {"form": "affine"}),
        ("onednn", "perhaps"),
        ("backend", 3),
    ],
)
def test_half_of_it_is_refused(key: str, value: Any) -> None:
    table = verified()
    name = next(iter(table.costs))
    data = changed(json.loads(json.dumps(table.to_data())), ["costs", name, "provenance", key], value)
    with pytest.raises(ValidationError):
        Draft202012Validator(schema("costs")).validate(data)
    with pytest.raises(TableError, match=key):
        costs_from_data(data, SPACE, "file")


def test_the_sentence_says_the_numbers() -> None:
    cost = next(iter(verified().costs.values()))
    assert cost.provenance.verification is not None
    sentence = cost.provenance.verification.sentence()
    for part in ("1 networks held out", "1.00 % (0.50 to 1.50)", "worst 4.80 %", "differ by 0.50 %"):
        assert part in sentence
