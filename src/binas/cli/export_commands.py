"""``binas finetune`` and ``binas export``."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from binas.base.errors import BinasError
from binas.cli.output import Json, examples, print_json, say, table
from binas.cli.run_commands import Changes, do_step

if TYPE_CHECKING:
    from binas.export import Exported
    from binas.export.exporting import Format
    from binas.run.networks import TunedNetwork

RunFolder = Annotated[Path, typer.Argument(help="Folder of a trained run.", metavar="RUN")]
ARCH_HELP = "Architecture, 'heaviest', 'lightest', or a file, e.g. what `binas search --json` printed."


def register(app: typer.Typer) -> None:
    """Add the commands to the main application."""
    app.command(
        "finetune",
        epilog=examples(
            "binas finetune runs/first --arch e4k5se_e2k3-e4k5se_e4k5se",
            "binas finetune runs/first --arch best.json --name best --set training.finetune.epochs=10",
            "binas finetune runs/first --arch best.json --from-scratch",
        ),
    )(finetune)
    app.command(
        "export",
        epilog=examples(
            "binas export runs/first --arch best.json",
            "binas export runs/first --network best --format onnx --int8 --out deploy",
        ),
    )(export)


def finetune(
    context: typer.Context,
    run: RunFolder,
    arch: Annotated[str | None, typer.Option("--arch", help=ARCH_HELP)] = None,
    name: Annotated[
        str | None, typer.Option("--name", help="Of its folder in RUN/networks; default: a short hash.")
    ] = None,
    from_scratch: Annotated[
        bool, typer.Option("--from-scratch", help="Start from fresh weights, to compare; the same budget.")
    ] = False,
    changes: Changes = None,
    quiet: Annotated[bool, typer.Option("--quiet", help="Show no progress.")] = False,
    as_json: Json = False,
) -> None:
    """Fine-tune one architecture of a run, or without --arch all that its search found.

    Interrupt it at any time; the same command goes on.
    """
    from binas.base.progress import Progress, Terminal
    from binas.run.network_record import network_folder, network_name
    from binas.run.networks import read_choice, run_to_tune, tune
    from binas.supernet.network import keep_memory
    from binas.training.reporting import Reporter

    keep_memory()
    if arch is None:
        if do_step(context, run, "finetune", as_json):
            return
        raise BinasError(
            "say which network with --arch; without any option all that the run's search found are tuned."
        )
    extra = ["training.finetune.from_scratch=true"] if from_scratch else []
    opened = run_to_tune(run, [*(changes or ()), *extra])
    architecture = read_choice(opened.space, arch)
    chosen = name or network_name(architecture, opened.config.training.finetune.from_scratch)
    progress = Progress() if quiet or as_json else Terminal()
    with progress.during("finetune"):
        found = tune(opened, architecture, chosen, Reporter(network_folder(run, chosen), progress))
    if os.environ.get("RANK", "0") != "0":  # one of several processes speaks
        return
    if as_json:
        print_json({**found.record.model_dump(mode="json"), "folder": str(found.folder), "new": found.new})
        return
    _show_tuned(found)
    say(f"Next: binas export {run} --network {chosen}")


def _show_tuned(found: TunedNetwork) -> None:
    record = found.record
    how = "trained from scratch" if record.from_scratch else "fine-tuned"
    rows = [
        (weights, *(f"{part.percent:.2f} ± {part.error:.2f} %" for part in (held.validation, held.test)))
        for weights, held in (("the supernet's weights, recalibrated", found.one_shot), (how, found.tuned))
    ]
    held = found.tuned
    columns = (
        "weights",
        f"{held.validation.images} validation images",
        f"{held.test.images} test images",
    )
    say(f"{record.architecture}:")
    table(columns, rows)
    done = f"done in {record.seconds:g} s" if found.new else "was done already; nothing was changed"
    say(
        f"{record.parameters:,} parameters, {record.macs:,} MACs. Epoch {record.judgement.epoch} was kept (0 is the "
        f"start). {found.folder}: {done}."
    )


def export(
    context: typer.Context,
    run: RunFolder,
    arch: Annotated[str | None, typer.Option("--arch", help=ARCH_HELP)] = None,
    network: Annotated[
        str | None,
        typer.Option("--network", help="Name in RUN/networks, or folder, of a fine-tuned network."),
    ] = None,
    formats: Annotated[
        str, typer.Option("--format", help="Comma-separated: onnx, torch; safetensors is always written.")
    ] = "onnx,torch,safetensors",
    int8: Annotated[
        bool, typer.Option("--int8", help="Also a quantised ONNX file; both are measured on this machine.")
    ] = False,
    normalised: Annotated[
        bool,
        typer.Option("--normalised-input", help="ONNX and torch files take normalised images, not bytes."),
    ] = False,
    out: Annotated[
        Path | None,
        typer.Option("--out", help="Folder to write to; default: export/ in the network's folder."),
    ] = None,
    as_json: Json = False,
) -> None:
    """Write a fine-tuned network as ONNX, torch.export and safetensors files, with a model card.

    Without options all networks that the run's search found, as its configuration says.
    """
    from binas.run.networks import export_tuned, find_tuned, open_tuned, read_choice
    from binas.run.run import open_run
    from binas.supernet.network import keep_memory

    keep_memory()
    if do_step(context, run, "export", as_json):
        return
    if (arch is None) == (network is None):
        raise BinasError("say which network: either --arch or --network.")
    chosen = _formats(formats)
    opened = open_run(run)
    tuned = (
        open_tuned(opened, network) if network else find_tuned(opened, read_choice(opened.space, arch or ""))
    )
    done = export_tuned(opened, tuned, out, chosen, int8, "normalised" if normalised else "bytes")
    if as_json:
        print_json(_export_json(done))
        return
    _show_export(done)


def _formats(text: str) -> list[Format]:
    from binas.export import FORMATS

    wanted = [part.strip() for part in text.split(",") if part.strip()]
    unknown = [part for part in wanted if part not in FORMATS]
    if unknown or not wanted:
        raise BinasError(f"--format {text[:80]!r}: known formats are {', '.join(FORMATS)}.")
    return [known for known in FORMATS if known in wanted]


def _export_json(done: Exported) -> dict[str, Any]:
    return {
        "folder": str(done.folder),
        "files": [path.name for path in done.files],
        "written": done.written,
        "model": done.model.model_dump(mode="json", exclude={"space"}),
    }


def _show_export(done: Exported) -> None:
    rows = [(path.name, f"{path.stat().st_size:,}") for path in done.files]
    say(f"{done.folder}:")
    table(("file", "bytes"), rows)
    for name, entry in done.model.graphs.items():
        worst = max((item.difference for item in entry.parity), default=0.0)
        say(f"{name} computes what PyTorch computes: logits differ by at most {worst:.2g}.")
    if done.model.int8 is not None:
        say(done.model.int8.verdict)
    takes = "bytes (uint8, 0 to 255)" if done.model.input.graphs == "bytes" else "normalised float32 images"
    say(f"Input of ONNX and torch files: {takes}; see {done.folder / 'README.md'}.")
    if not done.written:
        say("Everything was there already; nothing was changed.")
