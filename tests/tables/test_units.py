from __future__ import annotations

import math

import pytest
from hypothesis import given, strategies as st

from binas.base.errors import UnitError
from binas.tables import Unit, convert, format_quantity, parse_quantity, parse_unit

KINDS = {
    "time": ["s", "ms", "us", "\u00b5s", "\u03bcs", "ns"],
    "energy": ["J", "kJ", "mJ", "uJ", "\u00b5J", "\u03bcJ", "Wh", "mWh"],
    "bytes": ["B", "kB", "KB", "MB", "GB", "KiB", "MiB", "GiB"],
    "MACs": ["MACs", "kMACs", "KMACs", "MMACs", "GMACs", "TMACs", "M", "G", "count"],
    "FLOPs": ["FLOPs", "MFLOPs", "GFLOPs", "k", "Mcount"],
    "params": ["params", "Mparams", "M", "K"],
}
EVERY = sorted({name for names in KINDS.values() for name in names})


def read(text: str, unit: str) -> float:
    return parse_quantity(text, parse_unit(unit))


class TestReading:
    @pytest.mark.parametrize(
        ("text", "unit", "value"),
        [
            ("45ms", "ms", 45.0),
            ("45 ms", "ms", 45.0),
            ("0.045s", "ms", 45.0),
            ("45ms", "s", 0.045),
            ("45000us", "ms", 45.0),
            ("45000\u00b5s", "ms", 45.0),
            ("45000\u03bcs", "ms", 45.0),
            ("4.5e1ms", "ms", 45.0),
            (" .045s ", "ms", 45.0),
            ("5M", "params", 5e6),
            ("5Mparams", "params", 5e6),
            ("5M", "Mparams", 5.0),
            ("300MMACs", "MACs", 3e8),
            ("300M", "MACs", 3e8),
            ("0.3GMACs", "MMACs", 300.0),
            ("4MiB", "B", 4 * 2**20),
            ("4MiB", "KiB", 4096.0),
            ("4MB", "B", 4e6),
            ("3.5mJ", "J", 0.0035),
            ("1Wh", "J", 3600.0),
            ("0.5", "1", 0.5),
            ("5%", "%", 5.0),
            ("5", "%", 5.0),
            ("-1ms", "ms", -1.0),
        ],
    )
    def test_quantities(self, text: str, unit: str, value: float) -> None:
        assert read(text, unit) == value

    def test_forty_five_milliseconds_in_any_writing(self) -> None:
        assert read("45ms", "ms") == read("0.045s", "ms") == read("45000us", "ms") == read("45000000ns", "ms")

    @given(st.integers(1, 10**9))
    def test_milliseconds_written_in_seconds_are_exact(self, microseconds: int) -> None:
        """What people type with a shifted decimal point is the same number, not nearly the same."""
        in_ms, in_s = f"{microseconds}e-3ms", f"{microseconds}e-6s"
        assert read(in_s, "ms") == read(in_ms, "ms")

    @pytest.mark.parametrize(
        ("text", "unit", "example"),
        [
            ("45", "ms", "45ms"),
            ("45", "s", "45s"),
            ("5000000", "params", "5M"),
            ("4", "MiB", "4MiB"),
            ("1", "mJ", "1mJ"),
        ],
    )
    def test_bare_number_is_refused_with_an_example(self, text: str, unit: str, example: str) -> None:
        with pytest.raises(
            UnitError, match=rf"'{text}' has no unit.*the table is in {unit}: write e\.g\..*{example}"
        ):
            read(text, unit)

    @pytest.mark.parametrize(
        ("text", "unit"),
        [
            ("300MMACs", "params"),
            ("5Mparams", "MACs"),
            ("5MFLOPs", "MACs"),
            ("45ms", "MACs"),
            ("45ms", "MiB"),
            ("5M", "ms"),
            ("5MB", "params"),
            ("5B", "params"),
            ("5ms", "mJ"),
            ("5%", "1"),
            ("5points", "%"),
        ],
    )
    def test_another_kind_is_refused(self, text: str, unit: str) -> None:
        with pytest.raises(UnitError, match=r"does not convert to .*write e\.g\."):
            read(text, unit)

    @pytest.mark.parametrize(
        "text", ["", "ms", "45 m s", "4,5ms", "45ms!", "nanms", "infms", "0x10ms", "1_0ms", "--5ms"]
    )
    def test_what_is_no_quantity(self, text: str) -> None:
        with pytest.raises(UnitError, match=r"write"):
            read(text, "ms")

    @pytest.mark.parametrize("text", ["1e999ms", "1e308s"])
    def test_overflow(self, text: str) -> None:
        with pytest.raises(UnitError, match="not finite"):
            read(text, "ms")

    @pytest.mark.parametrize("name", ["sec", "Ms", "m", "mb", "MMAC", "macs", "xparams", "mMACs", "x" * 1000])
    def test_unknown_units(self, name: str) -> None:
        with pytest.raises(UnitError, match=r"unknown unit .*write a time \(s, ms, us\)"):
            parse_unit(name)


