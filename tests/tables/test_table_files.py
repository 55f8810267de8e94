"""Contributions and costs as JSON and CSV: lossless, complete, or refused in one message."""

from __future__ import annotations

import copy
import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, strategies as st

from binas.base.errors import FileError, TableError
from binas.base.files import dump_json
from binas.space import SearchSpace, load_space
from binas.tables import (
    Column,
    Contributions,
    Cost,
    CostTable,
    Provenance,
    load_contributions,
    load_costs,
    parse_unit,
)
from binas.tables.contributions import contributions_from_data
from binas.tables.costs import costs_from_data
from binas.tables.spreadsheet import (
    contributions_data_from_csv,
    contributions_to_csv,
    costs_data_from_csv,
    costs_to_csv,
)
from strategies import contributions, cost_tables, spaces


def same(one: Column | None, two: Column | None) -> bool:
    """Equal numbers; a column that knows nothing is the same as none."""
    if one is None or two is None:
        return all(column is None or all(np.isnan(a).all() for a in column.arrays()) for column in (one, two))
    return one.equals(two)


def number(value: float) -> float | str:
    return "unknown" if math.isnan(value) else value


def assert_same_contributions(one: Contributions, two: Contributions) -> None:
    assert (one.base, number(one.base_stderr)) == (two.base, number(two.base_stderr))
    assert number(one.base_count) == number(two.base_count)
    assert one.values.equals(two.values)
    assert same(one.stderr, two.stderr)
    assert same(one.count, two.count)
    assert one.provenance == two.provenance


def assert_same_costs(one: CostTable, two: CostTable) -> None:
    assert list(one.costs) == list(two.costs)
    for a, b in zip(one.costs.values(), two.costs.values(), strict=True):
        assert (a.name, a.unit, a.fixed) == (b.name, b.unit, b.fixed)
        assert number(a.fixed_stderr) == number(b.fixed_stderr)
        assert a.values.equals(b.values)
        assert a.combine == b.combine
        assert same(a.stderr, b.stderr)
        assert a.provenance == b.provenance


@st.composite
def with_contributions(draw: st.DrawFn) -> Contributions:
    return draw(contributions(draw(spaces(max_stages=2, max_blocks=2))))


@st.composite
def with_costs(draw: st.DrawFn) -> CostTable:
    return draw(cost_tables(draw(spaces(max_stages=2, max_blocks=2))))


class TestRoundTrip:
    @given(with_contributions())
    def test_contributions_as_json(self, table: Contributions) -> None:
        data = json.loads(dump_json(table.to_data()))
        assert_same_contributions(contributions_from_data(data, table.space, "file"), table)

    @given(with_contributions())
    def test_contributions_as_csv(self, table: Contributions) -> None:
        data = contributions_data_from_csv(contributions_to_csv(table), "file")
        assert_same_contributions(contributions_from_data(data, table.space, "file"), table)

    @given(with_costs())
    def test_costs_as_json(self, table: CostTable) -> None:
        data = json.loads(dump_json(table.to_data()))
        assert_same_costs(costs_from_data(data, table.space, "file"), table)

    @given(with_costs())
    def test_costs_as_csv(self, table: CostTable) -> None:
        data = costs_data_from_csv(costs_to_csv(table), "file")
        assert_same_costs(costs_from_data(data, table.space, "file"), table)

    @pytest.mark.parametrize("ending", ["json", "csv", "CSV"])
    def test_through_files(self, tmp_path: Path, ending: str) -> None:
        accuracy, costs = example_contributions(), example_costs()
        accuracy.save(tmp_path / f"contributions.{ending}")
        costs.save(tmp_path / f"costs.{ending}")
        assert_same_contributions(load_contributions(tmp_path / f"contributions.{ending}", SPACE), accuracy)
        assert_same_costs(load_costs(tmp_path / f"costs.{ending}", SPACE), costs)
        assert (tmp_path / f"costs.{ending}").read_text().startswith("{" if ending == "json" else '"# format')

    def test_standard_errors_of_depths_that_cost_nothing(self) -> None:
        zero, known = Column.full(SPACE, 0.0), Column.full(SPACE, 0.5)
        table = CostTable(SPACE, {"latency": Cost("latency", parse_unit("ms"), 1.0, zero, 0.1, known)})
        assert_same_costs(costs_from_data(table.to_data(), SPACE, "file"), table)


