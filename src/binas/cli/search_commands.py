"""``binas search``, ``frontier``, ``explain``, ``solvers`` and ``insights``: questions about tables."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from binas.base.errors import ProblemError
from binas.cli.options import Dir, Json, Limits, Quiet, Redo, examples, show_progress
from binas.cli.output import print_json, say, table
from binas.cli.views import check_plot, show_known

if TYPE_CHECKING:
    from binas.insights import Insights, Per, Rule
    from binas.search import Evaluation, Explanation, Frontier, SearchProblem, SearchResult
    from binas.search.alternatives import Price
    from binas.search.explain import Alternative, Decision
    from binas.search.solvers import Solver

SHOWN_RULES = 12
CostName = Annotated[
    str | None,
    typer.Option(
        help="The cost; default: that of a run's first limit, else latency, else the first there is."
    ),
]


def register(app: typer.Typer) -> None:
    """Add the commands to the main application; ``search`` is a task and is added with them."""
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
            "binas explain example best --limit latency=45ms",
            "binas explain example e3k3-e3k3_e3k3-e3k3_e3k3-e3k3_e3k3-e3k3_e3k3-e3k3 --limit latency=45ms",
        ),
    )(explain)
    app.command(
        "insights", epilog=examples("binas insights example", "binas insights example --cost macs --json")
    )(insights)
    app.command("solvers", epilog=examples("binas solvers", "binas solvers --json"))(solvers)


def search(
    folder: Dir,
    limit: Limits = None,
    top: Annotated[
        int | None, typer.Option(min=1, help="Also list the K best distinct architectures (exact).")
    ] = None,
    within: Annotated[
        float | None,
        typer.Option(min=0.0, help="Also list all architectures within so many points of the best."),
    ] = None,
    on_device: Annotated[
        bool,
        typer.Option(
            "--on-device",
            help="Build and measure the answer; search again with tighter limits until the measured one keeps them.",
        ),
    ] = False,
    out: Annotated[Path | None, typer.Option(help="Also write the answer to a JSON file.")] = None,
    redo: Redo = False,
    quiet: Quiet = False,
    as_json: Json = False,
    changes: Any = (),
) -> None:
    """Find the most accurate architecture within the limits, with a proof.

    Given nothing but the folder of a run, it is the run's step: all limits of its configuration. With --limit it is a
    question of your own: all limits together, nothing of the run is touched.
    """
    from binas.cli.task_commands import Call, is_run
    from binas.tasks.search import SEARCH, SearchSettings, search_for

    if is_run(folder) and not (limit or top or within or on_device or out):
        Call(SEARCH, folder, changes, redo, quiet, as_json).do()
        return
    from binas.base.files import dump_json, write_text
    from binas.run.config import FILE, load_config
    from binas.run.folder import load
    from binas.search.alternatives import prices

    settings = load_config(folder / FILE if is_run(folder) else None, changes).part(SearchSettings)
    problem = load(folder).problem(limit or [], settings.estimator)
    progress = show_progress(quiet or not on_device, as_json)
    with progress.during("search"):
        result, why = search_for(problem, settings, on_device, progress)
    if why:
        _no_answer(result, why, as_json)
    near, complete = _near(result, top, within)
    bought = list(prices(result)) if result.status == "optimal" else []
    answer = _search_json(result, near, complete, bought)
    if out is not None:
        write_text(out, dump_json(answer))
    if as_json:
        print_json(answer)
        return
    _show_result(result)
    _show_readings(result)
    _show_prices(problem, bought)
    if top is not None or within is not None:
        _show_near(result, near, complete)


def _no_answer(result: SearchResult, why: str, as_json: bool) -> None:
    """Say why there is no architecture, and leave with exit code 2."""
    from binas.search import Status, explain_infeasible

    if as_json:
        infeasible = result.status is Status.INFEASIBLE
        more = {"infeasible": explain_infeasible(result.problem).to_json()} if infeasible else {}
        print_json({**result.to_json(), **more})
    raise ProblemError(why)


def _near(result: SearchResult, top: int | None, within: float | None) -> tuple[list[Evaluation], bool]:
    """The K best or the near-optimal architectures, without the best itself."""
    from binas.search import best_architectures

    if top is None and within is None:
        return [], True
    best = best_architectures(result.problem, top, within)
    return [item for item in best.items if item.architecture != result.architecture], best.complete


def _search_json(
    result: SearchResult, near: list[Evaluation], complete: bool, bought: list[Price]
) -> dict[str, Any]:
    from binas.search.result import evaluation_json

    units = {name: cost.unit.name for name, cost in result.problem.costs.items()}
    price = [
        {
            "cost": x.limit.cost,
            "lower": x.limit.lower,
            "more": x.more,
            "unit": units[x.limit.cost],
            "gain": x.gain,
        }
        for x in bought
    ]
    alternatives = [evaluation_json(result.problem, item) for item in near]
    return {
        **result.to_json(),
        "alternatives": alternatives,
        "alternatives_complete": complete,
        "price": price,
    }


def _show_result(result: SearchResult) -> None:
    from binas.tables.conditions import describe
    from binas.tables.units import format_quantity

    best, problem = result.evaluation, result.problem
    assert best is not None
    error = "" if best.accuracy_stderr is None else f" ± {best.accuracy_stderr:.3f}"
    proven = result.status == "optimal"
    gap = "" if result.gap is None or proven else f", at most {result.gap:.4f} points from the best"
    proof = "proven optimal" if proven else str(result.status)
    say(f"{best.architecture}" + (f" with {result.variant}" if result.variant else ""))
    say(
        f"predicted accuracy {best.accuracy:.4f} %{error} ({proof}{gap}; {result.solver}, {result.seconds * 1e3:.1f} ms)"
    )
    rows = []
    for name, value in best.costs.items():
        limits = [problem.describe_limit(x).split(" ", 1)[1] for x in problem.limits if x.cost == name]
        measured = describe(problem.costs[name].provenance) or "-"
        rows.append(
            (name, format_quantity(value, problem.costs[name].unit), " and ".join(limits) or "-", measured)
        )
    table(("cost", "value", "limit", "measured on"), rows)


def _show_readings(result: SearchResult) -> None:
    """What was built and measured, where the limits were kept on the device."""
    rows = [
        (
            step["architecture"],
            *(f"{step[key]:.5g} {step['unit']}" for key in ("predicted", "measured", "high", "asked")),
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
    best, costs = result.accuracy or 0.0, result.problem.costs
    names = list(dict.fromkeys(limit.cost for limit in result.problem.limits)) or list(costs)[:1]
    rows = [
        (
            str(item.architecture),
            f"{item.accuracy - best:+.4f}",
            *(f"{item.costs[name]:.5g}" for name in names),
        )
        for item in near
    ]
    table(("also good", "points", *(f"{name} ({costs[name].unit.name})" for name in names)), rows)
    if not complete:
        say("More exist than are listed; ask for fewer with --top, or a smaller --within.")


def frontier(
    folder: Dir,
    cost: CostName = None,
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
    from binas.base.files import write_text
    from binas.run.folder import load
    from binas.search.frontier import frontier as trace

    check_plot(plot)
    tables = load(folder)
    curve = trace(tables.problem(limit or []), cost or _usual_cost(folder), tolerance=tolerance)
    if len(curve) == 0:
        _no_frontier(curve, as_json)
    if csv_file is not None:
        write_text(csv_file, curve.to_csv())
    if plot is not None:
        from binas.report.plots import plot_frontier

        plot_frontier(curve, plot)
    if as_json:
        print_json(curve.to_json())
        return
    _show_frontier(curve)
    for path in (csv_file, plot):
        if path is not None:
            say(f"wrote {path}")


def _no_frontier(curve: Frontier, as_json: bool) -> None:
    from binas.search import explain_infeasible

    reason = explain_infeasible(curve.problem)
    if as_json:
        print_json({**curve.to_json(), "infeasible": reason.to_json()})
    raise ProblemError(reason.sentence())


def _show_frontier(curve: Frontier) -> None:
    import numpy as np

    from binas.tables.conditions import describe

    kind = "exact" if curve.exact else f"certified within {curve.error:.3g} points"
    name, milliseconds = curve.problem.space.name, curve.seconds * 1e3
    say(f"{len(curve)} networks on the frontier of {name} ({kind}, {milliseconds:.0f} ms)")
    measured = describe(curve.problem.costs[curve.cost].provenance)
    if measured:
        say(f"{curve.cost} measured on: {measured}")
    marks = np.unique([curve.index_at(x) or 0 for x in np.linspace(curve.costs[0], curve.costs[-1], 12)])
    points = [curve[int(i)] for i in marks]
    rows = [
        (
            f"{point.cost:.5g} {curve.unit.name}",
            f"{point.accuracy:.4f}",
            str(point.architecture),
            point.variant or "-",
        )
        for point in points
    ]
    show_known((curve.cost, "accuracy", "architecture", "variant"), rows)


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
    from binas.run.folder import load
    from binas.search import explain as explain_architecture, explain_infeasible, solve
    from binas.space.blockstrings import read_architecture

    tables = load(folder)
    problem = tables.problem(limit or [])
    chosen = (
        solve(problem).architecture
        if architecture == "best"
        else read_architecture(problem.space, architecture)
    )
    if chosen is None:
        raise ProblemError(f"there is no best architecture: {explain_infeasible(problem).sentence()}")
    explanation = explain_architecture(problem, chosen)
    if as_json:
        print_json(explanation.to_json())
        return
    _show_explanation(explanation)
    for standing in explanation.variants:
        say(standing.sentence(problem.describe_limits()))
    if tables.choice is not None:
        say(f"Predicted by the estimator {tables.choice.chosen}: {tables.choice.why}")


def _show_explanation(explanation: Explanation) -> None:
    from binas.tables.units import format_quantity

    problem, judged = explanation.problem, explanation.evaluation
    costs = [
        f"{name} {format_quantity(value, problem.costs[name].unit)}" for name, value in judged.costs.items()
    ]
    say(f"{judged.architecture}\npredicted accuracy {judged.accuracy:.4f} %, {', '.join(costs)}")
    if judged.broken:
        say("breaks " + ", ".join(problem.describe_limit(item) for item in judged.broken))
    name = problem.limits[0].cost if problem.limits else next(iter(problem.costs))
    rows = [_decision_row(item, name) for item in explanation.decisions]
    cost = f"{name} ({problem.costs[name].unit.name})"
    table(("decision", "choice", "points", cost, "best alternative", "best within limits"), rows)


def _decision_row(item: Decision, cost: str) -> tuple[str, ...]:
    where = f"{item.stage} depth" if item.block is None else f"{item.stage} block {item.block}"
    points = "" if item.contribution is None else f"{item.contribution:+.4f}"
    changes = (_change(item.best, cost), _change(item.best_within, cost))
    return (where, item.choice, points, f"{item.costs[cost]:.4g}", *changes)


def _change(item: Alternative | None, cost: str) -> str:
    return "-" if item is None else f"{item.choice}: {item.accuracy:+.4f}, {item.costs[cost]:+.4g}"


def insights(folder: Dir, cost: CostName = None, as_json: Json = False) -> None:
    """Show what depth and options bring, what they cost, and what can be said about it."""
    from binas.insights import find_insights
    from binas.run.folder import load

    tables = load(folder)
    result = find_insights(tables.contributions, tables.costs[cost or _usual_cost(folder)])
    if as_json:
        print_json(result.to_json())
        return
    _show_insights(result)


def _usual_cost(folder: Path) -> str:
    """The cost of a run's first limit; of other folders latency, or the first there is."""
    from binas.cli.task_commands import is_run
    from binas.run.folder import load
    from binas.run.run import open_run
    from binas.tasks.report import usual_cost

    return usual_cost(load(folder), open_run(folder).questions if is_run(folder) else ())


