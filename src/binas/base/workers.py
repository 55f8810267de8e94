"""Worker processes: other copies of this program, of one thread each, that do pieces of its work, one per core.

A worker is asked for functions by their names and for pieces of work by plain values, in lines of JSON over its
standard input, and answers in the same way: nothing is pickled, no port is opened. It ends when its input ends, so it
does not outlive the process that started it, however that one ended. Where a launcher has started several processes, those
that are not the first are workers in the same way, over a connection (:mod:`binas.base.ranks`).
"""

from __future__ import annotations

import atexit
import base64
import io
import itertools
import json
import os
import queue
import subprocess
import sys
import threading
import time
import traceback
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, BinaryIO, NoReturn

import numpy as np

from binas.base import errors
from binas.base.cores import ONE_THREAD
from binas.base.errors import BinasError, WorkerError
from binas.base.interrupts import Interrupted, ignore
from binas.base.plugins import import_name
from binas.base.progress import Progress

Work = Callable[[Any, Progress], Any]  # item, progress -> result; both plain values or arrays of NumPy
Make = Callable[..., Work]  # opens what the work needs, once in each worker
SHOWN_SECONDS = 0.2  # between two reports of how far a piece is
_START = (
    "import sys, json; sys.path[:] = json.loads(sys.argv[1]); from binas.base.workers import serve; serve()"
)

_sessions = itertools.count()
_idle: list[Worker] = []
_crew: list[Worker] = []  # processes of a launcher, of which no more can be made
_launched = 0


def share_out(
    make: Make,
    given: Sequence[Any],
    items: Sequence[Any],
    processes: int,
    progress: Progress | None = None,
    name: str = "part",
) -> Iterator[Any]:
    """``make(*given)(item, progress)`` of every item, in their order, done by ``processes`` workers.

    ``make`` is a function of a module, called once in each worker. ``given``, items and results are values of JSON or
    arrays. Each result is given as soon as it and all before it are there. What goes wrong in a worker is raised here.
    """
    told, session = _Together(progress or Progress(), len(items), name), new_session()
    done: dict[int, Any] = {}
    with hired(min(processes, len(items))) as workers:
        left = iter(enumerate(items))
        busy: dict[Worker, int] = {}

        def next_for(worker: Worker) -> None:
            for number, item in itertools.islice(left, 1):
                busy[worker] = number
                worker.ask(session, make, given, item)

        for worker in workers:
            next_for(worker)
        for wanted in range(len(items)):
            while wanted not in done:
                worker, answer = workers[0].heard()
                if "result" in answer:
                    number = busy.pop(worker)
                    done[number] = answer["result"]
                    told.finished(number)
                    next_for(worker)
                else:
                    told.tell(busy[worker], answer)
            yield done.pop(wanted)


class _Together(Progress):
    """The progress of several pieces that are done at the same time, as one."""

    def __init__(self, whole: Progress, count: int, name: str) -> None:
        self.whole, self.count, self.name = whole, count, name
        self.shares = [0.0] * count

    def tell(self, number: int, answer: dict[str, Any]) -> None:
        """Pass on what the worker of one piece tells."""
        if "say" in answer:
            self.whole.say(f"{self.name} {number + 1} of {self.count}: {answer['say']}")
        else:
            self.shares[number], doing = answer["show"]
            self._show(doing)

    def finished(self, number: int) -> None:
        """One piece is done."""
        self.shares[number] = 1.0
        self._show("")

    def _show(self, doing: str) -> None:
        finished = sum(share >= 1 for share in self.shares)
        text = f"{finished} of {self.count} done"
        self.whole.show(sum(self.shares) / self.count, f"{text}, {doing}" if doing else text)


def new_session() -> int:
    """A number that a worker has not heard, so that it opens anew what the work needs."""
    return next(_sessions)


