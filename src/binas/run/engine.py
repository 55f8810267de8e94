"""The loop over the steps of a run: what is done stays, what is stale is set aside and done again, the rest is done.

Kill it anywhere: a step that was started goes on from its own checkpoints and journals, one that was finished has a
record. What is done again is moved to ``RUN/old/`` first, and said.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any, Literal

from binas.base.errors import ConfigError, ExplodedError, FileError
from binas.base.files import exists, is_unfinished, listed, remove
from binas.base.identity import changes, identity_of, only_lower
from binas.base.lock import locked
from binas.base.progress import Progress, Several
from binas.costs.machine import describe_machine
from binas.run.config import FILE, load_config
from binas.run.log import log_event, now
from binas.run.old import (
    OLD,
    bring_back,
    drop_emptied,
    find_old,
    half_moved,
    keep_figures_of,
    keep_in,
    limit_old,
    new_place,
)
from binas.run.plan import expectation
from binas.run.records import (
    FOLDER as RECORDS,
    Record,
    files_of as _files_of,
    inputs_of,
    missing,
    outcome,
    read_record,
    write_record,
    written_files,
)
from binas.tasks._base import Step
from binas.training.config import TrainSettings

if TYPE_CHECKING:
    from binas.run.run import Run

LOG_SECONDS = 10.0  # between two lines about how far a step is


@dataclass(frozen=True)
class State:
    """How a step stands; ``reasons`` say why it is stale or waits."""

    step: Step
    word: Literal["done", "started", "stale", "to do"]
    record: Record | None = None
    inputs: dict[str, Any] | None = None
    reasons: tuple[str, ...] = ()


def judge(run: Run, step: Step) -> State:
    """Compare a step's record with its inputs and files as they are now."""
    record = read_record(run.folder, step.name)
    if record is None:
        return State(step, "to do")
    inputs = inputs_of(run, step)
    reasons = [] if _eased(step, record, inputs) else _changes(record.inputs, inputs)
    if record.state == "started":
        return State(step, "stale" if reasons else "started", record, inputs, tuple(reasons))
    reasons += [f"{name} is missing" for name in missing(run.folder, record)]
    return State(step, "stale" if reasons else "done", record, inputs, tuple(reasons))


def _changes(was: dict[str, Any], now: dict[str, Any]) -> list[str]:
    """What differs between two sets of inputs, for people; digests of files say nothing to them."""
    files = [key for key in dict.fromkeys([*was, *now]) if key.startswith(_files_of(""))]
    changed = [f"{key} changed" for key in files if was.get(key) != now.get(key)]
    plain = [{key: value for key, value in item.items() if key not in files} for item in (was, now)]
    return changes(*plain) + changed


def _eased(step: Step, record: Record, inputs: dict[str, Any]) -> bool:
    """Whether training that exploded is to go on more gently, as its error has advised."""
    return record.exploded and only_lower(record.inputs, inputs, step.easing)


def states(run: Run, steps: Sequence[Step]) -> list[State]:
    """How every step stands, without doing anything; what follows a step that is not done waits for it."""
    found: dict[str, State] = {}
    for step in steps:
        state = judge(run, step)
        before = (*step.after, *step.order)
        waits = [name for name in before if name in found and found[name].word != "done"]
        if waits and state.record is not None:
            own = [reason for reason in state.reasons if not reason.startswith(_files_of(""))]
            reasons = (*own, f"{' and '.join(waits)} first")
            state = State(step, "stale", state.record, state.inputs, reasons)
        found[step.name] = state
    return list(found.values())


def refuse_expensive(run: Run, steps: Sequence[Step]) -> None:
    """Raise an error if work that took long would have to be done again; what ``old/`` has need not be."""
    back: dict[str, str | None] = {}  # what files of steps before will be, where those are brought back
    for step in steps:
        record = read_record(run.folder, step.name) if step.expensive else None
        if record is None:
            continue
        _refuse_lost(run.folder, step, record)
        if not _files(run.folder, step):
            continue  # started, and nothing to lose yet
        inputs = {
            **inputs_of(run, step),
            **{key: back[key] for key in map(_files_of, step.after) if key in back},
        }
        changed = [] if _eased(step, record, inputs) else _changes(record.inputs, inputs)
        known = find_old(run.folder, step.name, identity_of(inputs)) if changed else None
        if known is not None:
            back[_files_of(step.name)] = outcome(*known)
        elif changed:
            took = f", which took {record.seconds:.0f} s," if record.seconds else ""
            raise ConfigError(
                f"{run.folder} was started with other settings: {'; '.join(changed[:5])}. The step '{step.name}'{took} "
                f"would have to be done again. Allow it with --redo (the old weights are kept in {OLD}/), give another "
                "--out, or go on with the settings it has. Nothing was changed."
            )


