from __future__ import annotations

import csv
import io
import re
from pathlib import Path

import pytest

from binas.base.errors import BinasError, TableError
from binas.space import Config, SearchSpace, Stage
from binas.tables import Column, Cost, CostTable, load_contributions, load_costs, parse_unit
from binas.tables.spreadsheet import costs_data_from_csv, costs_to_csv

SPACE = SearchSpace("tiny", (Stage("s1", (0, 1), ((Config("a"), Config("b")),)),))
HEADER = "name,unit,part,stage,block,choice,value,stderr,count\n"
ROWS = """\
latency,ms,fixed,,,,1.5,0.1,
latency,ms,config,s1,1,a,2,,
latency,ms,config,s1,1,b,3.5,,
"""


def load(tmp_path: Path, text: str, name: str = "costs.csv") -> CostTable:
    (tmp_path / name).write_text(text)
    return load_costs(tmp_path / name, SPACE)


def test_written_by_hand(tmp_path: Path) -> None:
    cost = load(tmp_path, HEADER + ROWS)["latency"]
    assert (cost.unit.name, cost.fixed, cost.fixed_stderr) == ("ms", 1.5, 0.1)
    assert cost.values.configs[0][0].tolist() == [2.0, 3.5]
    assert cost.values.depths[0].tolist() == [0.0, 0.0]


@pytest.mark.parametrize(
    "text",
    [
        "\ufeff" + HEADER + ROWS,
        (HEADER + ROWS).replace("\n", "\r\n"),
        "\n,,,\n" + HEADER + "\n" + ROWS + ",,,,,,,,\n",
        "# my notes, with commas\n" + HEADER + ROWS,
        HEADER.upper() + ROWS.replace(",", " , "),
        "name,unit,part,stage,block,choice,value\nlatency,ms,fixed,,,,1.5\n"
        "latency,ms,config,s1,1,a,2\nlatency,ms,config,s1,1,b,3.5\n",
        "value,name,unit,part,stage,block,choice,comment\n1.5,latency,ms,fixed\n"
        "3.5,latency,ms,config,s1,1,b,slow\n2,latency,ms,config,s1,1,a\n",
        HEADER + ROWS + "latency,ms,depth,s1,,0,0,,\nlatency,ms,depth,s1,,1,0,,\n",
    ],
    ids=["BOM", "CRLF", "blank rows", "comment", "case and spaces", "no errors", "other order", "depths"],
)
def test_as_spreadsheets_leave_it(tmp_path: Path, text: str) -> None:
    (tmp_path / "costs.csv").write_bytes(text.encode())
    cost = load_costs(tmp_path / "costs.csv", SPACE)["latency"]
    assert cost.fixed == 1.5
    assert cost.values.configs[0][0].tolist() == [2.0, 3.5]


def test_space_and_provenance_survive_padding_by_a_spreadsheet(tmp_path: Path) -> None:
    provenance = {"source": 'say "hi", all', "device": "x"}
    values = Column.full(SPACE, 1.0)
    cost = Cost("latency", parse_unit("ms"), 1.0, values)
    table = CostTable(SPACE, {"latency": cost})
    rows = list(csv.reader(io.StringIO(costs_to_csv(table))))
    rows[2] = ["# provenance: " + '{"latency": {"source": "say \\"hi\\", all", "device": "x"}}']
    buffer = io.StringIO()
    csv.writer(buffer).writerows(row + [""] * (9 - len(row)) for row in rows)
    assert load(tmp_path, buffer.getvalue())["latency"].provenance.to_data() == provenance


