"""``binas search``, ``frontier``, ``explain`` and ``solvers``."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from binas.cli.output import Json, examples, print_json, say, table
from binas.cli.run_commands import do_step

if TYPE_CHECKING:
    from collections.abc import Callable

    from binas.costs.statistics import Estimate
    from binas.search import Evaluation, Explanation, Frontier, SearchProblem, SearchResult
    from binas.search.alternatives import Price
    from binas.search.explain import Alternative, Decision
    from binas.space import Architecture
    from binas.tables.costs import Cost

SECONDS_PER_NETWORK = 30.0  # of measuring, at most, when limits are kept on the device

Dir = Annotated[Path, typer.Argument(help="Folder with space.yaml, contributions and costs.", metavar="DIR")]
Limits = Annotated[
    list[str] | None,
    typer.Option(
        "--limit",
        "-l",
        help="COST=QUANTITY with a unit, e.g. latency=45ms; >= for a lower limit; latency=45ms@batch=1,device=pixel "
        "refuses a table of anything else. Repeatable.",
    ),
]


def register(app: typer.Typer) -> None:
    """Add the commands to the main application."""
    app.command(
        "search",
        epilog=examples(
            "binas search example --limit latency=45ms",
            "binas search example --limit latency=45ms --limit params=5M --top 5",
            "binas search example --limit latency=45ms --within 0.02 --json",
            "binas search example --limit latency=45ms@batch=1,threads=1",
            "binas search example --limit latency=45ms --solver evolution --seed 3",
            "binas search measured --limit latency=0.2ms --verify-on-device",
        ),
    )(search)
    app.command(
        "frontier",
        epilog=examples(
            "binas frontier example --cost latency --csv frontier.csv --plot frontier.html",
            "binas frontier example --cost latency --limit params=5M --json",
        ),
    )(frontier)
    app.command(
        "explain",
        epilog=examples(
            "binas explain example e3k3-e3k3_e3k3-e3k3_e3k3-e3k3_e3k3-e3k3_e3k3-e3k3 --limit latency=45ms",
            "binas explain example best --limit latency=45ms",
        ),
    )(explain)
    app.command("solvers", epilog=examples("binas solvers", "binas solvers --json"))(solvers)


def search(
    context: typer.Context,
    folder: Dir,
    limit: Limits = None,
    solver: Annotated[str, typer.Option(help="A solver; `binas solvers` lists them.")] = "auto",
    top: Annotated[
        int | None, typer.Option(min=1, help="Also list the K best distinct architectures (exact).")
    ] = None,
    within: Annotated[
        float | None,
        typer.Option(min=0.0, help="Also list all architectures within so many points of the best."),
    ] = None,
    time_limit: Annotated[float | None, typer.Option(min=0.0, help="Seconds a solver may take.")] = None,
    seed: Annotated[int, typer.Option(min=0, help="Seed of randomised solvers.")] = 0,
    verify_on_device: Annotated[
        bool,
        typer.Option(
            "--verify-on-device",
            help="Build and measure the answer; search again with tighter limits until the measured one keeps them.",
        ),
    ] = False,
    as_json: Json = False,
) -> None:
    """Find the most accurate architecture within the limits, with a proof.

    Given nothing but the folder of a run, it is the run's step: all limits of its configuration.
    """
    if do_step(context, folder, "search", as_json):
        return
    from binas.run.folder import load
    from binas.search import solve
    from binas.search.alternatives import prices

    problem = load(folder).problem(limit or [])

    def run(tightened: SearchProblem) -> SearchResult:
        return solve(tightened, solver, time_limit=time_limit, seed=seed)

    result = _on_device(problem, run, as_json) if verify_on_device else run(problem)
    if not result.status.has_answer:
        _no_answer(result, as_json)
    near, complete = _near(result, top, within)
    bought = list(prices(result)) if result.status == "optimal" else []
    if as_json:
        print_json(_search_json(result, near, complete, bought))
        return
    _show_result(result)
    _show_steps(result)
    _show_prices(problem, bought)
    if top is not None or within is not None:
        _show_near(result, near, complete)


def _on_device(
    problem: SearchProblem, search: Callable[[SearchProblem], SearchResult], as_json: bool
) -> SearchResult:
    """The answer that keeps its limits when it is built and measured; an error when none does."""
    from binas.base.errors import ProblemError
    from binas.cli.progress import progress_bar
    from binas.costs.measure import measurable, measure_architecture, measuring_again
    from binas.costs.session import Plan
    from binas.search.on_device import keep_limits

    def measure(cost: Cost, architecture: Architecture) -> Estimate:
        how = replace(measuring_again(cost, Plan(budget=SECONDS_PER_NETWORK)), progress=progress)
        return measure_architecture(problem.space, architecture, how)

    with progress_bar() as progress:
        done = keep_limits(problem, measurable(problem.costs), measure, search)
    if done.steps and not done.kept:
        if as_json:
            print_json(done.result.to_json())
        raise ProblemError(done.sentence())
    return done.result


def _near(result: SearchResult, top: int | None, within: float | None) -> tuple[list[Evaluation], bool]:
    """The K best or the near-optimal architectures, without the best itself."""
    from binas.search import best_architectures

    if top is None and within is None:
        return [], True
    found = best_architectures(result.problem, top, within)
    return [item for item in found.items if item.architecture != result.architecture], found.complete


def _search_json(
    result: SearchResult, near: list[Evaluation], complete: bool, bought: list[Price]
) -> dict[str, Any]:
    from binas.search.result import evaluation_json

    units = {name: cost.unit.name for name, cost in result.problem.costs.items()}
    return {
        **result.to_json(),
        "alternatives": [evaluation_json(result.problem, item) for item in near],
        "alternatives_complete": complete,
        "price": [
            {
                "cost": p.limit.cost,
                "lower": p.limit.lower,
                "more": p.more,
                "unit": units[p.limit.cost],
                "gain": p.gain,
            }
            for p in bought
        ],
    }


def _no_answer(result: SearchResult, as_json: bool) -> None:
    """Say why there is no architecture, and leave with exit code 2."""
    from binas.base.errors import ProblemError
    from binas.search import Status, explain_infeasible, why_no_answer

    if result.status is not Status.INFEASIBLE:
        if as_json:
            print_json(result.to_json())
        raise ProblemError(why_no_answer(result))
    report = explain_infeasible(result.problem)
    if as_json:
        print_json({**result.to_json(), "infeasible": report.to_json()})
    raise ProblemError(report.sentence())


def _show_result(result: SearchResult) -> None:
    from binas.tables.conditions import describe
    from binas.tables.units import format_quantity

    found, problem = result.evaluation, result.problem
    assert found is not None
    error = "" if found.accuracy_stderr is None else f" ± {found.accuracy_stderr:.3f}"
    proof = {"optimal": "proven optimal"}.get(str(result.status), str(result.status))
    gap = (
        ""
        if result.gap is None or result.status == "optimal"
        else f", at most {result.gap:.4f} points from the best"
    )
    say(f"{found.architecture}")
    say(
        f"predicted accuracy {found.accuracy:.4f} %{error} ({proof}{gap}; {result.solver}, {result.seconds * 1e3:.1f} ms)"
    )
    rows = []
    for name, value in found.costs.items():
        unit = problem.costs[name].unit
        limits = [
            problem.describe_limit(limit).split(" ", 1)[1] for limit in problem.limits if limit.cost == name
        ]
        measured = describe(problem.costs[name].provenance) or "-"
        rows.append((name, format_quantity(value, unit), " and ".join(limits) or "-", measured))
    table(("cost", "value", "limit", "measured on"), rows)


def _show_steps(result: SearchResult) -> None:
    """What was built and measured, where the limits were kept on the device."""
    rows = [
        (
            step["architecture"],
            f"{step['predicted']:.5g} {step['unit']}",
            f"{step['measured']:.5g} {step['unit']}",
            f"{step['high']:.5g} {step['unit']}",
            f"{step['asked']:.5g} {step['unit']}",
            "kept" if step["kept"] else "broken",
        )
        for step in result.details.get("on_device", [])
    ]
    if rows:
        table(("built and measured", "predicted", "measured", "at most", "limit", ""), rows)


def _show_prices(problem: SearchProblem, bought: list[Price]) -> None:
    from binas.tables.units import format_quantity

    for price in bought:
        unit = problem.costs[price.limit.cost].unit
        word = "less" if price.limit.lower else "more"
        say(f"{format_quantity(price.more, unit)} {word} {price.limit.cost} buys {price.gain:+.4f} points.")


def _show_near(result: SearchResult, near: list[Evaluation], complete: bool) -> None:
    best = result.accuracy or 0.0
    names = (
        list(dict.fromkeys(limit.cost for limit in result.problem.limits)) or list(result.problem.costs)[:1]
    )
    rows = [
        (
            str(item.architecture),
            f"{item.accuracy - best:+.4f}",
            *(f"{item.costs[name]:.5g}" for name in names),
        )
        for item in near
    ]
    units = [f"{name} ({result.problem.costs[name].unit.name})" for name in names]
    table(("also good", "points", *units), rows)
    if not complete:
        say("More exist than are listed; ask for fewer with --top, or a smaller --within.")


def frontier(
    folder: Dir,
    cost: Annotated[str, typer.Option(help="The cost to trace.")] = "latency",
    limit: Limits = None,
    tolerance: Annotated[
        float, typer.Option(min=0.0, help="Points of accuracy that may be given up for speed; certified.")
    ] = 0.0,
    csv_file: Annotated[
        Path | None, typer.Option("--csv", help="Also write the points to a CSV file.")
    ] = None,
    plot: Annotated[Path | None, typer.Option(help="Also draw them to FILE.html or FILE.png.")] = None,
    as_json: Json = False,
) -> None:
    """Find every architecture that no other beats in accuracy and cost: the answer for all limits at once."""
    from binas.base.errors import FileError
    from binas.base.files import write_text
    from binas.run.folder import load
    from binas.search.frontier import frontier as trace

    if plot is not None and plot.suffix not in (".html", ".png"):
        raise FileError(f"cannot draw {plot}: name a file that ends in .html or .png.")
    problem = load(folder).problem(limit or [])
    found = trace(problem, cost, tolerance=tolerance)
    if len(found) == 0:
        _no_frontier(found, as_json)
    if csv_file is not None:
        write_text(csv_file, found.to_csv())
    if plot is not None:
        from binas.report.frontier_plot import plot_frontier

        plot_frontier(found, plot)
    if as_json:
        print_json(found.to_json())
    else:
        _show_frontier(found, csv_file, plot)


def _no_frontier(found: Frontier, as_json: bool) -> None:
    from binas.base.errors import ProblemError
    from binas.search import explain_infeasible

    report = explain_infeasible(found.problem)
    if as_json:
        print_json({**found.to_json(), "infeasible": report.to_json()})
    raise ProblemError(report.sentence())


def _show_frontier(found: Frontier, csv_file: Path | None, plot: Path | None) -> None:
    import numpy as np

    from binas.tables.conditions import describe

    kind = "exact" if found.exact else f"certified within {found.error:.3g} points"
    low, high = found.costs[0], found.costs[-1]
    say(
        f"{len(found)} networks on the frontier of {found.problem.space.name} ({kind}, {found.seconds * 1e3:.0f} ms)"
    )
    measured = describe(found.problem.costs[found.cost].provenance)
    if measured:
        say(f"{found.cost} measured on: {measured}")
    marks = np.unique([found.index_at(x) or 0 for x in np.linspace(low, high, 12)])
    rows = [
        (f"{p.cost:.5g} {found.unit.name}", f"{p.accuracy:.4f}", str(p.architecture))
        for p in (found[int(i)] for i in marks)
    ]
    table((found.cost, "accuracy", "architecture"), rows)
    for path in (csv_file, plot):
        if path is not None:
            say(f"wrote {path}")


def explain(
    folder: Dir,
    architecture: Annotated[
        str,
        typer.Argument(help="A compact string, a timm-style block string, JSON, or 'best' for the optimum."),
    ],
    limit: Limits = None,
    as_json: Json = False,
) -> None:
    """Explain an architecture: per decision what it brings, what it costs, what the best alternative gives."""
    from binas.base.errors import ProblemError
    from binas.run.folder import load
    from binas.search import explain as explain_architecture
    from binas.search import explain_infeasible, solve
    from binas.space.reading import read_architecture

    problem = load(folder).problem(limit or [])
    if architecture == "best":
        wanted = solve(problem).architecture
        if wanted is None:
            raise ProblemError(f"there is no best architecture: {explain_infeasible(problem).sentence()}")
    else:
        wanted = read_architecture(problem.space, architecture)
    found = explain_architecture(problem, wanted)
    if as_json:
        print_json(found.to_json())
    else:
        _show_explanation(found)


def _show_explanation(found: Explanation) -> None:
    from binas.tables.units import format_quantity

    problem, judged = found.problem, found.evaluation
    costs = ", ".join(
        f"{name} {format_quantity(value, problem.costs[name].unit)}" for name, value in judged.costs.items()
    )
    say(f"{judged.architecture}\npredicted accuracy {judged.accuracy:.4f} %, {costs}")
    if judged.broken:
        say("breaks " + ", ".join(problem.describe_limit(item) for item in judged.broken))
    name = problem.limits[0].cost if problem.limits else next(iter(problem.costs))
    unit = problem.costs[name].unit.name
    rows = [_decision_row(item, name) for item in found.decisions]
    columns = ("decision", "choice", "points", f"{name} ({unit})", "best alternative", "best within limits")
    table(columns, rows)


def _decision_row(item: Decision, cost: str) -> tuple[str, ...]:
    where = f"{item.stage} depth" if item.block is None else f"{item.stage} block {item.block}"
    points = "" if item.contribution is None else f"{item.contribution:+.4f}"
    return (
        where,
        item.choice,
        points,
        f"{item.costs[cost]:.4g}",
        _change(item.best, cost),
        _change(item.best_within, cost),
    )


def _change(item: Alternative | None, cost: str) -> str:
    return "-" if item is None else f"{item.choice}: {item.accuracy:+.4f}, {item.costs[cost]:+.4g}"


def solvers(as_json: Json = False) -> None:
    """List the solvers: what each can take, and whether it is installed."""
    from binas.search.solvers import SOLVERS, solver_class

    found = [solver_class(name) for name in SOLVERS]
    if as_json:
        print_json([_solver_json(item) for item in found])
        return
    rows = []
    for item in found:
        can = item.capabilities
        limits = "any" if can.max_limits is None else str(can.max_limits)
        state = "yes" if item.missing() is None else item.missing() or ""
        rows.append(
            (
                item.name,
                "yes" if can.exact else "no",
                limits,
                ", ".join(sorted(can.objectives)),
                state,
                can.summary,
            )
        )
    table(("solver", "exact", "limits", "objectives", "available", "what it is"), rows)


def _solver_json(item: Any) -> dict[str, Any]:
    can = item.capabilities
    return {
        "name": item.name,
        "exact": can.exact,
        "objectives": sorted(can.objectives),
        "max_limits": can.max_limits,
        "lower_limits": can.lower_limits,
        "summary": can.summary,
        "available": item.missing() is None,
        "missing": item.missing(),
    }
