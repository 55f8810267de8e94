"""The training steps of a run: the heaviest network, the supernet (paper appendix "Overview")."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from binas.run.progress import TrainingProgress
from binas.run.teller import Teller
from binas.training.loop import make_accelerator
from binas.training.phases import Bench, train_heaviest, train_supernet
from binas.training.reporting import Reporter

if TYPE_CHECKING:
    from binas.run.run import Run


def heaviest_step(run: Run, teller: Teller) -> None:
    """Phase 1."""
    train_heaviest(run.space, _bench(run, teller))


def supernet_step(run: Run, teller: Teller) -> None:
    """Phase 2, from the weights of phase 1."""
    bench = _bench(run, teller)
    train_supernet(train_heaviest(run.space, bench), bench)


def meet(run: Run) -> None:
    """Wait for the other processes of a launcher, so that all find the folder as the first has prepared it."""
    if os.environ.get("WORLD_SIZE", "1") != "1":
        make_accelerator(run.config.training).wait_for_everyone()


def help_training(run: Run) -> None:
    """What every process but the first does: both phases, each in step with the others; it writes nothing."""
    meet(run)
    supernet_step(run, Teller())


def _bench(run: Run, teller: Teller) -> Bench:
    accelerator = make_accelerator(run.config.training)
    first = accelerator.is_main_process
    reporter = TrainingProgress(run.folder, teller) if first else Reporter()
    return Bench(run.data, run.config.training, run.folder, accelerator, reporter)
