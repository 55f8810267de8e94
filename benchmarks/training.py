"""What does training a small supernet take, and how good are its sub-networks?

    python benchmarks/training.py            # trains anew: a few minutes on 2 quiet cores
    python benchmarks/training.py --quick    # fewer architectures; trains once and keeps the run

Trains the space small-28 on the embedded images with the default recipe (heaviest network, then the supernet), then
evaluates the heaviest, the lightest and random architectures on the 4,000 test images, each as a network of its own with
BatchNorm re-estimated on training images. Test images are used here only.

Targets are the figures of a prototype (issue "The supernet"): heaviest 84.6 %, random architectures 82.7 % on average, with
lightest at least 3 points below the heaviest ("that spread"). The time is given as a multiple of one epoch of plain
training of the extracted heaviest network, measured in the same run; the prototype's own seconds are not comparable.
The last line is one JSON object; exit code 1 if a target is missed.
"""

from __future__ import annotations

import argparse
import json
import shutil
import statistics
import sys
import time
from pathlib import Path

import torch

from binas.base.progress import Terminal
from binas.data.augment import normalise
from binas.run.config import load_config
from binas.run.engine import advance
from binas.run.run import Run
from binas.run.start import create_run
from binas.space.sampling import sample_many
from binas.supernet import Supernet, extract
from binas.supernet.network import keep_memory
from binas.tasks.train import TRAIN
from binas.training import evaluate_architecture
from binas.training.config import TrainSettings
from binas.training.loop import make_optimizer

CACHE = Path(__file__).parent / ".cache" / "training"
TARGETS = {"heaviest": 84.6, "random": 82.7, "spread": 3.0}
PLAIN_STEPS = 20


def plain_epoch_seconds(run: Run) -> float:
    """Seconds of one epoch of the heaviest network alone, from the median of a few steps."""
    torch.manual_seed(0)
    network = extract(Supernet(run.space), run.space.extreme()).train()
    phase, data = run.settings(TrainSettings).heaviest, run.data
    optimizer, times = make_optimizer(network, phase), []
    for batch, _ in zip(data.train.batches(phase.batch_size, seed=0), range(PLAIN_STEPS), strict=False):
        start = time.perf_counter()
        logits = network(normalise(batch.images, data.mean, data.std))
        torch.nn.functional.cross_entropy(logits, batch.labels).backward()
        optimizer.step()
        optimizer.zero_grad()
        times.append(time.perf_counter() - start)
    return statistics.median(times) * len(data.train) / phase.batch_size


def percent(run: Run, supernet: Supernet, count: int) -> dict[str, float]:
    """Test accuracies in percent."""

    def of(architecture: object) -> float:
        return evaluate_architecture(supernet, architecture, run.data, run.data.test, 1024).percent  # type: ignore[arg-type]

    drawn = [of(architecture) for architecture in sample_many(run.space, count, seed=1)]
    found = {"heaviest": of(run.space.extreme()), "lightest": of(run.space.extreme(False))}
    found |= {"random": statistics.mean(drawn), "random_deviation": statistics.stdev(drawn)}
    return {**found, "spread": found["heaviest"] - found["lightest"]}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="8 random architectures; keep the trained run")
    options = parser.parse_args()
    keep_memory()
    if not options.quick:
        shutil.rmtree(CACHE, ignore_errors=True)
    run = create_run(CACHE, load_config(None, ["space=small-28"]))
    fresh = not (CACHE / "supernet" / "weights.json").exists()
    epoch = plain_epoch_seconds(run)
    start = time.perf_counter()
    advance(run, TRAIN.steps, Terminal())
    seconds = time.perf_counter() - start
    found = percent(run, run.supernet(), 8 if options.quick else 30)
    for name, value in found.items():
        target = f"  (at least {TARGETS[name]})" if name in TARGETS else ""
        print(f"{name:18} {value:6.2f}{target}")
    config = run.settings(TrainSettings)
    print(
        f"epochs: {config.heaviest.epochs} of the heaviest network, {config.supernet.epochs} of the supernet"
    )
    times = (
        {"training_seconds": round(seconds, 1), "plain_epochs": round(seconds / epoch, 2)} if fresh else {}
    )
    if fresh:
        print(
            f"training took {seconds:.0f} s, as long as {seconds / epoch:.1f} plain epochs of the heaviest network"
        )
    missed = [name for name, target in TARGETS.items() if found[name] < target]
    print(json.dumps({**{k: round(v, 2) for k, v in found.items()}, **times, "missed": missed}))
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
