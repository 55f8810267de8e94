"""How fast and how good are the solvers, against each other and against what others use today?

    python benchmarks/search.py            # everything, about 15 minutes
    python benchmarks/search.py --quick    # within 60 seconds

Instances: the paper's space with its reconstructed tables, the TF-NAS tables (real latencies, needs
BINAS_TABLES), and a growth series of made-up spaces. Peers measured in the same run: SCIP on the paper's
bilinear program, HiGHS and CBC (through PuLP) on the tight form, CPLEX and Gurobi where their free editions
take the size, evolution as once-for-all runs it, and folding a frontier naively. Times are medians; ratios
count, absolute times depend on the machine. The last line is one JSON object; exit code 1 if a target is missed.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from binas.errors import BinasError
from binas.pipeline.example import paper_contributions, paper_costs
from binas.search import Limit, SearchProblem, evaluate, frontier, make_solver, solve
from binas.search.matrices import tight_form
from binas.search.objective import BilinearObjective
from binas.search.terms import build_terms, cost_row
from binas.space import Encoding, crossover, load_space, mutate, sample
from binas.testing import make_problem, make_space
from binas.testing.tables import read_tfnas

GROWTH = [(5, 4, 12), (7, 6, 12), (10, 8, 12), (10, 8, 50), (12, 12, 24)]
TARGETS = {
    "frontier / SCIP": (1 / 40, "the whole frontier costs at most 1/40 of one SCIP solve"),
    "frontier / HiGHS": (1.0, "the whole frontier is cheaper than one HiGHS solve"),
    "frontier / CBC": (1.0, "the whole frontier is cheaper than one CBC solve"),
    "auto / SCIP": (1 / 200, "one proven answer costs at most 1/200 of SCIP"),
    "auto / HiGHS": (1 / 5, "one proven answer costs at most 1/5 of HiGHS"),
}
BIG_TARGETS = {
    "12x12x24 fold / naive": (
        1 / 10,
        "the 12x12x24 frontier is at least 10 times faster than folding naively",
    ),
    "12x12x24 certified error": (0.01, "its certified error is below 0.01 points"),
    "12x12x24 memory GiB": (1.0, "it stays under 1 GiB"),
}


def median_time(function: Callable[[], Any], repeats: int) -> float:
    """Median seconds of several calls, after one that does not count."""
    function()
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        function()
        times.append(time.perf_counter() - start)
    return statistics.median(times)


def cbc(problem: SearchProblem) -> tuple[float, float]:
    """(seconds, objective) of CBC on the tight form through PuLP, model building not counted."""
    import pulp

    form = tight_form(problem)
    model = pulp.LpProblem("binas", pulp.LpMaximize)
    x = [pulp.LpVariable(f"x{i}", cat="Binary") for i in range(len(form.objective))]
    model += pulp.lpDot(form.objective.tolist(), x)
    matrix = form.equality
    for row, right in enumerate(form.right.tolist()):
        part = slice(matrix.indptr[row], matrix.indptr[row + 1])
        pairs = zip(matrix.indices[part].tolist(), matrix.data[part].tolist(), strict=True)
        model += pulp.LpAffineExpression([(x[j], v) for j, v in pairs]) == right
    for row, bound in zip(form.rows.tolist(), form.bounds.tolist(), strict=True):
        model += pulp.lpDot(row, x) <= bound
    start = time.perf_counter()
    model.solve(pulp.PULP_CBC_CMD(msg=False, gapRel=0.0, gapAbs=0.0, threads=1))
    seconds = time.perf_counter() - start
    point = np.array([variable.value() or 0.0 for variable in x])
    size = problem.space.alpha_size
    found = Encoding(problem.space).round(point[:size], point[size:])
    return seconds, evaluate(problem, found).accuracy


def ofa_evolution(problem: SearchProblem, seed: int, generations: int = 500) -> tuple[float, float]:
    """(seconds, objective) of evolution as once-for-all does it: one architecture at a time, by rejection."""
    rng, start = np.random.default_rng(seed), time.perf_counter()

    def drawn(make: Callable[[], Any]) -> Any:
        for _ in range(1000):
            judged = evaluate(problem, make())
            if judged.feasible:
                return judged
        return None

    def pick(pool: list[Any]) -> Any:
        return pool[int(rng.integers(len(pool)))]

    population = [x for x in (drawn(lambda: sample(problem.space, rng)) for _ in range(100)) if x]
    for _ in range(generations if population else 0):
        parents = sorted(population, key=lambda x: -x.accuracy)[:25]
        pool = [parent.architecture for parent in parents]
        children = [drawn(lambda p=pool: mutate(problem.space, pick(p), rng, 0.1)) for _ in range(50)]
        children += [drawn(lambda p=pool: crossover(problem.space, pick(p), pick(p), rng)) for _ in range(50)]
        population = parents + [child for child in children if child]
    best = max((x.accuracy for x in population), default=float("nan"))
    return time.perf_counter() - start, best


def naive_fold(problem: SearchProblem, cost: str = "latency") -> tuple[np.ndarray, np.ndarray]:
    """The frontier (costs, values) by sorting all pairwise sums, values only: what one writes first."""

    def front(value: np.ndarray, spent: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        order = np.lexsort((-value, spent))
        value, spent = value[order], spent[order]
        keep = np.append(True, value[1:] > np.maximum.accumulate(value)[:-1])
        return value[keep], spent[keep]

    terms = build_terms(problem, [cost_row(cost)])
    total = (np.zeros(1), np.zeros(1))
    for stage in terms.stages:
        prefix, parts = (np.zeros(1), np.zeros(1)), []
        for depth in range(1, stage.depths[-1] + 1):
            block = stage.blocks[depth - 1]
            prefix = front(*(np.add.outer(p, b).ravel() for p, b in zip(prefix, block, strict=True)))
            if depth in stage.depths:
                extra = stage.depth[:, stage.depths.index(depth)]
                parts.append((prefix[0] + extra[0], prefix[1] + extra[1]))
        union = front(*(np.concatenate(side) for side in zip(*parts, strict=True)))
        total = front(*(np.add.outer(t, u).ravel() for t, u in zip(total, union, strict=True)))
    return total[1] + terms.constant[1], total[0] + terms.constant[0]


def paper_problem(limit_ms: float) -> SearchProblem:
    space = load_space("imagenet-mbconv")
    return SearchProblem.build(paper_contributions(space), paper_costs(space), [f"latency={limit_ms}ms"])


def tfnas_problem(device: str) -> SearchProblem | None:
    """Real TF-NAS latencies with made-up contributions (wider, larger and deeper is better, seeded noise)."""
    folder = os.environ.get("BINAS_TABLES")
    if folder is None:
        return None
    space, costs = read_tfnas(Path(folder) / "tfnas_block_latency.json", device)
    made = make_problem(space, seed=0)
    assert isinstance(made.objective, BilinearObjective)
    problem = SearchProblem(space, made.objective, costs.costs)
    points = frontier(problem, "latency")
    middle = float(points.costs[0] + 0.4 * (points.costs[-1] - points.costs[0]))
    return problem.with_limits([Limit("latency", middle)])


def solver_rows(
    problem: SearchProblem, names: list[str], time_limit: float, seeds: int
) -> list[dict[str, Any]]:
    """Every solver on one problem: median seconds, worst gap over seeds, limit kept."""
    best = solve(problem, "milp").accuracy
    assert best is not None
    rows = []
    for name in names:
        if make_solver(name).missing() is not None:
            rows.append({"solver": name, "note": f"not installed: {make_solver(name).missing()}"})
            continue
        random = not make_solver(name).capabilities.exact and name != "best-of"
        try:
            results = [
                solve(problem, name, seed=k, time_limit=time_limit) for k in range(seeds if random else 1)
            ]
        except BinasError as error:
            rows.append({"solver": name, "note": str(error)})
            continue
        gaps = [best - r.accuracy for r in results if r.accuracy is not None]
        rows.append(
            {
                "solver": name,
                "seconds": statistics.median(r.seconds for r in results),
                "gap": max(gaps) if gaps else None,
                "kept": all(r.evaluation.feasible for r in results if r.evaluation is not None),
                "status": str(results[0].status),
            }
        )
    for name, run in (
        ("CBC (PuLP)", lambda: cbc(problem)),
        ("OFA-style evolution", lambda: ofa_evolution(problem, 0)),
    ):
        seconds, value = run()
        rows.append({"solver": name, "seconds": seconds, "gap": best - value, "kept": True, "status": ""})
    return rows


def print_rows(title: str, rows: list[dict[str, Any]], reference: str = "miqcp") -> None:
    base = next((row["seconds"] for row in rows if row["solver"] == reference and "seconds" in row), None)
    print(f"\n{title}\n{'solver':22}{'ms':>12}{'/ SCIP':>10}{'gap':>10}  kept  status")
    for row in rows:
        if "note" in row:
            print(f"{row['solver']:22}{row['note'][:90]}")
            continue
        ratio = f"{row['seconds'] / base:10.4f}" if base else f"{'-':>10}"
        gap = "-" if row["gap"] is None else f"{row['gap']:.4f}"
        kept = "yes" if row["kept"] else "NO"
        print(f"{row['solver']:22}{row['seconds'] * 1e3:12.2f}{ratio}{gap:>10}  {kept:4}  {row['status']}")


def speed_ratios(quick: bool) -> dict[str, float]:
    """The times that the targets speak of, on the paper-sized instance, medians over limits and repeats."""
    limits = [40, 45, 50] if quick else [35, 40, 45, 50, 55, 60, 70]
    seconds: dict[str, list[float]] = {name: [] for name in ("SCIP", "HiGHS", "CBC", "auto", "frontier")}
    for limit in limits:
        problem = paper_problem(limit)
        seconds["SCIP"].append(solve(problem, "miqcp").seconds)
        seconds["HiGHS"].append(median_time(lambda p=problem: solve(p, "milp"), 3))
        seconds["CBC"].append(statistics.median(cbc(problem)[0] for _ in range(3)))
        seconds["auto"].append(median_time(lambda p=problem: solve(p, "auto"), 15))
        seconds["frontier"].append(median_time(lambda p=problem: frontier(p.with_limits(()), "latency"), 9))
    return {name: statistics.median(times) for name, times in seconds.items()}


def child(kind: str, dims: str) -> None:
    """Run one frontier in this process and print time, size, error and peak memory."""
    problem = make_problem(make_space(*map(int, dims.split("x"))), seed=0)
    start = time.perf_counter()
    if kind == "naive":
        costs, values = naive_fold(problem)
        error = 0.0
    else:
        found = frontier(problem, "latency")
        costs, values, error = found.costs, found.accuracies, found.error
    seconds = time.perf_counter() - start
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    result = {
        "seconds": seconds,
        "points": len(costs),
        "error": error,
        "memory_gib": memory,
        "sum": float(values.sum()),
    }
    print(json.dumps(result))


def in_child(kind: str, dims: tuple[int, int, int]) -> dict[str, Any]:
    name = "x".join(map(str, dims))
    command = [sys.executable, __file__, "--child", kind, name]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return dict(json.loads(done.stdout))


def growth_rows(quick: bool) -> list[dict[str, Any]]:
    rows = []
    for dims in GROWTH[:3] if quick else GROWTH:
        ours, naive = in_child("fold", dims), in_child("naive", dims)
        assert ours["error"] > 0 or (
            ours["points"] == naive["points"] and np.isclose(ours["sum"], naive["sum"])
        )
        problem = make_problem(make_space(*dims), seed=0)
        problem = problem.with_limits([Limit("latency", 0.35 * problem.scales["latency"])])
        auto, milp = median_time(lambda p=problem: solve(p, "auto"), 5), solve(problem, "milp")
        assert abs((milp.accuracy or 0) - (solve(problem, "auto").accuracy or 0)) < 1e-6
        rows.append(
            {
                "dims": "x".join(map(str, dims)),
                "fold": ours,
                "naive": naive,
                "auto": auto,
                "milp": milp.seconds,
            }
        )
    return rows


def print_growth(rows: list[dict[str, Any]]) -> None:
    print("\ngrowth series: stages x blocks x configs, whole frontier and one answer")
    print(
        f"{'size':12}{'points':>9}{'fold s':>9}{'naive s':>9}{'ratio':>8}{'error':>8}{'MiB':>7}"
        f"{'auto ms':>9}{'HiGHS ms':>10}"
    )
    for row in rows:
        fold, naive = row["fold"], row["naive"]
        print(
            f"{row['dims']:12}{fold['points']:9}{fold['seconds']:9.3f}{naive['seconds']:9.3f}"
            f"{fold['seconds'] / naive['seconds']:8.3f}{fold['error']:8.4f}{fold['memory_gib'] * 1024:7.0f}"
            f"{row['auto'] * 1e3:9.2f}{row['milp'] * 1e3:10.1f}"
        )


def judge(figures: dict[str, float], targets: dict[str, tuple[float, str]]) -> bool:
    print("\ntargets")
    good = True
    for name, (limit, words) in targets.items():
        met = figures[name] <= limit
        good &= met
        print(f"{'met   ' if met else 'MISSED'} {name} = {figures[name]:.5f} (at most {limit:.5f}): {words}")
    return good


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--quick", action="store_true", help="within 60 seconds")
    parser.add_argument("--child", nargs=2, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.child:
        child(*options.child)
        return 0
    seconds = speed_ratios(options.quick)
    figures = {
        f"{a} / {b}": seconds[a] / seconds[b] for a in ("frontier", "auto") for b in ("SCIP", "HiGHS", "CBC")
    }
    print(
        "paper-sized instance, medians over limits: "
        + ", ".join(f"{k} {v * 1e3:.2f} ms" for k, v in seconds.items())
    )
    names = [
        "auto",
        "frontier",
        "milp",
        "miqcp",
        "miqcp-gurobi",
        "bcfw",
        "bcfw-product",
        "frank-wolfe",
        "evolution",
        "random",
    ]
    names += [] if options.quick else ["miqcp-cplex", "best-of"]
    rows = solver_rows(paper_problem(45), names, 100.0, 2 if options.quick else 5)
    print_rows("paper-sized instance, 45 ms (worst gap over seeds)", rows)
    tables: dict[str, Any] = {"paper": rows}
    for device in () if options.quick else ("cpu", "gpu"):
        problem = tfnas_problem(device)
        if problem is None:
            print("\nTF-NAS tables skipped: BINAS_TABLES is not set")
            continue
        tables[f"tfnas-{device}"] = solver_rows(problem, [n for n in names if n != "miqcp-cplex"], 100.0, 3)
        print_rows(f"TF-NAS {device} latencies, {problem.describe_limits()}", tables[f"tfnas-{device}"])
    growth = growth_rows(options.quick)
    print_growth(growth)
    targets = dict(TARGETS)
    if not options.quick:
        big = growth[-1]
        figures["12x12x24 fold / naive"] = big["fold"]["seconds"] / big["naive"]["seconds"]
        figures["12x12x24 certified error"] = big["fold"]["error"]
        figures["12x12x24 memory GiB"] = big["fold"]["memory_gib"]
        targets |= BIG_TARGETS
    good = judge(figures, targets)
    print(
        json.dumps(
            {"seconds": seconds, "figures": figures, "solvers": tables, "growth": growth, "targets_met": good}
        )
    )
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
