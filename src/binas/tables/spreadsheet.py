"""Tables as CSV for people with spreadsheets: one row per number.

Columns: ``name, unit, part, stage, block, choice, value, stderr, count``. ``part`` is ``base`` or
``fixed`` (no stage), ``depth`` (choice is the depth) or ``config`` (block from 1, choice is the config).
Rows that start with ``#`` carry the space, the provenance, and which costs are combined by ``max``, as JSON.
"""

from __future__ import annotations

import csv
import io
import json
import math
import re
from collections.abc import Iterator
from typing import Any

from binas.base.errors import TableError, several
from binas.base.files import parse_json
from binas.base.rows import parse_rows
from binas.tables.contributions import FORMAT as CONTRIBUTIONS, Contributions
from binas.tables.costs import FORMAT as COSTS, CostTable

HEADER = ["name", "unit", "part", "stage", "block", "choice", "value", "stderr", "count"]
COMMENTS = ("space", "provenance", "combine")
MAX_BLOCKS = 1000


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
    combine = {name: cost["combine"] for name, cost in data["costs"].items() if "combine" in cost}
    head = {"format": COSTS, "space": data["space"], "provenance": provenance}
    return _text({**head, "combine": combine} if combine else head, rows)


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
        number = {"value": number}
    known = [number.get(key) for key in ("value", "stderr", "count")]
    if not all(cell is None or math.isfinite(cell) for cell in known):
        raise TableError("a value of the table is NaN or infinite, so it is not written.")
    return ["" if cell is None else repr(cell) for cell in known]


def _text(head: dict[str, Any], rows: list[list[str]]) -> str:
    buffer = io.StringIO()
    writer = csv.writer(buffer, lineterminator="\n")
    writer.writerows([f"# {key}: {json.dumps(value, ensure_ascii=False)}"] for key, value in head.items())
    writer.writerow(HEADER)
    writer.writerows(rows)
    return buffer.getvalue()


def contributions_data_from_csv(text: str, where: str) -> dict[str, Any]:
    """CSV text as the data of a contributions file."""
    head, parts = _parse(text, where)
    if len(parts) != 1:
        raise TableError(
            several(f"{where} must hold one quantity in the column 'name', got", [*parts] or ["none"])
        )
    body = next(iter(parts.values()))
    body["unit"] = body["unit"] or "percent"
    if "base" not in body:
        raise TableError(f"{where} has no row with part 'base' (the expected accuracy in percent).")
    return {"format": CONTRIBUTIONS, "version": 1, **head, **body}


def costs_data_from_csv(text: str, where: str) -> dict[str, Any]:
    """CSV text as the data of a cost file."""
    head, parts = _parse(text, where)
    extra = {key: head.pop(key, {}) for key in ("provenance", "combine")}
    for key, entries in extra.items():
        if not isinstance(entries, dict):
            raise TableError(f"{where}: the row '# {key}:' must hold an object with one entry per cost.")
    unknown = [name for name in extra["combine"] if name not in parts]
    if unknown:  # a misspelt name would turn a maximum into a sum
        raise TableError(f"{where}: the row '# combine:' names {unknown[0][:40]!r}, which has no rows.")
    lacking = [name for name, body in parts.items() if "fixed" not in body]
    if lacking:
        raise TableError(
            several(f"{where} has no row with part 'fixed' for", lacking, "Write 0 if there is none.")
        )
    for name, body in parts.items():
        body |= {key: entries[name] for key, entries in extra.items() if name in entries}
    return {"format": COSTS, "version": 1, **head, "costs": parts}


