"""JSON lines survive a process that is killed within one."""

import math

import pytest
from hypothesis import given, strategies as st

from binas.base.errors import FileError
from binas.base.lines import append_line, read_lines, write_lines

VALUES = [{"event": "started"}, ["a", 1.5, "zwölf\u2028"], {"x": {"y": [1, 2]}}]


def test_a_round_trip(tmp_path):
    path = tmp_path / "log.jsonl"
    assert read_lines(path) == []
    for value in VALUES:
        append_line(path, value)
    assert read_lines(path) == VALUES
    write_lines(path, VALUES[:1])
    append_line(path, VALUES[1])
    assert read_lines(path) == VALUES[:2]


@given(cut=st.integers(1, 200))
def test_a_cut_anywhere_loses_one_line_at_most(tmp_path_factory, cut):
    path = tmp_path_factory.mktemp("lines") / "log.jsonl"
    write_lines(path, VALUES)
    data = path.read_bytes()
    path.write_bytes(data[:-cut])
    whole = path.read_bytes().count(b"\n")
    left = read_lines(path)
    assert left in (VALUES[:whole], VALUES[: whole + 1])  # without its newline a line may still be whole
    append_line(path, "after")
    assert read_lines(path) == [*left, "after"]


def test_what_is_json_but_refused_is_named(tmp_path):
    path = tmp_path / "log.jsonl"
    path.write_text('{"a": 1}\n{"a": 1, "a": 2}\n')
    with pytest.raises(FileError, match=r"log\.jsonl, line 2"):
        read_lines(path)
    with pytest.raises(FileError, match="NaN"):
        append_line(path, math.nan)


def test_a_place_that_cannot_be_written(tmp_path):
    with pytest.raises(FileError, match="What was there is kept"):
        append_line(tmp_path / "no" / "log.jsonl", 1)
