"""Printing answers: JSON for programs, lines and tables for people."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from binas.base.errors import BinasError


@dataclass(frozen=True)
class Reply:
    """What a command answers: ``data`` for programs, ``show`` for people; an ``error`` comes after the data."""

    data: Any
    show: Callable[[], None] = lambda: None
    error: BinasError | None = None

    def and_drew(self, *files: object) -> Reply:
        """The same, and that files were drawn."""

        def show() -> None:
            self.show()
            say(*(f"wrote {file}" for file in files))

        return Reply({**self.data, "drawn": [str(file) for file in files]}, show)

    def give(self, as_json: bool) -> None:
        """Print it."""
        if as_json:
            print_json(self.data)
        if self.error is not None:
            raise self.error
        if not as_json:
            self.show()


def print_json(data: Any) -> None:
    """One JSON document on standard output."""
    sys.stdout.write(json.dumps(data, ensure_ascii=False, allow_nan=False) + "\n")


def say(*lines: str) -> None:
    """Lines for people on standard output (plain, no markup)."""
    from rich.console import Console

    for line in lines:
        Console(highlight=False, soft_wrap=True).print(line, markup=False)


def table(columns: Sequence[str], rows: Iterable[Sequence[str]], title: str | None = None) -> None:
    """A table for people; plain text when not on a terminal."""
    from rich import box
    from rich.console import Console
    from rich.table import Table

    grid = Table(title=title, title_justify="left", box=box.SIMPLE_HEAD, pad_edge=False)
    body = [list(row) for row in rows]
    for index, column in enumerate(columns):
        numbers = all(_is_number(row[index]) for row in body)
        grid.add_column(column, justify="right" if numbers else "left", overflow="fold")
    for row in body:
        grid.add_row(*row)
    console = Console(highlight=False, markup=False)
    if not console.is_terminal:
        console = Console(highlight=False, markup=False, width=1000)
    console.print(grid)


def table_of_known(columns: Sequence[str], rows: Iterable[Sequence[str]], title: str | None = None) -> None:
    """A table without the columns in which nothing is known (``-``); without rows nothing."""
    body = list(rows)
    kept = [k for k in range(len(columns)) if any(row[k] != "-" for row in body)]
    if body:
        table([columns[k] for k in kept], [[row[k] for k in kept] for row in body], title)


def _is_number(cell: str) -> bool:
    """Whether a cell starts with a number (units may follow)."""
    return cell in ("-", "") or (cell.lstrip("+-")[:1].isdigit() and "-" not in cell[1:].replace("e-", ""))
