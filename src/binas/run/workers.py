"""Work of a run in several processes of one thread or GPU each: pieces that need nothing of each other, or one training.

What is found is the same whatever the number of processes: those of this machine (``train.processes``), or those of a
launcher on any number of machines.
"""

from __future__ import annotations

import json
import queue
import tempfile
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import asdict
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pydantic import TypeAdapter

from binas.base.plugins import import_name
from binas.base.progress import Progress
from binas.base.workers import Work, Worker, hired, launched, name_of, new_session, share_out
from binas.run.config import config_model, values_of
from binas.run.run import Run
from binas.space.files import load_space
from binas.tasks.artefacts import SPACE
from binas.training.config import TrainSettings

if TYPE_CHECKING:
    from binas.training.team import Team

READY = "ready"
LOOK_SECONDS = 0.05  # between two looks whether all have met
BLAME_SECONDS = 10.0  # until a worker that left a training has said why


def map_shared(
    run: Run,
    make: Callable[..., Work],
    given: Sequence[Any],
    items: Sequence[Any],
    progress: Progress | None = None,
    name: str = "part",
) -> Iterator[Any]:
    """``make(run, *given)(item, progress)`` of every item, in their order, in as many processes as the run may use.

    ``make`` is a function of a module; it opens what the work needs, once in each process. ``given``, items and results
    are values of JSON or arrays of NumPy. ``name`` is what a piece is called, such as "network".
    """
    from binas.training.team import one_thread, processes_of

    processes, told = min(processes_of(run.settings(TrainSettings)), len(items)), progress or Progress()
    if processes > 1:
        yield from share_out(_make, [name_of(make), *_address(run), *given], items, processes, told, name)
        return
    with one_thread():
        work = make(run, *given)
        for number, item in enumerate(items):
            yield work(item, told.part(number, len(items), f"{name} {number + 1} of {len(items)}"))


def train_shared(
    run: Run,
    work: Callable[..., Any],
    given: Sequence[Any] = (),
    shards: int | None = None,
    progress: Progress | None = None,
) -> Any:
    """What ``work(run, team, progress, *given)`` returns in the first process of the team that trains one network.

    All its processes do the same ``work``, a function of a module; there are at most as many as shards.
    """
    from binas.training.team import Team, one_thread, processes_of

    told, settings = progress or Progress(), run.settings(TrainSettings)
    size = min(processes_of(settings), shards or 1)
    if launched() > size:
        told.say(
            f"{launched()} processes were launched, but the batches of this training have {shards or 1} shards (written "
            f"down when the run began), so {size} of them train it. --set train.heaviest.shards={launched()}, and the same "
            "of train.supernet and finetune, trains anew with all of them (--redo)."
        )
    with one_thread():
        if size == 1:
            return work(run, Team(), told, *given)
        with hired(size - 1) as workers, tempfile.TemporaryDirectory(prefix="binas-") as place:
            meeting = str(Path(place) / "meeting")
            for rank, worker in enumerate(workers, 1):
                worker.ask(
                    new_session(), _help, [name_of(work), *_address(run), *given], [meeting, rank, size]
                )
            return _lead(workers, meeting, settings, lambda team: work(run, team, told, *given))


def _lead(workers: list[Worker], meeting: str, settings: TrainSettings, work: Callable[[Team], Any]) -> Any:
    """Do the first process's part, together with workers that were asked for theirs."""
    from binas.training.team import joined, meeting_place

    size = 1 + len(workers)
    for _ in workers:
        workers[0].heard()  # ready, or an error
    try:
        with _met(workers, joined(meeting_place(meeting, size), 0, size, settings)) as team:
            result = work(team)
    except RuntimeError:  # the others cannot be reached: the one that left knows why
        try:
            while True:
                workers[0].heard(BLAME_SECONDS)
        except queue.Empty:
            pass
        raise
    for _ in workers:
        workers[0].heard()
    return result


@contextmanager
def _met(workers: list[Worker], meeting: AbstractContextManager[Team]) -> Iterator[Team]:
    """Take part in a meeting; one of the workers that dies before it is there is an error at once.

    Who waits for the others listens to nothing else, for as long as the team's longest wait, so a thread does it.
    """
    met: queue.SimpleQueue[Team | BaseException] = queue.SimpleQueue()

    def enter() -> None:
        try:
            met.put(meeting.__enter__())
        except BaseException as error:
            met.put(error)

    threading.Thread(target=enter, daemon=True).start()
    early = []  # a worker may be done before we look again
    while met.empty():
        with suppress(queue.Empty):
            early.append(workers[0].heard(LOOK_SECONDS))
    for answer in early:
        workers[0].inbox.put(answer)
    team = met.get()
    if isinstance(team, BaseException):
        raise team
    try:
        yield team
    finally:
        meeting.__exit__(None, None, None)


def _help(work: str, folder: str, config: str, known: str, *given: Any) -> Work:
    """In a worker: the part of another process of a team than the first."""
    from binas.training.team import joined, meeting_place, one_thread

    run, function = _opened(folder, config, known), import_name(work)

    def help_out(place: list[Any], progress: Progress) -> None:
        meeting, rank, size = place
        progress.say(READY)
        place_of_all = meeting_place(meeting, size)
        with one_thread(), joined(place_of_all, rank, size, run.settings(TrainSettings)) as team:
            function(run, team, Progress(), *given)

    return help_out


def _make(make: str, folder: str, config: str, known: str, *given: Any) -> Work:
    """In a worker: the work that ``make`` of a module makes."""
    from binas.training.team import one_thread

    with one_thread():
        work: Work = import_name(make)(_opened(folder, config, known), *given)

    def alone(item: Any, progress: Progress) -> Any:
        with one_thread():
            return work(item, progress)

    return alone


def _address(run: Run) -> tuple[str, str, str]:
    """All that a worker needs to open the same run: where it is, its settings, and what is known of its images."""
    checked = run.data.checked
    known = json.dumps(None if checked is None else asdict(checked))
    return str(run.folder.absolute()), json.dumps(values_of(run.config)), known


@lru_cache(maxsize=1)  # its images are read once in each worker
def _opened(folder: str, config: str, known: str) -> Run:
    from binas.data.file_images import Checked, checked_elsewhere

    settings = config_model().model_validate(json.loads(config))
    run = Run(Path(folder), settings, load_space(Path(folder) / SPACE.file))
    found = TypeAdapter(Checked | None).validate_json(known)
    with checked_elsewhere(
        found
    ):  # by the process that asks; images are found now, so that nobody waits for that later
        run.data.fingerprint()
    return run
