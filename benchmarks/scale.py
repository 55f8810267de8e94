"""How do search, predictors and report grow with the size of a question, and what is the largest that still answers?

    python benchmarks/scale.py            # everything, about 20 minutes
    python benchmarks/scale.py --quick    # within 60 seconds

Made-up spaces of stages x blocks x configs, one of the three grown at a time; limits 1 to 4; the paper's space with
contributions nearly or exactly proportional to the cost, the worst case of a frontier; passes of contributions against
images and processes; closed-form predictors against samples and decisions; the page against the points of its frontier.
Every row runs in a process of its own, in one thread; seconds are of its CPU time, which a busy machine changes little
(of several processes that share the work, of the one that took longest); memory is its peak. Exponents are fitted by least
squares of log seconds, and of log memory above that of a tiny instance, on log size. A space has at most 250,000 choices:
the largest instances are of that size. The last line is one JSON object; exit code 1 if a target is missed.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import time
from collections.abc import Callable
from typing import Any

import numpy as np

from binas.base.errors import BinasError
from binas.search import BilinearObjective, Limit, SearchProblem, best_architectures, frontier, solve
from binas.search.deadline import Deadline
from binas.space import load_space, sample_many
from binas.tables import Sample, Samples
from binas.tables.entries import Provenance
from binas.testing import make_problem, make_space
from binas.testing.paper_example import paper_contributions, paper_costs
from search import judge, peak_memory_mib

SERIES = {  # the part that grows, and its values; the first few with --quick
    "stages": ["5x4x12", "10x4x12", "20x4x12", "40x4x12", "80x4x12"],
    "blocks": ["5x4x12", "5x8x12", "5x16x12", "5x32x12", "5x64x12"],
    "configs": ["5x4x6", "5x4x12", "5x4x25", "5x4x50", "5x4x100"],
}
LARGEST = [
    "5x4x12",
    "10x8x24",
    "20x15x40",
    "30x20x60",
    "50x20x100",
    "50x20x250",
]  # the last: as large as spaces may be
THOUSAND = "50x20x100"  # 1,000 blocks of 100 configs
LARGEST_LIMITED = ["5x4x6", "5x4x12", "7x6x12", "10x8x12", "10x8x24", "20x15x40"]  # with three limits
LIMITS = (1, 2, 3, 4)
IMAGES = ("250", "500", "1000", "2000")
PROCESSES = ("1", "2", "4")
PASSES = 4
WITHIN = (1.0, 10.0, 60.0)
PREDICTORS = ("additive", "bilinear", "quadratic", "within-stage")
QUICK = 3
TARGETS = {
    "1000 blocks, 100 configs: gap": (1e-6, "one answer is proven at 1,000 blocks of 100 configs"),
    "top 10 / one answer": (20.0, "the ten best cost at most 20 times one answer"),
    "top 10 / one answer, several limits": (20.0, "the same with two and three limits"),
    "nearly proportional: frontier error": (0.001, "exact or certified within 0.001 points"),
    "memory GiB": (1.0, "no search and no frontier holds more than 1 GiB"),
}


def instance(size: str, limits: int = 1) -> SearchProblem:
    """Stages x blocks x configs with so many limits, each at 35 % of the largest cost."""
    problem = make_problem(make_space(*map(int, size.split("x"))), seed=0, extra_costs=limits - 1)
    return problem.with_limits([Limit(name, 0.35 * problem.scales[name]) for name in problem.costs])


def timed(function: Callable[[], Any]) -> tuple[Any, float]:
    """What a call gives, and its CPU seconds."""
    start = time.process_time()
    return function(), time.process_time() - start


def answer(size: str, limits: str = "1", time_limit: str = "60") -> dict[str, Any]:
    """One answer; the second call counts, the first also imports."""
    problem = instance(size, int(limits))
    solve(instance("2x2x3", int(limits)))
    deadline = Deadline.after(float(time_limit), time.process_time)
    result, seconds = timed(lambda: solve(problem, time_limit=deadline))
    return {
        "seconds": seconds,
        "gap": result.gap,
        "status": str(result.status),
        "method": result.details["method"],
    }


def top(size: str, limits: str = "1") -> dict[str, Any]:
    """The ten best."""
    problem = instance(size, int(limits))
    solve(problem)
    one = min(timed(lambda: solve(problem))[1] for _ in range(3))
    found, seconds = timed(lambda: best_architectures(problem, 10))
    return {"seconds": seconds, "one": one, "complete": found.complete}


def whole(size: str, time_limit: str = "60") -> dict[str, Any]:
    """The whole frontier."""
    return traced(instance(size).with_limits(()), float(time_limit))


def proportional(noise: str, time_limit: str) -> dict[str, Any]:
    """The frontier of the paper's space with contributions 0.1 * latency + noise (points)."""
    space, rng = load_space("imagenet-mbconv"), np.random.default_rng(0)
    costs = paper_costs(space)
    values = costs.costs["latency"].values.map(lambda x: 0.1 * x + rng.normal(0, float(noise), np.shape(x)))
    return traced(SearchProblem(space, BilinearObjective(70.0, values), costs.costs), float(time_limit))


