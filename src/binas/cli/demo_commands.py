"""``binas demo``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from binas.cli.output import Json, examples
from binas.cli.run_commands import Changes, Quiet, run

TUNED_RIVALS = 8  # random networks per limit that --compare fine-tunes, beside the hand-scaled one


def register(app: typer.Typer) -> None:
    """Add the command to the main application."""
    app.command(
        "demo",
        epilog=examples("binas demo", "binas demo --out runs/mine --compare", "binas demo --quiet --json"),
    )(demo)


def demo(
    out: Annotated[
        Path, typer.Option("--out", help="Folder of the run; a run that is there is continued.")
    ] = Path("runs/demo"),
    compare: Annotated[
        bool,
        typer.Option(
            "--compare", help="Also fine-tune networks that the search did not choose, for comparison."
        ),
    ] = False,
    changes: Changes = None,
    quiet: Quiet = False,
    as_json: Json = False,
) -> None:
    """The whole way in minutes, on embedded images and this CPU: train, measure, search, fine-tune, export, report.

    Three latency limits on 16,000 images of Fashion-MNIST. Nothing is fetched. Interrupt it at any time.
    """
    from importlib.resources import as_file, files

    chosen = [*(changes or []), *([f"compare.tune={TUNED_RIVALS}"] if compare else [])]
    with as_file(files("binas.run") / "demo.yaml") as config:
        run(out, config, chosen, redo=False, quiet=quiet, as_json=as_json)
