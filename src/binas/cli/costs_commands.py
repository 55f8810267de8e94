"""``binas costs``: tables of costs, looked at, compared, merged, verified, imported from elsewhere; ``binas doctor``."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from binas.base.errors import FileError, MeasureError, TableError
from binas.base.files import exists
from binas.cli.options import Json, Plot, Quiet, examples, show_progress, with_options
from binas.cli.output import print_json, say, table
from binas.cli.views import check_plot, plot_costs, show_costs
from binas.costs.importing import ImportSettings, import_table
from binas.costs.settings import Effort

if TYPE_CHECKING:
    from binas.costs.measure import MeasuredCost
    from binas.space.space import SearchSpace
    from binas.tables import Cost, CostDiff, CostTable

costs_app = typer.Typer(
    help="Tables of costs: look at them, compare, merge, import, export blocks.", no_args_is_help=True
)

Table = Annotated[Path, typer.Argument(help="A cost table, .json or .csv.", metavar="TABLE")]
Space = Annotated[
    str | None, typer.Option(help="Its space. [space.yaml beside it, or the built-in space it names]")
]
Out = Annotated[Path, typer.Option(help="Table to write, .json or .csv.")]
Overwrite = Annotated[bool, typer.Option(help="Replace an existing file.")]


def register(app: typer.Typer) -> None:
    """Add the commands to the main application."""
    app.add_typer(costs_app, name="costs")
    app.command("doctor", epilog=examples("binas doctor", "binas doctor --json"))(doctor)


def check_out(out: Path, overwrite: bool) -> None:
    """Refuse before any work what could not be written after it."""
    if out.suffix.lower() not in (".json", ".csv"):
        raise FileError(f"cannot write a table to {out}: name a file that ends in .json or .csv.")
    if exists(out) and not overwrite:
        raise FileError(f"{out} exists; choose another file, or replace it with --overwrite.")


def _load(path: Path, space: str | None) -> CostTable:
    from binas.run.folder import space_of_table
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
    from binas.tables import diff as compare, load_costs

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
    from binas.tables import load_costs, merge as merged

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


@costs_app.command(
    "verify",
    epilog=examples(
        "binas costs verify costs.json --samples 30", "binas costs verify costs.json --plot check.html --json"
    ),
)
@with_options(Effort)
def verify(
    file: Annotated[Path, typer.Argument(help="A table made by `binas measure`.", metavar="TABLE")],
    space: Space = None,
    cost: Annotated[str | None, typer.Option(help="Which cost. [the one that was measured]")] = None,
    plot: Plot = None,
    quiet: Quiet = False,
    as_json: Json = False,
    settings: Any = None,
) -> None:
    """Hold a table against whole networks measured in the same session, improve it where it is off, store the result."""
    from binas.costs.measure import measurable, verify_again

    check_plot(plot, settings.samples)
    check_out(file, overwrite=True)
    if settings.samples == 0:
        raise MeasureError("--samples: give at least 1 network to hold the table against.")
    costs = _load(file, space)
    name = cost or _only(measurable(costs.costs), file)
    progress, journal = show_progress(quiet, as_json), file.with_name(file.name + ".journal")
    with progress.during("verify"):
        done = verify_again(costs, name, settings, journal, progress)
    better = replace(costs, costs={**costs.costs, name: done.cost})
    better.save(file)
    journal.unlink(missing_ok=True)
    plot_costs(better, plot, as_json)
    _show_verified(file, done, done.cost.values is costs[name].values, as_json)


def _show_verified(file: Path, done: MeasuredCost, kept: bool, as_json: bool) -> None:
    from binas.tasks.measure import describe_measured

    if as_json:
        about = {"provenance": done.cost.provenance.to_data(), "warnings": list(done.session.warnings)}
        print_json({"table": str(file), "cost": done.cost.name, "kept": kept, **about})
        return
    for line in describe_measured(done):
        say(line)
    replaced = "a new table would do better, so it was replaced by what was measured now"
    say(f"{file}: {'no new table would do better, so its numbers stay' if kept else replaced}.")


def _only(names: list[str], file: Path) -> str:
    """The one cost that can be measured again."""
    if len(names) != 1:
        known = (
            f"several costs measured by binas ({', '.join(names)})" if names else "no cost measured by binas"
        )
        raise MeasureError(f"{file} holds {known}; name the one to verify with --cost.")
    return names[0]


@costs_app.command(
    "export-blocks",
    epilog=examples(
        "binas costs export-blocks imagenet-mbconv --out phone",
        "binas costs export-blocks my-space.yaml --out phone --batch 4 --networks 0",
    ),
)
def export_blocks(
    space: Annotated[str, typer.Argument(help="Name of a built-in space, or a YAML file.", metavar="SPACE")],
    out: Annotated[Path, typer.Option(help="Folder to write into; one that holds an export is refused.")],
    batch: Annotated[int, typer.Option(min=1, help="Images of one run.")] = 1,
    networks: Annotated[
        int,
        typer.Option(
            min=0, max=1000, help="Whole networks to measure too, so that the sum of blocks can be checked."
        ),
    ] = 20,
    seed: Annotated[int, typer.Option(min=0, help="Seed of the drawn networks.")] = 0,
    quiet: Quiet = False,
    as_json: Json = False,
) -> None:
    """Write every distinct block of a space as ONNX, with a manifest and a CSV to fill in."""
    from binas.costs.exchange import export_blocks as export, some_networks
    from binas.space.files import load_space

    chosen, progress = load_space(space), show_progress(quiet, as_json)
    with progress.during("export-blocks"):
        manifest = export(chosen, out, batch, some_networks(chosen, networks, seed), progress)
    kinds = [item.kind for item in manifest.files]
    if as_json:
        print_json(
            {"folder": str(out), **{kind: kinds.count(kind) for kind in ("block", "fixed", "network")}}
        )
        return
    say(
        f"wrote {kinds.count('block')} blocks, the fixed part and {kinds.count('network')} networks to {out}, "
        f"for batch {batch}."
    )
    filled = out / "fill-in.csv"
    say(f"Measure every file and write the values into {filled}, then:")
    say(f'binas costs import {filled} --unit ms --device "..." --out costs.json')


@costs_app.command(
    "import",
    epilog=examples(
        'binas costs import phone/fill-in.csv --unit ms --device "Pixel 9" --threads 1 --out costs.json',
        'binas costs import note10.yaml --from once-for-all --space ofa-mbv3 --device "Note 10" --out costs.json',
        "binas costs import latency.json --from tf-nas --table cpu --space my-space.yaml --out costs.json",
    ),
)
@with_options(ImportSettings)
def import_costs(
    file: Annotated[
        Path, typer.Argument(help="The filled CSV, or the table of another tool.", metavar="FILE")
    ],
    out: Out,
    overwrite: Overwrite = False,
    as_json: Json = False,
    settings: Any = None,
) -> None:
    """Make a table of numbers measured elsewhere: a filled CSV of blocks, or the table of another tool."""
    check_out(out, overwrite)
    costs, warnings = import_table(file, settings)
    costs.save(out)
    if as_json:
        print_json({"table": str(out), "costs": list(costs.costs), "warnings": warnings})
        return
    say(f"wrote {out}")
    show_costs(costs)
    for text in warnings:
        say(f"warning: {text}")


def doctor(as_json: Json = False) -> None:
    """Show what can be measured here: versions, backends, threads, energy counters, and how noisy the machine is."""
    from binas.costs.doctor import diagnose

    diagnosis = diagnose()
    if as_json:
        print_json(diagnosis.to_json())
        return
    say(", ".join(f"{name} {version or 'missing'}" for name, version in diagnosis.versions.items()))
    load = "" if diagnosis.load is None else f", load {diagnosis.load:.1f}"
    say(f"{diagnosis.cpu}, {diagnosis.cpus} CPUs for this process{load}")
    rows = [
        (item.backend, item.device, item.version or "-", item.reason or "ready")
        for item in diagnosis.backends
    ]
    table(("backend", "device", "version", "state"), rows)
    say(f"energy: {diagnosis.energy or 'readable'}")
    say(f"noise: {diagnosis.verdict()}")
