"""``binas published``, ``predictors`` and ``methods``: networks, predictors and search methods of others, against ours."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from binas.cli.options import Dir, Limits, RunFolder, command, with_options
from binas.cli.output import Reply, say, table
from binas.cli.search_commands import limits_on
from binas.cli.views import show_judgements
from binas.costs.published.settings import PublishedSettings
from binas.estimators.predictors import PredictorSettings, learn
from binas.tasks.methods import MethodSettings

if TYPE_CHECKING:
    from binas.report.published import Row
    from binas.search.methods import MethodSummary

PREDICTORS = "predictors"

app = typer.Typer()


@command(
    app,
    "published",
    "binas published --backend onnxruntime",
    "binas published --networks MobileNetV2 --networks BINAS-C --seconds 30",
    "binas published --backend torch --run example --json",
    options=with_options(PublishedSettings),
)
def published(
    run: Annotated[
        Path | None,
        typer.Option(help="Folder with tables: its best architectures of similar latency are measured too."),
    ] = None,
    progress: Any = None,
    settings: Any = None,
) -> Reply:
    """Measure published networks on this machine in one session, and print ratios, counts and published accuracy."""
    from binas.report.published import measure_published
    from binas.run.folder import load

    problem = None if run is None else load(run).problem()
    with progress.during("published"):
        rows = measure_published(settings, problem, progress)
    data = {"reference": settings.reference, "networks": [row.to_json() for row in rows]}
    return Reply(data, lambda: _show_published(rows, settings.reference))


def _show_published(rows: list[Row], reference: str) -> None:
    cells = []
    for row in sorted(rows, key=lambda row: row.ratio):
        error = (row.latency.high - row.latency.low) / 2
        paper = "-" if row.published_ratio is None else f"{row.published_ratio:.2f}"
        accuracy = f"{row.top1:.1f}" + (" predicted" if row.compared_with else "")
        counts = (f"{row.params / 1e6:.2f} M", f"{row.macs / 1e6:.0f} M")
        latency = f"{row.latency.value:.3f} ± {error:.3f}"
        cells.append((row.name, latency, f"{row.ratio:.3f}", paper, *counts, accuracy))
    ratio = f"ratio to {reference}"
    table(("network", "latency (ms)", ratio, "ratio published", "parameters", "MACs", "top-1 (%)"), cells)
    say(*(f"{row.name} is as fast as {', '.join(row.compared_with)}" for row in rows if row.compared_with))


@command(
    app,
    "predictors",
    "binas predictors runs/first --fit bilinear --fit quadratic --samples 100 --samples 400",
    "binas predictors runs/first --fit mlp --link log --test 500 --json",
    options=with_options(PredictorSettings),
)
def predictors(folder: Dir, limit: Limits = None, settings: Any = None) -> Reply:
    """Learn predictors from measured architectures, judge them on others, and save them in DIR/predictors."""
    from binas.estimators.judging import describe_ceiling, report
    from binas.run.folder import open_folder
    from binas.tasks.check import cost_limits, macs_of, samples_of

    tables = open_folder(folder)
    learned, fresh = learn(samples_of(tables), settings, folder / PREDICTORS)
    predictions = {item.name: item.predictor.predict(fresh.architectures) for item in learned}
    limits, macs = cost_limits(tables, fresh, limits_on(folder, limit)), macs_of(tables, fresh)
    data = report(predictions, fresh, macs, limits, settings.resamples, settings.seed).to_json()

    def show() -> None:
        rows = [*data["estimators"], *([data["macs_only"]] if data["macs_only"] else [])]
        show_judgements(rows, f"{len(fresh)} held-out samples, link {settings.link}")
        files = ", ".join(dict.fromkeys(item.file for item in learned))
        say(describe_ceiling(data["noise_ceiling"]), f"Saved in {folder / PREDICTORS}: {files}.")

    counts = list(dict.fromkeys(item.count for item in learned))
    times = {item.name: item.seconds for item in learned}
    return Reply({"link": settings.link, "learned_from": counts, "seconds": times, **data}, show)


@command(
    app,
    "methods",
    "binas methods runs/first -l latency=50%",
    "binas methods runs/first -l latency=30% --method binas --method hardcore --seeds 5 --json",
    options=with_options(MethodSettings),
)
def methods(run: RunFolder, limit: Limits = None, progress: Any = None, settings: Any = None) -> Reply:
    """Search a run's supernet by the methods of others, within the same limits and budget, and compare what they find.

    Without --limit under each limit of the run's configuration. Interrupt it at any time; the same command resumes.
    """
    from dataclasses import asdict

    from binas.run.run import open_run
    from binas.search.methods import summarise
    from binas.tasks.methods import contest

    opened = open_run(run)
    questions = [" and ".join(limits_on(run, limit))] if limit else list(opened.questions)
    with progress.during("methods"):
        records = list(contest(opened, questions, settings, progress))
    rows = summarise(records)
    data = {
        "records": [item.model_dump(mode="json") for item in records],
        "methods": [asdict(row) for row in rows],
    }
    return Reply(data, lambda: _show_methods(rows, records[0].images))


def _show_methods(rows: list[MethodSummary], images: int) -> None:
    """A table for each question."""
    for question in dict.fromkeys(row.question for row in rows):
        cells = []
        for row in (row for row in rows if row.question == question):
            spread = "" if row.spread is None else f" ± {row.spread:.2f}"
            accuracy = "-" if row.accuracy is None else f"{row.accuracy:.2f}{spread}"
            broken = f", at worst {row.violation:.1f} % above" if row.violation else ""
            spent = f"{row.evaluations:,}" + (" for all limits" if row.shared else "")
            kept = f"{row.kept} of {row.seeds}{broken}"
            cells.append((row.method, accuracy, kept, spent, f"{row.gradients:,}", f"{row.seconds:.1f}"))
        columns = ("method", "accuracy (%)", "limit kept", "image evaluations", "with gradient", "seconds")
        table(columns, cells, title=question)
    say(
        f"One-shot accuracy on {images:,} test images, which chose nothing: mean and standard deviation over seeds."
    )
