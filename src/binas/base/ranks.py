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
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any, NoReturn, Protocol

from binas.base.errors import ConfigError, WorkerError
from binas.base.interrupts import SIGNALS, asked, leave
from binas.base.launch import Launch
from binas.base.progress import speak
from binas.base.workers import Answers, Worker, answer_all, read_line, write_line
from binas.version import __version__

PLACE = "binas"  # what is read in the store
COMING_SECONDS = 600.0  # until all processes must have come: machines do not start at the same time
LATE_SECONDS = 30.0  # until it is said who has not come
LOOK_SECONDS = 0.2  # between two looks whether those who came are still there, and whether a signal has
ALARM_SECONDS = 5.0  # that the first process has to say by itself what has happened to another
TOLD_SECONDS = 1.0  # within which a launcher tells all processes to stop
GREETING_BYTES = 1000
GREETING_SECONDS = 10.0  # for who comes to say who it is: a silent stranger must not keep the others out


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
    """Do as one of the others was told, unless we were as well."""
    if not _stopped.is_set() and not asked():
        _stopped.set()
        os.kill(os.getpid(), number)


def _give_up(text: str) -> NoReturn:
    speak(f"error: {text.strip()}")
    os._exit(2)  # the others end with us; what is on disk is whole at any moment


@contextmanager
def say_late(text: Callable[[], str]) -> Iterator[None]:
    """Say what is waited for, if that is anything, where it takes long."""

    def say() -> None:
        if late := text():
            speak(late)

    timer = threading.Timer(LATE_SECONDS, say)
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()


def gather(store: Store, launch: Launch, ranks: list[Rank]) -> None:
    """In the first process: add each of the others to ``ranks`` when it comes; one that leaves meanwhile is an error."""
    deadline = time.monotonic() + COMING_SECONDS
    with _door(store, launch) as (listener, word), say_late(lambda: _awaited(launch, ranks)):
        listener.settimeout(LOOK_SECONDS)
        while _missing(launch, ranks):
            with suppress(TimeoutError):
                connection, _ = listener.accept()
                number = _greeted(connection, word)
                if number is not None:
                    ranks.append(Rank(connection, number))
            for rank in ranks:
                if not rank.alive():
                    raise rank.lost()
            if time.monotonic() > deadline:
                raise _absent(launch, ranks)
    ranks.sort(key=lambda rank: rank.number)


@contextmanager
def _door(store: Store, launch: Launch) -> Iterator[tuple[socket.socket, str]]:
    """Where the others come to, and the word that lets them in; the store tells them."""
    everywhere = launch.together < launch.size
    listener = socket.create_server(("" if everywhere else "127.0.0.1", 0), backlog=launch.size)
    word = secrets.token_hex(16)
    host = launch.address if everywhere else "127.0.0.1"
    store.set(PLACE, json.dumps([host, listener.getsockname()[1], word]))
    with listener:
        yield listener, word


def _missing(launch: Launch, ranks: Sequence[Rank]) -> list[int]:
    return sorted(set(range(1, launch.size)) - {rank.number for rank in ranks})


def _awaited(launch: Launch, ranks: Sequence[Rank]) -> str:
    missing = _missing(launch, ranks)
    return f"still waiting for {len(missing)} of {launch.size} processes: {_some(missing)} did not come yet."


def _some(numbers: Sequence[int]) -> str:
    return ", ".join(map(str, numbers[:10])) + (", ..." if len(numbers) > 10 else "")


def _absent(launch: Launch, ranks: Sequence[Rank]) -> WorkerError:
    missing = _missing(launch, ranks)
    return WorkerError(
        f"{launch.size} processes were launched, but after {COMING_SECONDS:.0f} s {len(missing)} have not come: "
        f"{_some(missing)}. Look at what they say; machines must reach {launch.address}. To run in one process, call the "
        "command without a launcher."
    )


def _greeted(connection: socket.socket, word: str) -> int | None:
    """The number of one who knows the word; anybody else is not let in."""
    connection.settimeout(GREETING_SECONDS)
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


_first: list[Answers] = []  # where the first process is told something, once it is met


def hold_signals() -> None:
    """In another process than the first, before any other thread starts: one of its own takes signals from now on."""
    signal.pthread_sigmask(signal.SIG_BLOCK, SIGNALS)
    threading.Thread(target=_pass_on_stops, daemon=True).start()


def end_with_agent(launch: Launch) -> None:
    """Where an agent started this process, let it be told to stop when that agent is gone: nobody else would end it.

    The agent of torchrun dies of signals that it does not know, SIGUSR1 among them, and passes none of them on.
    """
    if launch.agent:
        threading.Thread(target=_watch_agent, args=(launch,), daemon=True).start()


def _watch_agent(launch: Launch) -> None:
    while os.getppid() == launch.agent:
        time.sleep(LOOK_SECONDS)
    if not launch.rank:
        speak("what started the processes of this job is gone, so they end.")
    if not asked():  # a signal that ends the agent may have come to all of us
        os.kill(os.getpid(), signal.SIGTERM)


def follow(store: Store, launch: Launch) -> NoReturn:
    """In every other process: do what the first one asks, until it says that this is all, or is gone."""
    host, port, word = json.loads(store.get(PLACE))
    connection = socket.create_connection((host, port), timeout=COMING_SECONDS)
    connection.settimeout(None)
    _keep_alive(connection)
    questions, answers = connection.makefile("rb"), connection.makefile("wb")
    os.dup2(2, 1)  # only the first process answers
    tell = Answers(answers)
    with tell.turn:  # who is let in can be told to stop at once, and passes it on after its greeting
        _first.append(tell)
        write_line(answers, [word, launch.rank, __version__])
    answer_all(questions, tell, lambda: _abandoned(launch), _told)


def _pass_on_stops() -> None:
    """Who is told to stop tells the first process, unless that was told too: it keeps what there is and lets all end.

    Before it has met the first process there is nobody to tell, and nothing to keep.
    """
    number = int(signal.sigwait(SIGNALS))
    if not _first:
        leave(number)
    time.sleep(TOLD_SECONDS)
    with suppress(OSError):  # the first process is gone, and we are about to be
        _first[0](-1, {"stop": number})


def _told(line: dict[str, Any]) -> None:
    if "leave" in line:
        os._exit(line["leave"])


def _abandoned(launch: Launch) -> None:
    """The first process ended without a word: one of the others says so."""
    if launch.rank == 1:
        speak(
            "error: the first process of this job is gone: it was killed, or its machine cannot be reached. What was "
            "finished is kept: the same command goes on."
        )
    os._exit(2)
