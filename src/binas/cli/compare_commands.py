"""``binas compare``: published networks on this machine, beside ours."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from binas.cli.output import Json, examples, print_json, say, table

if TYPE_CHECKING:
    from binas.run.compare import Builder, Latency, Measure, Row


class Backend(StrEnum):
    """What can run a network."""

    torch = "torch"
    onnxruntime = "onnxruntime"
    openvino = "openvino"


def register(app: typer.Typer) -> None:
    """Add the command to the main application."""
    app.command(
        "compare",
        epilog=examples(
            "binas compare --backend onnxruntime",
            "binas compare --networks MobileNetV2 --networks BINAS-C --budget 30s",
            "binas compare --backend torch --run example --json",
        ),
    )(compare)


def compare(
    backend: Annotated[Backend, typer.Option(help="What runs the networks.")] = Backend.onnxruntime,
    threads: Annotated[int, typer.Option(min=1, help="CPU threads.")] = 1,
    batch: Annotated[int, typer.Option(min=1, help="Images of one run.")] = 1,
    networks: Annotated[
        list[str] | None, typer.Option(help="A published network; repeatable. [all of them]")
    ] = None,
    reference: Annotated[str, typer.Option(help="The network that ratios are to.")] = "MobileNetV3-Large",
    run: Annotated[
        Path | None,
        typer.Option(help="Folder with tables: its best architectures of similar latency stand beside."),
    ] = None,
    cost: Annotated[str, typer.Option(help="The latency of the tables in that folder.")] = "latency",
    budget: Annotated[str, typer.Option(help="Time for measuring, e.g. 120s; per session.")] = "120s",
    as_json: Json = False,
) -> None:
    """Measure published networks on this machine in one session, and print ratios, counts and published accuracy."""
    from binas.run.compare import compare_published, ours_beside
    from binas.run.folder import load
    from binas.search.frontier import frontier
    from binas.tables.conditions import check_conditions

    traced = None if run is None else frontier(load(run).problem(), cost)
    if traced is not None:
        measured = traced.problem.costs[cost].provenance
        check_conditions(cost, measured, {"threads": str(threads), "batch": str(batch)})
    measure = measuring(backend, threads, batch, budget)
    rows = compare_published(measure, networks, reference)
    ours = [] if traced is None else ours_beside(traced, rows, measure, reference)
    if as_json:
        print_json({"reference": reference, "networks": [row.to_json() for row in [*rows, *ours]]})
        return
    _show(rows, ours, reference)


def measuring(backend: Backend, threads: int, batch: int, budget: str) -> Measure:
    """A function that measures many networks in one session, taking turns."""
    from binas.costs.measure import Measuring
    from binas.costs.session import CONTROL, Plan
    from binas.costs.settings import Settings
    from binas.costs.workloads import Workload, control_workload
    from binas.run.compare import Latency
    from binas.tables.units import parse_quantity, parse_unit

    plan = Plan(budget=parse_quantity(budget, parse_unit("s")))
    how = Measuring(Settings(backend=backend.value, threads=threads, batch=batch), plan=plan)

    def measure(builders: Mapping[str, Builder]) -> dict[str, Latency]:
        def workload(entry: str) -> Workload:
            if entry == CONTROL:
                return control_workload()
            module, shape = builders[entry]()
            return Workload(module, (shape,))

        found = how.run(list(builders), workload).estimates
        scaled = {name: found[name].scaled(how.kind.factor) for name in builders}
        return {name: Latency(item.value, item.low, item.high) for name, item in scaled.items()}

    return measure


def _show(rows: list[Row], ours: list[Row], reference: str) -> None:
    cells = []
    for row in sorted([*rows, *ours], key=lambda row: row.ratio):
        error = (row.latency.high - row.latency.low) / 2
        paper = "-" if row.published_ratio is None else f"{row.published_ratio:.2f}"
        accuracy = f"{row.top1:.1f}" + (" predicted" if row.beside else "")
        counts = (f"{row.params / 1e6:.2f} M", f"{row.macs / 1e6:.0f} M")
        cells.append(
            (row.name, f"{row.latency.ms:.3f} ± {error:.3f}", f"{row.ratio:.3f}", paper, *counts, accuracy)
        )
    columns = (
        "network",
        "latency (ms)",
        f"ratio to {reference}",
        "ratio published",
        "parameters",
        "MACs",
        "top-1 (%)",
    )
    table(columns, cells)
    for row in ours:
        say(f"{row.name} stands beside {', '.join(row.beside)}")