SPACE = load_space("nas-bench-macro")


def example_contributions() -> Contributions:
    values = Column.build(SPACE, lambda s, i: 0.1 * i - s / 3, lambda s, b, c: 1 / (1 + s + b + c))
    errors = Column.build(SPACE, lambda s, i: 0.01, lambda s, b, c: math.nan if c else 0.02)
    count = Column.full(SPACE, 50_000)
    provenance = Provenance(source='a "test", with commas', device="CPU # 1")
    return Contributions(SPACE, 72.5, values, 0.05, errors, count, provenance)


def example_costs() -> CostTable:
    values = Column.build(SPACE, lambda s, i: -0.1 * i, lambda s, b, c: 0.5 + s + b + c)
    plain = Column.build(SPACE, lambda s, i: 0.0, lambda s, b, c: 1000.0 * c)
    provenance = Provenance(source="test", device="board", threads=4, batch=1, date="2024-05-06")
    return CostTable(
        SPACE,
        {
            "latency": Cost("latency", parse_unit("ms"), 3.25, values, provenance=provenance),
            "params": Cost("params", parse_unit("params"), 1e6, plain),
        },
    )


class TestProblemsAtOnce:
    def test_everything_wrong_with_a_cost_table_in_one_message(self) -> None:
        data = example_costs().to_data()
        data["space"]["fingerprint"] = "0" * 16
        latency, params = data["costs"]["latency"], data["costs"]["params"]
        del latency["configs"]["s1"][0]["e3k3"]
        latency["configs"]["s1"][1]["e9k9"] = 1.0
        latency["configs"]["s2"][0]["id"] = math.nan
        latency["configs"]["s2"][1]["e3k3"] = math.inf
        latency["configs"]["s3"][0]["id"] = -2.0
        latency["fixed"] = {"value": 1.0, "stderr": -1.0}
        latency["depths"]["s1"]["7"] = 0.5
        params["unit"] = "parsecs"
        params["configs"]["s3"].pop()
        params["configs"]["s4"] = []
        with pytest.raises(TableError) as caught:
            costs_from_data(data, SPACE, "my.json")
        message = str(caught.value)
        for problem in (
            "made for the space 'nas-bench-macro' (fingerprint 0000000000000000)",
            "latency.configs.s1[1].e3k3 is missing",
            "latency.configs.s1[2] has e9k9, not in the space (it has e3k3, e6k5)",
            "latency.configs.s2[1].id is nan",
            "latency.configs.s2[2].e3k3 is inf",
            "latency.configs.s3[1].id is negative (-2)",
            "latency.fixed.stderr is -1.0",
            "latency.depths.s1 has 7, not in the space (it has 1, 2)",
            "params.unit: unknown unit 'parsecs'",
            "params.configs.s3 has 2 blocks, the space has 3",
            "params.configs has s4, not in the space (it has s1, s2, s3)",
        ):
            assert problem in message
        assert message.startswith("my.json: ")
        assert message.endswith("with finite numbers from zero up.")

    def test_everything_wrong_with_contributions_in_one_message(self) -> None:
        data = example_contributions().to_data()
        data["space"] = {"name": "other"}
        data["base"] = math.nan
        del data["depths"]["s1"]["2"]
        data["depths"]["s9"] = {}
        data["configs"]["s1"][0]["id"] = {"value": 1.0, "stderr": math.inf, "count": -1}
        del data["configs"]["s2"]
        with pytest.raises(TableError) as caught:
            contributions_from_data(data, SPACE, "my.json")
        for problem in (
            "made for the space 'other', not for 'nas-bench-macro'",
            "contributions.base is nan",
            "contributions.depths.s1.2 is missing",
            "contributions.depths has s9, not in the space",
            "contributions.configs.s1[1].id.stderr is inf",
            "contributions.configs.s1[1].id.count is -1.0",
            "contributions.configs.s2 has 0 blocks, the space has 3",
        ):
            assert problem in str(caught.value)

    def test_many_problems_are_counted(self) -> None:
        data = example_costs().to_data()
        for blocks in data["costs"]["latency"]["configs"].values():
            blocks[:] = [dict.fromkeys(block, -1.0) for block in blocks]
        with pytest.raises(TableError, match=r"; and 7 more\."):
            costs_from_data(data, SPACE, "my.json")

    @pytest.mark.parametrize("ending", ["json", "csv"])
    def test_nan_in_a_file_is_named_by_its_key(self, tmp_path: Path, ending: str) -> None:
        """Python writes NaN into JSON without being asked, so people have such files."""
        path = tmp_path / f"costs.{ending}"
        example_costs().save(path)
        text = path.read_text()
        assert text.count("3.25") == 1
        path.write_text(text.replace("3.25", "NaN"))
        with pytest.raises(TableError, match=rf"costs\.{ending}: latency\.fixed is nan"):
            load_costs(path, SPACE)


