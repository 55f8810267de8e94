"""``binas demo``, ``run``, ``status``, ``init`` and ``evaluate``: whole runs."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated, Literal

import typer

from binas.base.errors import ConfigError
from binas.cli import views
from binas.cli.options import Json, Quiet, RunFolder, Set, examples, show_progress
from binas.cli.output import print_json, say, table

TUNED_RIVALS = 8  # random networks per limit that --tune-rivals fine-tunes, and the hand-scaled one
Out = Annotated[Path, typer.Option("--out", help="Folder of the run; a run that is there is continued.")]


def register(app: typer.Typer) -> None:
    """Add the commands to the main application."""
    app.command(
        "demo",
        epilog=examples(
            "binas demo", "binas demo --out runs/mine --tune-rivals", "binas demo --quiet --json"
        ),
    )(demo)
    app.command(
        "run",
        epilog=examples(
            "binas run --out runs/demo",
            "binas run configs/fashion-mnist.yaml --out runs/fashion",
            "binas run --out runs/demo --set 'search.limits=[latency=30%, latency=60%]'",
        ),
    )(run)
    app.command("status", epilog=examples("binas status runs/demo", "binas status runs/demo --json"))(status)
    app.command(
        "init", epilog=examples("binas init --data photos --out photos.yaml", "binas init --out config.yaml")
    )(init)
    app.command(
        "evaluate",
        epilog=examples(
            "binas evaluate runs/first --arch lightest --recalibrate",
            "binas evaluate runs/first --arch e4k5se_e2k3-e4k5se_e4k5se",
        ),
    )(evaluate)


def demo(
    out: Out = Path("runs/demo"),
    tune_rivals: Annotated[
        bool, typer.Option("--tune-rivals", help="Also fine-tune networks that the search did not choose.")
    ] = False,
    changes: Set = None,
    quiet: Quiet = False,
    as_json: Json = False,
) -> None:
    """The whole way in minutes, on embedded images and this CPU: train, measure, search, fine-tune, export, report.

    Three latency limits on 16,000 images of Fashion-MNIST. Nothing is fetched. Interrupt it at any time.
    """
    from importlib.resources import as_file, files

    chosen = [*(changes or []), *([f"compare.tune={TUNED_RIVALS}"] if tune_rivals else [])]
    with as_file(files("binas.run") / "demo.yaml") as config:
        run(out, config, chosen, quiet=quiet, as_json=as_json)


def run(
    out: Out,
    config: Annotated[
        Path | None,
        typer.Argument(
            help="YAML file; default: the run's own, or all defaults on the embedded images.",
            metavar="CONFIG",
        ),
    ] = None,
    changes: Set = None,
    redo: Annotated[
        bool,
        typer.Option(
            "--redo", help="Allow training that a change makes stale to be done again; RUN/old/ keeps it."
        ),
    ] = False,
    quiet: Quiet = False,
    as_json: Json = False,
) -> None:
    """Everything, from images to fine-tuned networks within your limits. Interrupt it at any time; the same command resumes.

    Only what a change makes stale is done again: another limit searches again, another device measures again.
    """
    from binas.run.start import configure, create_run, finish
    from binas.supernet.network import keep_memory

    if os.environ.get("WORLD_SIZE", "1") != "1":
        raise ConfigError(
            "only training runs in several processes: launch `binas train RUN` with the same --config, and when it is "
            "done call `binas run --out RUN` without the launcher."
        )
    keep_memory()
    progress = show_progress(quiet, as_json)
    started = create_run(out, configure(out, config, changes or ()), redo, progress)
    done = finish(started, progress)
    if as_json:
        print_json({"run": str(out), "done": done, "networks": views.networks_json(started)})
        return
    views.show_run(started)
    say(f"{', '.join(done) or 'nothing'} done now; `binas status {out}` shows all steps.")


def status(run: RunFolder, as_json: Json = False) -> None:
    """Show what is done, what is stale and why, what is left and how long it will take."""
    from binas.run.run import open_run
    from binas.run.status import total_left

    opened = open_run(run)
    standings = opened.status
    if as_json:
        left, unknown = total_left(standings)
        steps = [item.to_json() for item in standings]
        print_json({"run": str(run), "steps": steps, "left_seconds": left, "unknown": unknown})
        return
    views.show_status(opened, standings)


def init(
    data: Annotated[
        Path | None,
        typer.Option("--data", help="Folder with one subfolder of images per class. [the demo's images]"),
    ] = None,
    out: Annotated[Path, typer.Option("--out", help="File to write; an existing one is kept.")] = Path(
        "config.yaml"
    ),
) -> None:
    """Write a configuration to start from, with every setting explained, for a folder of images."""
    from binas.run.starter import write_starter

    starter = write_starter(out, data)
    say(starter.sentence())
    say(f"Wrote {', '.join(map(str, starter.files))}. Next: binas run {out} --out runs/{out.stem}")


def evaluate(
    run: RunFolder,
    arch: Annotated[
        list[str], typer.Option("--arch", help="Architecture, or 'heaviest' or 'lightest'. Repeatable.")
    ],
    recalibrate: Annotated[
        bool, typer.Option("--recalibrate", help="Re-estimate BatchNorm on training images first.")
    ] = False,
    part: Annotated[
        Literal["validation", "test"], typer.Option("--images", help="Held-out images to measure on.")
    ] = "validation",
    weights: Annotated[
        Literal["supernet", "heaviest"], typer.Option("--weights", help="Weights to take.")
    ] = "supernet",
    as_json: Json = False,
) -> None:
    """Accuracy of architectures with the supernet's weights, each as a network of its own."""
    from binas.run.run import open_run
    from binas.supernet.network import keep_memory
    from binas.tasks.finetune import read_choice
    from binas.training.config import TrainSettings
    from binas.training.evaluation import evaluate_architecture

    keep_memory()
    opened = open_run(run)
    supernet, images = opened.supernet(weights), getattr(opened.data, part)
    recalibration = opened.settings(TrainSettings).supernet.recalibration if recalibrate else 0
    count = min(recalibration, len(opened.data.train))
    chosen = [read_choice(opened.space, text) for text in arch]
    results = {item: evaluate_architecture(supernet, item, opened.data, images, count) for item in chosen}
    if as_json:
        entries = [
            {"architecture": str(item), "accuracy": result.percent, "error": result.error}
            for item, result in results.items()
        ]
        about = {"images": part, "count": len(images), "recalibrated_on": count, "weights": weights}
        print_json({**about, "results": entries})
        return
    rows = [(str(item), f"{result.percent:.2f} ± {result.error:.2f} %") for item, result in results.items()]
    how = f"BatchNorm re-estimated on {count} training images" if count else "BatchNorm of the supernet"
    table(("architecture", f"accuracy on {len(images)} {part} images"), rows, title=how)
