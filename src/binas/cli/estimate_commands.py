"""``binas estimate`` and ``binas sample``."""

from __future__ import annotations

from collections.abc import Iterator
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from binas.cli.output import Json, examples, print_json, say, table
from binas.cli.run_commands import do_step

if TYPE_CHECKING:
    from binas.contributions import Evaluator
    from binas.tables import Contributions


USUAL_PASSES = 24


class Protocol(StrEnum):
    """How contributions are measured."""

    factorial = "factorial"
    paper = "paper"


class Outcome(StrEnum):
    """What an evaluation of an image says."""

    correct = "correct"
    probability = "probability"
    log_probability = "log-probability"


class Reading(StrEnum):
    """What the paper protocol subtracts from the accuracy with a config fixed."""

    base = "base"
    depth = "depth"


class Strata(StrEnum):
    """How architectures are drawn."""

    uniform = "uniform"
    cost = "cost"


RunFolder = Annotated[Path, typer.Argument(help="Folder of a trained run.", metavar="RUN")]
Half = Annotated[
    int | None,
    typer.Option("--half", min=1, max=2, help="Only one half of the validation images; 1 and 2 share none."),
]
Seed = Annotated[int, typer.Option("--seed", min=0, help="Of everything drawn at random.")]
Resume = Annotated[
    bool, typer.Option("--resume/--no-resume", help="Use what is measured already, or discard it.")
]
Quiet = Annotated[bool, typer.Option("--quiet", help="Show no progress.")]


def register(app: typer.Typer) -> None:
    """Add the commands to the main application."""
    app.command(
        "estimate",
        epilog=examples(
            "binas estimate runs/first --budget 75000",
            "binas estimate runs/first --stability 0.9 --outcome correct",
            "binas estimate runs/first --protocol paper --repeats 10 --reading depth",
        ),
    )(estimate)
    app.command(
        "sample",
        epilog=examples(
            "binas sample runs/first --count 500",
            "binas sample runs/first --count 500 --strata cost --recalibrate --out samples-cost.json",
        ),
    )(sample)


def estimate(
    context: typer.Context,
    run: RunFolder,
    protocol: Annotated[
        Protocol, typer.Option("--protocol", help="Ours, or the paper's.")
    ] = Protocol.factorial,
    budget: Annotated[
        int | None,
        typer.Option(
            "--budget", min=1, help="Most image evaluations to spend; factorial: default 24 passes."
        ),
    ] = None,
    outcome: Annotated[
        Outcome | None, typer.Option("--outcome", help="factorial: what is fitted; default log-probability.")
    ] = None,
    stability: Annotated[
        float | None,
        typer.Option("--stability", min=0, max=1, help="factorial: stop at this Kendall tau between halves."),
    ] = None,
    repeats: Annotated[
        int | None, typer.Option("--repeats", min=1, help="paper: passes per decision; default 10.")
    ] = None,
    reading: Annotated[
        Reading | None,
        typer.Option("--reading", help="paper: config minus E[Acc] (default) or minus E[Acc | depth]."),
    ] = None,
    images: Annotated[
        int | None, typer.Option("--images", min=2, help="Only about this many validation images.")
    ] = None,
    half: Half = None,
    seed: Seed = 0,
    resume: Resume = True,
    out: Annotated[
        Path | None, typer.Option("--out", help="File to write; default RUN/contributions.json.")
    ] = None,
    quiet: Quiet = False,
    as_json: Json = False,
) -> None:
    """Measure what each depth and config contributes to accuracy, on validation images.

    Without options it is the run's step: as its configuration says, on one half of the images, so that the check has the
    other. Interrupt it at any time: the same command goes on, and the answer so far is in the file.
    """
    if do_step(context, run, "contributions", as_json):
        return
    from binas.base.files import exists
    from binas.base.lock import locked
    from binas.base.progress import Progress, Terminal
    from binas.contributions import Journal, SupernetEvaluator, factorial, paper
    from binas.run.engine import keep_old
    from binas.run.estimator_steps import validation_images
    from binas.run.run import open_run
    from binas.run.step import read_record
    from binas.training.checkpoint import weights_digest

    _check_used(protocol, outcome=outcome, stability=stability, repeats=repeats, reading=reading)
    opened = open_run(run)
    supernet, chosen = opened.supernet(), validation_images(opened, half, images)
    evaluator = SupernetEvaluator(supernet, opened.data, chosen, weights_digest(supernet))
    identity = {
        "protocol": protocol.value,
        "evaluator": evaluator.fingerprint,
        "space": opened.space.fingerprint,
        "images": evaluator.images,
        "seed": seed,
    }
    parts = [
        protocol.value,
        f"seed{seed}",
        f"half{half}" if half else "",
        f"{images}images" if images else "",
    ]
    amount = _affordable(protocol, evaluator, budget, repeats or 10)  # refused before anything is discarded
    journal = Journal(run / "outcomes" / "-".join(filter(None, parts)), identity, fresh=not resume)
    progress = Progress() if quiet or as_json else Terminal()
    if protocol is Protocol.paper:
        answers = paper(evaluator, journal, amount, (reading or Reading.base).value, seed, progress)
    else:
        kind = outcome or Outcome.log_probability
        answers = factorial(evaluator, journal, amount, kind.value, stability, seed, progress)
    target = out or run / "contributions.json"
    with locked(run):
        if out is None and exists(target) and read_record(run, "contributions") is not None:
            say(
                f"contributions.json of the run's own step moved to {keep_old(run, 'contributions', [target.name])}."
            )
        for answer in answers:
            answer.save(target)
    _show(answer, target, as_json)


