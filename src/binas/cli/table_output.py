"""What the commands on cost tables share."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from binas.cli.output import table

if TYPE_CHECKING:
    from binas.tables import CostTable

Out = Annotated[Path, typer.Option(help="Table to write, .json or .csv.")]
Overwrite = Annotated[bool, typer.Option(help="Replace an existing file.")]


def check_out(out: Path, overwrite: bool) -> None:
    """Refuse before any work what could not be written after it."""
    from binas.base.errors import FileError
    from binas.base.files import exists

    if out.suffix.lower() not in (".json", ".csv"):
        raise FileError(f"cannot write a table to {out}: name a file that ends in .json or .csv.")
    if exists(out) and not overwrite:
        raise FileError(f"{out} exists; choose another file, or replace it with --overwrite.")


def show_costs(costs: CostTable) -> None:
    """A row for each cost of a table."""
    from binas.tables import format_quantity
    from binas.tables.conditions import describe

    rows = []
    for name, cost in costs.costs.items():
        numbers = [format_quantity(value, cost.unit) for value in (cost.fixed, *costs.range(name))]
        known = cost.provenance
        rows.append(
            (name, cost.combine, *numbers, describe(known) or "-", known.source or "-", known.date or "-")
        )
    columns = (
        "cost",
        "combined by",
        "fixed part",
        "least network",
        "most network",
        "measured on",
        "source",
        "date",
    )
    table(columns, rows)
