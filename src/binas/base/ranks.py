"""Processes that a launcher started, one of them leading: the others are its workers, on any machine.

The first process runs the command; all others connect to it and do what it asks, as the workers of
:mod:`binas.base.workers` do. Where it listens, and the word that lets others in, they read from the launcher's store. A
connection that ends says at once that a process is gone: then the first one says so and ends, and with it all others.
"""

from __future__ import annotations

import json
import os
import secrets
import signal
import socket
import sys
import threading
import time
from collections.abc import Sequence
from typing import Any, NoReturn, Protocol

from binas.base.errors import ConfigError, WorkerError
from binas.base.interrupts import SIGNALS, noted
from binas.base.launch import Launch
from binas.base.workers import Answers, Worker, answer_all, read_line, write_line
from binas.version import __version__

PLACE = "binas"  # what is read in the store
COMING_SECONDS = 600.0  # until all processes must have come: machines do not start at the same time
ALARM_SECONDS = 5.0  # that the first process has to say by itself what has happened to another
TOLD_SECONDS = 1.0  # within which a launcher tells all processes to stop
GREETING_BYTES = 1000


class Store(Protocol):
    """What all processes of a launcher can read and write, such as torch's; ``get`` waits until there is something."""

    def set(self, key: str, value: str) -> None:
        """Let others read a value."""
        ...

    def get(self, key: str) -> bytes:
        """The value, once there is one."""
        ...


class Rank(Worker):
    """Another process of the launcher, as a worker of the first one."""

    def __init__(self, connection: socket.socket, number: int) -> None:
        self.number, self.present = number, True
        self.connection = connection
        self.worry: threading.Timer | None = None
        super().__init__(connection.makefile("wb"), connection.makefile("rb"))

    def alive(self) -> bool:
        """Whether it is connected."""
        return self.present

    def lost(self) -> WorkerError:
        """The error of a process that left."""
        return WorkerError(
            f"process {self.number} of this job is gone: it was killed, it crashed, or its machine cannot be reached. What "
            "was finished is kept: the same command goes on."
        )

    def end(self) -> None:
        """Let it finish what it does, and listen no more: another process cannot be had."""
        self.expected = (-1, self.inbox)

    def hear(self, answer: dict[str, Any]) -> None:
        """Pass on an answer; one that was told to stop has us told so, and an error must not be passed over."""
        if "stop" in answer:
            _stop_too(answer["stop"])
            return
        if "error" in answer and answer["session"] == self.expected[0]:
            self._worry(answer["error"][1])
        super().hear(answer)

    def gone(self) -> None:
        """It left; before it was told to, that is an error."""
        if not self.present:
            return
        self.present = False
        super().gone()
        self._worry(str(self.lost()))

    def handled(self) -> None:
        """The error of this one is being dealt with."""
        if self.worry is not None and self.present:
            self.worry.cancel()

    def leave(self, code: int) -> None:
        """Tell it to end, with an exit code."""
        self.present = False
        if self.worry is not None:
            self.worry.cancel()
        try:
            write_line(self.questions, {"leave": code})
        except OSError:  # it is gone already
            return

    def _worry(self, text: str) -> None:
        """End everything in a moment, unless we do so by ourselves: we may be waiting for one who never comes."""
        if self.worry is None:
            self.worry = threading.Timer(ALARM_SECONDS, _give_up, (text,))
            self.worry.daemon = True
            self.worry.start()


_stopped = threading.Event()


def _stop_too(number: int) -> None:
    """Do as one of the others was told; all of them may have been, and a second signal would be taken for impatience."""
    if not _stopped.is_set() and noted() is None:
        _stopped.set()
        os.kill(os.getpid(), number)


def _give_up(text: str) -> NoReturn:
    sys.stderr.write(f"error: {text.strip()}\n")
    sys.stderr.flush()
    os._exit(2)  # the others end with us; what is on disk is whole at any moment


