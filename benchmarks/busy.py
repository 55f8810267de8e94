"""What is left of our speed beside processes that never rest?

    python benchmarks/busy.py            # three rounds, about five minutes on 2 cores that are otherwise free
    python benchmarks/busy.py --quick    # one round, within a minute

Beside k = 0, 1, 2 and 4 busy processes (each an endless loop of Python), on the default space (`fused-28`), taking turns:

* training: steps of the supernet at batch 64, in as many one-thread processes as a run would use, each with its shard;
* passes: multi-path passes over images, each process with passes of its own;
* the same in one process with a thread per core that spins while it waits (the peer: what torch does by itself).

With P threads of ours on C cores a fair scheduler gives each of P + k threads the same, so we keep
share = min(1, C / (P + k)) * P / min(P, C) of what P threads have alone. Rates are images per second, relative to those
at k = 0 in the same run. Target: at least half of that share for training and passes; the peer has none.

Whoever else computes on this machine disturbs k = 0 most of all: run it where nothing else does. Medians over rounds;
the last line is one JSON object; exit code 1 if a target is missed.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch
import torch.nn.functional as F

from binas.base.cores import ONE_THREAD, usable_cores
from binas.base.progress import Progress
from binas.contributions.factorial import factorial_paths
from binas.contributions.supernet_evaluator import SupernetEvaluator
from binas.data.augment import normalise
from binas.run.config import load_config
from binas.run.run import Run
from binas.run.start import create_run
from binas.run.workers import map_shared, train_shared
from binas.supernet.network import keep_memory
from binas.supernet.paths import sample_paths
from binas.training.config import TrainSettings
from binas.training.loop import make_optimizer
from binas.training.phases import fresh_supernet
from binas.training.randomness import generator
from binas.training.team import Shards, Team

BUSY = (0, 1, 2, 4)
TARGET = 0.5
IMAGES = 256  # of one call of a pass
SPINNER = "while True: pass"


def train_steps(run: Run, team: Team, progress: Progress, seconds: float) -> float:
    """Images per second of all processes of a team, by the clock of the first."""
    keep_memory()
    phase, data = run.settings(TrainSettings).supernet, run.data
    network = fresh_supernet(run.space, 0).train()
    optimizer, shards = make_optimizer(network, phase), Shards(network, team, phase.shards or 1)
    batch = next(data.train.batches(phase.batch_size, seed=0))

    def step(number: int) -> None:
        def piece_loss(piece: range, _: int) -> torch.Tensor:
            rows = slice(piece[0], None, shards.count)
            images, labels = normalise(batch.images[rows], data.mean, data.std), batch.labels[rows]
            drawn = generator(0, "paths", number, piece[0])
            paths = sample_paths(run.space, len(labels), drawn, phase.groups)
            loss = F.cross_entropy(network(images, paths), labels)
            (loss * shards.share(piece, phase.batch_size)).backward()
            return loss.detach()

        shards.backward(piece_loss, phase.batch_size)
        optimizer.step()
        optimizer.zero_grad()

    return phase.batch_size * repeated(
        step, seconds, lambda on: bool(team.gather(torch.tensor([int(on)]))[0])
    )


def repeated(work: Callable[[int], None], seconds: float, agreed: Callable[[bool], bool]) -> float:
    """How often per second ``work`` is done, after it was done once."""
    work(0)
    start, count = time.perf_counter(), 0
    while agreed(time.perf_counter() - start < seconds):
        count += 1
        work(count)
    return count / (time.perf_counter() - start)


def passer(run: Run) -> Callable[[float, Progress], float]:
    """What measures passes for some seconds and says how many images per second it did."""
    keep_memory()
    evaluator = SupernetEvaluator(fresh_supernet(run.space, 0), run.data)
    paths, images = factorial_paths(run.space, 0), torch.arange(min(IMAGES, evaluator.images)).numpy()

    def work(number: int) -> None:
        evaluator.outcomes(images, *paths(images, number))

    return lambda seconds, progress: len(images) * repeated(work, seconds, bool)


@contextmanager
def spinning(count: int) -> Iterator[None]:
    """Beside that many busy processes."""
    others = [subprocess.Popen([sys.executable, "-c", SPINNER]) for _ in range(count)]
    try:
        yield
    finally:
        for other in others:
            other.kill()
            other.wait()


class Peer:
    """One process with a thread per core, left to torch."""

    def __init__(self, run: Run) -> None:
        environment = {
            key: value for key, value in os.environ.items() if key not in (*ONE_THREAD, "OMP_WAIT_POLICY")
        }
        self.process = subprocess.Popen(
            [sys.executable, __file__, "--peer", str(run.folder)],
            env=environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def rate(self, what: str, seconds: float) -> float:
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.write(f"{what} {seconds}\n")
        self.process.stdin.flush()
        return float(self.process.stdout.readline())

    def end(self) -> None:
        self.process.kill()
        self.process.wait()


def serve_as_peer(folder: Path) -> None:
    from binas.run.run import open_run

    run = open_run(folder)
    passing = passer(run)
    for line in sys.stdin:
        what, seconds = line.split()
        rate = (
            train_steps(run, Team(), Progress(), float(seconds))
            if what == "training"
            else passing(float(seconds), Progress())
        )
        print(rate, flush=True)


def measure(run: Run, processes: int, seconds: float, rounds: int) -> dict[tuple[str, int], float]:
    """Median rates by what was done and the number of busy processes."""
    import busy  # workers find functions by the name of a module, and this one is called __main__

    peer, rates = Peer(run), {}
    try:
        for _ in range(rounds):
            for k in BUSY:
                with spinning(k):
                    shards = run.settings(TrainSettings).supernet.shards
                    found = {
                        "training": train_shared(run, busy.train_steps, [seconds], shards),
                        "passes": sum(map_shared(run, busy.passer, (), [seconds] * processes)),
                        "training, peer": peer.rate("training", seconds),
                        "passes, peer": peer.rate("passes", seconds),
                    }
                for name, rate in found.items():
                    rates.setdefault((name, k), []).append(rate)
    finally:
        peer.end()
    return {key: statistics.median(values) for key, values in rates.items()}


def fair_share(threads: int, cores: int, busy: int) -> float:
    """What a fair scheduler leaves of the speed of ``threads`` threads beside ``busy`` others, from 0 to 1."""
    return min(1.0, cores / (threads + busy)) * threads / min(threads, cores)


def rows_of(rates: dict[tuple[str, int], float], threads: int, cores: int) -> list[dict[str, Any]]:
    rows = []
    for (name, k), rate in rates.items():
        kept, fair = rate / rates[name, 0], fair_share(threads, cores, k)
        rows.append(
            {
                "what": name,
                "busy": k,
                "images_per_second": rate,
                "kept": kept,
                "fair": fair,
                "of_fair": kept / fair,
            }
        )
    return rows


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="one short round")
    parser.add_argument("--peer", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.peer is not None:
        serve_as_peer(options.peer)
        return 0
    cores, start = usable_cores(), time.perf_counter()
    with tempfile.TemporaryDirectory() as folder:
        run = create_run(Path(folder) / "run", load_config(None, ["train.device=cpu", "data.limit=2000"]))
        seconds, rounds = (1.5, 1) if options.quick else (4.0, 3)
        rates = measure(run, cores, seconds, rounds)
    rows = rows_of(rates, cores, cores)
    print(
        f"{cores} cores, {cores} processes of one thread (peer: one of {cores} threads), load at the end "
        f"{os.getloadavg()[0]:.1f}\n"
    )
    print(f"{'what':<16}{'busy':>5}{'images/s':>10}{'kept':>8}{'fair':>8}{'kept / fair':>13}{'/ peer':>9}")
    for row in sorted(rows, key=lambda row: (row["what"], row["busy"])):
        peer = rates.get((f"{row['what']}, peer", row["busy"]))
        beside = f"{row['images_per_second'] / peer:>9.2f}" if peer else ""
        print(
            f"{row['what']:<16}{row['busy']:>5}{row['images_per_second']:>10.0f}{row['kept']:>8.2f}{row['fair']:>8.2f}"
            f"{row['of_fair']:>13.2f}{beside}"
        )
    missed = [row for row in rows if "peer" not in row["what"] and row["of_fair"] < TARGET]
    print(f"\ntarget: at least {TARGET} of the fair share: {'missed' if missed else 'met'}")
    result = {"cores": cores, "seconds": time.perf_counter() - start, "rows": rows, "met": not missed}
    print(json.dumps(result))
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
