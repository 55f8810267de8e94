"""Runs on a disk that fails: one operation on a file after the other is refused; the resumed run must end as any other.

    python tests/reliability/faults.py --sweep [--first 0 --count 500]
    python tests/reliability/faults.py --faults 100

Every operation of binas on its files passes :func:`binas.base.files.touch`. Here it lets the n-th one fail, or all from the
n-th on, with one of five errors. The command must then end with one paragraph that names the file and says what to do, and
the same command without a fault must go on to the same end.

With ``--sweep`` every operation of a run fails once, on files of the run, its configuration, tables and images alike: right
before it the run forks, and the fork is the one that meets the fault. What it leaves is compared with what was there before;
where it is not the same, and so not what a kill at that moment leaves, the run is resumed from it. With ``--faults``
operations and errors are drawn from a seed, several in one run.
"""

from __future__ import annotations

import argparse
import errno
import hashlib
import importlib
import os
import random
import shutil
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

if __name__ == "__main__":
    TESTS = Path(__file__).parents[1]
    sys.path[:0] = [str(TESTS / name) for name in (".", "supernet", "training")]

from kills import (
    HUNG,
    LEFT_OUT,
    LOADED,
    SCENARIOS,
    Killer,
    Scenario,
    command_of,
    differences,
    last_words,
    prepare,
    run_contents,
    start,
    wait_for,
)

from binas.base import files

LOCK = ".lock"
ERRORS = (errno.ENOSPC, errno.EIO, errno.ESTALE, errno.EACCES, errno.EROFS)
READS = ("read", "look")  # operations that a full or read-only disk allows
ONLY_WRITES = (errno.ENOSPC, errno.EROFS)


def failing_at(number: int, code: int, lasting: bool, folder: Path) -> Callable[[], None]:
    """Let the n-th operation on a file in a folder fail, or all from it on."""
    left, inside = [number], str(folder)

    def touch(doing: str, path: Path) -> None:
        if not str(path).startswith(inside) or (doing in READS and code in ONLY_WRITES):
            return
        left[0] -= 1
        if left[0] == 0 or (lasting and left[0] < 0):
            raise OSError(code, os.strerror(code), str(path))

    def install() -> None:
        files.touch = touch

    return install


class Breaker(Killer):
    """Lets one operation after the other fail."""

    def _killed_once(
        self, scenario: Scenario, command: list[str], place: Path, patience: float
    ) -> int | None:
        """Start or resume with a fault, which is a kill here; None where the run got to its end all the same."""
        (place / "run").mkdir(parents=True, exist_ok=True)
        number, code = self.rng.randint(1, round(150 * patience)), self.rng.choice(ERRORS)
        fails = failing_at(number, code, self.rng.random() < 0.5, place / "run")
        process = start(command, place / "output.txt", fails)
        status = wait_for(process, time.monotonic() + HUNG)
        said = last_words(place / "output.txt")
        ended = -1 if status is None else os.waitstatus_to_exitcode(status)
        if ended == 0:
            return None
        self.kills += 1
        good = ended == 2 and str(place / "run") in said and os.strerror(code) in said
        if not good or "othing was changed" in said:
            self.problems.append(
                f"{place.name}: operation {number}, {errno.errorcode[code]}: {ended}: {said}"
            )
        return ended


@dataclass
class Sweep:
    """One run in which every operation on a file from ``first`` on, ``count`` of them, fails once, in a fork of its own.

    ``left/`` is where forks leave what has to be resumed, ``said-*`` what each of them said.
    """

    place: Path
    first: int = 0
    count: int = 10**9
    number: int = 0
    folder: Path = field(init=False)

    def __post_init__(self) -> None:
        self.folder = self.place / "run"

    def install(self) -> None:
        """In the process that runs: every operation may fork."""
        files.touch = self.touch

    def touch(self, doing: str, path: Path) -> None:
        """Let a fork meet a fault here, then go on as if nothing had been."""
        if (
            not str(path).startswith(str(self.place))
            or threading.current_thread() is not threading.main_thread()
        ):
            return
        number, self.number = self.number, self.number + 1
        if not self.first <= number < self.first + self.count:
            return
        errors = [code for code in ERRORS if doing not in READS or code not in ONLY_WRITES]
        code, lasting = errors[number % len(errors)], number // len(errors) % 2 == 1
        before = self.place / "before"
        shutil.rmtree(before, ignore_errors=True)
        shutil.copytree(self.folder, before) if self.folder.exists() else before.mkdir()
        sys.stdout.flush(), sys.stderr.flush()
        child = os.fork()
        if child == 0:
            self._fail(number, code, lasting, path)
        status = wait_for(child, time.monotonic() + HUNG)
        ended = -1 if status is None else os.waitstatus_to_exitcode(status)
        with (self.place / "faults.txt").open("a") as file:
            file.write(f"{number}\t{doing}\t{code}\t{ended}\t{path}\n")
        if ended == 0 or _digest(self.folder) != _digest(before):
            left = self.place / "left" / f"{number:05d}" / "run"
            shutil.copytree(self.folder, left, ignore=shutil.ignore_patterns(LOCK))
        _restore(before, self.folder)

    def _fail(self, number: int, code: int, lasting: bool, path: Path) -> None:
        """In the fork: this operation fails, and with ``lasting`` all that follow."""
        output = os.open(self.place / f"said-{number:05d}.txt", os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o644)
        os.dup2(output, 1)
        os.dup2(output, 2)

        def fails(doing: str, other: Path) -> None:
            if (
                lasting
                and str(other).startswith(str(self.place))
                and not (doing in READS and code in ONLY_WRITES)
            ):
                raise OSError(code, os.strerror(code), str(other))

        files.touch = fails
        raise OSError(code, os.strerror(code), str(path))


