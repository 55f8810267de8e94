"""The tasks of a run as commands: ``binas TASK RUN`` does the step, its options change the run's settings.

A question of one's own is asked with ``--out FILE`` (or, for the search, with ``--limit``): the settings then hold for this
once, and nothing of the run is touched.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from binas.base.errors import BinasError, ConfigError, FileError
from binas.cli import views
from binas.cli.options import (
    Dir,
    Json,
    Limits,
    Plot,
    Quiet,
    Redo,
    RunFolder,
    examples,
    show_progress,
    with_settings,
)
from binas.cli.output import print_json, say
from binas.tasks import all_tasks
from binas.tasks._base import Task
from binas.tasks.artefacts import PAGE
from binas.tasks.check import CHECK, CheckSettings
from binas.tasks.export import EXPORT
from binas.tasks.finetune import FINETUNE
from binas.tasks.measure import MEASURE, MeasureSettings
from binas.tasks.report import REPORT, ReportSettings
from binas.tasks.train import TRAIN

if TYPE_CHECKING:
    from binas.run.config import Change
    from binas.run.run import Run
    from binas.tables.costs import CostTable

ARCH = "Architecture, 'heaviest', 'lightest', or a file, e.g. what `binas search --json` printed."
Changes = Any  # a list of Change; options.with_settings hands it over


def register(app: typer.Typer) -> None:
    """Add a command for every task; those without one of their own get the general one."""
    from binas.cli.search_commands import search

    own: dict[str, Callable[..., None]] = {
        "train": train,
        "measure": measure,
        "check": check,
        "search": search,
        "finetune": finetune,
        "export": export,
        "report": report,
    }
    for task in all_tasks().values():
        command = own[task.name] if task.name in own else _general(task)
        app.command(task.name, epilog=examples(*task.examples))(with_settings(task)(command))


def is_run(folder: Path) -> bool:
    """Whether a folder is a run, and not only a folder of tables."""
    from binas.base.files import exists
    from binas.run.config import FILE

    return exists(folder / FILE)


@dataclass(frozen=True)
class Call:
    """How a command was called: what to do, with which settings, and how to answer."""

    task: Task
    folder: Path
    changes: Iterable[Change]
    redo: bool = False
    quiet: bool = False
    as_json: bool = False

    def do(self) -> Run:
        """Do the step, and show what it made."""
        from binas.run.start import do_task
        from binas.supernet.network import keep_memory

        keep_memory()
        progress = show_progress(self.quiet, self.as_json)
        run, done = do_task(self.folder, self.task, self.changes, self.redo, progress)
        view, names = views.of_task(self.task), views.files_of(run, self.task)
        if self.as_json:
            known = {"run": str(self.folder), "task": self.task.name, "done": done, "files": names}
            print_json({**known, **view.to_json(run)})
            return run
        view.show(run)
        word = "done now" if done else "was done already with these inputs; nothing was changed"
        say(f"{self.task.name} {word}: {', '.join(names)}")
        return run

    def ask(self, out: Path) -> None:
        """Ask a question of one's own, and show the answer."""
        from binas.run.start import ask
        from binas.supernet.network import keep_memory

        keep_memory()
        result = ask(self.folder, self.task, out, self.changes, show_progress(self.quiet, self.as_json))
        views.show_result(self.task, result, out, self.as_json)


def _general(task: Task) -> Callable[..., None]:
    """The command of a task that needs nothing but its settings."""

    def do(
        run: RunFolder, redo: Redo = False, quiet: Quiet = False, as_json: Json = False, changes: Changes = ()
    ) -> None:
        Call(task, run, changes, redo, quiet, as_json).do()

    def do_or_ask(
        run: RunFolder,
        out: Annotated[
            Path | None, typer.Option(help="Ask for once: write to this file, leave the run alone.")
        ] = None,
        redo: Redo = False,
        quiet: Quiet = False,
        as_json: Json = False,
        changes: Changes = (),
    ) -> None:
        call = Call(task, run, changes, redo, quiet, as_json)
        call.do() if out is None else call.ask(out)

    command = do if task.ask is None else do_or_ask
    command.__doc__ = f"{task.does}\n\nInterrupt it at any time; the same command resumes."
    return command


