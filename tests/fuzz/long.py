"""Change the files of every reader many times and count what goes wrong: ``python tests/fuzz/long.py --inputs 100000``.

Every input is a function of its number, so that a finding can be repeated: ``--reader costs.json --first 1234 --inputs 1``.
Ends with code 1 where a reader failed with a traceback, took over 2 s, took over 1 GiB, or accepted what is surely wrong.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

HERE = Path(__file__).resolve().parent
for folder in ("fuzz", ".", "search", "supernet", "data", "training", "costs"):
    sys.path.insert(0, str(HERE.parent / folder))

from harness import BAD, Finding, Ground  # noqa: E402
from readers import READERS  # noqa: E402


def main() -> int:
    """Run the inputs and print a table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--inputs", type=int, default=100_000, help="all readers together")
    parser.add_argument("--first", type=int, default=0, help="number of the first input of each reader")
    parser.add_argument("--reader", help="only this one")
    parser.add_argument("--show", type=int, default=3, help="findings shown of each reader")
    given = parser.parse_args()
    chosen = [reader for reader in READERS if given.reader in (None, reader.name)]
    if not chosen:
        parser.error(
            f"there is no reader {given.reader!r}; there are {', '.join(reader.name for reader in READERS)}"
        )
    each = -(-given.inputs // len(chosen))
    total: Counter[str] = Counter()
    slowest, largest = Finding("", 0, "", "refused"), Finding("", 0, "", "refused")
    with tempfile.TemporaryDirectory() as place:
        for number, reader in enumerate(chosen):
            start = time.process_time()
            ground = Ground(reader, Path(place) / str(number))
            findings = [ground.trial(given.first + i) for i in range(each)]
            counts = Counter(finding.outcome for finding in findings)
            total += counts
            slowest = max(slowest, *findings, key=lambda finding: finding.seconds)
            largest = max(largest, *findings, key=lambda finding: finding.memory)
            findings = [finding for finding in findings if finding.outcome in BAD]
            print(f"{reader.name:24} {dict(counts)} {time.process_time() - start:.0f} s", flush=True)
            _show(findings, given.show)
    print(f"{total.total()} inputs: {dict(total)}")
    print(f"longest {slowest.seconds:.2f} s ({slowest.reader} #{slowest.number}), ", end="")
    print(f"most memory {largest.memory / 2**20:.0f} MiB ({largest.reader} #{largest.number})")
    return int(any(total[bad] for bad in BAD))


def _show(bad: list[Finding], most: int) -> None:
    """Different findings, each once."""
    kinds = {(item.outcome, item.how, item.message[-80:]): item for item in reversed(bad)}
    for item in list(kinds.values())[:most]:
        print(f"    {item.outcome} #{item.number} ({item.how}): {item.message[-700:]}")


if __name__ == "__main__":
    sys.exit(main())
