"""``binas search``, ``frontier``, ``explain``, ``solvers`` and ``insights``: questions about tables."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from binas.base.errors import ProblemError
from binas.base.files import dump_json, exists, write_text
from binas.cli.options import Dir, Limits, Redo, command
from binas.cli.output import Reply, say, table, table_of_known
from binas.cli.views import check_plot, task_reply

if TYPE_CHECKING:
    from binas.base.progress import Progress
    from binas.insights import Insights, Per, Rule
    from binas.run.folder import Folder
    from binas.search import Explanation, Frontier, SearchProblem, SearchResult
    from binas.search.alternatives import Alternatives
    from binas.search.deadline import Deadline
    from binas.search.explain import Alternative, Decision
    from binas.search.surroundings import Surroundings
    from binas.space.architecture import Architecture
    from binas.tasks.search import SearchSettings

SHOWN_RULES = 12
CostName = Annotated[
    str | None,
    typer.Option(
        help="The cost; default: that of a run's first limit, else latency, else the first there is."
    ),
]

app = typer.Typer()


def is_run(folder: Path) -> bool:
    """Whether a folder is a run, and not only a folder of tables."""
    from binas.run.config import FILE

    return exists(folder / FILE)


def limits_on(folder: Path, limits: Sequence[str] | None) -> list[str]:
    """Limits as they are meant there: in a run of ``binas shrink`` a percentage is of what the model costs."""
    if not (limits and is_run(folder)):
        return list(limits or ())
    from binas.run.run import open_run
    from binas.run.shrinking import of_the_model
    from binas.training.config import TrainSettings

    shrunk = open_run(folder).settings(TrainSettings).start is not None
    return [of_the_model(text) for text in limits] if shrunk else list(limits)


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
    progress: Any = None,
    changes: Any = (),
) -> Reply:
    """Find the most accurate architecture within the limits, with a proof.

    Given nothing but the folder of a run, it is the run's step: all limits of its configuration. With --limit it is a
    question of your own: all limits together, nothing of the run is touched.
    """
    from binas.run.start import check_outside, configure
    from binas.search.deadline import Deadline
    from binas.search.surroundings import look_around
    from binas.tasks.search import SEARCH, SearchSettings

    if is_run(folder) and not (limit or top or within or on_device or out):
        return task_reply(SEARCH, folder, changes, redo, progress)
    check_outside(folder, SEARCH, out)
    settings = configure(folder, changes=changes).part(SearchSettings)
    deadline = Deadline.after(settings.time_limit)
    result, why = _search(folder, limits_on(folder, limit), on_device, settings, changes, progress)
    if why:
        return _no_answer(result, why, deadline)
    around = look_around(result, top, within, time_limit=deadline)
    if out is not None:
        write_text(out, dump_json(around.to_json()))
    return Reply(around.to_json(), lambda: _show_search(around, top is not None or within is not None))


def _search(
    folder: Path,
    limits: list[str],
    on_device: bool,
    settings: SearchSettings,
    changes: Any,
    progress: Progress,
) -> tuple[SearchResult, str]:
    """The answer under limits of one's own, and why there is none."""
    from binas.run.folder import load
    from binas.run.run import open_run
    from binas.tasks.search import search_for

    run = open_run(folder, changes) if is_run(folder) else None
    problem = load(folder).problem(limits, settings.estimator)
    if not on_device:
        return search_for(problem, settings, False, progress, run)
    with progress.during("search"):
        return search_for(problem, settings, True, progress, run)


def _no_answer(result: SearchResult | Frontier, why: str, deadline: Deadline) -> Reply:
    """Why there is no architecture; programs are told what would make one possible."""
    from binas.search.infeasible import explain_infeasible, shows_infeasible

    more = {}
    if shows_infeasible(result):
        found = explain_infeasible(result.problem, time_limit=deadline, known=True)
        more = {"infeasible": found.to_json()}
    return Reply({**result.to_json(), **more}, error=ProblemError(why))


def _show_search(around: Surroundings, listed: bool) -> None:
    result = around.result
    _show_result(result)
    _show_readings(result)
    say(*(price.sentence(result.problem) for price in around.prices))
    if listed:
        _show_near(result, around.near)


def _show_result(result: SearchResult) -> None:
    from binas.tables.conditions import describe
    from binas.tables.units import format_quantity

    best, problem, rows = result.evaluation, result.problem, []
    assert best is not None
    say(f"{best.architecture}" + (f" with {result.variant}" if result.variant else ""), result.sentence())
    for name, value in best.costs.items():
        limits = [problem.describe_limit(x).split(" ", 1)[1] for x in problem.limits if x.cost == name]
        cost = problem.costs[name]
        known = (
            format_quantity(value, cost.unit),
            " and ".join(limits) or "-",
            describe(cost.provenance) or "-",
        )
        rows.append((name, *known))
    table(("cost", "value", "limit", "measured on"), rows)


