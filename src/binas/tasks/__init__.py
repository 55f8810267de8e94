"""The tasks of a run, in order. Third parties add theirs through the entry points ``binas.tasks``."""

from __future__ import annotations

from functools import cache

from binas.base.plugins import load_plugins
from binas.tasks._base import Step, Task
from binas.tasks.check import CHECK
from binas.tasks.compare import COMPARE
from binas.tasks.estimate import ESTIMATE
from binas.tasks.export import EXPORT
from binas.tasks.finetune import FINETUNE
from binas.tasks.measure import MEASURE
from binas.tasks.report import REPORT
from binas.tasks.sample import SAMPLE
from binas.tasks.search import SEARCH
from binas.tasks.train import TRAIN

BUILTIN = (TRAIN, MEASURE, ESTIMATE, SAMPLE, CHECK, SEARCH, FINETUNE, COMPARE, EXPORT, REPORT)


@cache
def all_tasks() -> dict[str, Task]:
    """Every task by name: ours, then those of installed packages."""
    return {**{task.name: task for task in BUILTIN}, **load_plugins("binas.tasks", Task)}


def all_steps() -> list[Step]:
    """The steps of all tasks, in order."""
    return [step for task in all_tasks().values() for step in task.steps]


__all__ = ["BUILTIN", "Step", "Task", "all_steps", "all_tasks"]
