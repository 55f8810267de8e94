"""Is a time budget kept? `binas demo --time`, run for real in a process of its own.

    python benchmarks/budget.py            # 3 and 10 minutes
    python benchmarks/budget.py --quick    # 3 minutes

The limit is the budget itself: a run must take between 85 and 115 % of the time it was given, on a machine that does nothing
else meanwhile. The table has every step's planned and real seconds with their ratio; the last line is one JSON object;
exit code 1 if a budget is missed.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from binas.base.times import parse_duration
from binas.run.plan import plan_of
from binas.run.run import open_run

TOLERANCE = 0.15


def run_demo(budget: str, folder: Path) -> dict[str, Any]:
    """Asked and taken seconds, and those of each step."""
    command = [sys.executable, "-m", "binas", "demo", "--out", str(folder), "--time", budget, "--quiet"]
    start = time.perf_counter()
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    taken = time.perf_counter() - start
    run = open_run(folder)
    plan = plan_of(run)
    assert plan is not None  # it was given a time
    took = {item.state.step.name: item.took or 0.0 for item in run.status}
    steps = {name: (seconds.total, took[name]) for name, seconds in plan.expected.items()}
    asked = parse_duration(budget)
    return {
        "budget": budget,
        "asked": asked,
        "taken": taken,
        "before": plan.spent,
        "steps": steps,
        "chosen": plan.chosen,
    }


def show(found: dict[str, Any]) -> None:
    """A row per step."""
    print(f"\n--time {found['budget']}: {json.dumps(found['chosen'])}")
    print(f"{'step':<18}{'planned s':>12}{'taken s':>12}{'ratio':>8}")
    for name, (planned, took) in found["steps"].items():
        print(f"{name:<18}{planned:>12.1f}{took:>12.1f}{took / planned if planned else 0.0:>8.2f}")
    asked, taken = found["asked"], found["taken"]
    print(f"{'all':<18}{asked:>12.1f}{taken:>12.1f}{taken / asked:>8.2f}  (asked, taken)")


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="the short budget only")
    budgets = ["3min"] if parser.parse_args().quick else ["3min", "10min"]
    results = []
    for budget in budgets:
        with tempfile.TemporaryDirectory() as folder:
            results.append(run_demo(budget, Path(folder) / "run"))
        show(results[-1])
    ratios = {item["budget"]: round(item["taken"] / item["asked"], 3) for item in results}
    missed = {budget: ratio for budget, ratio in ratios.items() if abs(ratio - 1) > TOLERANCE}
    print(
        "\n".join(f"MISSED: --time {budget} took {ratio:.2f} of it" for budget, ratio in missed.items())
        or "Kept."
    )
    print(json.dumps({"met": not missed, "taken_of_asked": ratios}))
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
