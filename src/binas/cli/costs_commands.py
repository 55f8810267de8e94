"""``binas costs``: tables of costs, looked at, compared, merged, verified, imported from elsewhere; ``binas doctor``."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from binas.base.errors import FileError, MeasureError
from binas.base.files import check_replaceable, exists, remove
from binas.cli.options import Plot, Space, command, with_options
from binas.cli.output import Reply, say, table
from binas.cli.views import check_plot, show_costs, with_plot
from binas.costs.importing import ImportSettings, import_table
from binas.costs.manifest import BlockSettings
from binas.costs.settings import VerifyEffort

if TYPE_CHECKING:
    from binas.costs.doctor import Diagnosis
    from binas.space.space import SearchSpace
    from binas.tables import Cost, CostDiff, CostTable

app = typer.Typer()
costs_app = typer.Typer(
    help="Tables of costs: look at them, compare, merge, import, export blocks.", no_args_is_help=True
)
app.add_typer(costs_app, name="costs")

Table = Annotated[Path, typer.Argument(help="A cost table, .json or .csv.", metavar="TABLE")]
OfSpace = Annotated[
    str | None,
    typer.Option("--space", help="Its space. [space.yaml beside it, or the built-in space it names]"),
]
Out = Annotated[Path, typer.Option(help="Table to write, .json or .csv.")]
Overwrite = Annotated[bool, typer.Option(help="Replace an existing file.")]


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


@command(
    costs_app,
    "show",
    "binas costs show example/costs.json",
    "binas costs show example/costs.json --cost latency",
)
def show(
    file: Table,
    space: OfSpace = None,
    cost: Annotated[str | None, typer.Option(help="List every number of this cost.")] = None,
) -> Reply:
    """Show what a table holds: each cost, what it was measured on, and how far it can go."""
    costs = _load(file, space)
    if cost is not None:
        costs = type(costs)(costs.space, {cost: costs[cost]})

    def tell() -> None:
        say(f"{file}: costs of the space {costs.space.name} ({costs.space.fingerprint})")
        show_costs(costs)
        if cost is not None:
            _show_entries(costs.space, costs[cost])

    return Reply(costs.summary(), tell)


def _show_entries(space: SearchSpace, cost: Cost) -> None:
    from binas.tables.diff import entries

    rows = []
    for item in entries(space, cost):
        if item.value or " depth " not in item.name:
            error = "" if item.stderr != item.stderr else f"{item.stderr:.2g}"
            rows.append((item.name, f"{item.value:.6g}", error))
    table(("entry", cost.unit.name, "± standard error"), rows)


@command(
    costs_app, "diff", "binas costs diff monday.json friday.json", "binas costs diff cpu.json gpu.json --json"
)
def diff(
    first: Annotated[Path, typer.Argument(help="A cost table.", metavar="FIRST")],
    second: Annotated[Path, typer.Argument(help="Another one of the same space.", metavar="SECOND")],
    space: OfSpace = None,
    most: Annotated[int, typer.Option(min=0, help="Entries to list per cost, largest change first.")] = 10,
) -> Reply:
    """Compare two tables of one space: conditions, ratios, and the entries that changed most."""
    from binas.tables import diff as compare, load_costs

    one = _load(first, space)
    result = compare(one, load_costs(second, one.space))

    def tell() -> None:
        for names, path in ((result.only_first, first), (result.only_second, second)):
            if names:
                say(f"only in {path}: {', '.join(names)}")
        for item in result.costs:
            _show_diff(item, most)

    return Reply(result.to_json(), tell)


def _show_diff(item: CostDiff, most: int) -> None:
    say(item.sentence())
    for key, (one, two) in item.conditions.items():
        say(f"  {key}: {one} and {two}")
    rows = [(x.entry, f"{x.first:.5g}", f"{x.second:.5g}", f"{x.ratio:.4g}") for x in item.changes[:most]]
    if rows:
        table(("entry", f"first ({item.unit})", "second", "ratio"), rows)


@command(
    costs_app,
    "merge",
    "binas costs merge latency.json energy.json --out costs.json",
    "binas costs merge cpu.json gpu.json --rename gpu.json:latency=latency_gpu --out costs.json",
    "binas costs merge monday.json friday.json --average --out costs.json",
)
def merge(
    files: Annotated[list[Path], typer.Argument(help="Cost tables of one space.", metavar="TABLE...")],
    out: Out,
    space: OfSpace = None,
    rename: Annotated[
        list[str] | None, typer.Option(help="FILE:OLD=NEW gives a cost of one file another name. Repeatable.")
    ] = None,
    average: Annotated[bool, typer.Option(help="Take the mean of costs that several tables have.")] = False,
    ignore: Annotated[
        list[str] | None, typer.Option(help="A condition that may differ, e.g. threads. Repeatable.")
    ] = None,
    overwrite: Overwrite = False,
) -> Reply:
    """Put the costs of several tables into one; refuses to mix what was measured under different conditions."""
    from binas.tables import load_costs, merge as merge_tables, rename_costs

    check_out(out, overwrite)
    first = _load(files[0], space)
    tables = rename_costs({path: load_costs(path, first.space) for path in files}, rename or [])
    return _write(merge_tables(list(tables.values()), average, ignore or []), out)


def _write(costs: CostTable, out: Path, **more: list[str]) -> Reply:
    """Write a table, and show it with what there is to say of it."""
    costs.save(out)

    def tell() -> None:
        say(f"wrote {out}")
        show_costs(costs)
        say(*(f"warning: {text}" for text in more.get("warnings", ())))

    return Reply({"table": str(out), "costs": list(costs.costs), **more}, tell)


@command(
    costs_app,
    "verify",
    "binas costs verify costs.json --samples 30",
    "binas costs verify costs.json --plot check.html --json",
    options=with_options(VerifyEffort),
)
def verify(
    file: Annotated[Path, typer.Argument(help="A table made by `binas measure`.", metavar="TABLE")],
    space: OfSpace = None,
    cost: Annotated[str | None, typer.Option(help="Which cost. [the one that was measured]")] = None,
    plot: Plot = None,
    progress: Any = None,
    settings: Any = None,
) -> Reply:
    """Hold a table against whole networks measured in the same session, improve it where it is off, store the result."""
    from binas.costs.measure import describe_measured, only_measurable, verify_again

    check_plot(plot, settings.samples)
    check_out(file, overwrite=True)
    check_replaceable(file)
    if settings.samples == 0:
        raise MeasureError("--samples: give at least 1 network to hold the table against.")
    costs, journal = _load(file, space), file.with_name(f"{file.name}.journal")
    name = cost or only_measurable(costs.costs, str(file))
    with progress.during("verify"):
        done = verify_again(costs, name, settings, journal, progress)
    better = replace(costs, costs={**costs.costs, name: done.cost})
    better.save(file)
    remove(journal)
    kept = done.cost.values is costs[name].values
    replaced = "a new table would do better, so it was replaced by what was measured now"
    end = f"{file}: {'no new table would do better, so its numbers stay' if kept else replaced}."
    about = {"provenance": done.cost.provenance.to_data(), "warnings": list(done.session.warnings)}
    data = {"table": str(file), "cost": name, "kept": kept, **about}
    return with_plot(Reply(data, lambda: say(*describe_measured(done), end)), better, plot)


@command(
    costs_app,
    "export-blocks",
    "binas costs export-blocks imagenet-mbconv --out phone",
    "binas costs export-blocks my-space.yaml --out phone --batch 4 --networks 0",
    options=with_options(BlockSettings),
)
def export_blocks(
    space: Space,
    out: Annotated[Path, typer.Option(help="Folder to write into; one that holds an export is refused.")],
    progress: Any = None,
    settings: Any = None,
) -> Reply:
    """Write every distinct block of a space as ONNX, with a manifest and a CSV to fill in."""
    from binas.costs.exchange import export_blocks as export, some_networks
    from binas.space.files import load_space

    chosen = load_space(space)
    with progress.during("export-blocks"):
        networks = some_networks(chosen, settings.networks, settings.seed)
        manifest = export(chosen, out, settings.batch, networks, progress)
    return Reply({"folder": str(out), **manifest.counts}, lambda: say(*manifest.sentences(out)))


@command(
    costs_app,
    "import",
    'binas costs import phone/fill-in.csv --unit ms --device "Pixel 9" --threads 1 --out costs.json',
    'binas costs import note10.yaml --from once-for-all --space ofa-mbv3 --device "Note 10" --out costs.json',
    "binas costs import latency.json --from tf-nas --table cpu --space my-space.yaml --out costs.json",
    options=with_options(ImportSettings),
)
def import_costs(
    file: Annotated[
        Path, typer.Argument(help="The filled CSV, or the table of another tool.", metavar="FILE")
    ],
    out: Out,
    overwrite: Overwrite = False,
    settings: Any = None,
) -> Reply:
    """Make a table of numbers measured elsewhere: a filled CSV of blocks, or the table of another tool."""
    check_out(out, overwrite)
    costs, warnings = import_table(file, settings)
    return _write(costs, out, warnings=warnings)


@command(app, "doctor", "binas doctor", "binas doctor --json")
def doctor() -> Reply:
    """Show what can be measured here: versions, backends, threads, energy counters, and how noisy the machine is."""
    from binas.costs.doctor import diagnose

    diagnosis = diagnose()
    return Reply(diagnosis.to_json(), lambda: _show_diagnosis(diagnosis))


def _show_diagnosis(diagnosis: Diagnosis) -> None:
    say(", ".join(f"{name} {version or 'missing'}" for name, version in diagnosis.versions.items()))
    load = "" if diagnosis.load is None else f", load {diagnosis.load:.1f}"
    say(f"{diagnosis.cpu}, {diagnosis.cpus} CPUs for this process{load}")
    rows = [(x.backend, x.device, x.version or "-", x.reason or "ready") for x in diagnosis.backends]
    table(("backend", "device", "version", "state"), rows)
    if diagnosis.bf16 is not None:
        say(f"bfloat16: {diagnosis.bf16}")
    say(f"energy: {diagnosis.energy or 'readable'}", f"noise: {diagnosis.verdict()}")
