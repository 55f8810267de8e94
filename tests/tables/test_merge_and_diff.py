"""Several tables: compared with numbers, merged only where that is right, and how far a cost can go."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from binas.base.errors import TableError
from binas.base.files import dump_json
from binas.space import Config, SearchSpace, Stage
from binas.tables import (
    Column,
    Cost,
    CostTable,
    Provenance,
    diff,
    load_costs,
    merge,
    parse_unit,
    rename_cost,
)

SPACE = SearchSpace(
    "small",
    (
        Stage("s1", (1, 2), ((Config("a"), Config("b")),) * 2),
        Stage("s2", (0, 1), ((Config("a"), Config("b")),)),
    ),
)
PHONE = Provenance(source="phone run", device="Pixel 9", threads=1, batch=1)


def cost(
    name: str = "latency", factor: float = 1.0, unit: str = "ms", provenance: Provenance = PHONE, **more
) -> Cost:
    values = Column.build(SPACE, lambda s, i: 0.0, lambda s, b, c: factor * (1 + s + b + 2 * c))
    return Cost(name, parse_unit(unit), factor * 3.0, values, provenance=provenance, **more)


def table(*costs: Cost) -> CostTable:
    return CostTable(SPACE, {item.name: item for item in costs})


class TestDiff:
    def test_numbers(self) -> None:
        other = cost(factor=2.0, provenance=PHONE.model_copy(update={"batch": 8, "threads": None}))
        (found,) = diff(table(cost(), cost("energy", unit="mJ")), table(other)).costs
        assert found.conditions == {"threads": (1, None), "batch": (1, 8)}
        assert found.entries == len(found.changes) == 1 + 6  # fixed and configs
        assert {change.ratio for change in found.changes} == {2.0}
        assert found.median_ratio == 2.0

    def test_what_only_one_has(self) -> None:
        found = diff(table(cost(), cost("energy")), table(cost(), cost("params")))
        assert (found.only_first, found.only_second) == (("energy",), ("params",))
        assert found.costs[0].changes == ()
        assert found.costs[0].median_ratio == 1.0

    def test_units_are_converted(self) -> None:
        (found,) = diff(table(cost()), table(cost(factor=1000.0, unit="us"))).costs
        assert (found.unit, found.changes) == ("ms", ())

    def test_the_largest_change_comes_first(self) -> None:
        other = cost()
        other.values.configs[0][1][1] *= 0.2
        other.values.configs[1][0][0] *= 2.0
        (found,) = diff(table(cost()), table(other)).costs
        assert [change.entry for change in found.changes] == ["s1 block 2 b", "s2 block 1 a"]
        assert found.changes[0].ratio == pytest.approx(0.2)

    def test_noise(self) -> None:
        errors = Column.full(SPACE, 0.3)
        one, two = (cost(factor=f, stderr=errors, fixed_stderr=0.3) for f in (1.0, 1.25))
        (found,) = diff(table(one), table(two)).costs
        beyond = {change.entry: change.beyond_noise for change in found.changes}
        limit = 2 * math.hypot(0.3, 0.3)
        assert beyond == {c.entry: abs(c.second - c.first) > limit for c in found.changes}
        assert set(beyond.values()) == {True, False}
        assert {c.beyond_noise for c in diff(table(cost()), table(two)).costs[0].changes} == {None}

    def test_json(self) -> None:
        other = cost(factor=2.0)
        other.values.configs[0][0][0] = 0.0
        (found,) = diff(table(cost()), table(other)).costs
        data = json.loads(dump_json(found.to_json()))
        assert data["changes"][0] == {
            "entry": "s1 block 1 a",
            "first": 1.0,
            "second": 0.0,
            "beyond_noise": None,
        }

    def test_what_cannot_be_compared(self) -> None:
        with pytest.raises(TableError, match="not the same quantity"):
            diff(table(cost()), table(cost(unit="mJ")))
        with pytest.raises(TableError, match="combined by sum in one table and by max"):
            diff(table(cost()), table(cost(combine="max")))
        other = CostTable(replace(SPACE, classes=3), {})
        with pytest.raises(TableError, match="different spaces"):
            diff(table(cost()), other)


class TestMerge:
    def test_costs_of_different_names_come_together(self) -> None:
        energy = cost("energy", unit="mJ", provenance=Provenance(device="meter"))
        made = merge([table(cost()), table(energy)])
        assert list(made.costs) == ["latency", "energy"]
        assert made["energy"] is energy

    def test_the_same_numbers_are_kept_once(self) -> None:
        one, two = cost(), cost(provenance=PHONE.model_copy(update={"date": "2026-01-01"}))
        assert merge([table(one), table(two)])["latency"] is one

    @pytest.mark.parametrize(
        ("change", "words"),
        [
            ({"device": "Titan"}, "device"),
            ({"batch": 64}, "batch"),
            ({"threads": 4}, "threads"),
            ({"runtime": "TFLite"}, "runtime"),
            ({"dtype": "int8"}, "dtype"),
            ({"device": "Titan", "batch": 64}, "device, batch"),
        ],
    )
    def test_other_conditions_are_refused(self, change: dict[str, object], words: str) -> None:
        other = cost(provenance=PHONE.model_copy(update=change))
        with pytest.raises(TableError, match=rf"Pixel 9.*they differ in {words}\. Keep both with --rename"):
            merge([table(cost()), table(other)], average=True)

    def test_other_numbers_need_to_be_averaged(self) -> None:
        with pytest.raises(TableError, match=r"several tables with different numbers.*--average"):
            merge([table(cost()), table(cost(factor=3.0))])

    def test_means_and_their_errors(self, tmp_path: Path) -> None:
        errors = [Column.full(SPACE, e) for e in (0.3, 0.4)]
        monday, friday = (PHONE.model_copy(update={"date": f"2026-01-0{day}"}) for day in (5, 9))
        one = cost(stderr=errors[0], fixed_stderr=3.0, provenance=monday)
        wide = errors[1].map(lambda x: 1000 * x)
        two = cost(factor=3000.0, unit="us", stderr=wide, fixed_stderr=4000.0, provenance=friday)
        made = merge([table(one), table(two)], average=True)["latency"]
        assert (made.unit.name, made.fixed, made.fixed_stderr) == ("ms", 6.0, pytest.approx(2.5))
        for a, b in zip(made.values.arrays(), one.values.arrays(), strict=True):
            np.testing.assert_allclose(a, 2 * b)
        np.testing.assert_allclose(made.stderr.flat(), 0.25)
        assert made.provenance.to_data() == {
            "source": "phone run",
            "device": "Pixel 9",
            "threads": 1,
            "batch": 1,
            "merged": 2,
        }  # the date is not one of both
        table(made).save(tmp_path / "costs.json")
        assert load_costs(tmp_path / "costs.json", SPACE)["latency"].provenance == made.provenance

    def test_conditions_that_are_said_not_to_matter(self) -> None:
        other = cost(
            factor=3.0, provenance=PHONE.model_copy(update={"device": "Pixel 9 Pro", "source": "second"})
        )
        made = merge([table(cost()), table(other)], average=True, ignore=["device"])["latency"]
        assert made.provenance.device is None
        assert made.provenance.source == "phone run; second"
        assert made.provenance.to_data()["mixed"] == {"device": ["Pixel 9", "Pixel 9 Pro"]}
        assert made.stderr is None
        assert math.isnan(made.fixed_stderr)

    def test_equal_numbers_of_other_conditions_still_say_so(self) -> None:
        other = cost(provenance=PHONE.model_copy(update={"batch": 2}))
        made = merge([table(cost()), table(other)], ignore=["batch"])["latency"]
        assert made.provenance.to_data()["mixed"] == {"batch": [1, 2]}

    def test_renamed(self) -> None:
        other = rename_cost(
            table(cost(provenance=Provenance(device="Titan")), cost("params")), "latency", "latency_gpu"
        )
        made = merge([table(cost()), other])
        assert set(made.costs) == {"latency", "latency_gpu", "params"}
        assert made["latency_gpu"].name == "latency_gpu"
        with pytest.raises(TableError, match="has a cost 'params' already"):
            rename_cost(other, "latency_gpu", "params")
        with pytest.raises(TableError, match="no cost 'energy'"):
            rename_cost(other, "energy", "x")

    def test_what_cannot_be_merged(self) -> None:
        with pytest.raises(TableError, match="no tables"):
            merge([])
        with pytest.raises(TableError, match="'speed' is no condition"):
            merge([table(cost())], ignore=["speed"])
        with pytest.raises(TableError, match="different spaces"):
            merge([table(cost()), CostTable(replace(SPACE, classes=3), {})])
        with pytest.raises(TableError, match="not the same quantity"):
            merge([table(cost()), table(cost(unit="mJ"))])
        with pytest.raises(TableError, match="a sum in one table and a maximum"):
            merge([table(cost()), table(cost(combine="max"))])