def _refuse_lost(folder: Path, step: Step, record: Record) -> None:
    """Raise an error if files of finished expensive work are gone: they may be on a disk that is not mounted."""
    lost = missing(folder, record) if step.expensive else []
    if lost:
        raise FileError(
            f"{folder / lost[0]} is missing; the step '{step.name}' wrote it in {record.seconds:.0f} s. Bring it back (is "
            "the disk mounted, was the folder copied whole?), or allow the step to be done again with --redo. What is there "
            "was left as it is."
        )


def clear_expensive(run: Run, steps: Sequence[Step], progress: Progress) -> None:
    """Set aside the work of expensive steps that is stale, so that several processes find the folder alike.

    What was made before of the same inputs is brought back. What follows a step that is done again only because its
    files are gone stays: they may come out the same.
    """
    otherwise: set[str] = set()  # steps whose files will not come out as they were
    for step in steps:
        state = judge(run, step)
        if _new_inputs(state) or otherwise.intersection(step.after):
            otherwise.add(step.name)
        lost = state.record is not None and missing(run.folder, state.record)
        if step.expensive and (lost or step.name in otherwise):
            _replace(run.folder, step, state.inputs, progress)


def _new_inputs(state: State) -> bool:
    """Whether a step was done with other inputs than it has now; files that are gone are not known to be others."""
    if state.record is None or state.inputs is None:
        return False
    was, now = state.record.inputs, state.inputs
    gone = {key for key, value in now.items() if value is None and key.startswith(_files_of(""))}
    return any(was.get(key) != now.get(key) for key in {*was, *now} - gone)


def advance(run: Run, steps: Sequence[Step], progress: Progress | None = None) -> list[str]:
    """Do what is not done of ``steps``, in order; the names of those that were done now."""
    done: list[str] = []
    with locked(run.folder):
        _sweep(run.folder)
        _check_current(run)
        with _as_one(run, steps, progress or Progress()) as shown:
            for step in steps:
                state = judge(run, step)
                if state.word != "done":
                    if state.record is not None:
                        _refuse_lost(run.folder, step, state.record)
                    _check_before(run, step)
                    if _do(run, state, shown):
                        done.append(step.name)
                    limit_old(run.folder, run.settings(TrainSettings).old_gib, shown)
    return done


def _sweep(folder: Path) -> None:
    """Remove what processes left that were killed while they wrote or moved files; nobody else works in the folder now."""
    for path in listed(folder, "**/.*"):
        if is_unfinished(path):
            remove(path)
    drop_emptied(folder)


@contextmanager
def _as_one(run: Run, steps: Sequence[Step], progress: Progress) -> Iterator[Progress]:
    """One progress of all steps that are to be done, by the time each is expected to take."""
    left = [state.step for state in states(run, steps) if state.word != "done"]
    if len(left) < 2:
        yield progress
        return
    with progress.during(run.folder.absolute().name):
        yield Several(progress, expectation(run, left))


def _check_current(run: Run) -> None:
    """Refuse to work by a configuration that another process has replaced meanwhile."""
    stored = load_config(run.folder / FILE)
    if stored.model_dump(exclude={"space"}) != run.config.model_dump(exclude={"space"}):
        raise ConfigError(f"another process has changed {run.folder / FILE}. Start again.")


def _check_before(run: Run, step: Step) -> None:
    records = {name: read_record(run.folder, name) for name in (*step.after, *step.order)}
    lacking = [name for name, record in records.items() if outcome(run.folder, record) is None]
    if lacking:
        raise ConfigError(
            f"the step '{step.name}' needs {' and '.join(lacking)} first. `binas run --out {run.folder}` does all steps."
        )


def _do(run: Run, state: State, progress: Progress) -> bool:
    """One step, from its beginning or from where it was interrupted, to its record; False where it was brought back."""
    step, record = state.step, state.record
    inputs = inputs_of(run, step) if state.inputs is None else state.inputs
    unrecorded = record is None and step.expensive  # the step checks whether the weights there are its own
    resumes = unrecorded or state.word == "started"
    if not step.sorts and _returned(run.folder, step, state, inputs, resumes, progress):
        return False
    goes_on = record if record and state.word == "started" else None
    spent = goes_on.seconds if goes_on else 0.0
    begun = Record(step.name, "started", identity_of(inputs), inputs, now(), spent)
    write_record(run.folder, begun)
    log_event(run.folder, "started", step.name, identity=begun.identity)
    start = time.perf_counter()
    with _watched(run.folder, begun, progress) as watched:
        step.work(run, watched)
    seconds, files = spent + time.perf_counter() - start, written_files(run.folder, step)
    done = replace(
        begun, state="finished", time=now(), seconds=seconds, files=files, machine=describe_machine()
    )
    write_record(run.folder, done)
    log_event(run.folder, "finished", step.name, seconds=round(seconds, 3))
    return True


