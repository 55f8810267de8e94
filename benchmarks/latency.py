"""Does the latency formula hold on this machine? Predicted against measured whole networks.

    python benchmarks/latency.py            # small-28 and imagenet-mbconv, onnxruntime and torch: up to 25 minutes
    python benchmarks/latency.py --quick    # small-28 only, 20 seconds of measuring for each backend

One CPU thread, batch 1, float32. Each row is one session of `binas measure`: all distinct blocks, the fixed part and
34 whole networks, measured taking turns; 14 networks (12 random, the lightest, the heaviest) calibrate the table, the
other 20 (18 random, deep but light, shallow but heavy) only verify it. Columns:

* mape, worst, bias: errors of the table on the networks held out, in percent of measured;
* spearman, kendall: ranks of those networks by the table against measured;
* retest: mean difference between two halves of the same measurements, the floor for any formula;
* sum: the plain sum of isolated blocks; macs: a line through multiply-accumulates; form: what the table uses;
* control: how much longer than its fastest tenth a quarter of the control's samples took (noise of the machine).

The last line is one JSON object; exit code 1 if a target is missed.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
import warnings
from typing import Any

from binas.costs.machine import cpu_name
from binas.costs.measure import Measuring, measure_space
from binas.costs.session import Plan
from binas.costs.settings import Settings
from binas.space import load_space

BACKENDS = ("onnxruntime", "torch")
TARGETS = {
    "small-28": {"mape": 2.0, "worst": 6.0, "spearman": 0.99},
    "imagenet-mbconv": {"mape": 3.0},
}
COLUMNS = ("mape", "worst", "bias", "spearman", "kendall", "retest", "sum", "macs", "control", "seconds")


def measure(space: str, backend: str, budget: float, seed: int) -> dict[str, Any]:
    """One session, as a row of numbers."""
    start = time.perf_counter()
    how = Measuring(Settings(backend=backend), plan=Plan(budget=budget, seed=seed))
    done = measure_space(load_space(space), how, samples=30, seed=seed)
    known = done.cost.provenance
    assert known.verification is not None
    assert known.calibration is not None
    found = known.verification
    return {
        "space": space,
        "backend": backend,
        "runtime": known.runtime,
        "form": known.calibration.form,
        "mape": found.mape_percent.value,
        "mape_interval": [found.mape_percent.low, found.mape_percent.high],
        "worst": found.worst_percent,
        "bias": found.bias_percent.value,
        "spearman": found.spearman.value,
        "kendall": found.kendall.value,
        "retest": found.retest_percent,
        "sum": found.sum_percent,
        "macs": found.macs_percent,
        "control": 100 * done.session.control.spread,
        "drift": 100 * done.session.drift.change,
        "seconds": time.perf_counter() - start,
        "warnings": list(done.session.warnings),
    }


def missed(row: dict[str, Any]) -> list[str]:
    """The targets a row does not reach; a rank correlation must be at least its target, errors at most."""
    return [
        f"{row['space']} {row['backend']}: {key} {row[key]:.3f}, target {target:g}"
        for key, target in TARGETS[row["space"]].items()
        if (row[key] < target if key == "spearman" else row[key] > target)
    ]


def show(row: dict[str, Any]) -> None:
    numbers = "  ".join(f"{row[key]:8.3f}" if row[key] is not None else "       -" for key in COLUMNS)
    print(f"{row['space']:16} {row['backend']:12} {row['form']:10} {numbers}", flush=True)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "--quick", action="store_true", help="the space small-28 only, 20 seconds each at most"
    )
    parser.add_argument("--budget", type=float, default=300.0, help="seconds of measuring per row, at most")
    parser.add_argument("--seed", type=int, default=0, help="draws the networks")
    options = parser.parse_args()
    warnings.simplefilter("ignore")  # the exporter's, about its age
    print(f"{cpu_name()}, {os.cpu_count()} CPUs, load {os.getloadavg()[0]:.1f}, one thread, batch 1, float32")
    print(f"{'space':16} {'backend':12} {'form':10} " + "  ".join(f"{key:>8}" for key in COLUMNS))
    rows = []
    for space in list(TARGETS)[: 1 if options.quick else None]:
        for backend in BACKENDS:
            budget = min(options.budget, 20.0) if options.quick else options.budget
            rows.append(measure(space, backend, budget, options.seed))
            show(rows[-1])
    failures = [failure for row in rows for failure in missed(row)]
    print(json.dumps({"cpu": cpu_name(), "rows": rows, "missed": failures}))
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