class TestConverting:
    @given(
        st.sampled_from(sorted(KINDS)).flatmap(lambda kind: st.tuples(*[st.sampled_from(KINDS[kind])] * 2)),
        st.floats(-1e200, 1e200),
    )
    def test_there_and_back(self, names: tuple[str, str], value: float) -> None:
        one, two = map(parse_unit, names)
        there = convert(value, one, two)
        assert convert(there, two, one) == pytest.approx(value, rel=1e-15, abs=1e-300)

    @given(st.sampled_from(EVERY), st.floats(allow_nan=False, allow_infinity=False))
    def test_to_itself_changes_nothing(self, name: str, value: float) -> None:
        assert convert(value, parse_unit(name), parse_unit(name)) == value

    @given(st.sampled_from(EVERY), st.sampled_from(EVERY))
    def test_either_both_ways_or_neither(self, one: str, two: str) -> None:
        def works(a: Unit, b: Unit) -> bool:
            try:
                return convert(1.0, a, b) > 0
            except UnitError:
                return False

        units = parse_unit(one), parse_unit(two)
        assert works(*units) == works(*units[::-1])
        assert works(*units) == (units[0].kind == units[1].kind and not different_nouns(one, two))


def different_nouns(one: str, two: str) -> bool:
    nouns = {noun for noun in ("MACs", "FLOPs", "params") for name in (one, two) if name.endswith(noun)}
    return len(nouns) > 1


class TestFormatting:
    @pytest.mark.parametrize(
        ("value", "unit", "text"),
        [
            (45.0, "ms", "45 ms"),
            (5260232.0, "params", "5.26023 Mparams"),
            (0.3, "GMACs", "300 MMACs"),
            (9999.0, "MACs", "9999 MACs"),
            (4 * 2**20, "B", "4 MiB"),
            (4.0, "kB", "4 kB"),
            (0.5, "1", "0.5"),
            (-2e6, "params", "-2 Mparams"),
            (5.0, "%", "5 %"),
            (2e13, "M", "2e+07 T"),
        ],
    )
    def test_for_people(self, value: float, unit: str, text: str) -> None:
        assert format_quantity(value, parse_unit(unit)) == text

    @given(st.sampled_from([*EVERY, "1", "%"]), st.floats(-1e30, 1e30))
    def test_reads_back(self, name: str, value: float) -> None:
        unit = parse_unit(name)
        assert parse_quantity(format_quantity(value, unit), unit) == pytest.approx(
            value, rel=1e-5, abs=1e-300
        )

    @pytest.mark.parametrize("value", [math.inf, -math.inf, math.nan])
    def test_what_is_not_finite_can_still_be_shown(self, value: float) -> None:
        assert format_quantity(value, parse_unit("params")) == f"{value} params"
