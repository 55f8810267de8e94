"""Measured architectures: files, checks, splits."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from jsonschema import Draft202012Validator, ValidationError

from binas.base.errors import FileError, TableError
from binas.base.files import dump_json
from binas.space import load_space, sample_many
from binas.tables import Provenance, Sample, Samples, load_samples, schema
from binas.tables.samples import pack, samples_from_data, unpack

SPACE = load_space("small-28")
ONE, TWO = SPACE.extreme(heaviest=False), SPACE.extreme()


def example() -> Samples:
    rows = (Sample(ONE, 81.5), Sample(TWO, 91.25, 0.28, 10_000, (91.0, 91.5)))
    return Samples(SPACE, rows, Provenance(source="made up"))


def test_round_trip(tmp_path: Path) -> None:
    example().save(tmp_path / "samples.json")
    again = load_samples(tmp_path / "samples.json", SPACE)
    assert again.architectures == [ONE, TWO]
    assert again.rows[1] == example().rows[1]
    assert math.isnan(again.rows[0].error)
    assert (again.rows[0].images, again.rows[0].halves) == (None, None)
    assert again.provenance.source == "made up"


def test_arrays() -> None:
    samples = example()
    np.testing.assert_array_equal(samples.accuracy, [81.5, 91.25])
    np.testing.assert_array_equal(samples.error, [np.nan, 0.28])
    assert samples.halves is None
    np.testing.assert_array_equal(samples.take([1]).halves, [[91.0, 91.5]])


def test_split_covers_every_row_once() -> None:
    architectures = list(dict.fromkeys(sample_many(SPACE, 40, 0)))
    samples = Samples(SPACE, tuple(Sample(a, 50.0) for a in architectures))
    some, others = samples.split(15, seed=3)
    assert (len(some), len(others)) == (15, len(samples) - 15)
    assert {*some.architectures, *others.architectures} == set(architectures)
    assert (
        some.architectures
        == samples.split(15, seed=3)[0].architectures
        != samples.split(15, 4)[0].architectures
    )
    with pytest.raises(TableError, match="cannot take 400 of"):
        samples.split(400, 0)


def test_schema_accepts_what_is_written() -> None:
    body = schema("samples")
    Draft202012Validator.check_schema(body)
    Draft202012Validator(body).validate(json.loads(dump_json(example().to_data())))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"accuracy": 101.0}, "row 2: accuracy is 101.0, not a percentage"),
        ({"accuracy": math.nan}, "row 2: accuracy is nan, not a percentage"),
        ({"halves": [50.0, -1.0]}, "row 2: halves is -1.0"),
        ({"error": -0.1}, "row 2: error is -0.1"),
        ({"images": 0}, "row 2: images is 0"),
        ({"architecture": str(ONE)}, "rows 1 and 2 are the same architecture"),
        ({"architecture": "e2k3_e2k3"}, "row 2: the architecture has 2 stages"),
        ({"architecture": "-"}, "row 2: stage 1 of the architecture string"),
    ],
)
def test_bad_rows_are_named(change: dict[str, Any], message: str) -> None:
    data = example().to_data()
    data["samples"][1] |= change
    with pytest.raises(TableError, match=message):
        samples_from_data(data, SPACE, "file")


@pytest.mark.parametrize(
    "change",
    [
        {"accuracy": "91"},
        {"accuracy": None},
        {"images": 2.5},
        {"halves": [50.0]},
        {"halves": 50.0},
        {"more": 1},
        {"architecture": 5},
    ],
)
def test_schema_and_reader_refuse_the_same(change: dict[str, Any]) -> None:
    data = example().to_data()
    data["samples"][1] |= change
    with pytest.raises(ValidationError):
        Draft202012Validator(schema("samples")).validate(data)
    with pytest.raises(TableError, match="not a samples table"):
        samples_from_data(data, SPACE, "file")


def test_samples_of_another_space() -> None:
    with pytest.raises(TableError, match="made for the space 'small-28'"):
        samples_from_data(example().to_data(), load_space("imagenet-mbconv"), "file")


def test_made_in_python_they_are_checked_too() -> None:
    with pytest.raises(TableError, match="rows 1 and 2 are the same"):
        Samples(SPACE, (Sample(ONE, 50.0), Sample(ONE, 60.0)))


def test_a_file_that_is_cut_off(tmp_path: Path) -> None:
    path = tmp_path / "samples.json"
    example().save(path)
    path.write_text(path.read_text()[:-40])
    with pytest.raises(FileError, match="not complete JSON"):
        load_samples(path, SPACE)


def test_outcomes_of_single_images_are_kept_as_bits(tmp_path: Path) -> None:
    correct = np.random.default_rng(0).random((2, 13)) < 0.7
    rows = tuple(
        Sample(item, 100 * float(right.mean()), images=13, correct=pack(right))
        for item, right in zip((ONE, TWO), correct, strict=True)
    )
    Samples(SPACE, rows).save(tmp_path / "samples.json")
    again = load_samples(tmp_path / "samples.json", SPACE)
    assert again.outcomes is not None
    np.testing.assert_array_equal(again.outcomes, correct)
    assert example().outcomes is None


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"correct": "/w=="}, "correct says 100 %, accuracy 50"),
        ({"correct": "%"}, "cannot be read"),
        ({"correct": "//8="}, "16 bits for the outcomes of 8 images"),
        ({"images": None}, "without images"),
    ],
)
def test_bits_that_cannot_be(change: dict[str, Any], message: str) -> None:
    row = {
        "architecture": str(ONE),
        "accuracy": 50.0,
        "images": 8,
        "correct": pack(np.arange(8) < 4),
        **change,
    }
    data = {"format": "binas/samples", "version": 1, "samples": [row]}
    with pytest.raises(TableError, match=message):
        samples_from_data(data, SPACE, "there")
    with pytest.raises(TableError):
        unpack("AAAA", 8)
