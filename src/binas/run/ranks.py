"""A command in several processes of a launcher: the first one runs it, the others do what it shares out."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from typing import NoReturn

import torch

from binas.base.errors import WorkerError
from binas.base.launch import Launch
from binas.base.ranks import COMING_SECONDS, dismiss_all, follow, gather, hold_signals
from binas.base.workers import enlist
from binas.training.team import Place, keep_store, stay_on_this_machine


def help_out(launch: Launch) -> NoReturn:
    """What every process but the first does, until the command has ended."""
    hold_signals()
    _take_device(launch)
    store = _meet(launch)
    try:
        follow(store, launch)
    except RuntimeError as error:  # of the store: the first process left before it said where it is
        raise _unmet(launch, error) from error


@contextmanager
def leading(launch: Launch) -> Iterator[None]:
    """In the first process: work is shared with the others, and they end with the exit code of this one."""
    _take_device(launch)
    ranks = gather(_meet(launch), launch)
    enlist(ranks)
    code = 1
    try:
        yield
        code = 0
    except SystemExit as end:
        code = end.code if isinstance(end.code, int) else 0 if end.code is None else 1
        raise
    finally:
        enlist([])
        dismiss_all(ranks, code)


def _take_device(launch: Launch) -> None:
    """One GPU for each process of a machine."""
    if torch.cuda.is_available():
        torch.cuda.set_device(launch.local % torch.cuda.device_count())


def _meet(launch: Launch) -> Place:
    """The store of the launcher, or that of the first process where the launcher has none."""
    places = torch.distributed.rendezvous(  # type: ignore[attr-defined]  # it does export it
        "env://", launch.rank, launch.size, timeout=timedelta(seconds=COMING_SECONDS)
    )
    try:
        store: Place = next(places)[0]
    except RuntimeError as error:
        raise _unmet(launch, error) from error
    keep_store(store)
    if launch.together == launch.size:
        stay_on_this_machine()
    return store


def _unmet(launch: Launch, error: Exception) -> WorkerError:
    reason = (str(error).splitlines() or [type(error).__name__])[0]
    return WorkerError(
        f"the processes of this job cannot meet at {launch.address}:{launch.port}: {reason}. Check that this is an address "
        "of the first process's machine (MASTER_ADDR) with a free port (MASTER_PORT), and what the first one says."
    )
