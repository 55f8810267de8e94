"""Rows of CSV that may be hostile: their number is limited, and what is no CSV is refused with the line."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator

from binas.base.errors import BinasError, FileError

MAX_CELLS = 5_000_000


def parse_rows(text: str, where: str, error: type[BinasError] = FileError) -> Iterator[tuple[int, list[str]]]:
    """Rows that are not blank, with their line numbers; whatever is wrong is an ``error`` that names ``where`` it is."""
    if text.count(",") + text.count("\n") > MAX_CELLS:
        raise error(f"{where} holds more than {MAX_CELLS} cells. Is it the right file?")
    reader = csv.reader(io.StringIO(text))
    try:
        for cells in reader:
            if any(cell.strip() for cell in cells):
                yield reader.line_num, cells
    except csv.Error as problem:
        raise error(
            f"{where} is not readable CSV at line {reader.line_num}: {problem}. Write it again as plain CSV."
        ) from problem