@contextmanager
def _watched(folder: Path, begun: Record, progress: Progress) -> Iterator[Progress]:
    """The progress of a step; how it ends is logged, and the time worked until an interruption is kept."""
    start = time.perf_counter()
    progress.begin(begun.step)
    try:
        yield _Logged(folder, begun.step, progress)
    except BaseException as error:
        spent = begun.seconds + time.perf_counter() - start
        why = str(error) or type(error).__name__
        with suppress(FileError):  # on a disk that fails, what failed first is what counts
            exploded = isinstance(error, ExplodedError)
            write_record(folder, replace(begun, seconds=spent, exploded=exploded))
            log_event(folder, "failed", begun.step, seconds=round(spent, 3), why=why)
        raise
    finally:
        progress.end()


class _Logged(Progress):
    """Passes on what a step tells, and now and then logs how far it is."""

    def __init__(self, folder: Path, step: str, progress: Progress) -> None:
        self.folder, self.step, self.progress = folder, step, progress
        self.start = self.last = time.perf_counter()
        self.first: float | None = None

    def show(self, done: float, doing: str = "", left: float | None = None) -> None:
        self.progress.show(done, doing, left)
        clock = time.perf_counter()
        self.first = done if self.first is None else self.first
        if clock - self.last >= LOG_SECONDS:
            self.last = clock
            values = {"done": round(done, 4), "since": round(self.first, 4)}
            log_event(self.folder, "progress", self.step, **values, seconds=round(clock - self.start, 3))

    def say(self, text: str) -> None:
        self.progress.say(text)
        log_event(self.folder, "said", self.step, text=text)


def redo(run: Run, steps: Sequence[Step], progress: Progress) -> None:
    """Set aside all that steps left, recorded passes included, so that they are done from the beginning."""
    for step in steps:
        remove(run.folder / _record(step))  # first: what is done again on request is not brought back
        _set_aside(run.folder, step, progress, step.kept)


def _returned(
    folder: Path, step: Step, state: State, inputs: dict[str, Any], resumes: bool, progress: Progress
) -> bool:
    """Whether what a step had made of ``inputs`` is back; what is stale is set aside, a move that was cut off is ended."""
    half = half_moved(folder, step.name) if state.record is None else None
    if half is not None and half[1].identity == identity_of(inputs):
        bring_back(folder, step.name, half[0], progress)
        return True
    if half is not None:
        keep_in(folder, half[0], step.name, _files(folder, step))
    nothing = not _files(folder, step)
    return (nothing or not resumes) and _replace(folder, step, inputs if nothing else state.inputs, progress)


def _replace(folder: Path, step: Step, inputs: dict[str, Any] | None, progress: Progress) -> bool:
    """Set aside what an earlier turn of a step left; whether what one before that had made of ``inputs`` is back."""
    known = None if inputs is None else find_old(folder, step.name, identity_of(inputs))
    _set_aside(folder, step, progress)
    if known is not None:
        bring_back(folder, step.name, known[0], progress)
    return known is not None


def _set_aside(folder: Path, step: Step, progress: Progress, more: Sequence[str] = ()) -> None:
    """Move what an earlier turn of a step left to ``old/``, with its figures; the record first, if it names files."""
    files = _files(folder, step, more)
    if not files:
        return
    place = new_place(folder, step.name)
    keep_figures_of(folder, step.name, place)
    record = read_record(folder, step.name)
    own = [] if record is None else [_record(step)]
    names = [*own, *files] if record is not None and record.files else [*files, *own]
    keep_in(folder, place, step.name, names)
    progress.say(f"{step.name}: {', '.join(files)} of before moved to {place.relative_to(folder)}")


def _record(step: Step) -> str:
    return f"{RECORDS}/{step.name}.json"


def _files(folder: Path, step: Step, more: Sequence[str] = ()) -> list[str]:
    """What is there of a step in the run's folder."""
    return [name for name in (*_tops(folder, step), *more) if exists(folder / name)]


def _tops(folder: Path, step: Step) -> list[str]:
    """The files of a step in the run's folder, or the folders of its own they are in."""
    tops = dict.fromkeys(PurePosixPath(pattern).parts[0] for pattern in (*step.files, *step.scratch))
    several = {top: [path.name for path in listed(folder, top)] for top in tops if "*" in top}
    return [name for top in tops for name in several.get(top, [top])]
