"""Starting a run, or giving one another configuration: everything is checked before anything is written."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from time import monotonic
from typing import Any, TypeVar

from binas.base import lock
from binas.base.errors import ConfigError, FileError
from binas.base.files import exists, is_folder, listed
from binas.base.identity import flattened
from binas.base.launch import refuse_launch
from binas.base.progress import Progress
from binas.base.times import parse_duration
from binas.run.config import FILE, Change, RunConfig, given_settings, load_config, save_config
from binas.run.engine import advance, clear_expensive, judge, redo, refuse_expensive
from binas.run.plan import FILE as PLAN, Budget, plan_run
from binas.run.run import Run, open_run
from binas.search.limits import Limit, parse_limits
from binas.space.files import load_space
from binas.tasks import all_steps, all_tasks
from binas.tasks._base import Task
from binas.tasks.artefacts import COSTS, SPACE, START
from binas.tasks.search import check_questions
from binas.training.config import FinetuneSettings, Phase, TrainSettings

Kind = TypeVar("Kind", bound=Phase)


def run(
    config: str | Path | None = None,
    out: str | Path = "runs/run",
    *,
    redo: bool = False,
    progress: Progress | None = None,
    time: str | None = None,
    **changes: Mapping[str, Any] | Any,
) -> Run:
    """Everything from images to fine-tuned networks within the limits; what is done already is not done again.

    ``changes`` are parts of the configuration, such as ``search={"limits": ["latency=40%"]}``. With a ``time`` such as
    ``2h`` what they and the file leave open is planned to fill it. Interrupt it at any time; the same call resumes.
    """
    refuse_launch("run", f"run {config or 'CONFIG'} --out {out}")
    named = [(name, value) for name, value in flattened(changes).items()]
    budget = budget_of(time, None if config is None else Path(config), named)
    started = create_run(Path(out), configure(Path(out), config, named), redo, progress, budget=budget)
    return finish(started, progress)[0]


def configure(out: Path, config: str | Path | None = None, changes: Iterable[Change] = ()) -> RunConfig:
    """The configuration given, or else that of the run in ``out``, changed by ``changes``."""
    own = out / FILE
    path = Path(config) if config is not None else own if exists(own) else None
    return load_config(path, changes)


def budget_of(text: str | None, config: Path | None = None, changes: Iterable[Change] = ()) -> Budget | None:
    """The time as it is written, with the settings that a file and ``changes`` give; None without a time."""
    return None if text is None else Budget(parse_duration(text), given_settings(config, changes))


def create_run(
    folder: Path,
    config: RunConfig,
    redo: bool = False,
    progress: Progress | None = None,
    tasks: Iterable[Task] | None = None,
    budget: Budget | None = None,
) -> Run:
    """Start a run in ``folder``, or give the one there this configuration, with what fills a time ``budget``.

    A change that makes finished training stale is refused, unless ``redo`` allows it; then its weights are set aside.
    What would fail later in any of ``tasks`` (all of them unless given) is refused now.
    """
    started, progress = monotonic(), progress or Progress()
    old = open_run(folder) if exists(folder / FILE) else None
    config = with_shards(config, None if old is None else old.config)
    new = Run(folder, config, load_space(config.space), redo)
    if old is None and exists(folder):
        _check_free(folder)
    check_questions(new)  # all checks before anything is written
    if redo or old is None or _trains_otherwise(old, new):
        from binas.training.phases import check_training

        check_training(new.settings(TrainSettings), new.settings(FinetuneSettings), new.data)
    for task in all_tasks().values() if tasks is None else tasks:
        _check_task(new, task)
    plan = None
    if budget is not None:
        new, plan = plan_run(new, None if redo else old, budget, started, progress)
    steps = all_steps()
    if not redo:
        refuse_expensive(new, steps)
    with lock.locked(folder):
        if redo:
            clear_expensive(new, steps, progress)
        SPACE.write(new, new.space)
        if plan is not None:
            plan.save(folder / PLAN)
        save_config(
            new.config.model_copy(update={"space": SPACE.file}), folder / FILE
        )  # last: with it the folder is a run
    return new


def with_shards(config: RunConfig, old: RunConfig | None) -> RunConfig:
    """The configuration with the shards of every phase written down: given, those of the run before, or what suits here.

    Weights depend on them, so they must not change when a run goes on elsewhere.
    """

    def filled(phase: Kind, before: Kind | None) -> Kind:
        if phase.shards is not None:
            return phase
        if before is not None:
            return phase.model_copy(update={"shards": before.shards})
        from binas.training.team import suitable_shards

        return phase.model_copy(update={"shards": suitable_shards(train, phase.batch_size)})

    train, tune = config.part(TrainSettings), config.part(FinetuneSettings)
    then = None if old is None else old.part(TrainSettings)
    phases = {
        "heaviest": filled(train.heaviest, None if then is None else then.heaviest),
        "supernet": filled(train.supernet, None if then is None else then.supernet),
    }
    tuning = filled(tune, None if old is None else old.part(FinetuneSettings))
    return config.model_copy(update={"train": train.model_copy(update=phases), "finetune": tuning})


def _trains_otherwise(old: Run, new: Run) -> bool:
    """Whether anything that training depends on has changed."""
    parts = {"data", "train", "finetune"}
    was, now = (item.config.model_dump(include=parts) for item in (old, new))
    return was != now or old.space.fingerprint != new.space.fingerprint


def _check_free(folder: Path) -> None:
    """Refuse a folder that holds anything but the beginning of a run that was killed."""
    if not is_folder(folder):
        raise FileError(f"{folder} is a file. Give a new or empty folder as --out.")
    own = (
        lock.FILE,
        *(name for file in (SPACE.file, PLAN, START) for name in (file, f".{file}.")),
        f".{FILE}.",
    )
    others = [path.name for path in listed(folder) if not path.name.startswith(own)]
    if others:
        raise FileError(f"{folder} holds other files and no {FILE}. Give an empty or new folder as --out.")


def finish(started: Run, progress: Progress | None = None) -> tuple[Run, list[str]]:
    """Do all that is not done; the run, and the names of the steps that were done now."""
    for task in all_tasks().values():
        _check_task(started, task)  # now, not after hours of training
    started = around_limits(started, progress)
    return started, advance(started, all_steps(), progress)


def around_limits(started: Run, progress: Progress | None = None) -> Run:
    """A run that makes a given model smaller: measure the device, refuse limits that nothing keeps, and draw around them.

    Networks drawn uniformly would ruin what the model has learned. Where they are drawn does not change with later limits,
    so that what is trained stays. Any other run is left as it is.
    """
    from binas.contributions.strata import share_of_macs
    from binas.tasks.measure import MEASURE

    if started.settings(TrainSettings).start is None:
        return started
    run, _ = do_task(started.folder, MEASURE, progress=progress)
    limits, costs = check_kept(run), COSTS.read(run).costs
    if run.settings(TrainSettings).supernet.around:
        return started
    shares = [share_of_macs(run.space, costs[limit.cost], limit.value) for limit in limits]
    around = sorted({round(share, 2) for share in shares}, reverse=True)
    settings = [("train.supernet.around", around), ("estimate.around", around), ("sample.around", around)]
    return create_run(run.folder, own_config(run.folder, settings), progress=progress)


def check_kept(run: Run) -> list[Limit]:
    """The upper limits, none above what the given model costs; one that no network keeps by the table is refused."""
    costs, found = COSTS.read(run).costs, list[Limit]()
    for question in run.questions:
        for limit in parse_limits(question, run.space, costs):
            least, most = costs[limit.cost].range(run.space)
            if not limit.lower and limit.value < least:
                unit = costs[limit.cost].unit.name
                raise ConfigError(
                    f"no network keeps {question}: the smallest that can be made of this model costs {least:.4g} "
                    f"{unit}, the limit is {limit.value:.4g} {unit}, the model itself costs {most:.4g} {unit}. "
                    "Nothing was trained."
                )
            if not limit.lower:
                found.append(replace(limit, value=min(limit.value, most)))
    return found


def own_config(folder: Path, changes: Iterable[Change] = ()) -> RunConfig:
    """The configuration of the run in ``folder``, with its own copy of the space, changed."""
    config = load_config(folder / FILE, changes)
    return config.model_copy(update={"space": str((folder / SPACE.file).absolute())})


def do_task(
    folder: Path,
    task: Task,
    changes: Iterable[Change] = (),
    again: bool = False,
    progress: Progress | None = None,
) -> tuple[Run, list[str]]:
    """Do one task of a run, its settings changed as ``binas run --set`` would; the steps that were done now.

    With ``again`` what is there of the task is set aside first.
    """
    opened = open_run(folder)
    config = own_config(folder, changes)
    if config != opened.config:
        opened = create_run(folder, config, again, progress, [task])
    _check_task(opened, task)
    if again:
        with lock.locked(folder):
            redo(opened, task.steps, progress or Progress())
    return opened, advance(opened, task.steps, progress)


def ask(
    folder: Path, task: Task, out: Path, changes: Iterable[Change] = (), progress: Progress | None = None
) -> Any:
    """A question of one's own: the work of a task with settings changed for once, its result written to ``out``."""
    opened, progress = open_run(folder, changes), progress or Progress()
    if task.ask is None:
        raise ConfigError(f"`binas {task.name}` has no --out: what it makes belongs to the run.")
    check_outside(folder, task, out)
    task.check(opened)
    with progress.during(task.name):
        return task.ask(opened, out, progress)


def check_outside(folder: Path, task: Task, out: Path | None) -> None:
    """Refuse to write the answer to a question of one's own over what the task made in the run."""
    own = (path.resolve() for step in task.steps for name in step.files for path in listed(folder, name))
    if out is not None and exists(folder / FILE) and out.resolve() in own:
        raise FileError(f"{out} belongs to the run; give --out a file of its own. Nothing was changed.")


def _check_task(started: Run, task: Task) -> None:
    if any(judge(started, step).word != "done" for step in task.steps):
        task.check(started)
