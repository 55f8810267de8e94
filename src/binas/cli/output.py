"""Printing answers: JSON for programs, tables for people."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Sequence
from typing import Any


def print_json(data: Any) -> None:
    """One JSON document on standard output."""
    sys.stdout.write(json.dumps(data, ensure_ascii=False, allow_nan=False) + "\n")


def say(text: str) -> None:
    """A line for people on standard output (plain, no markup)."""
    from rich.console import Console

    Console(highlight=False, soft_wrap=True).print(text, markup=False)


def table(columns: Sequence[str], rows: Iterable[Sequence[str]], title: str | None = None) -> None:
    """A table for people; plain text when not on a terminal."""
    from rich import box
    from rich.console import Console
    from rich.table import Table

    made = Table(title=title, title_justify="left", box=box.SIMPLE_HEAD, pad_edge=False)
    body = [list(row) for row in rows]
    for index, column in enumerate(columns):
        numbers = all(_is_number(row[index]) for row in body)
        made.add_column(column, justify="right" if numbers else "left", overflow="fold")
    for row in body:
        made.add_row(*row)
    console = Console(highlight=False, markup=False)
    if not console.is_terminal:
        console = Console(highlight=False, markup=False, width=1000)
    console.print(made)


def _is_number(cell: str) -> bool:
    """Whether a cell starts with a number (units may follow)."""
    return cell in ("-", "") or (cell.lstrip("+-")[:1].isdigit() and "-" not in cell[1:].replace("e-", ""))