def traced(problem: SearchProblem, time_limit: float) -> dict[str, Any]:
    deadline = Deadline.after(time_limit, time.process_time)
    found, seconds = timed(lambda: frontier(problem, "latency", time_limit=deadline))
    spread = float(found.accuracies[-1] - found.accuracies[0])
    return {
        "seconds": seconds,
        "points": len(found),
        "error": found.error,
        "share": found.error / spread,
        "stopped": found.stopped,
    }


def learned(name: str, size: str, count: str) -> dict[str, Any]:
    """A closed-form predictor fitted on so many networks of a made-up truth."""
    from binas.estimators.predictors import make_predictor

    problem = make_problem(make_space(*map(int, size.split("x"))), seed=0)
    drawn = dict.fromkeys(sample_many(problem.space, int(count), 0))  # a small space repeats itself
    rows = [Sample(item, problem.objective.accuracy(problem.space, item)) for item in drawn]
    samples = Samples(problem.space, tuple(rows), Provenance(source="made up"))
    _, seconds = timed(lambda: make_predictor(name, link="identity").fit(samples))
    return {"seconds": seconds, "decisions": problem.space.layout.size}


def passes(images: str, processes: str) -> dict[str, Any]:
    """Passes of contributions over so many images of an untrained supernet, shared out to so many processes."""
    from multiprocessing import get_context

    numbers = [list(range(PASSES))[rank :: int(processes)] for rank in range(int(processes))]
    with get_context("spawn").Pool(len(numbers)) as pool:
        spent = pool.starmap(_passes, [(int(images), own) for own in numbers], chunksize=1)
    seconds, memory = zip(*spent, strict=True)
    return {"seconds": max(seconds), "each_mib": max(memory)}


def _passes(count: int, numbers: list[int]) -> tuple[float, float]:
    """CPU seconds and peak memory (MiB) of some passes."""
    import torch

    from binas.contributions import SupernetEvaluator
    from binas.contributions.factorial import factorial_paths
    from binas.contributions.passes import pass_outcomes
    from binas.data import from_arrays
    from binas.supernet import Supernet

    torch.set_num_threads(1)
    space, rng = load_space("small-28"), np.random.default_rng(0)
    images = rng.integers(0, 256, (8 * count, 1, 28, 28)).astype(np.uint8)
    data = from_arrays(images, np.arange(8 * count) % 10, name="noise")
    evaluator = SupernetEvaluator(Supernet(space).eval(), data, data.validation.take(np.arange(count)))
    paths = factorial_paths(space, 0)
    _, seconds = timed(lambda: [pass_outcomes(evaluator, number, paths) for number in numbers])
    return seconds, peak_memory_mib()


def page(points: str) -> dict[str, Any]:
    """Bytes of the report of the paper's tables with so many points of the frontier at most."""
    from binas.report import frontier_numbers
    from binas.report.data import ReportData
    from binas.report.page import render

    frontier_numbers.MOST_POINTS = int(points)
    space = load_space("imagenet-mbconv")
    data = ReportData(space, paper_contributions(space), paper_costs(space), "latency")
    text, seconds = timed(lambda: render(data))
    return {"seconds": seconds, "bytes": len(text.encode())}