def gather(store: Store, launch: Launch) -> list[Rank]:
    """In the first process: all others, once they have come."""
    everywhere = launch.together < launch.size
    listener = socket.create_server(("" if everywhere else "127.0.0.1", 0), backlog=launch.size)
    word = secrets.token_hex(16)
    host = launch.address if everywhere else "127.0.0.1"
    store.set(PLACE, json.dumps([host, listener.getsockname()[1], word]))
    found: dict[int, socket.socket] = {}
    deadline = time.monotonic() + COMING_SECONDS
    with listener:
        while len(found) < launch.size - 1:
            listener.settimeout(max(0.1, deadline - time.monotonic()))
            try:
                connection, _ = listener.accept()
            except TimeoutError as error:
                raise _absent(launch, found) from error
            number = _greeted(connection, word)
            if number is not None:
                found[number] = connection
    return [Rank(found[number], number) for number in sorted(found)]


def _absent(launch: Launch, found: dict[int, socket.socket]) -> WorkerError:
    missing = sorted(set(range(1, launch.size)) - set(found))
    return WorkerError(
        f"{launch.size} processes were launched, but after {COMING_SECONDS:.0f} s {len(missing)} have not come: "
        f"{', '.join(map(str, missing[:10]))}. Look at what they say; machines must reach {launch.address}. To run in one "
        "process, call the command without a launcher."
    )


def _greeted(connection: socket.socket, word: str) -> int | None:
    """The number of one who knows the word; anybody else is not let in."""
    connection.settimeout(COMING_SECONDS)
    _keep_alive(connection)
    try:
        with connection.makefile("rb") as stream:
            greeting = read_line(stream.readline(GREETING_BYTES))
        given, number, version = greeting
        known = secrets.compare_digest(str(given), word)
    except (OSError, ValueError, TypeError):
        known = False
    if not known:
        connection.close()
        return None
    if version != __version__:
        raise ConfigError(
            f"process {number} of this job has binas {version}, the first one {__version__}. Install the same everywhere."
        )
    connection.settimeout(None)
    return int(number)


def _keep_alive(connection: socket.socket) -> None:
    """Notice within half a minute that a machine has vanished without closing its connections."""
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for name, value in (("TCP_KEEPIDLE", 10), ("TCP_KEEPINTVL", 5), ("TCP_KEEPCNT", 3)):
        if hasattr(socket, name):
            connection.setsockopt(socket.IPPROTO_TCP, getattr(socket, name), value)
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)


def dismiss_all(ranks: Sequence[Rank], code: int) -> None:
    """Let the others end as this process does."""
    for rank in ranks:
        rank.leave(code)


def hold_signals() -> None:
    """In another process than the first, before any thread starts: let signals wait until :func:`follow` takes them."""
    signal.pthread_sigmask(signal.SIG_BLOCK, SIGNALS)


def follow(store: Store, launch: Launch) -> NoReturn:
    """In every other process: do what the first one asks, until it says that this is all, or is gone."""
    host, port, word = json.loads(store.get(PLACE))
    connection = socket.create_connection((host, port), timeout=COMING_SECONDS)
    connection.settimeout(None)
    _keep_alive(connection)
    questions, answers = connection.makefile("rb"), connection.makefile("wb")
    write_line(answers, [word, launch.rank, __version__])
    os.dup2(2, 1)  # only the first process answers
    tell = Answers(answers)
    threading.Thread(target=_pass_on_stops, args=(tell,), daemon=True).start()
    answer_all(questions, tell, lambda: _abandoned(launch), _told)


def _pass_on_stops(tell: Answers) -> None:
    """Who is told to stop tells the first process, unless that was told too: it keeps what there is and lets all end."""
    number = int(signal.sigwait(SIGNALS))
    time.sleep(TOLD_SECONDS)
    try:
        tell(-1, {"stop": number})
    except OSError:  # the first process is gone, and we are about to be
        return


def _told(line: dict[str, Any]) -> None:
    if "leave" in line:
        os._exit(line["leave"])


def _abandoned(launch: Launch) -> None:
    """The first process ended without a word: one of the others says so."""
    if launch.rank == 1:
        sys.stderr.write(
            "error: the first process of this job is gone: it was killed, or its machine cannot be reached. What was "
            "finished is kept: the same command goes on.\n"
        )
        sys.stderr.flush()
    os._exit(2)
