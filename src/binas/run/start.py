"""Starting a run, or giving one another configuration: everything is checked before anything is written."""

from __future__ import annotations

from pathlib import Path

from binas.base import lock
from binas.base.errors import FileError
from binas.base.files import exists
from binas.base.progress import Progress
from binas.run.config import FILE, RunConfig, save_config
from binas.run.engine import advance, clear_expensive, refuse_expensive
from binas.run.limits import check_questions
from binas.run.run import SPACE, Run, open_run
from binas.run.steps import STEPS, TRAINING
from binas.space.files import load_space, save_space
from binas.supernet.network import Supernet
from binas.training.phases import check_training


def create_run(folder: Path, config: RunConfig, redo: bool = False, progress: Progress | None = None) -> Run:
    """Start a run in ``folder``, or give the one there this configuration.

    A change that makes finished training stale is refused, unless ``redo`` allows it; then its weights are set aside.
    """
    run = Run(folder, config, load_space(config.space), redo)
    old = open_run(folder) if exists(folder / FILE) else None
    if old is None and exists(folder):
        _check_free(folder)
    check_questions(config, run.space)  # all checks before anything is written
    if redo or old is None or _trains_otherwise(old, run):
        check_training(config.training, run.data)
    if not redo:
        refuse_expensive(run, STEPS)
    own = config.model_copy(update={"space": SPACE})
    with lock.locked(folder):
        if redo:
            clear_expensive(run, STEPS, progress or Progress())
        save_space(run.space, folder / SPACE)
        save_config(own, folder / FILE)  # last: with it the folder is a run
    return run


def _trains_otherwise(old: Run, new: Run) -> bool:
    """Whether anything that training depends on has changed."""
    parts = {"data", "training"}
    was, now = (run.config.model_dump(include=parts) for run in (old, new))
    return was != now or old.space.fingerprint != new.space.fingerprint


def _check_free(folder: Path) -> None:
    """Refuse a folder that holds anything but the beginning of a run that was killed."""
    if not folder.is_dir():
        raise FileError(f"{folder} is a file. Give a new or empty folder as --out.")
    own = (lock.FILE, SPACE, f".{SPACE}.", f".{FILE}.")
    others = [path.name for path in folder.iterdir() if not path.name.startswith(own)]
    if others:
        raise FileError(f"{folder} holds other files and no {FILE}. Give an empty or new folder as --out.")


def train(run: Run, progress: Progress | None = None) -> Supernet:
    """The run's first steps: the heaviest network, then the supernet; what is finished is not done again."""
    advance(run, TRAINING, progress)
    return run.supernet()
