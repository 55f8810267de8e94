"""The tasks of a run as commands: ``binas TASK RUN`` does the step, its options change the run's settings.

A question of one's own is asked with ``--out FILE`` (or, for the search, with ``--limit``): the settings then hold for this
once, and nothing of the run is touched.
"""

from __future__ import annotations

import shlex
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from binas.base.errors import BinasError, ConfigError, FileError
from binas.cli import views
from binas.cli.costs_commands import check_out
from binas.cli.options import Ask, Dir, Limits, Plot, Redo, RunFolder, command, with_settings
from binas.cli.output import Reply
from binas.cli.search_commands import is_run, limits_on, search
from binas.cli.views import task_reply
from binas.costs.table import MeasureSettings, write_costs
from binas.tasks import all_tasks
from binas.tasks._base import Task
from binas.tasks.artefacts import PAGE
from binas.tasks.check import CHECK, CheckSettings
from binas.tasks.export import EXPORT
from binas.tasks.finetune import FINETUNE
from binas.tasks.measure import MEASURE
from binas.tasks.report import REPORT, ReportSettings

if TYPE_CHECKING:
    from binas.run.config import Change
    from binas.run.run import Run
    from binas.tables.costs import CostTable

Architecture = Annotated[
    str | None,
    typer.Option(
        help="Only this one. Architecture, 'heaviest', 'lightest', or a file, e.g. what `binas search --json` printed."
    ),
]
Given = Any  # options.py hands over changes, a list of Change, and progress

app = typer.Typer()


def _general(task: Task) -> Callable[..., Reply]:
    """The command of a task that needs nothing but its settings."""

    def simple(run: RunFolder, redo: Redo = False, progress: Given = None, changes: Given = ()) -> Reply:
        return task_reply(task, run, changes, redo, progress)

    def asking(
        run: RunFolder, out: Ask = None, redo: Redo = False, progress: Given = None, changes: Given = ()
    ) -> Reply:
        from binas.run.start import ask

        if out is None:
            return task_reply(task, run, changes, redo, progress)
        return views.result_reply(task, ask(run, task, out, changes, progress), out)

    function = simple if task.ask is None else asking
    function.__doc__ = f"{task.does}\n\nInterrupt it at any time; the same command resumes."
    return function


def train(
    run: RunFolder,
    config: Annotated[
        Path | None,
        typer.Option(
            help="YAML file to start the run with; default: its own, or all defaults on the embedded images."
        ),
    ] = None,
    redo: Redo = False,
    progress: Given = None,
    changes: Given = (),
) -> Reply:
    """Train the heaviest network, then the supernet: the first steps of `binas run`.

    A folder that is no run yet becomes one. Interrupt it at any time; the same command resumes.
    """
    from binas.tasks.train import train_run

    return views.training_reply(train_run(run, config, changes, redo, progress))


def measure(
    run: Annotated[Path | None, typer.Argument(help="Folder of a run.", metavar="[RUN]")] = None,
    space: Annotated[
        str | None, typer.Option(help="Without a run: a built-in space, or a YAML file.")
    ] = None,
    out: Annotated[
        Path | None, typer.Option(help="Table to write, .json or .csv; leaves the run alone.")
    ] = None,
    preset: Annotated[
        Literal["paper-cpu", "paper-gpu"] | None,
        typer.Option(help="A named setting; the other options change single values of it."),
    ] = None,
    plot: Plot = None,
    overwrite: Annotated[bool, typer.Option(help="Replace an existing table.")] = False,
    redo: Redo = False,
    progress: Given = None,
    changes: Given = (),
) -> Reply:
    """Measure what every choice of a space costs on this machine, and check the table against whole networks."""
    from binas.run.config import load_config
    from binas.run.run import Run, open_run
    from binas.run.start import check_outside
    from binas.space.files import load_space

    views.check_plot(plot)
    changes = [*_preset(preset), *changes]
    if run is not None and out is None:
        reply = task_reply(MEASURE, run, changes, redo, progress)
        return reply if plot is None else views.with_plot(reply, open_run(run).tables.costs, plot)
    if out is None or (run is None) == (space is None):
        raise ConfigError("give the folder of a run, or --space and --out.")
    check_out(out, overwrite)
    check_outside(run or out.parent, MEASURE, out)
    asked = open_run(run, changes) if run else Run(out, load_config(None, changes), load_space(space or ""))
    table = _measure_to(asked, out, plot, redo, progress)
    return views.with_plot(views.result_reply(MEASURE, table, out), table, plot)


def _measure_to(run: Run, out: Path, plot: Path | None, fresh: bool, progress: Given) -> CostTable:
    """A table of one's own, of a space and settings that may be those of a run."""
    settings = run.settings(MeasureSettings)
    views.check_plot(plot, settings.samples)
    with progress.during("measure"):
        return write_costs(run.space, settings, out, progress, fresh)


