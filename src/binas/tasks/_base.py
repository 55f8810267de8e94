"""What a task is: one thing a run does, declared once.

Configuration, command line, ``binas init``, ``binas status`` and the reference page are views of this declaration: a
task's name is its part of the configuration, its command and its module. Modules of tasks import nothing heavy when they
are loaded; the work does.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from binas.base.settings import Settings
from binas.base.times import Seconds
from binas.tasks.outlook import Amount, SecondsOf

if TYPE_CHECKING:
    from binas.base.progress import Progress
    from binas.run.run import Run

AUTO = "auto"  # an estimator, or a solver, that is chosen by what is known


@dataclass(frozen=True)
class Step:
    """One piece of work with a record of its own: it reads what ``after`` wrote and ``settings``, and writes ``files``.

    ``settings`` are dotted names of settings, or of parts of the configuration; ``facts`` what else it depends on;
    ``order`` names steps that must be done first and count through ``facts`` only. ``files`` are patterns within the
    folder, ``scratch`` what the step leaves there when interrupted, ``kept`` what it uses again until it is redone on
    request. An ``expensive`` step is not done again unasked; one that ``sorts`` decides itself which of its old files it
    can use. ``easing`` are settings that may be lowered when its training has exploded: it then goes on. ``seconds`` says
    how long it will take, ``amounts`` which settings that grows with. ``version`` is raised when the code makes something
    else of the same inputs.
    """

    name: str
    does: str
    work: Callable[[Run, Progress], None]
    files: tuple[str, ...]
    settings: tuple[str, ...] = ()
    after: tuple[str, ...] = ()
    order: tuple[str, ...] = ()
    facts: Callable[[Run], Mapping[str, Any]] = lambda _: {}
    scratch: tuple[str, ...] = ()
    kept: tuple[str, ...] = ()
    expensive: bool = False
    sorts: bool = False
    easing: tuple[str, ...] = ()
    seconds: SecondsOf = lambda _: Seconds()
    amounts: tuple[Amount, ...] = ()
    version: int = 1


@dataclass(frozen=True)
class Task:
    """One thing a run does: its settings, its steps, and how a question of one's own is asked.

    ``settings`` is the only declaration of what can be set, with default, bounds and description. ``ask`` does the work
    with the settings of the run it is given and writes the result to a file outside the run, which it leaves as it
    is. ``check`` raises an error for what would fail after hours of other work.
    """

    name: str
    settings: type[Settings]
    steps: tuple[Step, ...]
    ask: Callable[[Run, Path, Progress], Any] | None = None
    check: Callable[[Run], None] = lambda _: None
    examples: tuple[str, ...] = ()

    @property
    def does(self) -> str:
        """What it is for, in one sentence."""
        return (self.settings.__doc__ or self.name).strip().splitlines()[0]
