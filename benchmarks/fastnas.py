"""FastNAS (NVIDIA Model Optimizer) beside the networks a run has found: same start, size, fine-tuning and images.

    pip install nvidia-modelopt torchprofile==0.0.4
    python benchmarks/fastnas.py --run runs/demo             # a finished run
    python benchmarks/fastnas.py --run runs/demo --quick     # 500 validation images to prune by

FastNAS prunes channels of a trained network, layer by layer, by how much each costs on validation images, until FLOPs keep
a limit; it knows no latency. So it starts from the run's heaviest network as it was trained, and its limit is twice the
multiply-accumulates of each found network. Then it is fine-tuned for as many epochs with the run's settings, by labels
alone, and measured in one session with the found one. Differences are paired over the test images, which chose nothing.

Target: at no limit clearly (two standard errors) behind FastNAS, and every measured latency of ours within the limit. The
last line is one JSON object; exit code 1 if the target is missed.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import torch

from binas.base.interval import Interval
from binas.base.progress import Progress
from binas.costs.measure import measuring_again
from binas.costs.session import Plan
from binas.report.published import measure_networks
from binas.run.run import Run, open_run
from binas.search.rivals import difference
from binas.supernet.network import extract
from binas.tasks.artefacts import COSTS
from binas.tasks.finetune import open_tuned
from binas.tasks.train import bench
from binas.training.config import FinetuneSettings
from binas.training.evaluation import accuracy, correct
from binas.training.phases import train_from_scratch
from binas.training.team import ALONE
from pruners import CPU, fastnas


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--run", type=Path, required=True, help="folder of a finished run")
    parser.add_argument("--quick", action="store_true", help="prune by 500 validation images")
    parser.add_argument(
        "--seconds", type=float, default=20.0, help="time of the session that measures latency"
    )
    options = parser.parse_args()
    try:
        import modelopt.torch.prune  # noqa: F401
    except ModuleNotFoundError as error:
        parser.error(f"{error}: pip install nvidia-modelopt torchprofile==0.0.4")
    torch.set_num_threads(1)
    run = open_run(options.run)
    with tempfile.TemporaryDirectory() as folder:
        pruned = list(rivals(run, Path(folder), 500 if options.quick else None))
    rows = compare(run, pruned, options.seconds)
    print("\n".join(table(rows)))
    missed = [text for row in rows for text in faults(row)]
    print("\n".join(f"MISSED: {text}" for text in missed) or "Target met.")
    print(json.dumps({"met": not missed, "quick": options.quick, "run": options.run.name, "rows": rows}))
    return 1 if missed else 0


def rivals(run: Run, folder: Path, images: int | None) -> Iterator[tuple[Any, Any, Any]]:
    """For each answer: the answer, the record of its fine-tuned network, and FastNAS's network, fine-tuned."""
    heaviest = extract(run.supernet("heaviest"), run.space.extreme()).eval()
    for number, answer in enumerate(run.answers):
        record = run.networks[answer.question]
        network = fastnas(heaviest, run.data, record.macs, folder / "sensitivity.pth", images)
        before = accuracy(network, run.data, run.data.validation, CPU).percent
        where = bench(run, Progress(), ALONE, folder / str(number))
        phase = run.settings(FinetuneSettings)
        tuned = train_from_scratch(network, where, phase, {"fastnas": answer.question}).eval()
        after = accuracy(tuned, run.data, run.data.validation, CPU).percent
        print(
            f"{answer.question}: FastNAS {before:.2f} % pruned, {after:.2f} % tuned (validation)", flush=True
        )
        yield answer, record, tuned


def compare(run: Run, pruned: list[tuple[Any, Any, Any]], seconds: float) -> list[dict[str, Any]]:
    """Latency of both networks of each limit in one session, and what they get right on the test images."""
    own = {answer.question: open_tuned(run, record.name).network for answer, record, _ in pruned}
    shape = (run.data.channels, *run.data.size)
    builders: dict[str, Callable[[], Any]] = {}
    for answer, _, network in pruned:
        builders[f"found {answer.question}"] = partial(lambda model: (model, shape), own[answer.question])
        builders[f"FastNAS {answer.question}"] = partial(lambda model: (model, shape), network)
    cost = COSTS.read(run).costs[run.answers[0].limits[0].cost]
    measured = measure_networks(measuring_again(cost, Plan(budget=seconds)))(builders)
    return [row(run, answer, own[answer.question], network, measured) for answer, _, network in pruned]


def row(run: Run, answer: Any, own: Any, network: Any, measured: dict[str, Interval]) -> dict[str, Any]:
    """What is told of one limit."""
    right, theirs = (correct(model, run.data, run.data.test, CPU) for model in (own, network))
    points, error = difference(right, theirs)
    return {
        "question": answer.question,
        "limit": answer.limits[0].value,
        "found": {
            "accuracy": 100 * float(right.mean()),
            "latency": measured[f"found {answer.question}"].value,
        },
        "fastnas": {
            "accuracy": 100 * float(theirs.mean()),
            "latency": measured[f"FastNAS {answer.question}"].value,
        },
        "lead": [points, error],
    }


def faults(row: dict[str, Any]) -> Iterator[str]:
    """Where the target is missed."""
    points, error = row["lead"]
    if points < -2 * error:
        yield f"{row['question']}: {-points:.2f} ± {error:.2f} points behind FastNAS"
    if row["found"]["latency"] > row["limit"]:
        yield f"{row['question']}: {row['found']['latency']:.4g} ms, the limit is {row['limit']:.4g} ms"


def table(rows: list[dict[str, Any]]) -> Iterator[str]:
    """Accuracies in percent of the test images, latencies in ms, FastNAS's as a ratio to ours too."""
    yield "limit (ms)     found            FastNAS                  ahead by"
    for item in rows:
        found, other, (points, error) = item["found"], item["fastnas"], item["lead"]
        ratio = other["latency"] / found["latency"]
        yield (
            f"{item['limit']:10.4g}  {found['accuracy']:6.2f} at {found['latency']:.4g}  "
            f"{other['accuracy']:6.2f} at {other['latency']:.4g} ({ratio:.2f} x)   {points:+.2f} ± {error:.2f}"
        )


if __name__ == "__main__":
    sys.exit(main())
