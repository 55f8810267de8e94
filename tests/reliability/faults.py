"""Runs on a disk that fails: one operation on a file after the other is refused; the resumed run must end as any other.

    python tests/reliability/faults.py --faults 100

Every operation of binas on its files passes :func:`binas.base.files.touch`. Here it lets the n-th one fail, or all from the
n-th on, with one of five errors; n and the error are drawn from a seed. The command must then end with one paragraph that
names the file and says what to do, and the same command without a fault must go on to the same end.
"""

from __future__ import annotations

import argparse
import errno
import os
import random
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

if __name__ == "__main__":
    TESTS = Path(__file__).parents[1]
    sys.path[:0] = [str(TESTS / name) for name in (".", "supernet", "training")]

from kills import HUNG, SCENARIOS, Killer, Scenario, last_words, start, wait_for

from binas.base import files

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

    def _killed_once(self, scenario: Scenario, config: Path, place: Path, patience: float) -> int | None:
        """Start or resume with a fault, which is a kill here; None where the run got to its end all the same."""
        (place / "run").mkdir(parents=True, exist_ok=True)
        number, code = self.rng.randint(1, round(150 * patience)), self.rng.choice(ERRORS)
        fails = failing_at(number, code, self.rng.random() < 0.5, place / "run")
        process = start(self._command(config, place / "run"), place / "output.txt", fails)
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


def main() -> int:
    """Let operations fail until there were enough faults; the exit code says whether all was as it should be."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--faults", type=int, default=100)
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    breaker = Breaker(random.Random(given.seed), Path(tempfile.mkdtemp(prefix="binas-faults-")))
    while breaker.kills < given.faults:
        breaker.run(SCENARIOS[0], min(25, given.faults - breaker.kills))
    for problem in breaker.problems:
        print(problem)
    print(f"{breaker.kills} faults in {breaker.runs} runs; {len(breaker.problems)} problems; {breaker.work}")
    return 1 if breaker.problems else 0


if __name__ == "__main__":
    sys.exit(main())
