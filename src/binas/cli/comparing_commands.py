"""``binas published`` and ``binas predictors``: networks and predictors of others, held against ours."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from binas.base.errors import EstimatorError, FileError
from binas.cli.options import Dir, Json, Limits, Quiet, examples, show_progress
from binas.cli.output import print_json, say, table
from binas.cli.views import describe_ceiling, show_judgements
from binas.costs.backends import DEFAULT_BACKEND

if TYPE_CHECKING:
    from binas.report.published import Row

PREDICTORS = "predictors"


def register(app: typer.Typer) -> None:
    """Add the commands to the main application."""
    app.command(
        "published",
        epilog=examples(
            "binas published --backend onnxruntime",
            "binas published --networks MobileNetV2 --networks BINAS-C --seconds 30",
            "binas published --backend torch --run example --json",
        ),
    )(published)
    app.command(
        "predictors",
        epilog=examples(
            "binas predictors runs/first --fit bilinear,quadratic,within-stage --samples 100,200,400",
            "binas predictors runs/first --fit mlp --link log --test 500 --json",
        ),
    )(predictors)


def published(
    backend: Annotated[str, typer.Option(help="What runs the networks.")] = DEFAULT_BACKEND,
    threads: Annotated[int, typer.Option(min=1, help="CPU threads.")] = 1,
    batch: Annotated[int, typer.Option(min=1, help="Images of one run.")] = 1,
    networks: Annotated[
        list[str] | None, typer.Option(help="A published network; repeatable. [all of them]")
    ] = None,
    reference: Annotated[str, typer.Option(help="The network that ratios are to.")] = "MobileNetV3-Large",
    run: Annotated[
        Path | None,
        typer.Option(help="Folder with tables: its best architectures of similar latency are measured too."),
    ] = None,
    cost: Annotated[str, typer.Option(help="The latency of the tables in that folder.")] = "latency",
    seconds: Annotated[float, typer.Option(min=0.0, help="Time for measuring, per session.")] = 120.0,
    quiet: Quiet = False,
    as_json: Json = False,
) -> None:
    """Measure published networks on this machine in one session, and print ratios, counts and published accuracy."""
    from binas.costs.measure import Measuring
    from binas.costs.session import Plan
    from binas.costs.settings import Settings
    from binas.report.published import compare_published, compare_with_ours, measure_networks
    from binas.run.folder import load
    from binas.search.frontier import frontier
    from binas.tables.conditions import check_conditions

    curve = None if run is None else frontier(load(run).problem(), cost)
    if curve is not None:
        about = curve.problem.costs[cost].provenance
        check_conditions(cost, about, {"threads": str(threads), "batch": str(batch)})
    progress = show_progress(quiet, as_json)
    settings = Settings(backend=backend, threads=threads, batch=batch)
    measure = measure_networks(Measuring(settings, plan=Plan(budget=seconds), progress=progress))
    with progress.during("published"):
        rows = compare_published(measure, networks, reference)
        ours = [] if curve is None else compare_with_ours(curve, rows, measure, reference)
    if as_json:
        print_json({"reference": reference, "networks": [row.to_json() for row in [*rows, *ours]]})
        return
    _show_published(rows, ours, reference)


def _show_published(rows: list[Row], ours: list[Row], reference: str) -> None:
    cells = []
    for row in sorted([*rows, *ours], key=lambda row: row.ratio):
        error = (row.latency.high - row.latency.low) / 2
        paper = "-" if row.published_ratio is None else f"{row.published_ratio:.2f}"
        accuracy = f"{row.top1:.1f}" + (" predicted" if row.compared_with else "")
        counts = (f"{row.params / 1e6:.2f} M", f"{row.macs / 1e6:.0f} M")
        latency = f"{row.latency.value:.3f} ± {error:.3f}"
        cells.append((row.name, latency, f"{row.ratio:.3f}", paper, *counts, accuracy))
    ratio = f"ratio to {reference}"
    table(("network", "latency (ms)", ratio, "ratio published", "parameters", "MACs", "top-1 (%)"), cells)
    for row in ours:
        say(f"{row.name} is as fast as {', '.join(row.compared_with)}")


def predictors(
    folder: Dir,
    fit: Annotated[
        str, typer.Option("--fit", help="Of additive, bilinear, within-stage, quadratic, mlp; with commas.")
    ] = "additive,bilinear,within-stage,quadratic",
    samples: Annotated[
        str | None,
        typer.Option("--samples", help="Numbers of samples to learn from, e.g. 256,1280; default: all."),
    ] = None,
    test: Annotated[
        int | None, typer.Option(min=2, help="Samples held out to judge by; default: a fifth.")
    ] = None,
    link: Annotated[
        Literal["identity", "log", "logit"], typer.Option(help="Scale to learn on.")
    ] = "identity",
    solver: Annotated[
        Literal["svd", "ridge"] | None,
        typer.Option(help="svd (the paper's) or ridge; default: svd for bilinear and quadratic."),
    ] = None,
    limit: Limits = None,
    resamples: Annotated[int, typer.Option(min=1, help="Bootstrap resamples behind the intervals.")] = 1000,
    seed: Annotated[int, typer.Option(min=0, help="Seed of splits, fits and resamples.")] = 0,
    as_json: Json = False,
) -> None:
    """Learn predictors from measured architectures, judge them on others, and save them in DIR/predictors."""
    from binas.estimators.judging import report
    from binas.estimators.predictors import learning_curve
    from binas.run.folder import Folder
    from binas.space.files import load_space
    from binas.tasks.artefacts import SPACE
    from binas.tasks.check import cost_limits, macs_of

    tables = Folder(folder, load_space(SPACE.path(folder)))
    if tables.samples is None:
        raise FileError(f"{folder} has no samples.json; `binas sample {folder}` measures it.")
    fresh, known = tables.samples.split(len(tables.samples) // 5 if test is None else test, seed)
    counts = _numbers(samples) if samples else [len(known)]
    learned = []
    for item in learning_curve(known, fit.split(","), counts, link, solver, seed):
        if item.count == max(counts):  # saved as they come, so that an interrupted call keeps what it has
            item.predictor.save(folder / PREDICTORS / item.file)
        learned.append(item)
    predictions = {item.name: item.predictor.predict(fresh.architectures) for item in learned}
    limits = cost_limits(tables, fresh, limit or [])
    result = report(predictions, fresh, macs_of(tables, fresh), limits, resamples, seed)
    data = result.to_json()
    if as_json:
        times = {item.name: item.seconds for item in learned}
        print_json({"link": link, "learned_from": counts, "seconds": times, **data})
        return
    rows = [*data["estimators"], *([data["macs_only"]] if data["macs_only"] else [])]
    show_judgements(rows, f"{len(fresh)} held-out samples, link {link}")
    say(describe_ceiling(data["noise_ceiling"]))
    say(f"Saved in {folder / PREDICTORS}: {', '.join(dict.fromkeys(item.file for item in learned))}.")


def _numbers(text: str) -> list[int]:
    if not all(part.strip().isdecimal() for part in text.split(",")):
        raise EstimatorError(
            f"cannot read --samples {text[:60]!r}; write numbers with commas, e.g. 256,1280,2560."
        )
    return [int(part) for part in text.split(",")]