def _show_insights(result: Insights) -> None:
    for text in result.sentences:
        say(text)
    if not result.sentences:
        say("Nothing stands out clearly enough to be put into words.")
    elif not result.errors_known:
        say("The table has no standard errors; these sentences take its numbers as exact.")
    per = result.per
    assert per is not None  # a cost was given
    rows = [_rule_row(rule, per) for rule in result.rules[:SHOWN_RULES]]
    table(("stage", "change", "points", f"{result.cost} ({per.unit})", f"points per {per.unit}"), rows)
    more = len(result.rules) - SHOWN_RULES
    if more > 0:
        say(f"{more} more with --json.")
    if not all(step.balanced for step in result.options):
        say("* moves together with another option in this space, so the effect is of both.")


def _rule_row(rule: Rule, per: Per) -> tuple[str, ...]:
    def with_error(value: float | None, stderr: float | None, scale: float = 1.0) -> str:
        if value is None:
            return "-"
        return f"{value * scale:+.4g}" + ("" if stderr is None else f" ± {stderr * scale:.2g}")

    effect = rule.effect
    paid = "-" if effect.cost is None else f"{effect.cost / per.scale:.4g}"
    name = rule.name if rule.balanced else f"{rule.name} *"
    gain = with_error(rule.per_cost, rule.per_cost_stderr, per.scale)
    return rule.stage, name, with_error(effect.value, effect.stderr), paid, gain


def solvers(as_json: Json = False) -> None:
    """List the solvers: what each can take, and whether it is installed."""
    from binas.search.solvers import SOLVERS, solver_class

    classes = [solver_class(name) for name in SOLVERS]
    if as_json:
        print_json([_solver_json(item) for item in classes])
        return
    rows = []
    for item in classes:
        can = item.capabilities
        limits = "any" if can.max_limits is None else str(can.max_limits)
        kinds = ", ".join(sorted(can.objectives))
        rows.append(
            (item.name, "yes" if can.exact else "no", limits, kinds, item.missing() or "yes", can.summary)
        )
    table(("solver", "exact", "limits", "objectives", "available", "what it is"), rows)


def _solver_json(item: type[Solver]) -> dict[str, Any]:
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