def _preset(name: str | None) -> list[Change]:
    """The settings of a preset as changes."""
    if name is None:
        return []
    from binas.costs.settings import preset

    values = preset(name).to_data()
    values["device"] = values.pop("processor")
    return [(f"measure.{key}", value) for key, value in values.items()]


def check(
    folder: Dir,
    out: Ask = None,
    limit: Limits = None,
    redo: Redo = False,
    progress: Given = None,
    changes: Given = (),
) -> Reply:
    """Judge every estimator on networks it was not fitted to, and choose the one the search believes.

    With --limit the regret under that limit is shown as well. A folder of tables and samples is only judged.
    """
    if is_run(folder) and out is None and not limit:
        return task_reply(CHECK, folder, changes, redo, progress)
    from binas.run.folder import open_folder
    from binas.run.start import check_outside, configure
    from binas.tasks.check import check as judge

    check_outside(folder, CHECK, out)
    settings = configure(folder, changes=changes).part(CheckSettings)
    choice = judge(open_folder(folder), settings, limits_on(folder, limit))
    if out is not None:
        choice.save(out)
    return views.result_reply(CHECK, choice, out)


def finetune(
    run: RunFolder,
    arch: Architecture = None,
    name: Annotated[
        str | None, typer.Option(help="Of its folder in RUN/networks; default: a short hash.")
    ] = None,
    redo: Redo = False,
    progress: Given = None,
    changes: Given = (),
) -> Reply:
    """Fine-tune all architectures that the run's search found, or with --arch one of your own.

    With --arch the settings hold for this network only. Interrupt it at any time; the same command resumes.
    """
    if arch is None:
        if name is not None:
            raise BinasError("say which network with --arch; --name only names it.")
        return task_reply(FINETUNE, run, changes, redo, progress)
    from binas.tasks.finetune import tune_one

    return views.tuned_reply(tune_one(run, arch, name, changes, progress))


def export(
    run: RunFolder,
    arch: Architecture = None,
    network: Annotated[
        str | None,
        typer.Option(help="Only this one: name in RUN/networks, or folder, of a fine-tuned network."),
    ] = None,
    out: Annotated[
        Path | None, typer.Option(help="Folder to write to; default: export/ in the network's folder.")
    ] = None,
    redo: Redo = False,
    changes: Given = (),
) -> Reply:
    """Write all networks that the run's search found as ONNX and other files, with model cards; or one of your own."""
    if arch is not None and network is not None:
        raise BinasError("say which network: either --arch or --network.")
    if arch is None and network is None:
        if out is not None:
            raise BinasError("say which network goes to --out: either --arch or --network.")
        return task_reply(EXPORT, run, changes, redo, None)
    from binas.run.run import open_run
    from binas.space.blockstrings import read_choice
    from binas.tasks.export import export_tuned
    from binas.tasks.finetune import find_tuned, open_tuned

    opened = open_run(run, changes)
    tuned = find_tuned(opened, read_choice(opened.space, arch)) if arch else open_tuned(opened, network or "")
    return views.export_reply(export_tuned(opened, tuned, out))


def report(
    folder: Dir,
    out: Annotated[Path | None, typer.Option(help="File to write, .html; default DIR/report.html.")] = None,
    limit: Limits = None,
    png: Annotated[
        Path | None, typer.Option(help="Also write the figures as PNG files into a folder.")
    ] = None,
    redo: Redo = False,
    changes: Given = (),
) -> Reply:
    """Write the page: the frontier, a slider over the limit, insights, checks, and the networks of a run.

    With --limit, also the best network under that limit: then, or with --out, a page of your own.
    """
    if out is not None and out.suffix.lower() not in (".html", ".htm"):
        raise FileError(f"cannot write a page to {out}: name a file that ends in .html.")
    if is_run(folder) and not (out or limit):
        reply = task_reply(REPORT, folder, changes, redo, None)
        return reply if png is None else views.with_figures(reply, folder, png)
    if is_run(folder) and out is None:
        raise ConfigError("a page of your own goes to a file of its own: say which with --out FILE.html.")
    from binas.run.folder import load
    from binas.run.run import open_run
    from binas.run.start import check_outside, configure
    from binas.tasks.report import report_of

    check_outside(folder, REPORT, out)
    tables, run = load(folder), open_run(folder, changes) if is_run(folder) else None
    cost = configure(folder, changes=changes).part(ReportSettings).cost
    data = report_of(tables, run, cost, limits_on(folder, limit), shlex.join(["binas", *sys.argv[1:]]))
    return views.report_reply(data, out or folder / PAGE, png)


OWN: dict[str, Callable[..., Reply | None]] = {
    "train": train,
    "measure": measure,
    "check": check,
    "search": search,
    "finetune": finetune,
    "export": export,
    "report": report,
}
for task in all_tasks().values():  # those without a command of their own get the general one
    function = OWN[task.name] if task.name in OWN else _general(task)
    command(app, task.name, *task.examples, options=with_settings(task))(function)