def test_comment_rows_may_be_written_without_quotes(tmp_path: Path) -> None:
    text = f'# space: {{"name": "tiny", "fingerprint": "{SPACE.fingerprint}"}}\n' + HEADER + ROWS
    assert load(tmp_path, text)["latency"].fixed == 1.5
    with pytest.raises(TableError, match="made for the space 'tiny'"):
        load(tmp_path, text.replace(SPACE.fingerprint, "0123"))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "no header row"),
        ("# nothing\n", "no header row"),
        ("a;b;c\n", "lacks the columns name, unit, .*separated by commas"),
        (HEADER, "costs: .*at least 1"),
        (HEADER + ROWS.replace("2,,", "two,,"), r"line 3: value, stderr or count is not a number \('two'\)"),
        (HEADER + ROWS.replace("2,,", ",,"), "line 3: value, stderr or count is not a number"),
        (HEADER + "latency,ms\n", "line 2: value, stderr or count is not a number"),
        (HEADER + ROWS.replace("3.5,,", "3,5,,"), "line 4 has more cells than the header .*decimal point"),
        (HEADER + ROWS.replace("config,s1,1,a", "config,s1,0,a"), "line 3: part must be"),
        (HEADER + ROWS.replace("config,s1,1,a", "config,s1,²,a"), "line 3: part must be"),
        (HEADER + ROWS.replace("config,s1,1,a", "config,s1,9999,a"), "line 3: part must be"),
        (HEADER + ROWS.replace("config,s1,1,a", "konfig,s1,1,a"), "line 3: part must be"),
        (HEADER + ROWS + "latency,ms,config,s1,1,a,9,,\n", "line 5: config s1 a appears twice"),
        (HEADER + ROWS + "latency,ms,fixed,,,,9,,\n", "line 5: fixed appears twice"),
        (HEADER + ROWS + "latency,s,depth,s1,,1,9,,\n", "line 5: unit 's' differs from 'ms'"),
        (HEADER + ROWS.replace(",ms,", ",,"), "latency.unit is empty"),
        (HEADER + ROWS.replace(",ms,", ",mss,"), "latency.unit: unknown unit 'mss'"),
        (HEADER + ROWS.replace("fixed", "base"), "no row with part 'fixed' for: latency"),
        (HEADER + ROWS + "latency,ms,base,,,,1,,\n", r"costs\.latency\.base: Extra"),
        (HEADER + ROWS.replace("latency", ""), r"costs\.: .*pattern"),
        (HEADER + ROWS.replace("2,,", "-2,,"), r"latency\.configs\.s1\[1\]\.a is negative"),
        (HEADER + ROWS.replace("2,,", "inf,,"), r"latency\.configs\.s1\[1\]\.a is inf"),
        (HEADER + ROWS.replace("2,,", "1e999,,"), r"latency\.configs\.s1\[1\]\.a is inf"),
        (
            HEADER + ROWS + "latency,ms,config,s1,2,a,1,,\n",
            r"latency\.configs\.s1 has 2 blocks, the space has 1",
        ),
        (HEADER + ROWS + "latency,ms,depth,s1,,1,1,,\n", r"latency\.depths\.s1\.0 is missing"),
        ("# combine: 5\n" + HEADER + ROWS, "'# combine:' must hold an object"),
        ('# combine: {"latncy": "max"}\n' + HEADER + ROWS, "names 'latncy', which has no rows"),
        ('# combine: {"latency": "mean"}\n' + HEADER + ROWS, "'sum' or 'max'"),
        ("# provenance: 5\n" + HEADER + ROWS, "'# provenance:' must hold an object"),
        ('# provenance: {"latency"\n' + HEADER + ROWS, r"costs\.csv, line 1 is not complete JSON"),
        ("# space: 5\n" + HEADER + ROWS, "space: .*dictionary"),
        (HEADER + '"' + "x" * 200_000, "not readable CSV"),
    ],
)
def test_bad_spreadsheets(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(BinasError, match=message):
        load(tmp_path, text)


def test_all_bad_rows_in_one_message(tmp_path: Path) -> None:
    text = HEADER + ROWS.replace("2,,", "two,,").replace("3.5", "x") + "latency,ms,what,,,,1,,\n"
    with pytest.raises(TableError) as caught:
        load(tmp_path, text)
    assert re.findall(r"line \d+", str(caught.value)) == ["line 3", "line 4", "line 5"]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (HEADER, "one quantity in the column 'name', got: none"),
        (
            HEADER + "a,percent,base,,,,1,,\nb,percent,base,,,,1,,\n",
            "one quantity in the column 'name', got: a; b",
        ),
        (HEADER + "a,percent,depth,s1,,0,1,,\n", "no row with part 'base'"),
        (HEADER + "a,ms,base,,,,1,,\n", "unit: Input should be 'percent'"),
        (
            HEADER + "a,,base,,,,1,,\n",
            r"contributions\.depths\.s1\.0 is missing; .*s1\.1 is missing; .*0 blocks",
        ),
        (HEADER + "a,,fixed,,,,1,,\na,,base,,,,1,,\n", "fixed: Extra"),
    ],
)
def test_bad_contributions(tmp_path: Path, text: str, message: str) -> None:
    (tmp_path / "contributions.csv").write_text(text)
    with pytest.raises(TableError, match=message):
        load_contributions(tmp_path / "contributions.csv", SPACE)


def test_one_row_per_number() -> None:
    values = Column.full(SPACE, 1.0)
    text = costs_to_csv(CostTable(SPACE, {"latency": Cost("latency", parse_unit("ms"), 0.1, values)}))
    rows = [row for row in csv.reader(io.StringIO(text)) if not row[0].startswith("#")]
    assert ",".join(rows[0]) + "\n" == HEADER
    assert [row[2:7] for row in rows[1:]] == [
        ["fixed", "", "", "", "0.1"],
        ["depth", "s1", "", "0", "1.0"],
        ["depth", "s1", "", "1", "1.0"],
        ["config", "s1", "1", "a", "1.0"],
        ["config", "s1", "1", "b", "1.0"],
    ]
    assert costs_data_from_csv(text, "text")["costs"]["latency"]["fixed"] == 0.1
