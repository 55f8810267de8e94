"""``binas demo``, ``run``, ``status``, ``init`` and ``evaluate``: whole runs."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from binas.cli import views
from binas.cli.options import RunFolder, Set, command
from binas.cli.output import Reply, say, table
from binas.cli.search_commands import is_run

if TYPE_CHECKING:
    from binas.run.plan import Budget

LASTS = "about 3 minutes on 2 free cores"
ANNOUNCEMENT = (
    "The demo, {lasts}: a family of small networks learns to tell 10 garments, and which way up they are, from "
    "16,000 pictures; every design choice is measured for what it brings in accuracy and costs on this CPU; and for three "
    "limits on latency the best network is found, fine-tuned, compared with others chosen without the search, and exported. "
    "Interrupt it at any time; the same command goes on."
)
NO_CONFIG = (
    "There is no run in {out} yet and no configuration was given, so this one begins with the embedded images and the "
    "default settings. For images of your own: binas init --data FOLDER --out CONFIG."
)
TUNED_RIVALS = 3  # random networks per limit that --tune-rivals fine-tunes, and the hand-scaled one
Out = Annotated[Path, typer.Option("--out", help="Folder of the run; a run that is there is continued.")]

Time = Annotated[
    str | None,
    typer.Option(
        "--time",
        metavar="TIME",
        help="Fill this time: 90s, 15min, 2h, 1h30. What is not given is planned after a short look at how fast this "
        "machine is.",
    ),
]

app = typer.Typer()


@command(
    app,
    "demo",
    "binas demo",
    "binas demo --time 15min",
    "binas demo --out runs/mine --tune-rivals",
    "binas demo --quiet --json",
)
def demo(
    out: Out = Path("runs/demo"),
    tune_rivals: Annotated[
        bool, typer.Option("--tune-rivals", help="Also fine-tune networks that the search did not choose.")
    ] = False,
    time: Time = None,
    changes: Set = None,
    progress: Any = None,
) -> Reply:
    """The whole way in minutes, on embedded images and this CPU: train, measure, search, fine-tune, export, report.

    Three latency limits on 16,000 images of Fashion-MNIST, in three turns. Nothing is fetched. Interrupt it at any time.
    """
    from importlib.resources import as_file, files

    from binas.run.start import budget_of

    chosen = [*(changes or []), *([f"compare.tune={TUNED_RIVALS}"] if tune_rivals else [])]
    progress.say(ANNOUNCEMENT.format(lasts=LASTS if time is None else f"{time} as given"))
    with as_file(files("binas.run") / "demo.yaml") as config:
        budget = budget_of(time, None, chosen)  # the demo's own settings are not the user's
        return _whole_run(out, config, chosen, False, budget, progress)


@command(
    app,
    "run",
    "binas run --out runs/demo",
    "binas run configs/fashion-mnist.yaml --out runs/fashion",
    "binas run photos.yaml --out runs/photos --time 2h",
    "binas run --out runs/demo --set 'search.limits=[latency=30%, latency=60%]'",
)
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
    time: Time = None,
    progress: Any = None,
) -> Reply:
    """Everything, from images to fine-tuned networks within your limits. Interrupt it at any time; the same command resumes.

    Only what a change makes stale is done again: another limit searches again, another device measures again.
    """
    from binas.run.start import budget_of

    return _whole_run(out, config, changes or [], redo, budget_of(time, config, changes or ()), progress)


@command(
    app,
    "shrink",
    "binas shrink my_model.py:build --weights best.safetensors --data photos --out runs/small -l latency=8ms",
    "binas shrink my_model.py:build --weights best.pth --data photos -l latency=75% -l latency=50% --time 1h",
    "binas shrink --network efficientnet_lite0 --weights lite0.pth --data photos --out runs/small -l latency=50%",
)
def shrink(
    data: Annotated[
        Path,
        typer.Option(
            help="Folder with one subfolder of images per class, an .npz file, or embedded: those of binas."
        ),
    ],
    limit: Annotated[
        list[str],
        typer.Option(
            "--limit",
            "-l",
            help="COST=QUANTITY, e.g. latency=8ms; a percentage is of what the model itself costs. Repeatable: each is "
            "a question of its own.",
        ),
    ],
    model: Annotated[
        str | None,
        typer.Argument(
            help="FILE.py:FUNCTION, a function without arguments that builds the model.", metavar="MODEL"
        ),
    ] = None,
    network: Annotated[str | None, typer.Option(help="Instead of MODEL: a known network by name.")] = None,
    weights: Annotated[
        Path | None, typer.Option(help="Weights of the model: safetensors, or a state dict of torch.")
    ] = None,
    out: Out = Path("runs/small"),
    mean: Annotated[
        list[float] | None,
        typer.Option(help="Per channel, of pixels in 0..1, as the model was trained with."),
    ] = None,
    std: Annotated[list[float] | None, typer.Option(help="Per channel, with --mean.")] = None,
    size: Annotated[
        int | None,
        typer.Option(
            min=1,
            help="Pixels a side that images of a folder are read at: what the model was trained with. Without it that of a "
            "known network, or the images' own, at most 224.",
        ),
    ] = None,
    blocks: Annotated[
        list[str] | None,
        typer.Option(
            help="Modules of MODEL that may change, such as `layers.*.*`; without it they are found."
        ),
    ] = None,
    pairs: Annotated[
        Path | None,
        typer.Option(
            help="With --network: images and logits recorded with the source of the weights (.npz or safetensors, "
            "arrays images and logits), which must come out the same."
        ),
    ] = None,
    time: Time = None,
    changes: Set = None,
    progress: Any = None,
) -> Reply:
    """Make a trained classifier smaller and faster within limits measured on this device, with a proof.

    Your model is the largest network and the teacher; nothing is trained from scratch. Afterwards it is a run as any other.
    """
    from binas.run.config import read_change
    from binas.run.shrinking import Wish, shrink_run

    more = [read_change(text) for text in changes or ()]
    wish = Wish(
        data,
        limit,
        model,
        network,
        weights,
        mean=mean or None,
        std=std or None,
        blocks=blocks or (),
        original=pairs,
        size=size,
    )
    return _finished(*shrink_run(wish, out, more, progress, time))


def _whole_run(
    out: Path, config: Path | None, changes: list[str], redo: bool, budget: Budget | None, progress: Any
) -> Reply:
    """Start or resume a run, and show what it found."""
    from binas.run.start import configure, create_run, finish

    if config is None and not is_run(out):
        progress.say(NO_CONFIG.format(out=out))
    started = create_run(out, configure(out, config, changes), redo, progress, budget=budget)
    return _finished(*finish(started, progress))


def _finished(started: Any, done: list[str]) -> Reply:
    """What a run found."""
    story, out = started.story, started.folder

    def show() -> None:
        views.show_run(started)
        say(f"{', '.join(done) or 'nothing'} done now; `binas status {out}` shows all steps.", "", *story)

    return Reply({"run": str(out), "done": done, **views.answers_json(started), "story": story}, show)


@command(app, "status", "binas status runs/demo", "binas status runs/demo --json")
def status(run: RunFolder) -> Reply:
    """Show what is done, what is stale and why, what is left and how long it will take."""
    from binas.run.run import open_run

    return views.status_reply(open_run(run))


@command(
    app,
    "init",
    "binas init --data photos --out photos.yaml",
    "binas init --data photos --time 2h --out photos.yaml",
    "binas init --out config.yaml",
)
def init(
    data: Annotated[
        Path | None, typer.Option(help="Folder with one subfolder of images per class. [the embedded images]")
    ] = None,
    out: Annotated[Path, typer.Option(help="File to write; an existing one is kept.")] = Path("config.yaml"),
    time: Time = None,
) -> None:
    """Write a configuration to start from, with every setting explained, for a folder of images.

    The space and the size of the images are chosen by what is in the folder, and by the time where one is given.
    """
    from binas.base.times import parse_duration
    from binas.run.starter import write_starter

    starter = write_starter(out, data, None if time is None else parse_duration(time))
    files = ", ".join(map(str, starter.files))
    say(*starter.sentences(), f"Wrote {files}. Next: binas run {out} --out runs/{out.stem}")


@command(
    app,
    "evaluate",
    "binas evaluate runs/first --arch lightest --recalibrate",
    "binas evaluate runs/first --arch e4k5se_e2k3-e4k5se_e4k5se",
)
def evaluate(
    run: RunFolder,
    arch: Annotated[
        list[str], typer.Option("--arch", help="Architecture, or 'heaviest' or 'lightest'. Repeatable.")
    ],
    recalibrate: Annotated[
        bool, typer.Option("--recalibrate", help="Re-estimate BatchNorm on training images first.")
    ] = False,
    images: Annotated[
        Literal["validation", "test"], typer.Option(help="Held-out images to measure on.")
    ] = "validation",
    weights: Annotated[Literal["supernet", "heaviest"], typer.Option(help="Weights to take.")] = "supernet",
) -> Reply:
    """Accuracy of architectures with the supernet's weights, each as a network of its own."""
    from binas.run.run import open_run
    from binas.space.blockstrings import read_choice

    opened = open_run(run)
    chosen = [read_choice(opened.space, text) for text in arch]
    results, count = opened.evaluate(chosen, images, weights, recalibrate)
    entries = [
        {"architecture": str(item), "accuracy": result.percent, "error": result.error}
        for item, result in results.items()
    ]
    held_out = len(getattr(opened.data, images))
    rows = [(str(item), f"{result.percent:.2f} ± {result.error:.2f} %") for item, result in results.items()]
    how = f"BatchNorm re-estimated on {count} training images" if count else "BatchNorm of the supernet"
    about = {"images": images, "count": held_out, "recalibrated_on": count, "weights": weights}
    return Reply(
        {**about, "results": entries},
        lambda: table(("architecture", f"accuracy on {held_out} {images} images"), rows, title=how),
    )
