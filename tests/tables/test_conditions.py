"""What a cost holds for: stated, shown, compared, and refused where it is something else."""

from __future__ import annotations

import pytest

from binas.base.errors import TableError
from binas.tables import Provenance, check_conditions, conditions
from binas.tables.conditions import NOISY, describe, differences, disturbed, parse_conditions

PHONE = Provenance(source="bench", device="Pixel 9", runtime="TFLite", threads=1, batch=1, dtype="float32")


def test_only_what_is_stated() -> None:
    assert conditions(PHONE) == {
        "device": "Pixel 9",
        "runtime": "TFLite",
        "threads": 1,
        "batch": 1,
        "dtype": "float32",
    }
    assert conditions(Provenance(source="x", date="2026-01-01")) == {}


@pytest.mark.parametrize(
    ("provenance", "text"),
    [
        (PHONE, "Pixel 9, TFLite, 1 thread, batch 1, float32"),
        (Provenance(threads=4, batch=64), "4 threads, batch 64"),
        (Provenance(), ""),
    ],
)
def test_for_people(provenance: Provenance, text: str) -> None:
    assert describe(provenance) == text


def test_differences_count_what_only_one_states() -> None:
    other = PHONE.model_copy(update={"batch": 64, "threads": None, "date": "2026-01-01"})
    assert differences(PHONE, other) == ["threads", "batch"]
    assert differences(PHONE, other, ignore=["batch"]) == ["threads"]
    assert differences(PHONE, PHONE) == []


def test_checked() -> None:
    check_conditions("latency", PHONE, parse_conditions("device=pixel, batch=1 ,dtype=float32"))
    with pytest.raises(
        TableError, match="latency is wanted for device Titan, but the table is of device Pixel 9"
    ):
        check_conditions("latency", PHONE, {"device": "Titan"})
    with pytest.raises(
        TableError, match="energy is wanted for runtime onnxruntime, but the table does not say"
    ):
        check_conditions("energy", Provenance(), {"runtime": "onnxruntime"})


def test_a_table_of_a_busy_machine_says_so() -> None:
    assert disturbed("latency", Provenance()) is None
    assert disturbed("latency", Provenance(disturbance=NOISY)) is None
    said = disturbed("latency", Provenance(disturbance=0.42))
    assert said is not None
    assert "busy while latency was measured" in said
    assert "over 42% longer" in said
