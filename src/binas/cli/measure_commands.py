"""``binas measure``, ``binas costs verify`` and ``binas doctor``."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from binas.cli.costs_commands import costs_app
from binas.cli.output import Json, examples, print_json, say, table
from binas.cli.progress import Terminal, progress_bar
from binas.cli.table_output import show_costs
from binas.run.teller import Teller

if TYPE_CHECKING:
    from binas.costs.measure import MeasuredCost
    from binas.costs.session import Plan
    from binas.costs.settings import Settings
    from binas.tables.costs import CostTable


class Backend(StrEnum):
    """What can run a network."""

    torch = "torch"
    onnxruntime = "onnxruntime"
    openvino = "openvino"


class Device(StrEnum):
    """Where a network can run."""

    cpu = "cpu"
    cuda = "cuda"


class Dtype(StrEnum):
    """Numbers a network can compute with."""

    float32 = "float32"
    float16 = "float16"
    bfloat16 = "bfloat16"


class Layout(StrEnum):
    """Memory formats of images."""

    contiguous = "contiguous"
    channels_last = "channels_last"


class Preset(StrEnum):
    """Settings with a name."""

    paper_cpu = "paper-cpu"
    paper_gpu = "paper-gpu"


class Quantity(StrEnum):
    """What can be measured."""

    latency = "latency"
    energy = "energy"


Budget = Annotated[
    str, typer.Option(help="Time for measuring, e.g. 300s; more is not spent once all is known.")
]
Samples = Annotated[
    int, typer.Option(min=0, max=10_000, help="Random networks, built whole, to calibrate and verify with.")
]
Tolerance = Annotated[
    float, typer.Option(min=1e-4, max=1.0, help="Relative uncertainty to reach for each entry.")
]
Rounds = Annotated[int, typer.Option(min=1, max=100_000, help="Samples of each entry, at least.")]
Seed = Annotated[int, typer.Option(min=0, help="Seed of the drawn networks and the order of measuring.")]
Resume = Annotated[bool, typer.Option(help="Go on with an interrupted measuring of the same kind.")]
Plot = Annotated[
    Path | None, typer.Option(help="Draw predicted against measured networks to FILE.html or FILE.png.")
]


def register(app: typer.Typer) -> None:
    """Add the commands to the main application."""
    app.command(
        "measure",
        epilog=examples(
            "binas measure --space demo --backend onnxruntime --out costs.json",
            "binas measure --space imagenet-mbconv --backend torch --threads 1 --out costs.json --plot check.html",
            "binas measure --space demo --preset paper-cpu --out costs.json",
            "binas measure runs/first",
        ),
    )(measure)
    app.command("doctor", epilog=examples("binas doctor", "binas doctor --json"))(doctor)


def measure(
    context: typer.Context,
    run: Annotated[
        Path | None,
        typer.Argument(help="Folder of a run: measure as its configuration says.", metavar="RUN"),
    ] = None,
    space: Annotated[str | None, typer.Option(help="Name of a built-in space, or a YAML file.")] = None,
    out: Annotated[Path | None, typer.Option(help="Table to write, .json or .csv.")] = None,
    backend: Annotated[Backend | None, typer.Option(help="What runs the networks. [onnxruntime]")] = None,
    device: Annotated[Device | None, typer.Option(help="Where they run. [cpu]")] = None,
    threads: Annotated[int | None, typer.Option(min=1, help="CPU threads. [1]")] = None,
    batch: Annotated[int | None, typer.Option(min=1, help="Images of one run. [1]")] = None,
    dtype: Annotated[Dtype | None, typer.Option(help="Numbers they compute with. [float32]")] = None,
    memory_format: Annotated[
        Layout | None, typer.Option(help="Layout of images in torch. [contiguous]")
    ] = None,
    onednn: Annotated[bool | None, typer.Option(help="Torch's CPU library. [on]")] = None,
    preset: Annotated[
        Preset | None, typer.Option(help="A named setting; the options above change single values of it.")
    ] = None,
    quantity: Annotated[Quantity, typer.Option(help="What is measured.")] = Quantity.latency,
    name: Annotated[str | None, typer.Option(help="Name of the cost in the table. [the quantity]")] = None,
    samples: Samples = 30,
    budget: Budget = "300s",
    tolerance: Tolerance = 0.01,
    rounds: Rounds = 60,
    seed: Seed = 0,
    resume: Resume = True,
    overwrite: Annotated[bool, typer.Option(help="Replace an existing table.")] = False,
    plot: Plot = None,
    as_json: Json = False,
) -> None:
    """Measure what every choice of a space costs on this machine, and check the table against whole networks."""
    from binas.base.errors import ConfigError, FileError
    from binas.costs.measure import Measuring, measure_space
    from binas.space.files import load_space
    from binas.tables.costs import CostTable

    if run is not None:
        _measure_run(context, run, as_json)
        return
    if space is None or out is None:
        raise ConfigError("give the folder of a run, or --space and --out.")
    _check_files(out, overwrite, plot)
    if plot is not None and samples == 0:
        raise FileError("there is nothing to draw without networks: leave out --plot, or --samples 0.")
    found = load_space(space)
    settings = _settings(
        preset,
        backend=backend and backend.value,
        device=device and device.value,
        threads=threads,
        batch=batch,
        dtype=dtype and dtype.value,
        memory_format=memory_format and memory_format.value,
        onednn=onednn,
    )
    plan = _plan(budget, tolerance, rounds, seed)
    with progress_bar() as progress:
        how = Measuring(settings, quantity.value, plan, _journal(out), resume, progress)
        done = measure_space(found, how, samples, seed, name or quantity.value)
    _finish(CostTable(found, {done.cost.name: done.cost}), done, out, plot, as_json)


def _measure_run(context: typer.Context, folder: Path, as_json: bool) -> None:
    """The costs step of a run, if it is not done."""
    from binas.base.errors import ConfigError
    from binas.run.engine import advance
    from binas.run.run import open_run
    from binas.run.steps import COST
    from binas.tables.costs import load_costs

    given = [
        name
        for name in context.params
        if getattr(context.get_parameter_source(name), "name", "") != "DEFAULT"
    ]
    if set(given) - {"run", "as_json"}:
        raise ConfigError(
            f"{folder} is measured as its configuration says, without other options; change that with e.g. "
            f"`binas run --out {folder} --set measuring.threads=2`."
        )
    opened = open_run(folder)
    done = advance(opened, (COST,), Teller() if as_json else Terminal())
    costs = load_costs(folder / "costs.json", opened.space)
    if as_json:
        print_json({"table": str(folder / "costs.json"), "done": done, "costs": list(costs.costs)})
        return
    show_costs(costs)
    say(f"{folder / 'costs.json'} {'measured now' if done else 'is as the configuration says'}.")


@costs_app.command(
    "verify",
    epilog=examples(
        "binas costs verify costs.json --samples 30", "binas costs verify costs.json --plot check.html --json"
    ),
)
def verify(
    file: Annotated[Path, typer.Argument(help="A table made by `binas measure`.", metavar="TABLE")],
    space: Annotated[
        str | None, typer.Option(help="Its space. [space.yaml beside it, or the built-in it names]")
    ] = None,
    cost: Annotated[str | None, typer.Option(help="Which cost. [the one that was measured]")] = None,
    samples: Annotated[int, typer.Option(min=1, max=10_000, help="Random networks, built whole.")] = 30,
    budget: Budget = "300s",
    tolerance: Tolerance = 0.01,
    rounds: Rounds = 60,
    seed: Seed = 1,
    resume: Resume = True,
    plot: Plot = None,
    as_json: Json = False,
) -> None:
    """Hold a table against whole networks measured beside the blocks, improve it where it is off, store the result."""
    from dataclasses import replace

    from binas.costs.measure import measurable, measure_space, measuring_again
    from binas.run.table_files import space_of_table
    from binas.tables.costs import CostTable, load_costs

    _check_files(file, True, plot)
    found = space_of_table(file, space)
    costs = load_costs(file, found)
    given = costs[cost or _only(measurable(costs.costs), file)]
    with progress_bar() as progress:
        how = replace(
            measuring_again(given, _plan(budget, tolerance, rounds, seed)),
            journal=_journal(file),
            resume=resume,
            progress=progress,
        )
        done = measure_space(found, how, samples, seed, given.name, given)
    kept = done.cost.values is given.values
    _finish(CostTable(found, {**costs.costs, given.name: done.cost}), done, file, plot, as_json, kept=kept)
    if not as_json:
        better = "a new table would do better, so it was replaced by what was measured now"
        say(f"{file}: {'no new table would do better, so its numbers stay' if kept else better}.")


def _only(names: list[str], file: Path) -> str:
    """The one cost that can be measured again."""
    from binas.base.errors import MeasureError

    if len(names) != 1:
        found = (
            f"several costs measured by binas ({', '.join(names)})" if names else "no cost measured by binas"
        )
        raise MeasureError(f"{file} holds {found}; name the one to verify with --cost.")
    return names[0]


def _check_files(out: Path, overwrite: bool, plot: Path | None) -> None:
    """Refuse before measuring what could not be written after it."""
    from binas.base.errors import FileError
    from binas.base.files import exists

    if out.suffix not in (".json", ".csv"):
        raise FileError(f"cannot write a table to {out}: name a file that ends in .json or .csv.")
    if exists(out) and not overwrite:
        raise FileError(f"{out} exists; choose another file, or replace it with --overwrite.")
    if plot is not None and plot.suffix not in (".html", ".png"):
        raise FileError(f"cannot draw {plot}: name a file that ends in .html or .png.")


def _journal(out: Path) -> Path:
    """Where the samples of an unfinished measuring are."""
    return out.with_name(out.name + ".journal")


def _settings(preset: Preset | None, **changes: Any) -> Settings:
    from dataclasses import replace

    from binas.costs.settings import PRESETS, Settings

    base = Settings() if preset is None else PRESETS[preset.value]
    return replace(base, **{key: value for key, value in changes.items() if value is not None})


def _plan(budget: str, tolerance: float, rounds: int, seed: int) -> Plan:
    from binas.costs.session import Plan
    from binas.tables.units import parse_quantity, parse_unit

    seconds = parse_quantity(budget, parse_unit("s"))
    return Plan(budget=seconds, tolerance=tolerance, rounds=rounds, seed=seed)


def _finish(
    costs: CostTable, done: MeasuredCost, out: Path, plot: Path | None, as_json: bool, **more: Any
) -> None:
    """Write the table and the plot, drop the journal, and say what was found."""
    costs.save(out)
    _journal(out).unlink(missing_ok=True)
    if plot is not None:
        from binas.report.plots import plot_verification

        plot_verification(done.cost, plot)
    if as_json:
        print_json({"table": str(out), "cost": done.cost.name, **_summary(done), **more})
    else:
        _show(done, out)


def _summary(done: MeasuredCost) -> dict[str, Any]:
    return {
        "provenance": done.cost.provenance.to_data(),
        "entries": len(done.session.estimates),
        "seconds": done.session.seconds,
        "drift": done.session.drift.change,
        "warnings": list(done.session.warnings),
    }


def _show(done: MeasuredCost, out: Path) -> None:
    from binas.costs.calibrate import FORMULAS

    known, session = done.cost.provenance, done.session
    say(f"{out}: {done.cost.name} in {done.cost.unit.name}, {known.device}, {known.runtime}")
    say(
        f"{len(session.estimates)} entries, at least {known.repeats} samples each, in {session.seconds:.0f} s"
    )
    if known.calibration is not None:
        tried = known.calibration.tried.items()
        rows = [
            (form, FORMULAS[form], f"{error:.2f} %", "used" if form == known.calibration.form else "")
            for form, error in tried
        ]
        table(("form", "cost of a network", "error left out", ""), rows)
    if known.verification is not None:
        macs = known.verification.macs_percent
        beside = "" if macs is None else f"; MACs alone {macs:.1f} %"
        say(f"{known.verification.sentence()}; plain sum {known.verification.sum_percent:.1f} %{beside}.")
    for warning in session.warnings:
        say(f"warning: {warning}")


def doctor(as_json: Json = False) -> None:
    """Show what can be measured here: versions, backends, threads, energy counters, and how noisy the machine is."""
    from binas.costs.doctor import diagnose

    found = diagnose()
    if as_json:
        print_json(found.to_json())
        return
    say(", ".join(f"{name} {version or 'missing'}" for name, version in found.versions.items()))
    load = "" if found.load is None else f", load {found.load:.1f}"
    say(f"{found.cpu}, {found.cpus} CPUs for this process{load}")
    rows = [(f.backend, f.device, f.version or "-", f.reason or "ready") for f in found.backends]
    table(("backend", "device", "version", "state"), rows)
    say(f"energy: {found.energy or 'readable'}")
    say(f"noise: {found.verdict()}")
