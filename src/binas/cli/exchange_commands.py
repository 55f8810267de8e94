"""``binas costs export-blocks`` and ``binas costs import``: tables of devices that run no Python, and of other tools."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from binas.cli.output import Json, examples, print_json, say
from binas.cli.table_output import Out, Overwrite, check_out, show_costs

if TYPE_CHECKING:
    from binas.costs.filled import MeasuredNetworks
    from binas.space.space import SearchSpace
    from binas.tables import Cost, CostTable, Provenance

FEWEST = 10  # whole networks to correct and verify a table with


class Source(StrEnum):
    """Where an imported table comes from."""

    blocks = "blocks"
    once_for_all = "once-for-all"
    tf_nas = "tf-nas"


class Combine(StrEnum):
    """How the parts of an architecture make its cost."""

    sum = "sum"
    max = "max"


def register(costs: typer.Typer) -> None:
    """Add the commands to ``binas costs``."""
    costs.command(
        "export-blocks",
        epilog=examples(
            "binas costs export-blocks imagenet-mbconv --out phone",
            "binas costs export-blocks my-space.yaml --out phone --batch 4 --networks 0",
        ),
    )(export_blocks)
    costs.command(
        "import",
        epilog=examples(
            'binas costs import phone/fill-in.csv --unit ms --device "Pixel 9" --threads 1 --out costs.json',
            'binas costs import note10.yaml --from once-for-all --space ofa-mbv3 --device "Note 10" --out costs.json',
            "binas costs import latency.json --from tf-nas --table cpu --space my-space.yaml --out costs.json",
        ),
    )(import_costs)


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
    as_json: Json = False,
) -> None:
    """Write every distinct block of a space as ONNX, with a manifest and a CSV to fill in."""
    from binas.base.progress import Terminal
    from binas.costs.exchange import export_blocks as export
    from binas.costs.exchange import some_networks
    from binas.space.files import load_space

    found = load_space(space)
    with Terminal().during("export") as progress:
        made = export(found, out, batch, some_networks(found, networks, seed), progress)
    kinds = [item.kind for item in made.files]
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


def import_costs(
    file: Annotated[
        Path, typer.Argument(help="The filled CSV, or the table of another tool.", metavar="FILE")
    ],
    out: Out,
    source: Annotated[Source, typer.Option("--from", help="What the file is.")] = Source.blocks,
    space: Annotated[
        str | None, typer.Option(help="The space. [blocks: space.yaml beside the file]", show_default=False)
    ] = None,
    manifest: Annotated[
        Path | None, typer.Option(help="The manifest of the blocks. [manifest.json beside the file]")
    ] = None,
    unit: Annotated[str | None, typer.Option(help="Unit of values whose row names none, e.g. ms.")] = None,
    name: Annotated[str, typer.Option(help="Name of the cost.")] = "latency",
    combine: Annotated[
        Combine, typer.Option(help="Parts add up, or the largest counts (peak memory).")
    ] = Combine.sum,
    device: Annotated[str | None, typer.Option(help="What it was measured on.")] = None,
    runtime: Annotated[str | None, typer.Option(help="What ran the networks, with its version.")] = None,
    threads: Annotated[int | None, typer.Option(min=1, help="Threads it used.")] = None,
    batch: Annotated[int | None, typer.Option(min=1, help="Images of one run.")] = None,
    dtype: Annotated[str | None, typer.Option(help="Numbers it computed with, if not float32.")] = None,
    part: Annotated[
        str | None, typer.Option("--table", help="Which table of the file (tf-nas: cpu, gpu).")
    ] = None,
    overwrite: Overwrite = False,
    as_json: Json = False,
) -> None:
    """Make a table of numbers measured elsewhere: a filled CSV of blocks, or the table of another tool."""
    from binas.tables import Provenance

    check_out(out, overwrite)
    stated = Provenance(device=device, runtime=runtime, threads=threads, batch=batch, dtype=dtype)
    if source is Source.blocks:
        costs, warnings = _filled(file, manifest, space, unit, name, combine, stated)
    else:
        costs, warnings = _foreign(file, source, space, name, part, stated)
    _check_device(costs[name])
    costs.save(out)
    if as_json:
        print_json({"table": str(out), "costs": list(costs.costs), "warnings": warnings})
        return
    say(f"wrote {out}")
    show_costs(costs)
    for text in warnings:
        say(f"warning: {text}")
    checked = getattr(costs[name].provenance, "verification", None)
    if checked is not None:
        say(
            f"Corrected on half of the measured networks: on the other {checked.networks} its mean error is "
            f"{checked.mape_percent.value:.1f} %, worst {checked.worst_percent:.1f} %."
        )


def _filled(
    file: Path,
    manifest: Path | None,
    space: str | None,
    unit: str | None,
    name: str,
    combine: Combine,
    stated: Provenance,
) -> tuple[CostTable, list[str]]:
    from binas.costs.filled import import_filled
    from binas.costs.manifest import MANIFEST, SPACE, read_manifest
    from binas.space.files import load_space

    found = load_space(space or file.parent / SPACE)
    made = read_manifest(manifest or file.parent / MANIFEST)
    done = import_filled(
        file,
        made,
        found,
        unit=unit,
        name=name,
        combine=combine.value,
        provenance=stated,
        calibrate=calibrated,
    )
    return done.table, list(done.warnings)


def calibrated(space: SearchSpace, cost: Cost, networks: MeasuredNetworks) -> Cost:
    """The sum of blocks corrected on some of the measured networks and verified on the others, if there are enough.

    The first of the list are the lightest and the heaviest, so that what is fitted to spans the space.
    """
    if len(networks) < FEWEST or cost.combine == "max":
        return cost
    from binas.base.interval import Interval
    from binas.costs.analytic import analytic_costs
    from binas.costs.calibrate import MeasuredNetwork
    from binas.costs.verify import check_formula

    measured = [
        MeasuredNetwork(item, Interval(value, value, value), (value, value)) for item, value in networks
    ]
    cut = len(measured) // 2
    better: Cost = check_formula(space, cost, measured[:cut], measured[cut:], analytic_costs(space)["macs"])
    return better


def _foreign(
    file: Path, source: Source, space: str | None, name: str, part: str | None, stated: Provenance
) -> tuple[CostTable, list[str]]:
    from binas.base.errors import SpaceError
    from binas.costs.filled import with_analytic
    from binas.costs.foreign import read_once_for_all, read_tf_nas
    from binas.costs.plausible import doubts
    from binas.space.files import load_space

    if space is None:
        raise SpaceError(f"say which space the table {file} is to be read for, e.g. --space ofa-mbv3.")
    found = load_space(space)
    if source is Source.once_for_all:
        cost = read_once_for_all(file, found, name, stated)
    else:
        cost = read_tf_nas(file, found, part, name, stated)
    return with_analytic(found, cost), doubts(found, cost)


def _check_device(cost: Cost) -> None:
    from binas.base.errors import TableError

    if cost.provenance.device is None:
        raise TableError(
            'say what the numbers were measured on, e.g. --device "Pixel 9": a table that does not say so cannot be '
            "told from one of another device."
        )
