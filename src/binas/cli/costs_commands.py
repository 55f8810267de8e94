"""``binas costs show``, ``diff`` and ``merge``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from binas.cli import exchange_commands
from binas.cli.output import Json, examples, print_json, say, table
from binas.cli.table_output import Out, Overwrite, check_out, show_costs

if TYPE_CHECKING:
    from binas.space.space import SearchSpace
    from binas.tables import Cost, CostDiff, CostTable

costs_app = typer.Typer(
    help="Tables of costs: look at them, compare, merge, import, export blocks.", no_args_is_help=True
)

Table = Annotated[Path, typer.Argument(help="A cost table, .json or .csv.", metavar="TABLE")]
Space = Annotated[
    str | None, typer.Option(help="Its space. [space.yaml beside it, or the built-in space it names]")
]


def register(app: typer.Typer) -> None:
    """Add the commands to the main application."""
    exchange_commands.register(costs_app)
    app.add_typer(costs_app, name="costs")


def _load(path: Path, space: str | None) -> CostTable:
    from binas.run.table_files import space_of_table
    from binas.tables import load_costs

    return load_costs(path, space_of_table(path, space))


@costs_app.command(
    "show",
    epilog=examples(
        "binas costs show example/costs.json", "binas costs show example/costs.json --cost latency"
    ),
)
def show(
    file: Table,
    space: Space = None,
    cost: Annotated[str | None, typer.Option(help="List every number of this cost.")] = None,
    as_json: Json = False,
) -> None:
    """Show what a table holds: each cost, what it was measured on, and how far it can go."""
    costs = _load(file, space)
    if cost is not None:
        costs = type(costs)(costs.space, {cost: costs[cost]})
    if as_json:
        print_json(
            {
                "space": costs.space.name,
                "costs": {n: _cost_json(costs.space, c) for n, c in costs.costs.items()},
            }
        )
        return
    say(f"{file}: costs of the space {costs.space.name} ({costs.space.fingerprint})")
    show_costs(costs)
    if cost is not None:
        _show_entries(costs.space, costs[cost])


def _cost_json(space: SearchSpace, cost: Cost) -> dict[str, Any]:
    least, most = cost.range(space)
    known = {
        "unit": cost.unit.name,
        "combine": cost.combine,
        "fixed": cost.fixed,
        "least": least,
        "most": most,
    }
    return {**known, "provenance": cost.provenance.to_data()}


def _show_entries(space: SearchSpace, cost: Cost) -> None:
    from binas.tables.diff import entries

    rows = []
    for item in entries(space, cost):
        if item.value or " depth " not in item.name:
            error = "" if item.stderr != item.stderr else f"{item.stderr:.2g}"
            rows.append((item.name, f"{item.value:.6g}", error))
    table(("entry", cost.unit.name, "± standard error"), rows)


@costs_app.command(
    "diff",
    epilog=examples("binas costs diff monday.json friday.json", "binas costs diff cpu.json gpu.json --json"),
)
def diff(
    first: Annotated[Path, typer.Argument(help="A cost table.", metavar="FIRST")],
    second: Annotated[Path, typer.Argument(help="Another one of the same space.", metavar="SECOND")],
    space: Space = None,
    most: Annotated[int, typer.Option(min=0, help="Entries to list per cost, largest change first.")] = 10,
    as_json: Json = False,
) -> None:
    """Compare two tables of one space: conditions, ratios, and the entries that changed most."""
    from binas.tables import diff as compare
    from binas.tables import load_costs

    one = _load(first, space)
    found = compare(one, load_costs(second, one.space))
    if as_json:
        only = {"only_first": list(found.only_first), "only_second": list(found.only_second)}
        print_json({**only, "costs": [item.to_json() for item in found.costs]})
        return
    for names, path in ((found.only_first, first), (found.only_second, second)):
        if names:
            say(f"only in {path}: {', '.join(names)}")
    for item in found.costs:
        _show_diff(item, most)


def _show_diff(item: CostDiff, most: int) -> None:
    if not item.changes:
        say(f"{item.name}: the same {item.entries} numbers")
    else:
        noisy = [change for change in item.changes if change.beyond_noise is False]
        within = f", {len(noisy)} of them within noise" if noisy else ""
        say(
            f"{item.name}: {len(item.changes)} of {item.entries} numbers differ{within}; the second is "
            f"{item.median_ratio:.4g} times the first (median)"
        )
    for key, (one, two) in item.conditions.items():
        say(f"  {key}: {one} and {two}")
    rows = [(x.entry, f"{x.first:.5g}", f"{x.second:.5g}", f"{x.ratio:.4g}") for x in item.changes[:most]]
    if rows:
        table(("entry", f"first ({item.unit})", "second", "ratio"), rows)


@costs_app.command(
    "merge",
    epilog=examples(
        "binas costs merge latency.json energy.json --out costs.json",
        "binas costs merge cpu.json gpu.json --rename gpu.json:latency=latency_gpu --out costs.json",
        "binas costs merge monday.json friday.json --average --out costs.json",
    ),
)
def merge(
    files: Annotated[list[Path], typer.Argument(help="Cost tables of one space.", metavar="TABLE...")],
    out: Out,
    space: Space = None,
    rename: Annotated[
        list[str] | None, typer.Option(help="FILE:OLD=NEW gives a cost of one file another name. Repeatable.")
    ] = None,
    average: Annotated[bool, typer.Option(help="Take the mean of costs that several tables have.")] = False,
    ignore: Annotated[
        list[str] | None, typer.Option(help="A condition that may differ, e.g. threads. Repeatable.")
    ] = None,
    overwrite: Overwrite = False,
    as_json: Json = False,
) -> None:
    """Put the costs of several tables into one; refuses to mix what was measured under different conditions."""
    from binas.tables import load_costs
    from binas.tables import merge as merged

    check_out(out, overwrite)
    first = _load(files[0], space)
    tables = {path: load_costs(path, first.space) for path in files}
    made = merged(list(_renamed(tables, rename or []).values()), average, ignore or [])
    made.save(out)
    if as_json:
        print_json({"table": str(out), "costs": list(made.costs)})
        return
    say(f"wrote {out}")
    show_costs(made)


def _renamed(tables: dict[Path, CostTable], rename: list[str]) -> dict[Path, CostTable]:
    from binas.base.errors import TableError
    from binas.tables import rename_cost

    for text in rename:
        file, _, change = text.rpartition(":")
        old, _, new = change.partition("=")
        if Path(file) not in tables or not old or not new:
            known = ", ".join(map(str, tables))
            raise TableError(
                f"cannot read --rename {text[:80]!r}; write FILE:OLD=NEW with a FILE of {known}."
            )
        tables[Path(file)] = rename_cost(tables[Path(file)], old, new)
    return tables