def _show_readings(result: SearchResult) -> None:
    """What was built and measured, where the limits were kept on the device."""
    from binas.search.on_device import Reading, unconfirmed

    steps = result.details.get("on_device", [])
    left = unconfirmed(str(result.architecture), result.variant, map(Reading.model_validate, steps))
    open_ = [item.model_dump(mode="json") for item in left]
    rows = [
        (
            step["architecture"],
            *(f"{step[key]:.5g} {step['unit']}" for key in ("predicted", "measured", "high", "asked")),
            "kept" if step["kept"] else "not confirmed" if step in open_ else "broken",
        )
        for step in steps
    ]
    if rows:
        table(("built and measured", "predicted", "measured", "at most", "limit", ""), rows)
    say(*_remarks(result))


def _remarks(result: SearchResult) -> list[str]:
    """What to know about how the answer was measured."""
    from binas.search.answers import AnswerRecord

    return AnswerRecord.of("", result.problem, result, "", "").remarks


def _show_near(result: SearchResult, near: Alternatives) -> None:
    best, costs = result.accuracy or 0.0, result.problem.costs
    names = list(dict.fromkeys(limit.cost for limit in result.problem.limits)) or list(costs)[:1]
    rows = [
        (
            str(item.architecture),
            f"{item.accuracy - best:+.4f}",
            *(f"{item.costs[name]:.5g}" for name in names),
        )
        for item in near.items
    ]
    table(("also good", "points", *(f"{name} ({costs[name].unit.name})" for name in names)), rows)
    if not near.complete:
        bound = "" if near.bound is None else f" None that is left out is better than {near.bound:.4f} %."
        say(
            "More exist than are listed; ask for fewer with --top, a smaller --within, or give more --time-limit."
            + bound
        )


@command(
    app,
    "frontier",
    "binas frontier example --cost latency --csv frontier.csv --plot frontier.html",
    "binas frontier example --cost latency --limit params=5M --json",
)
def frontier(
    folder: Dir,
    cost: CostName = None,
    limit: Limits = None,
    tolerance: Annotated[
        float, typer.Option(min=0.0, help="Points of accuracy that may be given up for speed; certified.")
    ] = 0.0,
    time_limit: Annotated[
        float | None,
        typer.Option(min=0.0, help="Seconds it may take; then it is what was found so far, certified."),
    ] = None,
    memory_limit: Annotated[
        float, typer.Option(min=1.0, help="MiB it may hold; certified where an exact one needs more.")
    ] = 1024.0,
    csv_file: Annotated[
        Path | None, typer.Option("--csv", help="Also write the points to a CSV file.")
    ] = None,
    plot: Annotated[Path | None, typer.Option(help="Also draw them to FILE.html or FILE.png.")] = None,
) -> Reply:
    """Find every architecture that no other beats in accuracy and cost: the answer for all limits at once."""
    from binas.report.plots import plot_frontier
    from binas.run.folder import load
    from binas.search.deadline import Deadline
    from binas.search.frontier import frontier as trace
    from binas.search.infeasible import why_no_answer

    check_plot(plot)
    tables, deadline = load(folder), Deadline.after(time_limit)
    curve = trace(
        tables.problem(limits_on(folder, limit)),
        cost or _usual_cost(tables),
        tolerance=tolerance,
        time_limit=deadline,
        memory_limit=memory_limit * 2**20,
    )
    if len(curve) == 0:
        return _no_answer(curve, why_no_answer(curve, deadline), deadline)
    if csv_file is not None:
        write_text(csv_file, curve.to_csv())
    if plot is not None:
        plot_frontier(curve, plot)
    written = [path for path in (csv_file, plot) if path is not None]
    return Reply(curve.to_json(), lambda: _show_frontier(curve, written))


def _show_frontier(curve: Frontier, written: list[Path]) -> None:
    import numpy as np

    from binas.tables.conditions import describe

    name, milliseconds = curve.problem.space.name, curve.seconds * 1e3
    say(f"{len(curve)} networks on the frontier of {name} ({curve.certainty}, {milliseconds:.0f} ms)")
    if curve.stopped:
        say(
            "Time or memory were short: below the first there may be others. Give more --time-limit or --memory-limit."
        )
    measured = describe(curve.problem.costs[curve.cost].provenance)
    if measured:
        say(f"{curve.cost} measured on: {measured}")
    marks = np.unique([curve.index_at(x) or 0 for x in np.linspace(curve.costs[0], curve.costs[-1], 12)])
    points = [curve[int(i)] for i in marks]
    rows = [
        (f"{x.cost:.5g} {curve.unit.name}", f"{x.accuracy:.4f}", str(x.architecture), x.variant or "-")
        for x in points
    ]
    table_of_known((curve.cost, "accuracy", "architecture", "variant"), rows)
    say(*(f"wrote {path}" for path in written))


