"""``binas example``: folders to try binas with."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from binas.cli.output import Json, examples, print_json, say


class Example(StrEnum):
    """Examples that can be written."""

    paper = "paper"


def register(app: typer.Typer) -> None:
    """Add the commands to the main application."""
    app.command(
        "example", epilog=examples("binas example paper example", "binas search example --limit latency=45ms")
    )(write)


def write(
    name: Annotated[
        Example, typer.Argument(help="Which example: the tables of the BINAS paper, reconstructed.")
    ],
    folder: Annotated[Path, typer.Argument(help="Folder to write into.")],
    overwrite: Annotated[bool, typer.Option(help="Replace the files of an earlier example.")] = False,
    as_json: Json = False,
) -> None:
    """Write a complete example folder: space.yaml, contributions.json, costs.json."""
    from binas.run.example import ASSUMPTIONS, write_paper_example

    paths = write_paper_example(folder, overwrite)
    if as_json:
        print_json(
            {"example": name.value, "files": [str(path) for path in paths], "assumptions": ASSUMPTIONS}
        )
        return
    say(
        f"Wrote {', '.join(path.name for path in paths)} to {folder}: the paper's tables, reconstructed from its figures."
    )
    say(f"Try: binas search {folder} --limit latency=45ms")
