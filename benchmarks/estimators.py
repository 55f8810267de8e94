"""Does the chosen estimator find better networks than plain contributions?

    python benchmarks/estimators.py             # several minutes
    python benchmarks/estimators.py --quick     # within 60 seconds
    python benchmarks/estimators.py --run RUN   # a finished run: its tables, its supernet, its test images

NAS-Bench-Macro (needs BINAS_TABLES): 3,969 trained networks, three trainings each. Contributions come from n networks
through the factorial protocol, samples are n others drawn at random; both see the first training only. ``auto`` is what
``choose_estimator`` takes on these samples. Under limits on FLOPs and parameters both estimators are searched exactly, and
the networks found are looked up: mean accuracy of the *other* two trainings, so that luck in what was measured does not
count.

A run: contributions, samples and costs of its folder; under limits spread over the range of its latency the networks
found are measured with the supernet's weights, BatchNorm re-estimated, on test images, which no estimator has seen.

Targets: at every limit ``auto`` is at least as good as ``additive`` within two standard errors of the difference (over
seeds, or over images; with so many limits one standard error is missed by chance), and on average over all limits it is
no worse at all. The last line is one JSON object; exit code 1 if a target is missed.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import sys
import tempfile
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from binas.contributions import Journal, TableEvaluator, factorial
from binas.estimators import choose_estimator, make_estimator
from binas.search import Limit, SearchProblem, frontier, solve
from binas.space import Architecture, SearchSpace, load_space, sample_many
from binas.tables import (
    Column,
    Contributions,
    Cost,
    Sample,
    Samples,
    load_contributions,
    load_costs,
    load_samples,
)
from binas.tables.units import parse_unit
from binas.testing.tables import MacroRecord, read_nas_bench_macro

TABLE = "nas_bench_macro_cifar10.json"
IMAGES = 10  # "images" of the factorial protocol: the fewest it takes
SHARES = (0.1, 0.25, 0.5, 0.8)
PLAIN = "additive"


@dataclass(frozen=True)
class Size:
    """How much is tried."""

    samples: tuple[int, ...]
    seeds: int
    shares: tuple[float, ...]


FULL = Size((100, 300, 1000), 10, SHARES)
QUICK = Size((100, 300), 4, (0.25, 0.8))


@dataclass(frozen=True)
class Row:
    """One limit: mean true accuracy with both estimators, the mean difference and its standard error, in points."""

    samples: int
    limit: str
    plain: float
    chosen: float
    gain: float
    error: float

    @property
    def met(self) -> bool:
        """Whether the chosen estimator is at least as good within two standard errors."""
        return self.gain >= -2 * self.error - 1e-9


class Macro:
    """NAS-Bench-Macro as a place to search in."""

    def __init__(self, path: Path) -> None:
        self.records, self.space = read_nas_bench_macro(path), load_space("nas-bench-macro")
        units = {"flops": "FLOPs", "params": "params"}
        self.costs = {
            name: additive_cost(self.space, self.records, name, unit) for name, unit in units.items()
        }

    def limits(self, shares: Sequence[float]) -> list[Limit]:
        """Limits that a share of all networks keeps, on each cost."""
        return [
            Limit(name, float(np.quantile([getattr(r, name) for r in self.records.values()], share)))
            for name in self.costs
            for share in shares
        ]

    def measured(self, architecture: Architecture) -> float:
        """What estimators see: the first training."""
        return self.records[architecture].runs[0]

    def truth(self, architecture: Architecture) -> float:
        """What networks are judged by: the mean of the other trainings."""
        return float(np.mean(self.records[architecture].runs[1:]))

    def samples(self, count: int, seed: int) -> Samples:
        """Networks drawn at random, each once."""
        drawn = list(dict.fromkeys(sample_many(self.space, 3 * count, 1000 + seed)))[:count]
        return Samples(self.space, tuple(Sample(item, self.measured(item)) for item in drawn))

    def contributions(self, count: int, seed: int) -> Contributions:
        """Contributions from ``count`` networks looked up by the factorial protocol."""
        evaluator = TableEvaluator(self.space, self.measured, IMAGES)
        with tempfile.TemporaryDirectory() as folder:
            journal = Journal(Path(folder), {"images": IMAGES})
            *_, answer = factorial(evaluator, journal, count // IMAGES, "correct", None, seed)
        return answer


def additive_cost(space: SearchSpace, records: dict[Architecture, MacroRecord], name: str, unit: str) -> Cost:
    """FLOPs and parameters add up over the layers: solved for from all networks."""
    rows = np.column_stack([np.ones(len(records)), space.layout.rows(records)])
    totals = np.array([getattr(record, name) for record in records.values()], dtype=np.float64)
    solution = np.linalg.lstsq(rows, totals, rcond=None)[0]
    assert np.abs(rows @ solution - totals).max() < 1.0, name
    return Cost(name, parse_unit(unit), float(solution[0]), Column.from_flat(space, solution[1:]))


def find(
    name: str, contributions: Contributions, samples: Samples, problem: SearchProblem
) -> list[Architecture]:
    """The best network under each limit of ``problem`` taken alone, with one estimator."""
    estimator = make_estimator(name, contributions, samples)
    found = []
    for limit in problem.limits:
        result = solve(SearchProblem.build(estimator, problem.costs, [limit]))
        assert result.architecture is not None, (name, limit)
        found.append(result.architecture)
    return found


def on_macro(macro: Macro, size: Size, first: int = 0) -> tuple[list[Row], dict[str, Any]]:
    """Rows for every number of samples and limit, and how often which estimator was chosen."""
    limits = macro.limits(size.shares)
    problem = SearchProblem.build(macro.contributions(100, 0), macro.costs, limits)
    rows, names = [], {}
    for count in size.samples:
        pairs, chosen = [], Counter[str]()
        for seed in range(first, first + size.seeds):
            contributions, samples = macro.contributions(count, seed), macro.samples(count, seed)
            choice = choose_estimator(contributions, samples, resamples=100, seed=seed)
            chosen[choice.chosen] += 1
            both = [find(name, contributions, samples, problem) for name in (PLAIN, choice.chosen)]
            pairs.append([[macro.truth(item) for item in items] for items in both])
        table = np.array(pairs)  # (seeds, 2, limits)
        gains = table[:, 1] - table[:, 0]
        for k, limit in enumerate(limits):
            error = float(gains[:, k].std(ddof=1) / math.sqrt(size.seeds))
            plain, auto = table[:, :, k].mean(axis=0)
            row = Row(count, problem.describe_limit(limit), plain, auto, float(gains[:, k].mean()), error)
            rows.append(row)
            show(row)
        names[str(count)] = dict(chosen)
        print(
            f"{count} samples, chosen: {', '.join(f'{name} {n}x' for name, n in chosen.most_common())}",
            flush=True,
        )
    return rows, names


def on_run(folder: Path) -> tuple[list[Row], dict[str, Any]]:
    """The same question asked of a finished run, with its supernet on test images."""
    from binas.contributions.sampling import correct_images
    from binas.run.run import open_run
    from binas.training.config import TrainSettings

    run = open_run(folder)
    contributions = load_contributions(folder / "contributions.json", run.space)
    samples = load_samples(folder / "samples.json", run.space)
    costs = load_costs(folder / "costs.json", run.space).costs
    choice = choose_estimator(contributions, samples)
    print(choice.why)
    cost = "latency" if "latency" in costs else next(iter(costs))
    traced = frontier(SearchProblem.build(contributions, costs), cost)
    low, high = float(traced.costs[0]), float(traced.costs[-1])
    limits = [Limit(cost, low + share * (high - low)) for share in SHARES]
    problem = SearchProblem.build(contributions, costs, limits)
    plain, chosen = (find(name, contributions, samples, problem) for name in (PLAIN, choice.chosen))
    supernet, recalibration = run.supernet(), run.settings(TrainSettings).supernet.recalibration
    rights = {
        item: correct_images(supernet, item, run.data, [run.data.test], recalibration)[0].astype(np.float64)
        for item in dict.fromkeys([*plain, *chosen])
    }
    rows = []
    for limit, first, second in zip(limits, plain, chosen, strict=True):
        gain = 100 * (rights[second] - rights[first])
        means = [100 * float(rights[item].mean()) for item in (first, second)]
        error = float(gain.std(ddof=1) / math.sqrt(len(gain)))
        rows.append(Row(len(samples), problem.describe_limit(limit), *means, float(gain.mean()), error))
        show(rows[-1])
    return rows, {str(len(samples)): {choice.chosen: 1}}


def show(row: Row) -> None:
    """One line of the table."""
    mark = "" if row.met else "  MISSED"
    print(
        f"{row.samples:8}  {row.limit:26}{row.plain:10.3f}{row.chosen:10.3f}{row.gain:+10.3f} ± {row.error:.3f}{mark}",
        flush=True,
    )


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="fewer samples, seeds and limits")
    parser.add_argument("--first-seed", type=int, default=0, help="seeds nobody has looked at: 100 and up")
    parser.add_argument("--run", type=Path, help="folder of a finished run, instead of NAS-Bench-Macro")
    options = parser.parse_args()
    tables = os.environ.get("BINAS_TABLES")
    if options.run is None and (tables is None or not (Path(tables) / TABLE).exists()):
        print(f"BINAS_TABLES names no folder with {TABLE}; nothing to measure.")
        print(json.dumps({"met": None, "rows": []}))
        return 0
    print(f"{'samples':>8}  {'limit':26}{PLAIN:>10}{'auto':>10}{'gain':>10}")
    if options.run is not None:
        rows, names = on_run(options.run)
    else:
        size = QUICK if options.quick else FULL
        rows, names = on_macro(Macro(Path(str(tables)) / TABLE), size, options.first_seed)
    mean, missed = float(np.mean([row.gain for row in rows])), sum(not row.met for row in rows)
    met = not missed and mean >= 0.0
    verdict = "all targets met." if met else f"MISSED; {missed} of {len(rows)} limits are worse."
    print(f"Mean gain {mean:+.3f} points; {verdict}")
    print(
        json.dumps(
            {"met": met, "mean_gain": round(mean, 4), "chosen": names, "rows": [vars(row) for row in rows]}
        )
    )
    return 0 if met else 1


if __name__ == "__main__":
    sys.exit(main())