def train(
    run: RunFolder,
    config: Annotated[
        Path | None, typer.Option(help="YAML file to start the run with; default: its own, or the demo's.")
    ] = None,
    redo: Redo = False,
    quiet: Quiet = False,
    as_json: Json = False,
    changes: Changes = (),
) -> None:
    """Train the heaviest network, then the supernet: the first steps of `binas run`, also in several processes.

    A folder that is no run yet becomes one. Interrupt it at any time; the same command resumes.
    """
    from binas.run.engine import advance
    from binas.run.run import Run
    from binas.run.start import configure, create_run
    from binas.space.files import load_space
    from binas.supernet.network import keep_memory
    from binas.tasks.train import help_training, is_helper, meet

    keep_memory()
    chosen = configure(run, config, changes)
    if is_helper():
        help_training(Run(run, chosen, load_space(chosen.space), look_again=True))
        return
    progress = show_progress(quiet, as_json)
    started = create_run(run, chosen, redo, progress, [TRAIN])
    meet(started)
    advance(started, TRAIN.steps, progress)
    views.show_training(started, as_json)


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
    quiet: Quiet = False,
    as_json: Json = False,
    changes: Changes = (),
) -> None:
    """Measure what every choice of a space costs on this machine, and check the table against whole networks."""
    settings = [*_preset(preset), *changes]
    views.check_plot(plot)
    if out is None:
        if run is None:
            raise ConfigError("give the folder of a run, or --space and --out.")
        done = Call(MEASURE, run, settings, redo, quiet, as_json).do()
        views.plot_costs(done.tables.costs, plot, as_json)
        return
    table = _measure_to(run, space, out, plot, settings, overwrite, redo, quiet or as_json)
    views.plot_costs(table, plot, as_json)
    views.show_result(MEASURE, table, out, as_json)


def _measure_to(
    run: Path | None,
    space: str | None,
    out: Path,
    plot: Path | None,
    changes: list[Change],
    overwrite: bool,
    redo: bool,
    quiet: bool,
) -> CostTable:
    """A table of one's own: of a run's space with its settings, or of any space."""
    from binas.cli.costs_commands import check_out
    from binas.run.config import load_config
    from binas.run.run import open_run
    from binas.space.files import load_space
    from binas.tasks.measure import write_costs

    if (run is None) == (space is None):
        raise ConfigError("give the folder of a run, or --space and --out.")
    check_out(out, overwrite)
    own = None if run is None else run / "config.yaml"
    settings = load_config(own, changes).part(MeasureSettings)
    views.check_plot(plot, settings.samples)
    chosen = load_space(space) if space is not None else open_run(run or Path()).space
    progress = show_progress(quiet, False)
    with progress.during("measure"):
        return write_costs(chosen, settings, out, progress, fresh=redo)


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
    out: Annotated[
        Path | None, typer.Option(help="Ask for once: write to this file, leave the run alone.")
    ] = None,
    limit: Limits = None,
    redo: Redo = False,
    quiet: Quiet = False,
    as_json: Json = False,
    changes: Changes = (),
) -> None:
    """Judge every estimator on networks it was not fitted to, and choose the one the search believes.

    With --limit the regret under that limit is shown as well. A folder of tables and samples is only judged.
    """
    if is_run(folder) and out is None and not limit:
        Call(CHECK, folder, changes, redo, quiet, as_json).do()
        return
    from binas.run.config import FILE, load_config
    from binas.run.folder import Folder
    from binas.space.files import load_space
    from binas.tasks.artefacts import SPACE
    from binas.tasks.check import check as judge

    settings = load_config(folder / FILE if is_run(folder) else None, changes).part(CheckSettings)
    tables = Folder(folder, load_space(SPACE.path(folder)))  # costs are not needed
    choice = judge(tables, settings, limit or ())
    if out is not None:
        choice.save(out)
    views.show_result(CHECK, choice, out, as_json)