@command(
    app,
    "explain",
    "binas explain example best --limit latency=45ms",
    "binas explain example e3k3-e3k3_e3k3-e3k3_e3k3-e3k3_e3k3-e3k3_e3k3-e3k3 --limit latency=45ms",
)
def explain(
    folder: Dir,
    architecture: Annotated[
        str,
        typer.Argument(
            help="A compact string, a timm-style block string, JSON, a file, 'heaviest', 'lightest', "
            "or 'best' for the optimum."
        ),
    ],
    limit: Limits = None,
    time_limit: Annotated[
        float | None,
        typer.Option(
            min=0.0, help="Seconds it may take; then it is what was found so far, and says what is missing."
        ),
    ] = None,
) -> Reply:
    """Explain an architecture: per decision what it brings, what it costs, what the best alternative gives."""
    from binas.run.folder import load
    from binas.search import explain as explain_architecture
    from binas.search.deadline import Deadline
    from binas.space.blockstrings import read_choice

    tables, deadline = load(folder), Deadline.after(time_limit)
    problem, remarks = tables.problem(limits_on(folder, limit)), list[str]()
    if architecture == "best":
        chosen, remarks = _best(problem, deadline)
    else:
        chosen = read_choice(problem.space, architecture)
    explanation = explain_architecture(problem, chosen, time_limit=deadline)
    remarks += _measured_remarks(folder, str(chosen))
    return Reply(explanation.to_json(), lambda: _show_explanation(explanation, tables, remarks))


def _best(problem: SearchProblem, deadline: Deadline) -> tuple[Architecture, list[str]]:
    """The best architecture within the limits, and what to know of it where time was up."""
    from binas.search import Status, solve
    from binas.search.infeasible import why_no_answer

    result = solve(problem, time_limit=deadline.shared(2))
    if result.architecture is None:
        raise ProblemError(f"there is no best architecture: {why_no_answer(result, deadline)}")
    return result.architecture, [] if result.status is Status.OPTIMAL else [result.sentence()]


def _measured_remarks(folder: Path, architecture: str) -> list[str]:
    """What to know about how an answer of a run was measured; nothing of networks that are none."""
    from binas.run.run import open_run

    answers = open_run(folder).answers if is_run(folder) else []
    return [text for item in answers if item.architecture == architecture for text in item.remarks]


def _show_explanation(explanation: Explanation, tables: Folder, remarks: Sequence[str]) -> None:
    from binas.tables.conditions import disturbed
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
    left = sum(not item.complete for item in explanation.decisions)
    if left:
        say(
            f"Time was up: of {left} of {len(rows)} decisions not all alternatives were looked at, and of those with a ? "
            "none that counts. Give more --time-limit."
        )
    say(*(standing.sentence(problem.describe_limits()) for standing in explanation.variants))
    if tables.choice is not None:
        say(f"Predicted by the estimator {tables.choice.chosen}: {tables.choice.why}")
    say(*filter(None, (disturbed(name, cost.provenance) for name, cost in problem.costs.items())))
    say(*dict.fromkeys(remarks))


def _decision_row(item: Decision, cost: str) -> tuple[str, ...]:
    where = f"{item.stage} depth" if item.block is None else f"{item.stage} block {item.block}"
    points = "" if item.contribution is None else f"{item.contribution:+.4f}"
    none = "-" if item.complete else "?"
    changes = (_change(item.best, cost, none), _change(item.best_within, cost, none))
    return (where, item.choice, points, f"{item.costs[cost]:.4g}", *changes)


def _change(item: Alternative | None, cost: str, none: str) -> str:
    return none if item is None else f"{item.choice}: {item.accuracy:+.4f}, {item.costs[cost]:+.4g}"


@command(app, "insights", "binas insights example", "binas insights example --cost macs --json")
def insights(folder: Dir, cost: CostName = None) -> Reply:
    """Show what depth and options bring, what they cost, and what can be said about it."""
    from binas.insights import find_insights
    from binas.run.folder import load

    tables = load(folder)
    result = find_insights(tables.contributions, tables.costs[cost or _usual_cost(tables)])
    return Reply(result.to_json(), lambda: _show_insights(result))


def _usual_cost(tables: Folder) -> str:
    """The cost of a run's first limit; of other folders latency, or the first there is."""
    from binas.run.run import open_run
    from binas.tasks.report import usual_cost

    return usual_cost(tables, open_run(tables.path).questions if is_run(tables.path) else ())


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


@command(app, "solvers", "binas solvers", "binas solvers --json")
def solvers() -> Reply:
    """List the solvers: what each can take, and whether it is installed."""
    from binas.search.solvers import SOLVERS, solver_class

    known = [solver_class(name).to_json() for name in SOLVERS]
    rows = [
        (
            item["name"],
            "yes" if item["exact"] else "no",
            "any" if item["max_limits"] is None else str(item["max_limits"]),
            ", ".join(item["objectives"]),
            item["missing"] or "yes",
            item["summary"],
        )
        for item in known
    ]
    columns = ("solver", "exact", "limits", "objectives", "available", "what it is")
    return Reply(known, lambda: table(columns, rows))