class TestOtherSpaces:
    def test_table_of_another_space(self, tmp_path: Path) -> None:
        example_costs().save(tmp_path / "costs.json")
        with pytest.raises(TableError, match=r'not for .small-28. .*remove the "space" entry'):
            load_costs(tmp_path / "costs.json", load_space("small-28"))

    def test_renamed_space_is_the_same_space(self) -> None:
        renamed = SearchSpace("renamed", SPACE.stages)
        assert_same_costs(costs_from_data(example_costs().to_data(), renamed, "file"), example_costs())

    @pytest.mark.parametrize("reference", [None, {"name": "nas-bench-macro"}])
    def test_files_that_say_less_are_read(self, reference: Any) -> None:
        data = {**example_costs().to_data(), "space": reference}
        assert costs_from_data(data, SPACE, "file")["params"].fixed == 1e6

    def test_name_alone_counts_where_there_is_no_fingerprint(self) -> None:
        data = {**example_costs().to_data(), "space": {"name": "other"}}
        with pytest.raises(TableError, match="made for the space 'other', not for 'nas-bench-macro'"):
            costs_from_data(data, SPACE, "file")


def changed(data: dict[str, Any], path: list[Any], value: Any) -> dict[str, Any]:
    result = copy.deepcopy(data)
    inner = result
    for key in path[:-1]:
        inner = inner[key]
    inner[path[-1]] = value
    return result