KINDS: dict[str, Callable[..., dict[str, Any]]] = {
    function.__name__: function for function in (answer, top, whole, proportional, passes, learned, page)
}


def measure(kind: str, *arguments: str) -> dict[str, Any]:
    """One row, in a process of its own."""
    command = [sys.executable, __file__, "--child", kind, *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    row: dict[str, Any] = {"kind": kind, "of": " ".join(arguments)}
    if done.returncode != 0:
        row["note"] = (done.stderr.strip().splitlines() or ["failed"])[-1]
    else:
        row |= json.loads(done.stdout.splitlines()[-1])
    more = ", ".join(f"{key} {value:.6g}" if isinstance(value, float) else f"{key} {value}" for key, value in row.items()
                     if key not in ("kind", "of", "seconds", "memory_mib"))  # fmt: skip
    print(
        f"{kind:14}{row['of']:28}{row.get('seconds', 0):10.3f}{row.get('memory_mib', 0):8.0f}  {more}",
        flush=True,
    )
    return row


def child(kind: str, *arguments: str) -> None:
    try:
        row = KINDS[kind](*arguments)
    except BinasError as error:
        row = {"note": str(error)}
    print(json.dumps({**row, "memory_mib": peak_memory_mib()}))


def exponent(sizes: list[float], seconds: list[float]) -> float | None:
    """Slope of log seconds on log size; None with fewer than two rows."""
    known = [(x, y) for x, y in zip(sizes, seconds, strict=True) if y > 0]
    return float(np.polyfit(*np.log(known).T, 1)[0]) if len(known) > 1 else None


def grown(rows: list[dict[str, Any]], part: int, key: str = "seconds", base: float = 0.0) -> float | None:
    """The exponent of a series whose sizes are stages x blocks x configs; of what is above ``base``."""
    done = [row for row in rows if "seconds" in row and not row.get("stopped")]
    return exponent(
        [float(row["of"].split()[0].split("x")[part]) for row in done], [row[key] - base for row in done]
    )


def by_word(rows: list[dict[str, Any]], word: int) -> float | None:
    """The exponent of seconds in one of the numbers that rows are named by."""
    done = [row for row in rows if "seconds" in row]
    return exponent([float(row["of"].split()[word]) for row in done], [row["seconds"] for row in done])


def largest(rows: list[dict[str, Any]], good: Callable[[dict[str, Any]], bool]) -> dict[str, str | None]:
    """The last of some growing instances that was answered well within each time."""
    return {
        f"{limit:g} s": next(
            (r["of"].split()[0] for r in reversed(rows) if good(r) and r["seconds"] <= limit), None
        )
        for limit in WITHIN
    }


def run(quick: bool) -> tuple[dict[str, Any], dict[str, float]]:
    """All rows, and the figures that targets speak of."""
    few, limit = (QUICK if quick else None), ("3" if quick else "60")
    print(f"{'what':14}{'of':28}{'CPU s':>10}{'MiB':>8}")
    result: dict[str, Any] = {"rows": [], "exponents": {}}
    base = measure("answer", "2x2x3", "1", limit)["memory_mib"]
    for part, (name, sizes) in enumerate(SERIES.items()):
        for kind in ("answer", "whole"):
            more = ("1", limit) if kind == "answer" else (limit,)
            rows = [measure(kind, size, *more) for size in sizes[:few]]
            result["rows"] += rows
            result["exponents"][f"{kind} / {name}"] = grown(rows, part)
            result["exponents"][f"{kind} memory / {name}"] = grown(rows, part, "memory_mib", base)
    several = [measure("answer", "5x4x12", str(k), limit) for k in (LIMITS[:3] if quick else LIMITS)]
    result["rows"] += several
    result["exponents"]["answer / limits"] = by_word(several, 1)
    answers = [measure("answer", size, "1", limit) for size in ([THOUSAND] if quick else LARGEST)]
    limited = [measure("answer", size, "3", limit) for size in LARGEST_LIMITED[: 2 if quick else None]]
    wholes = [measure("whole", size, limit) for size in ([THOUSAND] if quick else LARGEST)]
    tops = [measure("top", size) for size in ("5x4x12", "12x12x24", *(() if quick else ("20x15x40",)))]
    tops_several = [
        measure("top", size, str(k))
        for size in ("5x4x12", "10x8x12", *(() if quick else ("10x8x24",)))
        for k in ((2,) if quick else (2, 3))
    ]
    noises = [
        measure("proportional", noise, limit)
        for noise in (("0.0003",) if quick else ("0.0003", "0.0001", "0"))
    ]
    result["largest answered"] = largest(answers, lambda row: row.get("status") == "optimal")
    result["largest exact frontier"] = largest(wholes, lambda row: row.get("error") == 0.0)
    result["largest answered, three limits"] = largest(limited, lambda row: row.get("status") == "optimal")
    result["rows"] += answers + limited + wholes + tops + tops_several + noises
    pass_rows(result, quick)
    learned_rows(result, quick)
    pages = [measure("page", str(count)) for count in ((200, 2000) if quick else (200, 600, 2000, 6000))]
    result["rows"] += pages
    result["exponents"]["page / points"] = exponent(
        [float(row["of"]) for row in pages], [float(row["bytes"]) for row in pages]
    )
    searched = [row for row in result["rows"] if row["kind"] in ("answer", "whole", "top", "proportional")]
    figures = {
        "1000 blocks, 100 configs: gap": number(of(answers, THOUSAND).get("gap")),
        "1000 blocks, 100 configs: frontier error": number(of(wholes, THOUSAND).get("share")),
        "top 10 / one answer": max(row["seconds"] / row["one"] for row in tops),
        "top 10 / one answer, several limits": max(row["seconds"] / row["one"] for row in tops_several),
        "nearly proportional: frontier error": max(number(row.get("error")) for row in noises),
        "memory GiB": max(row.get("memory_mib", np.inf) for row in searched) / 1024,
    }
    return result, figures


def of(rows: list[dict[str, Any]], size: str) -> dict[str, Any]:
    return next(row for row in rows if row["of"].split()[0] == size)


def pass_rows(result: dict[str, Any], quick: bool) -> None:
    """Passes of contributions against images, and against processes."""
    by_images = [measure("passes", count, "1") for count in (IMAGES[:2] if quick else IMAGES)]
    by_processes = [measure("passes", IMAGES[1], count) for count in (PROCESSES[:2] if quick else PROCESSES)]
    result["rows"] += by_images + by_processes
    result["exponents"]["passes / images"] = by_word(by_images, 0)
    result["exponents"]["passes / processes"] = by_word(by_processes, 1)


def learned_rows(result: dict[str, Any], quick: bool) -> None:
    """Predictors against samples, and against decisions."""
    for name in PREDICTORS[:1] if quick else PREDICTORS:
        counts = ("100", "400") if quick else ("100", "300", "1000", "3000")
        by_count = [measure("learned", name, "5x4x6", count) for count in counts]
        sizes = ("5x2x4", "5x4x6") if quick else ("5x2x4", "5x4x6", "5x4x12", "10x4x12")
        by_size = [measure("learned", name, size, "300") for size in sizes]
        result["rows"] += by_count + by_size
        result["exponents"][f"{name} / samples"] = by_word(by_count, -1)
        done = [row for row in by_size if "seconds" in row]
        result["exponents"][f"{name} / decisions"] = exponent(
            [float(row["decisions"]) for row in done], [row["seconds"] for row in done]
        )


def number(value: float | None) -> float:
    return float("inf") if value is None else value


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--quick", action="store_true", help="within 60 seconds")
    parser.add_argument("--child", nargs="+", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.child:
        child(*options.child)
        return 0
    result, figures = run(options.quick)
    print(
        "\nexponents: " + ", ".join(f"{k} {v:.2f}" for k, v in result["exponents"].items() if v is not None)
    )
    for name in ("largest answered", "largest answered, three limits", "largest exact frontier"):
        print(f"{name} within: " + ", ".join(f"{k} {v}" for k, v in result[name].items()))
    targets = dict(TARGETS)
    if options.quick:  # three seconds are not enough for an error that means something
        targets = {name: target for name, target in TARGETS.items() if "frontier error" not in name}
    good = judge(figures, targets)
    print(json.dumps({**result, "figures": figures, "targets_met": good}))
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