def _parse(text: str, where: str) -> tuple[dict[str, Any], dict[str, dict[str, Any]]]:
    """What the ``#`` rows say (``COMMENTS``), and the numbers by the name of their quantity."""
    head: dict[str, Any] = {}
    parts: dict[str, dict[str, Any]] = {}
    problems: list[str] = []
    header: list[str] | None = None
    for number, cells in parse_rows(text, where, TableError):
        if cells[0].startswith("#"):
            head.update(_comment(cells, f"{where}, line {number}"))
        elif header is None:
            header = _header(cells, where)
        else:
            _read_row(header, cells, parts, f"line {number}", problems)
    if header is None:
        raise TableError(f"{where} has no header row; write {', '.join(HEADER)}.")
    for name, body in parts.items():
        body["configs"] = {
            stage: _in_order(blocks, f"{name}, stage {stage}", problems)
            for stage, blocks in body["configs"].items()
        }
    if problems:
        raise TableError(several(where, problems))
    return head, parts


def _comment(cells: list[str], place: str) -> dict[str, Any]:
    """The JSON of a ``#`` row that carries some (``COMMENTS``), in one cell or written by hand without quotes."""
    key, _, value = ",".join(cells).rstrip(", ").removeprefix("#").partition(":")
    return {key.strip(): parse_json(value, place)} if key.strip() in COMMENTS else {}


def _header(cells: list[str], where: str) -> list[str]:
    header = [cell.strip().lower() for cell in cells]
    missing = [key for key in HEADER[:7] if key not in header]
    if missing:
        need = f"the header is {','.join(HEADER)}, separated by commas"
        raise TableError(f"{where} lacks the columns {', '.join(missing)}; {need}.")
    return header


def _read_row(
    header: list[str], cells: list[str], parts: dict[str, dict[str, Any]], line: str, problems: list[str]
) -> None:
    if len(cells) > len(header):
        problems.append(f"{line} has more cells than the header (numbers need a decimal point, not a comma)")
        return
    row = dict.fromkeys(HEADER, "") | {key: cell.strip() for key, cell in zip(header, cells, strict=False)}
    try:
        number = _number(row)
    except ValueError:
        problems.append(f"{line}: value, stderr or count is not a number ({row['value'][:20]!r})")
        return
    body = parts.setdefault(row["name"], {"unit": row["unit"], "depths": {}, "configs": {}})
    if body["unit"] != row["unit"]:
        problems.append(f"{line}: unit {row['unit']!r} differs from {body['unit']!r} of the rows before it")
    target, key = _target(body, row)
    if target is None:
        problems.append(f"{line}: part must be base, fixed, depth or config (with a block from 1)")
    elif key in target:
        problems.append(f"{line}: {row['part']} {row['stage']} {row['choice']}".rstrip() + " appears twice")
    else:
        target[key] = number


def _target(body: dict[str, Any], row: dict[str, str]) -> tuple[dict[str, Any] | None, str]:
    """Where the number of a row goes: an object of the file and a key; None where the row does not say."""
    if row["part"] in ("base", "fixed"):
        return body, row["part"]
    if row["part"] == "depth":
        return body["depths"].setdefault(row["stage"], {}), row["choice"]
    number = int(row["block"]) if re.fullmatch("[0-9]{1,4}", row["block"]) else 0
    if row["part"] != "config" or not 1 <= number <= MAX_BLOCKS:
        return None, ""
    return body["configs"].setdefault(row["stage"], {}).setdefault(number, {}), row["choice"]


def _in_order(blocks: dict[int, Any], place: str, problems: list[str]) -> list[Any]:
    """Blocks 1, 2, ... of a stage, whose rows may stand in any order; a block without rows is a problem, not filled in."""
    lacking = next((number for number in range(1, max(blocks)) if number not in blocks), None)
    if lacking is not None:
        problems.append(f"{place}: there are rows of block {max(blocks)}, but none of block {lacking}")
    return [blocks[number] for number in sorted(blocks)]


def _number(row: dict[str, str]) -> Any:
    value = float(row["value"])
    extra = {key: float(row[key]) for key in ("stderr", "count") if row[key]}
    known = {key: number for key, number in extra.items() if not math.isnan(number)}
    return {"value": value, **known} if known else value
