"""Spans of time as people write and read them."""

import pytest
from hypothesis import given, strategies as st

from binas.base.errors import UnitError
from binas.base.times import duration, parse_duration, short_duration


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("90s", 90),
        ("15min", 900),
        (" 15 MIN ", 900),
        ("15m", 900),
        ("2h", 7200),
        ("1.5h", 5400),
        ("1h30", 5400),
        ("1h 30min", 5400),
        ("1h05min10s", 3910),
        ("2min30s", 150),
    ],
)
def test_what_may_be_written(text, seconds):
    assert parse_duration(text) == seconds


@pytest.mark.parametrize(
    "text", ["", "2", "2 days", "-1h", "0s", "h", "1h75", "30min 1h", "nan", "1e9h", "2000h"]
)
def test_what_may_not(text):
    with pytest.raises(UnitError, match="15min"):
        parse_duration(text)


def test_a_bare_number_is_named_as_such():
    with pytest.raises(UnitError, match="no unit"):
        parse_duration("120")


def test_durations_for_people():
    assert [duration(s) for s in (0.2, 59.4, 61, 7322)] == ["0 s", "59 s", "1 min 01 s", "2 h 02 min"]


def test_durations_to_type():
    assert [short_duration(s) for s in (45, 60, 90, 900, 3600, 5400)] == [
        "45s",
        "1min",
        "90s",
        "15min",
        "1h",
        "1h30",
    ]


@given(st.integers(1, 3_000_000))
def test_what_is_shown_to_type_can_be_read(seconds):
    back = parse_duration(short_duration(seconds))
    assert abs(back - seconds) <= (30 if seconds >= 3600 else 0)
