"""A benchmark in parts measures nothing twice, loses nothing, and takes nothing of another state."""

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[2] / "benchmarks"))

from parts import Parts, state_of


def test_a_part_is_measured_once(tmp_path):
    asked = []
    for _ in range(2):  # the second time as another process finds it
        parts = Parts.of(tmp_path, "now")
        for name in ("a", "b", "a"):
            assert parts.take(name, lambda name=name: asked.append(name) or [0.5, None, name]) == [
                0.5,
                None,
                name,
            ]
    assert asked == ["a", "b"]


def test_what_was_measured_outlives_a_failure(tmp_path):
    parts = Parts.of(tmp_path, "now")
    parts.take("a", lambda: 1)
    with pytest.raises(ZeroDivisionError):
        parts.take("b", lambda: 1 // 0)
    assert Parts.of(tmp_path, "now").known == {"a": 1}


def test_another_state_or_a_fresh_start_finds_nothing(tmp_path):
    Parts.of(tmp_path, "now").take("a", lambda: 1)
    assert Parts.of(tmp_path, "later").known == {}
    assert Parts.of(tmp_path, "now", fresh=True).known == {}
    assert Parts.of(tmp_path, "now").known == {}


def test_a_state_depends_on_code_data_and_peers(tmp_path):
    data = tmp_path / "table.csv"
    data.write_text("1")
    first = state_of(["estimators"], [data], ["numpy"])
    assert first == state_of(["estimators"], [data], ["numpy"])
    others = [
        state_of(["estimators", "search"], [data], ["numpy"]),
        state_of(["estimators"], [data], ["numpy", "not_there"]),
    ]
    data.write_text("2")
    others.append(state_of(["estimators"], [data], ["numpy"]))
    assert first not in others