COST_BREAKAGES: list[tuple[list[Any], Any, str]] = [
    (["format"], "binas/contributions", "format: Input should be 'binas/costs'"),
    (["version"], 2, "version: Input should be 1"),
    (["extra"], 1, "extra: Extra inputs"),
    (["costs"], {}, "costs: .*at least 1"),
    (["costs"], [], "costs: .*dictionary"),
    (["costs", "9 lives"], {"unit": "ms", "fixed": 0, "configs": {}}, r"costs\.9 lives: .*pattern"),
    (["costs", "latency", "combine"], "mean", r"costs\.latency\.combine: .*'sum' or 'max'"),
    (["costs", "latency", "unit"], 3, r"costs\.latency\.unit: .*string"),
    (["costs", "latency", "fixed"], "3ms", r"costs\.latency\.fixed: .*valid number"),
    (["costs", "latency", "fixed"], True, r"costs\.latency\.fixed: .*valid number"),
    (["costs", "latency", "fixed"], None, r"costs\.latency\.fixed: .*valid number"),
    (["costs", "latency", "fixed"], {"value": 1, "sd": 2}, r"costs\.latency\.fixed\.sd: Extra"),
    (["costs", "latency", "fixed"], {"value": "1.5"}, r"costs\.latency\.fixed\.value: .*valid number"),
    (["costs", "latency", "fixed"], {"value": 1, "stderr": True}, r"costs\.latency\.fixed\.stderr: .*number"),
    (["costs", "latency", "fixed"], {"stderr": 2}, r"costs\.latency\.fixed\.value: Field required"),
    (["costs", "latency", "configs", "s1"], {"1": {}}, r"costs\.latency\.configs\.s1: .*list"),
    (["costs", "latency", "configs", "s1", 0, "id"], "1.5", r"configs\.s1\.0\.id: .*valid number"),
    (["costs", "latency", "configs", "s1", 0, "id"], [1.5], r"configs\.s1\.0\.id: .*valid number"),
    (["costs", "latency", "provenance"], "mine", r"provenance: .*dictionary"),
    (["costs", "latency", "provenance", "threads"], "many", r"provenance\.threads: .*integer"),
    (["space"], "nas-bench-macro", "space: .*dictionary"),
    (["space", "name"], None, r"space\.name: .*string"),
]


class TestStructure:
    @pytest.mark.parametrize(("path", "value", "message"), COST_BREAKAGES)
    def test_costs(self, path: list[Any], value: Any, message: str) -> None:
        with pytest.raises(TableError, match=rf"file is not a costs table: .*{message}.*binas schema costs"):
            costs_from_data(changed(example_costs().to_data(), path, value), SPACE, "file")

    def test_all_structural_problems_at_once(self) -> None:
        data = changed(example_costs().to_data(), ["costs", "latency", "fixed"], "x")
        del data["costs"]["params"]["unit"], data["version"]
        with pytest.raises(TableError) as caught:
            costs_from_data(data, SPACE, "file")
        for part in ("version: Field required", "costs.params.unit: Field required", "costs.latency.fixed: "):
            assert str(caught.value).count(part) == 1

    def test_another_table_is_called_so_and_nothing_else(self) -> None:
        with pytest.raises(TableError) as caught:
            costs_from_data(example_contributions().to_data(), SPACE, "file")
        assert "but this is a file of binas/contributions. See" in str(caught.value)
        assert "Extra inputs" not in str(caught.value)

    @pytest.mark.parametrize("unit", ["", "  "])
    def test_empty_unit_is_not_taken_for_a_plain_number(self, unit: str) -> None:
        data = changed(example_costs().to_data(), ["costs", "latency", "unit"], unit)
        with pytest.raises(TableError, match=r"latency\.unit is empty; write ms, MACs"):
            costs_from_data(data, SPACE, "file")

    @pytest.mark.parametrize("data", [None, [], "text", 5, {}])
    def test_not_a_table(self, data: Any) -> None:
        with pytest.raises(TableError, match="file is not a contributions table"):
            contributions_from_data(data, SPACE, "file")

    def test_contributions_are_in_percent(self) -> None:
        data = {**example_contributions().to_data(), "unit": "fraction"}
        with pytest.raises(TableError, match="unit: Input should be 'percent'"):
            contributions_from_data(data, SPACE, "file")

    def test_negative_contributions_and_discounts_per_depth_are_fine(self) -> None:
        data = changed(example_contributions().to_data(), ["configs", "s1", 0, "id"], -3.0)
        assert contributions_from_data(data, SPACE, "file").values.configs[0][0][0] == -3.0
        assert (
            costs_from_data(example_costs().to_data(), SPACE, "file")["latency"].values.depths[0][1] == -0.1
        )

    def test_truncated_file(self, tmp_path: Path) -> None:
        path = tmp_path / "costs.json"
        example_costs().save(path)
        path.write_text(path.read_text()[:300])
        with pytest.raises(FileError, match=r"costs\.json is not complete JSON"):
            load_costs(path, SPACE)

    def test_unknown_cost(self) -> None:
        with pytest.raises(TableError, match="there is no cost 'energy'; the table has latency, params"):
            example_costs()["energy"]

    @pytest.mark.parametrize("value", [math.nan, math.inf])
    @pytest.mark.parametrize("ending", ["json", "csv"])
    def test_nan_is_never_written(self, tmp_path: Path, value: float, ending: str) -> None:
        path = tmp_path / f"costs.{ending}"
        example_costs().save(path)
        before = path.read_bytes()
        bad = Cost("latency", parse_unit("ms"), value, Column.full(SPACE, 1.0))
        with pytest.raises((TableError, FileError), match="NaN or infinite"):
            CostTable(SPACE, {"latency": bad}).save(path)
        assert path.read_bytes() == before