def _digest(folder: Path) -> str:
    """Of all files that a run's end is judged by, but what is removed when a write fails."""
    digest = hashlib.sha256()
    for path in sorted(folder.rglob("*")):
        name = path.relative_to(folder)
        if path.is_file() and not set(name.parts) & set(LEFT_OUT) and not files.is_unfinished(path):
            digest.update(f"{name}\n".encode() + path.read_bytes())
    return digest.hexdigest()


def _restore(before: Path, folder: Path) -> None:
    """Make a folder what it was; the lock is an open file and stays."""
    kept = {path.relative_to(before) for path in before.rglob("*")}
    for path in sorted(folder.rglob("*"), reverse=True) if folder.exists() else ():
        if path.relative_to(folder) not in kept and path.name != LOCK:
            path.rmdir() if path.is_dir() else path.unlink()
    for name in sorted(kept):
        if (before / name).is_dir():
            (folder / name).mkdir(parents=True, exist_ok=True)
        elif name.name != LOCK:
            _same(before / name, folder / name)


def _same(path: Path, to: Path) -> None:
    if not to.exists() or to.read_bytes() != path.read_bytes():
        to.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(path, to)


def sweep(work: Path, first: int, count: int) -> int:
    """Let every operation of the plainest run fail once; the exit code says whether all was as it should be."""
    killer, scenario = Killer(random.Random(0), work), SCENARIOS[0]
    config, place = prepare(scenario, work / "swept"), work / "swept"
    whole = work / "whole" / "run"
    killer._finish(command_of(config, whole), work / "whole.txt")
    swept = Sweep(place, first, count)
    status = wait_for(
        start(command_of(config, place / "run"), work / "swept.txt", swept.install),
        time.monotonic() + 36_000,
    )
    if status != 0:
        killer.problems.append(f"the run that is swept ended with {status}: {last_words(work / 'swept.txt')}")
    killer.problems += [f"the run that is swept: {text}" for text in differences(whole, place / "run")]
    done = [line.split("\t") for line in (place / "faults.txt").read_text().splitlines()]
    for number, doing, code, ended, path in done:
        said = last_words(place / f"said-{int(number):05d}.txt")
        told = (
            ended == "2"
            and str(place) in said
            and os.strerror(int(code)) in said
            and "othing was changed" not in said
        )
        if ended != "0" and not told:
            killer.problems.append(
                f"{number} ({doing} {path}, {errno.errorcode[int(code)]}) ended with {ended}: {said}"
            )
    resumed = _resume_all(killer, config, whole, place)
    for problem in killer.problems:
        print(problem)
    kinds = Counter(f"{doing} {errno.errorcode[int(code)]}" for _, doing, code, _, _ in done)
    survived = sum(ended == "0" for _, _, _, ended, _ in done)
    print(
        f"{dict(sorted(kinds.items()))}; outside the run's folder: {sum('/run/' not in row[4] + '/' for row in done)}"
    )
    print(
        f"{len(done)} faults, each at another operation, from {first} on; {survived} did not stop the run, {resumed} left "
        f"another state than before and were resumed; {len(killer.problems)} problems; {work}"
    )
    return 1 if killer.problems else 0


def _resume_all(killer: Killer, config: Path, whole: Path, place: Path) -> int:
    """Let every different state that a fault has left get to its end; how many there were."""
    left = sorted((place / "left").iterdir()) if (place / "left").exists() else []
    known: set[str] = set()
    for folder in (item / "run" for item in left):
        state = hashlib.sha256(repr(sorted(map(repr, run_contents(folder)))).encode()).hexdigest()
        if state not in known:
            known.add(state)
            killer._finish(command_of(config, folder), place / "resumed.txt")
            killer.problems += [
                f"resumed from {folder.parent.name}: {text}" for text in differences(whole, folder)
            ]
        shutil.rmtree(folder)
    return len(known)


def main() -> int:
    """Let operations fail until there were enough faults; the exit code says whether all was as it should be."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--sweep", action="store_true", help="every operation once")
    parser.add_argument("--first", type=int, default=0, help="of a sweep: the number of the first operation")
    parser.add_argument("--count", type=int, default=10**9, help="of a sweep: how many operations")
    parser.add_argument("--faults", type=int, default=100, help="drawn from a seed")
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    work = Path(tempfile.mkdtemp(prefix="binas-faults-"))
    if given.sweep:
        for module in LOADED:
            importlib.import_module(f"binas.{module}")  # once, before any fork
        return sweep(work, given.first, given.count)
    breaker = Breaker(random.Random(given.seed), work)
    while breaker.kills < given.faults:
        breaker.run(SCENARIOS[0], min(25, given.faults - breaker.kills))
    for problem in breaker.problems:
        print(problem)
    print(f"{breaker.kills} faults in {breaker.runs} runs; {len(breaker.problems)} problems; {breaker.work}")
    return 1 if breaker.problems else 0


if __name__ == "__main__":
    sys.exit(main())
