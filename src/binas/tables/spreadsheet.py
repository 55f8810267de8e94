"""Tables as CSV for people with spreadsheets: one row per number.

Columns: ``name, unit, part, stage, block, choice, value, stderr, count``. ``part`` is ``base`` or
``fixed`` (no stage), ``depth`` (choice is the depth) or ``config`` (block from 1, choice is the config).
Rows that start with ``#`` carry the space and the provenance as JSON.
"""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Iterator
from typing import Any

from binas.errors import TableError, several
from binas.files import parse_json
from binas.tables.contributions import FORMAT as CONTRIBUTIONS
from binas.tables.contributions import Contributions
from binas.tables.costs import FORMAT as COSTS
from binas.tables.costs import CostTable

HEADER = ["name", "unit", "part", "stage", "block", "choice", "value", "stderr", "count"]
MAX_PROBLEMS = 50


def contributions_to_csv(table: Contributions) -> str:
    """Contributions as CSV text."""
    data = table.to_data()
    rows = [["accuracy", "percent", "base", "", "", "", *_cells(data["base"])]]
    rows += _rows("accuracy", "percent", data)
    return _text({"format": CONTRIBUTIONS, "space": data["space"], "provenance": data["provenance"]}, rows)


def costs_to_csv(table: CostTable) -> str:
    """A cost table as CSV text."""
    data = table.to_data()
    rows = []
    for name, cost in data["costs"].items():
        rows.append([name, cost["unit"], "fixed", "", "", "", *_cells(cost["fixed"])])
        rows += _rows(name, cost["unit"], cost)
    provenance = {name: cost["provenance"] for name, cost in data["costs"].items()}
    return _text({"format": COSTS, "space": data["space"], "provenance": provenance}, rows)


def _rows(name: str, unit: str, data: dict[str, Any]) -> Iterator[list[str]]:
    for stage, values in data.get("depths", {}).items():
        for depth, number in values.items():
            yield [name, unit, "depth", stage, "", depth, *_cells(number)]
    for stage, blocks in data["configs"].items():
        for b, values in enumerate(blocks, 1):
            for config, number in values.items():
                yield [name, unit, "config", stage, str(b), config, *_cells(number)]


def _cells(number: Any) -> list[str]:
    if not isinstance(number, dict):
        return [repr(number), "", ""]
    return [repr(number["value"]), *(repr(number[key]) if key in number else "" for key in ("stderr", "count"))]


def _text(head: dict[str, Any], rows: list[list[str]]) -> str:
    from json import dumps

    buffer = io.StringIO()
    writer = csv.writer(buffer, lineterminator="\n")
    writer.writerows([f"# {key}: {dumps(value, ensure_ascii=False)}"] for key, value in head.items())
    writer.writerow(HEADER)
    writer.writerows(rows)
    return buffer.getvalue()


def contributions_data_from_csv(text: str, where: str) -> dict[str, Any]:
    """CSV text as the data of a contributions file."""
    head, parts = _parse(text, where)
    if len(parts) != 1:
        raise TableError(f"{where} must hold one quantity in the column 'name', got {', '.join(parts) or 'none'}.")
    body = next(iter(parts.values()))
    body["unit"] = body["unit"] or "percent"
    if "base" not in body:
        raise TableError(f"{where} has no row with part 'base' (the expected accuracy in percent).")
    return {"format": CONTRIBUTIONS, "version": 1, **_space(head), "provenance": head.get("provenance", {}), **body}


def costs_data_from_csv(text: str, where: str) -> dict[str, Any]:
    """CSV text as the data of a cost file."""
    head, parts = _parse(text, where)
    provenance = head.get("provenance", {})
    for name, body in parts.items():
        if name in provenance:
            body["provenance"] = provenance[name]
        if "fixed" not in body:
            raise TableError(f"{where} has no row with part 'fixed' for {name!r}; write 0 if there is none.")
    return {"format": COSTS, "version": 1, **_space(head), "costs": parts}


def _space(head: dict[str, Any]) -> dict[str, Any]:
    return {"space": head["space"]} if "space" in head else {}


def _parse(text: str, where: str) -> tuple[dict[str, Any], dict[str, dict[str, Any]]]:
    head: dict[str, Any] = {}
    parts: dict[str, dict[str, Any]] = {}
    problems: list[str] = []
    header: list[str] | None = None
    try:
        for number, cells in enumerate(csv.reader(io.StringIO(text.lstrip("\ufeff"))), 1):
            if not cells or not any(cells):
                continue
            if cells[0].startswith("#"):
                key, _, value = cells[0].removeprefix("#").partition(":")
                if key.strip() in ("space", "provenance"):
                    head[key.strip()] = parse_json(value, f"{where}, line {number}")
            elif header is None:
                header = [cell.strip().lower() for cell in cells]
                _check_header(header, where)
            else:
                _read_row(dict(zip(header, cells, strict=False)), parts, f"line {number}", problems)
    except csv.Error as error:
        raise TableError(f"{where} is not readable CSV: {error}.") from error
    if header is None:
        raise TableError(f"{where} has no header row; write {', '.join(HEADER)}.")
    if problems:
        raise TableError(several(where, problems))
    return head, parts


def _check_header(header: list[str], where: str) -> None:
    missing = [key for key in HEADER[:7] if key not in header]
    if missing:
        raise TableError(f"{where} lacks the columns {', '.join(missing)}; the header is {', '.join(HEADER)}.")


def _read_row(row: dict[str, str], parts: dict[str, dict[str, Any]], line: str, problems: list[str]) -> None:
    try:
        number = _number(row)
    except ValueError:
        problems.append(f"{line}: value, stderr or count is not a number ({row['value'][:20]!r})")
        return
    body = parts.setdefault(row["name"].strip(), {"unit": row["unit"].strip(), "depths": {}, "configs": {}})
    if body["unit"] != row["unit"].strip():
        problems.append(f"{line}: unit {row['unit']!r} differs from {body['unit']!r} of the rows before it")
    part, stage, choice = row["part"].strip(), row["stage"].strip(), row["choice"].strip()
    if part in ("base", "fixed"):
        target, key = body, part
    elif part == "depth":
        target, key = body["depths"].setdefault(stage, {}), choice
    elif part == "config" and row["block"].strip().isdigit() and 1 <= int(row["block"]) <= 1000:
        blocks = body["configs"].setdefault(stage, [])
        blocks.extend({} for _ in range(int(row["block"]) - len(blocks)))
        target, key = blocks[int(row["block"]) - 1], choice
    else:
        problems.append(f"{line}: part must be base, fixed, depth or config (with a block from 1)")
        return
    if key in target:
        problems.append(f"{line}: {part} {stage} {choice} appears twice")
    target[key] = number


def _number(row: dict[str, str]) -> Any:
    value = float(row["value"])
    extra = {key: float(row[key]) for key in ("stderr", "count") if (row.get(key) or "").strip()}
    if not extra:
        return value
    return {"value": value, **{key: number for key, number in extra.items() if not math.isnan(number)}}
