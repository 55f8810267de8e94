"""``binas train`` and ``binas evaluate``."""

from __future__ import annotations

import os
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from binas.base.progress import Progress, Terminal
from binas.cli.output import Json, examples, print_json, say, table
from binas.cli.run_commands import Changes, Quiet, Redo, joined, prepared


class Part(StrEnum):
    """Which images an accuracy is measured on."""

    validation = "validation"
    test = "test"


class Weights(StrEnum):
    """Which weights an architecture takes."""

    supernet = "supernet"
    heaviest = "heaviest"


def register(app: typer.Typer) -> None:
    """Add the commands to the main application."""
    app.command(
        "train",
        epilog=examples(
            "binas train --out runs/first",
            "binas train --config configs/demo.yaml --out runs/first --set training.seed=1",
        ),
    )(train)
    app.command(
        "evaluate",
        epilog=examples(
            "binas evaluate runs/first --arch lightest --recalibrate",
            "binas evaluate runs/first --arch e4k5se_e2k3-e4k5se_e4k5se",
        ),
    )(evaluate)


def train(
    out: Annotated[Path, typer.Option("--out", help="Folder of the run; a run that is there is continued.")],
    config: Annotated[
        Path | None, typer.Option("--config", help="YAML file; default: the run's own, or the demo.")
    ] = None,
    changes: Changes = None,
    redo: Redo = False,
    quiet: Quiet = False,
    as_json: Json = False,
) -> None:
    """Train the heaviest network, then the supernet: the first steps of `binas run`, also in several processes.

    Interrupt it at any time; the same command goes on.
    """
    from binas.run.start import train as train_run
    from binas.run.training_steps import help_training, meet
    from binas.training.phases import supernet_metrics

    if os.environ.get("RANK", "0") != "0":  # one of several processes prepares the folder, writes and speaks
        help_training(joined(out, config, changes or []))
        return
    progress = Progress() if quiet or as_json else Terminal()
    run = prepared(out, config, changes or [], redo, progress)
    meet(run)
    supernet = train_run(run, progress)
    metrics = supernet_metrics(supernet, run.data)
    if as_json:
        print_json({"run": str(out), "images": len(run.data.validation), "validation": metrics})
        return
    rows = [(name, f"{value:.2f} %") for name, value in metrics.items()]
    table(("sub-network", f"accuracy on {len(run.data.validation)} validation images"), rows)
    say(f"Supernet of {run.space.name} in {out}. Next: binas run --out {out}")


def evaluate(
    run: Annotated[Path, typer.Argument(help="Folder of a trained run.", metavar="RUN")],
    arch: Annotated[list[str], typer.Option("--arch", help="Architecture, or 'heaviest' or 'lightest'.")],
    recalibrate: Annotated[
        bool, typer.Option("--recalibrate", help="Re-estimate BatchNorm on training images first.")
    ] = False,
    part: Annotated[Part, typer.Option("--images", help="Held-out images to measure on.")] = Part.validation,
    weights: Annotated[Weights, typer.Option("--weights", help="Weights to take.")] = Weights.supernet,
    as_json: Json = False,
) -> None:
    """Accuracy of architectures with the supernet's weights, each as a network of its own."""
    from binas.run.run import open_run
    from binas.supernet.network import keep_memory
    from binas.training.evaluation import evaluate_architecture

    keep_memory()
    opened = open_run(Path(run))
    space, named = opened.space, {"heaviest": True, "lightest": False}
    chosen = [space.extreme(named[text]) if text in named else space.parse(text) for text in arch]
    supernet = opened.supernet(weights.value)
    images = opened.data.test if part is Part.test else opened.data.validation
    wanted = opened.config.training.supernet.recalibration if recalibrate else 0
    count = min(wanted, len(opened.data.train))
    found = [evaluate_architecture(supernet, a, opened.data, images, count) for a in chosen]
    if as_json:
        entries = [
            {"architecture": str(a), "accuracy": f.percent, "error": f.error}
            for a, f in zip(chosen, found, strict=True)
        ]
        about = {
            "images": part.value,
            "count": len(images),
            "recalibrated_on": count,
            "weights": weights.value,
        }
        print_json({**about, "results": entries})
        return
    rows = [(str(a), f"{f.percent:.2f} ± {f.error:.2f} %") for a, f in zip(chosen, found, strict=True)]
    how = f"BatchNorm re-estimated on {count} training images" if count else "BatchNorm of the supernet"
    table(("architecture", f"accuracy on {len(images)} {part.value} images"), rows, title=how)