class TestProvenance:
    @pytest.mark.parametrize("bad", [{"dispersion": math.nan}, {"note": math.inf}, {"note": object()}])
    def test_holds_only_what_can_be_written(self, bad: dict[str, Any]) -> None:
        with pytest.raises(ValueError):
            Provenance.model_validate(bad)

    def test_unknown_keys_are_kept(self) -> None:
        given = {"source": "", "governor": "performance", "nothing": None, "nested": {"a": [None]}}
        assert Provenance.model_validate(given).to_data() == given


class TestColumns:
    def test_shape_follows_the_space(self) -> None:
        column = Column.build(SPACE, lambda s, i: 10 * s + i, lambda s, b, c: 100 * s + 10 * b + c)
        assert [row.tolist() for row in column.depths] == [[0, 1], [10, 11, 12], [20, 21, 22]]
        assert [row.tolist() for row in column.configs[1]] == [[100, 101, 102], [110, 111], [120, 121]]
        assert len(list(column.arrays())) == 3 + 8

    def test_equality_sees_numbers_and_unknowns(self) -> None:
        one, two = Column.full(SPACE, math.nan), Column.full(SPACE, math.nan)
        assert one.equals(two)
        two.configs[2][1][0] = 0.0
        assert not one.equals(two)
        assert not one.equals(Column.full(load_space("small-28"), math.nan))
        assert one.map(lambda array: array * 0 + 1).equals(Column.full(SPACE, math.nan))


def _with_covariance(matrix: np.ndarray) -> Contributions:
    space = load_space("nas-bench-macro")
    return Contributions(space, 60.0, Column.full(space, 0.5), covariance=matrix)


def _size() -> int:
    space = load_space("nas-bench-macro")
    return 1 + space.alpha_size + space.beta_size


def test_a_covariance_survives_a_file(tmp_path: Path) -> None:
    root = np.random.default_rng(0).normal(size=(_size(), _size()))
    table = _with_covariance(root @ root.T)
    table.save(tmp_path / "c.json")
    found = load_contributions(tmp_path / "c.json", table.space).covariance
    assert found is not None
    np.testing.assert_allclose(found, table.covariance, rtol=1e-6, atol=1e-5)


def test_what_is_not_a_covariance_is_refused(tmp_path: Path) -> None:
    one = np.eye(_size())
    with pytest.raises(TableError, match="has shape"):
        _with_covariance(np.eye(3))
    with pytest.raises(TableError, match="NaN or infinity"):
        _with_covariance(one * math.nan).save(tmp_path / "c.json")
    table = _with_covariance(one)
    _with_covariance(-one).save(tmp_path / "c.json")
    with pytest.raises(TableError, match="negative variance"):
        load_contributions(tmp_path / "c.json", table.space)
    for text in ("AAAA", "not base64!"):
        with pytest.raises(TableError, match="covariance"):
            contributions_from_data({**table.to_data(), "covariance": text}, table.space, "here")