def _check_used(protocol: Protocol, **given: object) -> None:
    """Refuse options of the other protocol."""
    from binas.base.errors import ConfigError

    foreign = ("repeats", "reading") if protocol is Protocol.factorial else ("outcome", "stability")
    unused = [f"--{name}" for name in foreign if given[name] is not None]
    if unused:
        raise ConfigError(
            f"the {protocol.value} protocol does not use {' and '.join(unused)}; leave it away."
        )


def _affordable(protocol: Protocol, evaluator: Evaluator, budget: int | None, repeats: int) -> int:
    """Passes of the factorial protocol, or repeats of the paper's, that the budget pays for."""
    from binas.contributions.paper import paper_passes
    from binas.contributions.passes import affordable

    if protocol is Protocol.factorial:
        return USUAL_PASSES if budget is None else affordable(budget, evaluator.images, 2, "the protocol")
    each = paper_passes(evaluator.space)
    if budget is None:
        return repeats
    return min(repeats, affordable(budget, evaluator.images, each, "one repeat") // each)


def _show(answer: Contributions, path: Path, as_json: bool) -> None:
    about = answer.provenance.to_data()
    if as_json:
        print_json(
            {"contributions": str(path), "base": answer.base, "base_stderr": answer.base_stderr, **about}
        )
        return
    table(("decision", "best", "points", "worst", "points"), _extremes(answer))
    stable = f", stability {about['stability']:.3f}" if "stability" in about else ""
    say(
        f"E[Acc] {answer.base:.2f} ± {answer.base_stderr:.2f} % from {about['evaluations']:,} image evaluations "
        f"({about['images']:,} validation images{stable}). Contributions in {path}."
    )


def _extremes(answer: Contributions) -> Iterator[tuple[str, ...]]:
    """Each decision's best and worst choice with their contributions."""
    assert answer.stderr is not None
    for s, stage in enumerate(answer.space.stages):
        depths = [f"depth {depth}" for depth in stage.depths]
        decisions = [(stage.name, depths, answer.values.depths[s], answer.stderr.depths[s])]
        for b, configs in enumerate(stage.blocks):
            names = [config.name for config in configs]
            block = (answer.values.configs[s][b], answer.stderr.configs[s][b])
            decisions.append((f"{stage.name} block {b + 1}", names, *block))
        for name, choices, values, errors in decisions:
            best, worst = int(values.argmax()), int(values.argmin())
            shown = [(choices[i], f"{values[i]:+.2f} ± {errors[i]:.2f}") for i in (best, worst)]
            yield name, *shown[0], *shown[1]


def sample(
    context: typer.Context,
    run: RunFolder,
    count: Annotated[int, typer.Option("--count", min=1, help="Architectures to measure.")] = 500,
    strata: Annotated[
        Strata, typer.Option("--strata", help="Uniform over decisions, or evenly over the range of MACs.")
    ] = Strata.uniform,
    recalibrate: Annotated[
        bool, typer.Option("--recalibrate", help="Re-estimate each BatchNorm on training images first.")
    ] = False,
    half: Half = None,
    seed: Seed = 0,
    resume: Resume = True,
    out: Annotated[
        Path | None, typer.Option("--out", help="File to write; default RUN/samples.json.")
    ] = None,
    quiet: Quiet = False,
    as_json: Json = False,
) -> None:
    """Measure random architectures on validation images: what estimates are judged by and predictors learn from.

    Without options it is the run's step: as its configuration says, on the half of the images that contributions were not
    measured on. Interrupt it at any time: the same command goes on. A larger --count later adds to what is there.
    """
    if do_step(context, run, "samples", as_json):
        return
    from binas.base.files import exists
    from binas.base.progress import Progress, Terminal
    from binas.contributions import architectures_to_measure, measure_samples
    from binas.run.estimator_steps import validation_images
    from binas.run.run import open_run
    from binas.supernet.network import keep_memory
    from binas.tables.samples import load_samples
    from binas.training.checkpoint import weights_digest

    keep_memory()
    opened, path = open_run(run), out or run / "samples.json"
    supernet, images = opened.supernet(), validation_images(opened, half)
    known = load_samples(path, opened.space) if resume and exists(path) else None
    about: dict[str, Any] = {
        "strata": strata.value,
        "seed": seed,
        "weights": weights_digest(supernet),
        "image_set": images.fingerprint,
    }
    samples = measure_samples(
        supernet,
        opened.data,
        images,
        architectures_to_measure(opened.space, count, strata.value, seed),
        opened.config.training.supernet.recalibration if recalibrate else 0,
        known,
        about,
        Progress() if quiet or as_json else Terminal(),
    )
    for found in samples:
        found.save(path)
    accuracies = found.accuracy
    summary = {name: float(getattr(accuracies, name)()) for name in ("min", "mean", "max")}
    if as_json:
        print_json({"samples": str(path), "count": len(found), "images": len(images), **summary})
        return
    say(
        f"{len(found)} architectures on {len(images):,} validation images: {summary['min']:.2f} to "
        f"{summary['max']:.2f} %, mean {summary['mean']:.2f} %. Written to {path}."
    )
