"""``binas run``, ``binas status`` and ``binas init``."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from binas.base.progress import Progress, Terminal, duration
from binas.cli.output import Json, examples, print_json, say, table

if TYPE_CHECKING:
    from binas.run.config import RunConfig
    from binas.run.run import Run
    from binas.run.status import Standing

Changes = Annotated[
    list[str] | None,
    typer.Option("--set", metavar="KEY=VALUE", help="Change one setting, e.g. training.heaviest.epochs=3."),
]
Redo = Annotated[
    bool,
    typer.Option(
        "--redo", help="Allow training that a change makes stale to be done again; RUN/old/ keeps it."
    ),
]
Quiet = Annotated[bool, typer.Option("--quiet", help="Show no progress.")]
RunFolder = Annotated[Path, typer.Argument(help="Folder of a run.", metavar="RUN")]


def register(app: typer.Typer) -> None:
    """Add the commands to the main application."""
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


def run(
    out: Annotated[Path, typer.Option("--out", help="Folder of the run; a run that is there is continued.")],
    config: Annotated[
        Path | None,
        typer.Argument(
            help="YAML file; default: the run's own, or all defaults on the embedded images.",
            metavar="CONFIG",
        ),
    ] = None,
    changes: Changes = None,
    redo: Redo = False,
    quiet: Quiet = False,
    as_json: Json = False,
) -> None:
    """Everything, from images to fine-tuned networks within your limits. Interrupt it at any time; the same command goes on.

    Only what a change makes stale is done again: another limit searches again, another device measures again.
    """
    from binas.base.errors import ConfigError
    from binas.run.costs_step import check_device
    from binas.run.engine import advance, judge
    from binas.run.estimator_steps import check_images
    from binas.run.steps import CONTRIBUTION, COST, STEPS

    if os.environ.get("WORLD_SIZE", "1") != "1":
        raise ConfigError(
            "only training runs in several processes: launch `binas train` with the same --config and --out, and "
            "when it is done call `binas run --out` without the launcher."
        )
    progress = Progress() if quiet or as_json else Terminal()
    opened = prepared(out, config, changes or [], redo, progress)
    if judge(opened, COST).word != "done":
        check_device(opened)  # now, not after hours of training
    if judge(opened, CONTRIBUTION).word == "to do":
        check_images(opened)
    done = advance(opened, STEPS, progress)
    found = _networks(opened)
    if as_json:
        print_json({"run": str(out), "done": done, "networks": found})
        return
    _show_networks(found)
    _show_rivals(opened)
    _show_files(opened)
    say(f"{', '.join(done) or 'nothing'} done now; `binas status {out}` shows all steps.")


def do_step(context: typer.Context, folder: Path, name: str, as_json: bool) -> bool:
    """Do one step of a run as its configuration says, where a command was given nothing but the folder of a run.

    Says whether it did: a folder of tables, or a command with options, is not its business.
    """
    from binas.base.files import exists

    given = {
        key
        for key in context.params
        if getattr(context.get_parameter_source(key), "name", "") not in ("DEFAULT", "DEFAULT_MAP")
    }
    if given - {"run", "folder", "as_json", "quiet"} or not exists(folder / "config.yaml"):
        return False  # before anything heavy is loaded
    from binas.run.engine import advance
    from binas.run.run import open_run
    from binas.run.steps import STEPS

    step = next(step for step in STEPS if step.name == name)
    quiet = as_json or bool(context.params.get("quiet"))
    done = advance(open_run(folder), (step,), Progress() if quiet else Terminal())
    if as_json:
        print_json({"run": str(folder), "step": name, "done": bool(done), "files": _files_of(folder, name)})
    else:
        word = "done now" if done else "was done already with these inputs; nothing was changed"
        say(f"{name} {word}: {', '.join(_files_of(folder, name))}")
    return True


def _files_of(folder: Path, name: str) -> list[str]:
    from binas.run.step import read_record

    record = read_record(folder, name)
    return [] if record is None else [str(folder / file) for file in record.files]


def prepared(out: Path, config: Path | None, changes: list[str], redo: bool, progress: Progress) -> Run:
    """The run in ``out`` with the configuration given, or its own, changed by ``changes``."""
    from binas.run.start import create_run
    from binas.supernet.network import keep_memory

    keep_memory()
    return create_run(out, _config(out, config, changes), redo, progress)


def joined(out: Path, config: Path | None, changes: list[str]) -> Run:
    """The same run for a process that helps the one that prepares it."""
    from binas.run.run import Run
    from binas.space.files import load_space

    chosen = _config(out, config, changes)
    return Run(out, chosen, load_space(chosen.space), look_again=True)


def _config(out: Path, config: Path | None, changes: list[str]) -> RunConfig:
    from binas.base.files import exists
    from binas.run.config import FILE, load_config

    return load_config(out / FILE if config is None and exists(out / FILE) else config, changes)


def _networks(run: Run) -> list[dict[str, Any]]:
    """Each limit with its answer, what it was predicted and measured to cost, and its tuned network."""
    from binas.run.export_step import on_device
    from binas.run.finetune_step import read_networks
    from binas.run.search_step import read_results

    tuned = {question: network.model_dump(mode="json") for question, network in read_networks(run).items()}
    return [
        {
            **item,
            "network": tuned.get(item["question"]),
            "on_device": on_device(item, item["limits"][0]["cost"]),
        }
        for item in read_results(run)
    ]


def _show_networks(found: list[dict[str, Any]]) -> None:
    """A row per limit."""
    from binas.run.export_step import limits_text

    rows = []
    for item in found:
        limits = limits_text(item)
        if not item["architecture"]:
            rows.append((item["question"], limits, "-", "-", "-", "-", "-", "none"))
            continue
        cost, measured, network = item["limits"][0]["cost"], item["on_device"], item["network"]
        predicted = item["costs"][cost]
        rows.append(
            (
                item["question"],
                limits,
                f"{predicted['value']:.4g} {predicted['unit']}",
                "-" if measured is None else f"{measured['measured']:.4g} {measured['unit']}",
                f"{network['judgement']['one_shot']['test']['percent']:.2f} %",
                f"{network['judgement']['tuned']['test']['percent']:.2f} %",
                f"{network['parameters']:,}",
                item["architecture"],
            )
        )
    columns = (
        "limit",
        "absolute",
        "predicted",
        "measured",
        "one-shot",
        "tuned",
        "parameters",
        "architecture",
    )
    table(columns, rows)
    for item in found:
        if item["why"]:
            say(f"{item['question']}: {item['why']}")


def _show_rivals(run: Run) -> None:
    """What the search bought, a row per limit; accuracies on the same test images."""
    from binas.run.compare_step import read_rivals

    rows = []
    for item in read_rivals(run):
        randoms, best = item["random"], item["hand_scaled"]
        row = [item["question"], f"{item['found']['accuracy']:.2f} %"]
        row.append(_mean(randoms, "accuracy"))
        row.append(_points(item["over_random"]) if randoms else "-")
        row.append(f"{item['beaten']} of {len(randoms)}" if randoms else "-")
        row.append(f"{best['accuracy']:.2f} %" if best else "-")
        row.append(_points(item["over_hand_scaled"]) if best else "-")
        row.append(_mean(randoms, "tuned"))
        row.append(f"{best['tuned']:.2f} %" if best and "tuned" in best else "-")
        rows.append(tuple(row))
    columns = (
        "limit",
        "found",
        "random",
        "ahead by",
        "beats",
        "hand-scaled",
        "ahead by",
        "random tuned",
        "hand tuned",
    )
    kept = [k for k in range(len(columns)) if any(row[k] != "-" for row in rows)]
    if rows:
        title = "Beside networks under the same limit: one-shot accuracy on the same test images, points ± standard error"
        table([columns[k] for k in kept], [tuple(row[k] for k in kept) for row in rows], title=title)


def _mean(rivals: list[dict[str, Any]], key: str) -> str:
    """Mean and range of an accuracy over rivals."""
    values = [rival[key] for rival in rivals if key in rival]
    if not values:
        return "-"
    return f"{sum(values) / len(values):.2f} % ({min(values):.2f} to {max(values):.2f})"


def _points(difference: tuple[float, float]) -> str:
    return f"{difference[0]:+.2f} ± {difference[1]:.2f}"


def _show_files(run: Run) -> None:
    """Where the networks and the page are."""
    from binas.run.finetune_step import read_networks
    from binas.run.network_record import EXPORT, network_folder
    from binas.run.report_step import REPORT

    for question, record in read_networks(run).items():
        folder = network_folder(run.folder, record.name) / EXPORT
        say(f"{question}: {', '.join(str(path) for path in sorted(folder.glob('model*.onnx'))) or folder}")
    say(f"Report: {run.folder / REPORT}")


def status(run: RunFolder, as_json: Json = False) -> None:
    """Show what is done, what is stale and why, what is left and how long it will take."""
    from binas.run.run import open_run
    from binas.run.status import standings, total_left
    from binas.run.steps import STEPS

    found = standings(open_run(run), STEPS)
    left, unknown = total_left(found)
    if as_json:
        steps = [item.to_json() for item in found]
        print_json({"run": str(run), "steps": steps, "left_seconds": left, "unknown": unknown})
        return
    table(("step", "state", "took", "left", "what, and why"), [_status_row(item) for item in found])
    if all(item.state.word == "done" for item in found):
        say(f"All is done in {run}.")
        return
    rest = f", and {', '.join(unknown)}, whose time is unknown" if unknown else ""
    say(f"About {duration(left)} left{rest}. Go on with: binas run --out {run}")


def _status_row(item: Standing) -> tuple[str, ...]:
    state = item.state
    why = f": {'; '.join(state.reasons)}" if state.reasons else ""
    left = "unknown" if item.left is None else duration(item.left)
    return (
        state.step.name,
        state.word,
        "-" if item.took is None else duration(item.took),
        "-" if state.word == "done" else left,
        f"{state.step.does}{why}",
    )


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

    made = write_starter(out, data)
    say(made.sentence())
    say(f"Wrote {', '.join(map(str, made.files))}. Next: binas run {out} --out runs/{out.stem}")
