"""``binas reproduce``: the paper's tables and figures, made of a run of one's own."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from binas.cli.options import command
from binas.cli.output import Reply, say, table

DEMO = Path("runs/demo")

app = typer.Typer()


@command(
    app,
    "reproduce",
    "binas reproduce list",
    "binas reproduce all --preset quick",
    "binas reproduce ranking terms --run runs/first --out reproduction",
)
def reproduce(
    names: Annotated[
        list[str], typer.Argument(help="Experiments by name, all, or list to see them.", metavar="NAME...")
    ],
    run: Annotated[
        Path | None,
        typer.Option(help="Folder of a run; default: the demo, made first where it is not there."),
    ] = None,
    out: Annotated[Path, typer.Option(help="Folder for tables, pictures and the page.")] = Path(
        "reproduction"
    ),
    preset: Annotated[Literal["quick", "full"], typer.Option(help="How much is measured.")] = "quick",
    progress: Any = None,
) -> Reply:
    """The paper's tables and figures, made of a run: JSON, CSV, PNG, and one page with what the paper found beside it.

    Interrupt it at any time; the same command goes on.
    """
    from binas.reproduce.studies import PAGE, experiments, reproduce as do

    if names == ["list"]:
        known = [(item.name, item.item, item.claim) for item in experiments()]
        data = [dict(zip(("name", "item", "claim"), row, strict=True)) for row in known]
        return Reply(
            {"experiments": data}, lambda: table(("name", "in the paper", "what the paper found"), known)
        )
    experiments(names)  # a wrong name is found before the work
    opened = _demo(progress) if run is None else _open(run)
    with progress.during("reproduce"):
        found = do(opened, out, names, preset, progress)
    rows = [(item.name, item.finding.sentence) for item in found]
    return Reply(
        {"page": str(out / PAGE), "findings": [item.model_dump(mode="json") for item in found]},
        lambda: _show(rows, out / PAGE),
    )


def _show(rows: list[tuple[str, str]], page: Path) -> None:
    table(("experiment", "this run found"), rows)
    say(f"Wrote {page}.")


def _open(run: Path) -> Any:
    from binas.run.run import open_run

    return open_run(run)


def _demo(progress: Any) -> Any:
    """The demo's run, finished."""
    from importlib.resources import as_file, files

    from binas.run.start import run

    with as_file(files("binas.run") / "demo.yaml") as config:
        return run(config, DEMO, progress=progress)
