"""A command in several processes of a launcher: the first one runs it, the others do what it shares out."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from datetime import timedelta
from typing import NoReturn

import torch

from binas.base.errors import WorkerError
from binas.base.launch import Launch
from binas.base.ranks import (
    COMING_SECONDS,
    LOOK_SECONDS,
    Rank,
    dismiss_all,
    end_with_agent,
    follow,
    gather,
    hold_signals,
    say_late,
)
from binas.base.workers import enlist
from binas.training.team import Place, keep_store, stay_on_this_machine


def help_out(launch: Launch) -> NoReturn:
    """What every process but the first does, until the command has ended."""
    hold_signals()
    end_with_agent(launch)
    _take_device(launch)
    store = _meet(launch)
    try:
        follow(store, launch)
    except RuntimeError as error:  # of the store: the first process left before it said where it is
        raise _unmet(launch, error) from error


def lead(launch: Launch, ending: ExitStack) -> None:
    """In the first process: until ``ending`` work is shared with the others; then they end with its exit code."""
    end_with_agent(launch)
    _take_device(launch)
    ranks: list[Rank] = []
    ending.enter_context(_dismissing(ranks))  # first: those who came must not wait for one who never does
    gather(_meet(launch), launch, ranks)
    enlist(ranks)


@contextmanager
def _dismissing(ranks: list[Rank]) -> Iterator[None]:
    """Let those who have come by then end as this process does."""
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
    """The store of the launcher, or that of the first process where the launcher has none.

    Who connects to it hears no signal until it is there, so a thread does it.
    """
    met: list[Place | Exception] = []
    meeting = threading.Thread(target=lambda: met.append(_store(launch)), daemon=True)
    meeting.start()
    with say_late(lambda: _waiting(launch)):
        while meeting.is_alive():
            meeting.join(LOOK_SECONDS)
    store = met.pop()
    if isinstance(store, Exception):
        raise _unmet(launch, store) from store
    keep_store(store)
    if launch.together == launch.size:
        stay_on_this_machine()
    return store


def _store(launch: Launch) -> Place | Exception:
    """Where this process is told to look, or why it is not there.

    As a store of one process: it would wait for all others without a word, which :func:`gather` does better.
    """
    try:
        places = torch.distributed.rendezvous(  # type: ignore[attr-defined]  # it does export it
            "env://", launch.rank, 1, timeout=timedelta(seconds=COMING_SECONDS)
        )
        return next(places)[0]
    except Exception as error:
        return error


def _waiting(launch: Launch) -> str:
    """What is said when nobody answers."""
    if launch.rank > 1:  # the first two are enough to say it
        return ""
    return (
        f"process {launch.rank} of this job still waits for an answer at {launch.address}:{launch.port}, where the first "
        "process should be."
    )


def _unmet(launch: Launch, error: Exception) -> WorkerError:
    reason = (str(error).splitlines() or [type(error).__name__])[0]
    return WorkerError(
        f"the processes of this job cannot meet at {launch.address}:{launch.port}: {reason}. Check that this is an address "
        "of the first process's machine (MASTER_ADDR) with a free port (MASTER_PORT), and what the first one says."
    )