def finetune(
    run: RunFolder,
    arch: Annotated[str | None, typer.Option(help=f"Only this one. {ARCH}")] = None,
    name: Annotated[
        str | None, typer.Option(help="Of its folder in RUN/networks; default: a short hash.")
    ] = None,
    redo: Redo = False,
    quiet: Quiet = False,
    as_json: Json = False,
    changes: Changes = (),
) -> None:
    """Fine-tune all architectures that the run's search found, or with --arch one of your own.

    With --arch the settings hold for this network only. Interrupt it at any time; the same command resumes.
    """
    if arch is None:
        if name is not None:
            raise BinasError("say which network with --arch; --name only names it.")
        Call(FINETUNE, run, changes, redo, quiet, as_json).do()
        return
    from binas.base.lock import locked
    from binas.supernet.network import keep_memory
    from binas.tasks.finetune import Tuning, read_choice, run_to_tune

    keep_memory()
    opened = run_to_tune(run, changes)
    architecture = read_choice(opened.space, arch)
    progress = show_progress(quiet, as_json)
    helper = os.environ.get("RANK", "0") != "0"
    if helper:  # one of several processes holds the folder, writes and speaks
        Tuning(opened).tune(architecture, name)
        return
    with locked(run), progress.during("finetune"):
        network = Tuning(opened).tune(architecture, name, progress)
    views.show_tuned(network, as_json)


def export(
    run: RunFolder,
    arch: Annotated[str | None, typer.Option(help=f"Only this one. {ARCH}")] = None,
    network: Annotated[
        str | None,
        typer.Option(help="Only this one: name in RUN/networks, or folder, of a fine-tuned network."),
    ] = None,
    out: Annotated[
        Path | None, typer.Option(help="Folder to write to; default: export/ in the network's folder.")
    ] = None,
    redo: Redo = False,
    as_json: Json = False,
    changes: Changes = (),
) -> None:
    """Write all networks that the run's search found as ONNX and other files, with model cards; or one of your own."""
    if arch is None and network is None:
        if out is not None:
            raise BinasError("say which network goes to --out: either --arch or --network.")
        Call(EXPORT, run, changes, redo, False, as_json).do()
        return
    if arch is not None and network is not None:
        raise BinasError("say which network: either --arch or --network.")
    from binas.run.config import FILE, load_config
    from binas.run.run import Run, open_run
    from binas.supernet.network import keep_memory
    from binas.tasks.export import export_tuned
    from binas.tasks.finetune import find_tuned, open_tuned, read_choice

    keep_memory()
    opened = open_run(run)
    changed = Run(run, load_config(run / FILE, changes), opened.space)
    tuned = (
        open_tuned(changed, network)
        if network
        else find_tuned(changed, read_choice(opened.space, arch or ""))
    )
    views.show_export(export_tuned(changed, tuned, out), as_json)


def report(
    folder: Dir,
    out: Annotated[Path | None, typer.Option(help="File to write, .html; default DIR/report.html.")] = None,
    limit: Limits = None,
    png: Annotated[
        Path | None, typer.Option(help="Also write the figures as PNG files into a folder.")
    ] = None,
    redo: Redo = False,
    as_json: Json = False,
    changes: Changes = (),
) -> None:
    """Write the page: the frontier, a slider over the limit, insights, checks, and the networks of a run.

    With --limit, also the best network under that limit: then, or with --out, a page of your own.
    """
    if out is not None and out.suffix.lower() not in (".html", ".htm"):
        raise FileError(f"cannot write a page to {out}: name a file that ends in .html.")
    if is_run(folder) and not (out or limit or png):
        Call(REPORT, folder, changes, redo, False, as_json).do()
        return
    if is_run(folder) and out is None:
        raise ConfigError("a page of your own goes to a file of its own: say which with --out FILE.html.")
    from binas.run.config import FILE, load_config
    from binas.run.folder import load
    from binas.run.run import Run
    from binas.tasks.report import report_of

    config = load_config(folder / FILE if is_run(folder) else None, changes)
    tables = load(folder)
    run = Run(folder, config, tables.space) if is_run(folder) else None
    data = report_of(tables, run, config.part(ReportSettings), limit or [], views.command_line())
    views.show_report(data, out or folder / PAGE, png, as_json)