@contextmanager
def hired(count: int) -> Iterator[list[Worker]]:
    """That many workers; they are kept for the next who asks, but ended after an error or an interruption.

    What any of them answers, :meth:`Worker.heard` of each gives.
    """
    for worker in _crew:
        if not worker.alive():
            raise worker.lost()
    crew = [_crew.pop(0) for _ in range(min(count, len(_crew)))]
    ready = [_idle.pop() for _ in range(min(count - len(crew), len(_idle)))]
    workers = [*crew, *(worker for worker in ready if worker.alive())]
    workers += [Child() for _ in range(count - len(workers))]
    inbox: Inbox = queue.SimpleQueue()
    for worker in workers:
        worker.inbox = inbox
    try:
        yield workers
    except BaseException:
        for worker in workers:
            worker.end()
        raise
    else:
        _idle.extend(workers[len(crew) :])
    finally:
        _crew[:0] = crew


def enlist(workers: Sequence[Worker]) -> None:
    """Let processes of a launcher be hired before any other."""
    global _launched
    _crew[:], _launched = workers, 1 + len(workers) if workers else 0


def launched() -> int:
    """How many processes a launcher has started, of which this is the first; 0 without one."""
    return _launched


@atexit.register
def dismiss() -> None:
    """End all workers that have nothing to do."""
    while _idle:
        _idle.pop().end()


Inbox = queue.SimpleQueue[tuple["Worker", dict[str, Any] | None]]


class Worker(ABC):
    """Another process of this program, which can be asked over one stream and answers over another."""

    def __init__(self, questions: BinaryIO, answers: BinaryIO) -> None:
        self.inbox: Inbox = queue.SimpleQueue()
        self.questions, self.answers = questions, answers
        self.expected: tuple[int, Inbox] = (
            -1,
            self.inbox,
        )  # session whose answers count, and who waits for them
        threading.Thread(target=self._listen, daemon=True).start()

    @abstractmethod
    def alive(self) -> bool:
        """Whether it can be asked."""

    @abstractmethod
    def lost(self) -> WorkerError:
        """The error of a worker that ended by itself."""

    @abstractmethod
    def end(self) -> None:
        """What it does is not wanted any more, after an error or an interruption."""

    def ask(self, session: int, make: Make, given: Sequence[Any], item: Any) -> None:
        """Let it do one piece; within a session what ``make`` opened is used again."""
        asked = {"session": session, "make": name_of(make), "given": list(given), "item": item}
        self.expected = session, self.inbox
        try:
            write_line(self.questions, asked)
        except OSError:  # it is gone: what it left to read says so
            return

    def heard(self, seconds: float | None = None) -> tuple[Worker, dict[str, Any]]:
        """The next answer of any worker hired together with this one: ``result``, ``show`` or ``say``; errors are raised.

        ``queue.Empty`` is raised if none comes within ``seconds``.
        """
        worker, answer = self.inbox.get(timeout=seconds)
        if answer is None:
            raise worker.lost()
        if "error" in answer:
            worker.handled()
            raise _error(*answer["error"])
        return worker, answer

    def handled(self) -> None:  # noqa: B027 (a child has nothing to do then)
        """An error of this worker is raised now."""

    def _listen(self) -> None:
        try:
            with self.answers as answers:
                for line in answers:
                    self.hear(read_line(line))
        except OSError:  # a connection that broke
            pass
        self.gone()

    def hear(self, answer: dict[str, Any]) -> None:
        """Pass on an answer, unless nobody waits for it any more."""
        session, inbox = self.expected
        if answer["session"] == session:
            inbox.put((self, answer))

    def gone(self) -> None:
        """There will be no more answers."""
        self.inbox.put((self, None))


class Child(Worker):
    """A process of one thread that we start on this machine; it listens when it is ready."""

    def __init__(self) -> None:
        command = [sys.executable, "-c", _START, json.dumps(sys.path)]
        self.process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env={**os.environ, **ONE_THREAD}
        )
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        super().__init__(self.process.stdin, self.process.stdout)  # type: ignore[arg-type]  # both are BinaryIO

    def alive(self) -> bool:
        """Whether it can be asked."""
        return self.process.poll() is None

    def lost(self) -> WorkerError:
        """The error of a worker that ended by itself."""
        code = self.process.wait()
        how = f"was killed by signal {-code}" if code < 0 else f"ended with code {code}"
        return WorkerError(
            f"one of the worker processes {how}; where memory is short the system does that. What was finished is kept: "
            "the same command goes on, with less memory after --set train.processes=1."
        )

    def end(self) -> None:
        """End it, whatever it does."""
        self.process.kill()
        self.process.wait()
        try:
            self.questions.close()
        except OSError:  # something could no longer be delivered
            return


