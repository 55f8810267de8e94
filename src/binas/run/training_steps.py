"""The training steps of a run: the heaviest network, the supernet (paper appendix "Overview")."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from binas.base.progress import Progress
from binas.training.loop import make_accelerator
from binas.training.phases import Bench, train_heaviest, train_supernet
from binas.training.reporting import Reporter

if TYPE_CHECKING:
    from binas.run.run import Run


def heaviest_step(run: Run, progress: Progress) -> None:
    """Phase 1."""
    train_heaviest(run.space, _bench(run, progress))


def supernet_step(run: Run, progress: Progress) -> None:
    """Phase 2, from the weights of phase 1."""
    bench = _bench(run, progress)
    train_supernet(train_heaviest(run.space, bench), bench)


def meet(run: Run) -> None:
    """Wait for the other processes of a launcher, so that all find the folder as the first has prepared it."""
    if os.environ.get("WORLD_SIZE", "1") != "1":
        make_accelerator(run.config.training).wait_for_everyone()


def help_training(run: Run) -> None:
    """What every process but the first does: both phases, each in step with the others; it writes nothing."""
    meet(run)
    supernet_step(run, Progress())


def _bench(run: Run, progress: Progress) -> Bench:
    accelerator = make_accelerator(run.config.training)
    first = accelerator.is_main_process
    reporter = Reporter(run.folder, progress) if first else Reporter()
    return Bench(run.data, run.config.training, run.folder, accelerator, reporter)
