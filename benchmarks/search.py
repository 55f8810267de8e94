"""How fast and how good are the solvers, against each other and against what others use today?

    python benchmarks/search.py            # everything, about 10 minutes
    python benchmarks/search.py --quick    # within 60 seconds

Instances: the paper's space with its reconstructed tables, and with made-up ones of seeds that no solver was ever tuned
on ("paper-SEED"), the TF-NAS tables (real latencies, needs BINAS_TABLES), and a growth series of made-up spaces. The claims
on one proven answer are judged on every instance that the peer was measured on, by the worst of them.
Peers measured in the same run: SCIP on the paper's
bilinear program, HiGHS and CBC (through PuLP) on the tight form, CPLEX and Gurobi where their free editions
take the size, evolution as once-for-all runs it, and folding a frontier naively. Times are medians; ratios
count, absolute times depend on the machine. Each row of a table runs in a process of its own. The last line is
one JSON object; exit code 1 if a target is missed.
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
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from binas.base.errors import BinasError
from binas.estimators.objective import BilinearObjective
from binas.search import Limit, SearchProblem, evaluate, frontier, make_solver, solve
from binas.search.matrices import tight_form
from binas.search.terms import build_terms, cost_row
from binas.space import Architecture, crossover, load_space, mutate, sample
from binas.testing import make_problem, make_space
from binas.testing.paper_example import paper_contributions, paper_costs
from binas.testing.tables import read_tfnas

GROWTH = ["5x4x12", "7x6x12", "10x8x12", "10x8x50", "12x12x24"]
APART = ("paper-101", "paper-102", "paper-103")  # kept apart: nothing is tuned by them
SEEDED = "paper-"
TARGETS = {
    "frontier / SCIP": (1 / 40, "the whole frontier costs at most 1/40 of one SCIP solve"),
    "frontier / HiGHS": (1.0, "the whole frontier is cheaper than one HiGHS solve"),
    "frontier / CBC": (1.0, "the whole frontier is cheaper than one CBC solve"),
    "auto / SCIP": (1 / 200, "one proven answer costs at most 1/200 of SCIP"),
    "auto / HiGHS": (1 / 10, "one proven answer costs at most 1/10 of HiGHS"),
    "auto / SCIP, worst instance": (1 / 200, "and that on every instance"),
    "auto / HiGHS, worst instance": (1 / 10, "and that on every instance"),
}
PEERS = {"SCIP": "miqcp", "HiGHS": "milp"}
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


@dataclass(frozen=True)
class Run:
    """One call of one solver."""

    seconds: float
    value: float | None
    kept: bool
    status: str


def cbc(problem: SearchProblem, time_limit: float = 1e9) -> tuple[float, Architecture]:
    """CBC on the tight form through PuLP, model building not counted."""
    import pulp

    form = tight_form(problem)
    model = pulp.LpProblem("binas", pulp.LpMaximize)
    x = [pulp.LpVariable(f"x{i}", cat="Binary") for i in range(len(form.objective))]
    model += pulp.lpDot(form.objective.tolist(), x)
    for entries, right in zip(form.equality.rows(), form.right.tolist(), strict=True):
        pairs = zip(*entries, strict=True)
        model += pulp.LpAffineExpression([(x[j], v) for j, v in pairs]) == right
    for row, bound in zip(form.rows.tolist(), form.bounds.tolist(), strict=True):
        model += pulp.lpDot(row, x) <= bound
    start = time.perf_counter()
    model.solve(pulp.PULP_CBC_CMD(msg=False, gapRel=0.0, gapAbs=0.0, threads=1, timeLimit=time_limit))
    return time.perf_counter() - start, architecture_of(problem, [v.value() or 0.0 for v in x])


def cplex_tight(problem: SearchProblem, time_limit: float) -> tuple[float, Architecture]:
    """CPLEX on the tight form (its community edition takes 1,000 variables)."""
    import cplex

    form, model = tight_form(problem), cplex.Cplex()
    for stream in (
        model.set_log_stream,
        model.set_results_stream,
        model.set_warning_stream,
        model.set_error_stream,
    ):
        stream(None)
    model.parameters.threads.set(1)
    model.parameters.timelimit.set(time_limit)
    model.parameters.mip.tolerances.mipgap.set(0.0)
    model.objective.set_sense(model.objective.sense.maximize)
    model.variables.add(obj=form.objective.tolist(), types="B" * len(form.objective))
    indices, rows = list(range(len(form.objective))), list(map(list, form.equality.rows()))
    model.linear_constraints.add(lin_expr=rows, senses="E" * len(rows), rhs=form.right.tolist())
    costs = [[indices, row.tolist()] for row in form.rows]
    model.linear_constraints.add(lin_expr=costs, senses="L" * len(costs), rhs=form.bounds.tolist())
    start = time.perf_counter()
    model.solve()
    return time.perf_counter() - start, architecture_of(problem, model.solution.get_values())


def gurobi_tight(problem: SearchProblem, time_limit: float) -> tuple[float, Architecture]:
    """Gurobi on the tight form (its free licence takes 2,000 variables)."""
    import gurobipy

    form, environment = tight_form(problem), gurobipy.Env(empty=True)
    environment.setParam("OutputFlag", 0)
    environment.start()
    model = gurobipy.Model(env=environment)
    model.setParam("Threads", 1)
    model.setParam("TimeLimit", time_limit)
    model.setParam("MIPGap", 0.0)
    x = model.addMVar(len(form.objective), vtype="B")
    model.addConstr(form.equality.to_dense() @ x == form.right)
    model.addConstr(form.rows @ x <= form.bounds)
    model.setObjective(form.objective @ x, gurobipy.GRB.MAXIMIZE)
    start = time.perf_counter()
    model.optimize()
    return time.perf_counter() - start, architecture_of(problem, x.X)


def architecture_of(problem: SearchProblem, point: Any) -> Architecture:
    layout = problem.space.layout
    return layout.round(*layout.split(np.asarray(point, dtype=float)))


def ofa_evolution(problem: SearchProblem, seed: int, generations: int = 500) -> tuple[float, float]:
    """(seconds, objective) of evolution as once-for-all does it: one architecture at a time, by rejection.

    It pays for nothing that it does not need: the limited cost of each architecture, the accuracy of those that keep it.
    """
    rng, start, space = np.random.default_rng(seed), time.perf_counter(), problem.space
    slack = [(limit, problem.tolerance(limit)) for limit in problem.limits]

    def drawn(make: Callable[[], Architecture]) -> tuple[float, Architecture] | None:
        for _ in range(1000):
            made = make()
            if all(limit.holds(problem.cost(limit.cost, made), tolerance) for limit, tolerance in slack):
                return problem.objective.accuracy(space, made), made
        return None

    def pick(pool: list[Architecture]) -> Architecture:
        return pool[int(rng.integers(len(pool)))]

    population = [x for x in (drawn(lambda: sample(space, rng)) for _ in range(100)) if x]
    for _ in range(generations if population else 0):
        parents = sorted(population, key=lambda x: -x[0])[:25]
        pool = [architecture for _, architecture in parents]
        children = [drawn(lambda p=pool: mutate(space, pick(p), rng, 0.1)) for _ in range(50)]
        children += [drawn(lambda p=pool: crossover(space, pick(p), pick(p), rng)) for _ in range(50)]
        population = parents + [child for child in children if child]
    best = max((value for value, _ in population), default=float("nan"))
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


def instance(name: str) -> SearchProblem | None:
    """A problem by name: paper, paper-SEED, tfnas-cpu, tfnas-gpu, or stages x blocks x configs; None: no table."""
    if name == "paper":
        return paper_problem(45)
    if name.startswith(SEEDED):
        problem = make_problem(load_space("imagenet-mbconv"), seed=int(name.removeprefix(SEEDED)))
        return problem.with_limits([Limit("latency", 0.35 * problem.scales["latency"])])
    if name.startswith("tfnas-"):
        return tfnas_problem(name.removeprefix("tfnas-"))
    problem = make_problem(make_space(*map(int, name.split("x"))), seed=0)
    return problem.with_limits([Limit("latency", 0.35 * problem.scales["latency"])])


def run_solver(problem: SearchProblem, name: str, seed: int, time_limit: float) -> Run:
    result = solve(problem, name, seed=seed, time_limit=time_limit)
    kept = result.evaluation is None or result.evaluation.feasible
    return Run(result.seconds, result.accuracy, kept, str(result.status))


def run_frontier(problem: SearchProblem, name: str, seed: int, time_limit: float) -> Run:
    found = frontier(problem.with_limits(()), "latency")
    at = found.at(problem.limits[0].value)
    status = f"{len(found)} points, " + ("exact" if found.exact else f"within {found.error:.4f}")
    return Run(found.seconds, None if at is None else at.accuracy, True, status)


def run_naive(problem: SearchProblem, name: str, seed: int, time_limit: float) -> Run:
    start = time.perf_counter()
    costs, values = naive_fold(problem.with_limits(()))
    seconds = time.perf_counter() - start
    best = values[: np.searchsorted(costs, problem.limits[0].value, side="right")].max()
    return Run(seconds, float(best), True, f"{len(costs)} points, values only")


def run_peer(peer: Callable[[SearchProblem, float], tuple[float, Architecture]]) -> Callable[..., Run]:
    def run(problem: SearchProblem, name: str, seed: int, time_limit: float) -> Run:
        seconds, architecture = peer(problem, time_limit)
        judged = evaluate(problem, architecture)
        return Run(seconds, judged.accuracy, judged.feasible, "")

    return run


def run_ofa(problem: SearchProblem, name: str, seed: int, time_limit: float) -> Run:
    seconds, value = ofa_evolution(problem, seed)
    return Run(seconds, value, True, "")


RUNNERS: dict[str, Callable[..., Run]] = {
    "whole frontier": run_frontier,
    "naive frontier": run_naive,
    "CBC (PuLP), tight": run_peer(cbc),
    "CPLEX, tight": run_peer(cplex_tight),
    "Gurobi, tight": run_peer(gurobi_tight),
    "OFA-style evolution": run_ofa,
}


def repeats_of(seconds: float) -> int:
    """How often a call of so many seconds is timed: five times, or for about a second."""
    return max(5, min(100, int(1.0 / seconds)))


def child(name: str, where: str, seeds: str, time_limit: str) -> None:
    """Run one solver on one instance in this process; print seconds, value, worst value, memory as JSON."""
    problem = instance(where)
    assert problem is not None
    runner = RUNNERS.get(name, run_solver)
    try:
        runs = [runner(problem, name, seed, float(time_limit)) for seed in range(int(seeds))]
        if len(runs) == 1 and runs[0].seconds < 1.0:  # the first call also pays for imports
            runs = [runner(problem, name, 0, float(time_limit)) for _ in range(repeats_of(runs[0].seconds))]
    except BinasError as error:
        print(json.dumps({"note": str(error)}))
        return
    except Exception as error:  # a peer's licence or size limit: say so and go on
        print(json.dumps({"note": f"{type(error).__name__}: {error}"}))
        return
    values = [run.value for run in runs if run.value is not None]
    print(
        json.dumps(
            {
                "seconds": statistics.median(run.seconds for run in runs),
                "worst": min(values) if values else None,
                "kept": all(run.kept for run in runs),
                "status": runs[0].status,
                "memory_mib": peak_memory_mib(),
            }
        )
    )


def peak_memory_mib() -> float:
    """Peak resident memory of this process (VmHWM: unlike ru_maxrss it does not start from the parent's)."""
    try:
        for line in Path("/proc/self/status").read_text().splitlines():
            if line.startswith("VmHWM:"):
                return int(line.split()[1]) / 1024
    except OSError:
        pass
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def measure(name: str, where: str, seeds: int, time_limit: float) -> dict[str, Any]:
    """One solver on one instance in a process of its own."""
    if name not in RUNNERS and make_solver(name).missing() is not None:
        return {"solver": name, "note": f"not installed: {make_solver(name).missing()}"}
    command = [sys.executable, __file__, "--child", name, where, str(seeds), str(time_limit)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        return {"solver": name, "note": (done.stderr.strip().splitlines() or ["failed"])[-1]}
    return {"solver": name, **json.loads(done.stdout.splitlines()[-1])}


HEURISTICS = ("bcfw", "bcfw-product", "frank-wolfe", "evolution", "random")


def table(where: str, names: list[str], seeds: int, time_limit: float) -> list[dict[str, Any]]:
    """Every named solver on one instance, printed and returned; gaps against HiGHS's proven optimum."""
    rows = [measure(name, where, seeds if name in HEURISTICS else 1, time_limit) for name in names]
    best = next(row["worst"] for row in rows if row["solver"] == "milp")
    base = next((row["seconds"] for row in rows if row["solver"] == "miqcp" and "seconds" in row), None)
    problem = instance(where)
    assert problem is not None
    print(f"\n{where}: {problem.describe_limits()} ({problem.space.count:.2g} architectures)")
    print(f"{'solver':22}{'ms':>12}{'/ SCIP':>10}{'gap':>10}  {'kept':5}{'MiB':>6}  status")
    for row in rows:
        if "note" in row:
            print(f"{row['solver']:22}{row['note'][:100]}")
            continue
        row["gap"] = None if row["worst"] is None else max(best - row["worst"], 0.0)
        gap = "-" if row["gap"] is None else f"{row['gap']:.4f}"
        ratio = "-" if base is None else f"{row['seconds'] / base:.4f}"
        print(
            f"{row['solver']:22}{row['seconds'] * 1e3:12.2f}{ratio:>10}{gap:>10}  "
            f"{'yes' if row['kept'] else 'NO':5}{row['memory_mib']:6.0f}  {row['status']}",
            flush=True,
        )
    return rows


def growth_tables(quick: bool, names: list[str]) -> dict[str, list[dict[str, Any]]]:
    """The growth series: exact and heuristic solvers, the whole frontier, and folding naively."""
    few = ["auto", "milp", "whole frontier", "naive frontier"]
    sizes = GROWTH[:3] if quick else GROWTH
    chosen = few if quick else ["miqcp", *names, "naive frontier"]
    return {size: table(size, chosen, 1 if quick else 3, 30.0) for size in sizes}


def worst_ratios(tables: dict[str, list[dict[str, Any]]]) -> dict[str, float]:
    """The greatest share of each peer's time that one proven answer took, over all instances that both were measured on."""
    found: dict[str, float] = {}
    for peer, solver in PEERS.items():
        ratios = {}
        for where, rows in tables.items():
            seconds = {row["solver"]: row["seconds"] for row in rows if "seconds" in row}
            if {"auto", solver} <= seconds.keys():
                ratios[where] = seconds["auto"] / seconds[solver]
        worst = max(ratios, key=lambda where: ratios[where])
        print(f"auto / {peer} is greatest on {worst}: 1/{1 / ratios[worst]:.0f}, {len(ratios)} instances")
        found[f"auto / {peer}, worst instance"] = ratios[worst]
    return found


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
    parser.add_argument("--child", nargs=4, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.child:
        child(*options.child)
        return 0
    seconds = speed_ratios(options.quick)
    figures = {
        f"{a} / {b}": seconds[a] / seconds[b] for a in ("frontier", "auto") for b in ("SCIP", "HiGHS", "CBC")
    }
    listed = ", ".join(f"{name} {value * 1e3:.2f} ms" for name, value in seconds.items())
    print(f"paper's space, medians over limits and repeats: {listed}", flush=True)
    names = ["auto", "frontier", "milp", "whole frontier", *HEURISTICS]
    peers = ["CBC (PuLP), tight", "CPLEX, tight", "Gurobi, tight", "OFA-style evolution"]
    bilinear = ["miqcp", "miqcp-gurobi"] + ([] if options.quick else ["miqcp-cplex", "best-of"])
    tables = {"paper": table("paper", [*bilinear, *names, *peers], 2 if options.quick else 5, 100.0)}
    for where in () if options.quick else ("tfnas-cpu", "tfnas-gpu"):
        if instance(where) is None:
            print(f"\n{where} skipped: BINAS_TABLES is not set")
        else:
            tables[where] = table(where, ["miqcp", "best-of", *names, *peers], 3, 100.0)
    for where in APART[:1] if options.quick else APART:
        tables[where] = table(where, ["miqcp", "milp", "auto", "whole frontier"], 1, 100.0)
    tables |= growth_tables(options.quick, [*names, "CBC (PuLP), tight", "CPLEX, tight", "Gurobi, tight"])
    figures |= worst_ratios(tables)
    targets = dict(TARGETS)
    if not options.quick:
        big = {row["solver"]: row for row in tables["12x12x24"]}
        ours, naive = big["whole frontier"], big["naive frontier"]
        figures["12x12x24 fold / naive"] = ours["seconds"] / naive["seconds"]
        figures["12x12x24 certified error"] = (
            0.0 if "exact" in ours["status"] else float(ours["status"].split()[-1])
        )
        figures["12x12x24 memory GiB"] = ours["memory_mib"] / 1024
        targets |= BIG_TARGETS
    good = judge(figures, targets)
    print(json.dumps({"seconds": seconds, "figures": figures, "tables": tables, "targets_met": good}))
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