def name_of(function: Callable[..., Any]) -> str:
    """``module:name`` of a function, by which a worker finds it."""
    return f"{function.__module__}:{function.__qualname__}"


def serve() -> NoReturn:
    """What a worker does whom another process has started: answer until nobody can ask any more."""
    ignore()  # the one who asked is interrupted too, and ends us
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # what others print must not be taken for an answer
    answer_all(sys.stdin.buffer, Answers(answers), lambda: os._exit(0))


def answer_all(
    questions: BinaryIO,
    tell: Answers,
    ended: Callable[[], None],
    other: Callable[[dict[str, Any]], None] | None = None,
) -> NoReturn:
    """Do one piece after the other; ``ended`` is called when there will be no more, whatever is being done then.

    ``other`` is called at once with lines that do not ask for anything.
    """
    asked: queue.SimpleQueue[dict[str, Any]] = queue.SimpleQueue()

    def listen() -> None:
        try:
            for line in questions:
                question = read_line(line)
                if "make" in question:
                    asked.put(question)
                elif other is not None:
                    other(question)
        except OSError:  # a connection that broke has ended too
            pass
        ended()

    threading.Thread(target=listen, daemon=True).start()
    opened: tuple[int, Work] | None = None
    while True:
        question = asked.get()
        session = question["session"]
        try:
            if opened is None or opened[0] != session:
                opened = None  # frees what the last one held
                opened = session, import_name(question["make"])(*question["given"])
            tell(session, {"result": opened[1](question["item"], _Told(tell, session))})
        except Interrupted:  # by what the others of a team have heard: the first one says when to leave
            threading.Event().wait()
        except Exception as error:
            text = str(error) if isinstance(error, BinasError) else traceback.format_exc()
            tell(session, {"error": [type(error).__name__, text]})


class Answers:
    """Where a worker's answers go, each with the session that it belongs to."""

    def __init__(self, stream: BinaryIO) -> None:
        self.stream, self.turn = stream, threading.Lock()

    def __call__(self, session: int, answer: dict[str, Any]) -> None:
        """Send one answer, from any thread."""
        with self.turn:
            write_line(self.stream, {"session": session, **answer})


class _Told(Progress):
    """Progress in a worker: sent to the one who asked."""

    def __init__(self, tell: Answers, session: int) -> None:
        self.tell, self.session, self.shown = tell, session, 0.0

    def show(self, done: float, doing: str = "", left: float | None = None) -> None:
        if time.monotonic() - self.shown >= SHOWN_SECONDS:
            self.shown = time.monotonic()
            self.tell(self.session, {"show": [done, doing]})

    def say(self, text: str) -> None:
        self.tell(self.session, {"say": text})


def _error(kind: str, text: str) -> Exception:
    """An error as it was in the worker, where it is one of ours; else a bug, with what Python said."""
    known = getattr(errors, kind, None)
    if isinstance(known, type) and issubclass(known, BinasError):
        return known(text)
    return RuntimeError(f"in a worker process:\n{text}")


def write_line(stream: BinaryIO, value: Any) -> None:
    """One value of JSON and arrays, as a line."""
    stream.write(json.dumps(value, default=_packed).encode() + b"\n")
    stream.flush()


def read_line(line: bytes) -> Any:
    """The value of a line that :func:`write_line` wrote."""
    return json.loads(line, object_hook=_unpacked)


def _packed(array: Any) -> dict[str, str]:
    """An array as text; what else JSON does not know is an error."""
    if not isinstance(array, np.ndarray):
        raise TypeError(f"{type(array).__name__} is neither a value of JSON nor an array")
    buffer = io.BytesIO()
    np.save(buffer, array, allow_pickle=False)
    return {"npy": base64.b64encode(buffer.getvalue()).decode("ascii")}


def _unpacked(value: dict[str, Any]) -> Any:
    if value.keys() != {"npy"}:
        return value
    return np.load(io.BytesIO(base64.b64decode(value["npy"])), allow_pickle=False)
