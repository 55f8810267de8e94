"""``binas insights`` and ``binas report``."""

from __future__ import annotations

from pathlib import Path
from shlex import join
from typing import TYPE_CHECKING, Annotated

import typer

from binas.cli.output import Json, examples, print_json, say, table

if TYPE_CHECKING:
    from binas.insights import Insights, Per, Rule
    from binas.report.data import ReportData
    from binas.run.folder import Folder

SHOWN_RULES = 12

Dir = Annotated[Path, typer.Argument(help="Folder with space.yaml, contributions and costs.", metavar="DIR")]
CostName = Annotated[
    str | None,
    typer.Option(help="The cost that gains are held against; default: a run's first limit, else latency."),
]


def register(app: typer.Typer) -> None:
    """Add the commands to the main application."""
    app.command(
        "insights", epilog=examples("binas insights example", "binas insights example --cost macs --json")
    )(insights)
    app.command(
        "report",
        epilog=examples(
            "binas report example",
            "binas report example --limit latency=45ms --limit latency=60ms --out report.html",
            "binas report example --cost macs --png figures --json",
        ),
    )(report)


def insights(folder: Dir, cost: CostName = None, as_json: Json = False) -> None:
    """Show what depth and options bring, what they cost, and what can be said about it."""
    from binas.insights import find_insights
    from binas.run.folder import load

    opened = load(folder)
    found = find_insights(opened.contributions, opened.costs[cost or _usual_cost(opened)])
    if as_json:
        print_json(found.to_json())
        return
    _show(found)


def _show(found: Insights) -> None:
    for text in found.sentences:
        say(text)
    if not found.sentences:
        say("Nothing stands out clearly enough to be put into words.")
    elif not found.errors_known:
        say("The table has no standard errors; these sentences take its numbers as exact.")
    per = found.per
    assert per is not None  # a cost was given
    rows = [_row(rule, per) for rule in found.rules[:SHOWN_RULES]]
    table(("stage", "change", "points", f"{found.cost} ({per.unit})", f"points per {per.unit}"), rows)
    more = len(found.rules) - SHOWN_RULES
    if more > 0:
        say(f"{more} more with --json.")
    if not all(step.balanced for step in found.options):
        say("* moves together with another option in this space, so the effect is of both.")


def _row(rule: Rule, per: Per) -> tuple[str, ...]:
    def with_error(value: float | None, stderr: float | None, scale: float = 1.0) -> str:
        if value is None:
            return "-"
        return f"{value * scale:+.4g}" + ("" if stderr is None else f" ± {stderr * scale:.2g}")

    effect = rule.effect
    paid = "-" if effect.cost is None else f"{effect.cost / per.scale:.4g}"
    name = rule.name if rule.balanced else f"{rule.name} *"
    return (
        rule.stage,
        name,
        with_error(effect.value, effect.stderr),
        paid,
        with_error(rule.per_cost, rule.per_cost_stderr, per.scale),
    )


def report(
    folder: Dir,
    out: Annotated[Path | None, typer.Option(help="File to write; default DIR/report.html.")] = None,
    cost: CostName = None,
    limit: Annotated[
        list[str] | None,
        typer.Option("--limit", "-l", help="Also show the best network under COST=QUANTITY. Repeatable."),
    ] = None,
    png: Annotated[
        Path | None, typer.Option(help="Also write the figures as PNG files into a folder.")
    ] = None,
    as_json: Json = False,
) -> None:
    """Write a page about a folder's tables: the frontier, a slider over the limit, insights, checks."""
    from binas.base.errors import FileError
    from binas.base.files import write_text
    from binas.report.figures import figures
    from binas.report.numbers import report_numbers, summary
    from binas.report.page import page

    path = folder / "report.html" if out is None else out
    if path.suffix.lower() not in (".html", ".htm"):
        raise FileError(f"cannot write a page to {path}: name a file that ends in .html.")
    command = _command(folder, {"--out": out, "--cost": cost, "--png": png}, limit or [])
    data = _gathered(folder, cost, limit or [], command)
    numbers = report_numbers(data)
    write_text(path, page(numbers))
    drawn = [] if png is None else figures(numbers, png)
    if as_json:
        print_json({**numbers, "files": [str(path), *map(str, drawn)]})
        return
    for line in summary(numbers, data):
        say(line)
    for written in (path, *drawn):
        say(f"wrote {written}")


def _usual_cost(opened: Folder) -> str:
    """The cost of a run's first limit; of other folders latency, or the first there is."""
    from binas.base.files import exists
    from binas.run.config import FILE, load_config
    from binas.search.limits import parse_limits

    if exists(opened.path / FILE):
        questions = load_config(opened.path / FILE).search.limits
        return parse_limits(questions[0], opened.space, opened.costs.costs)[0].cost
    return "latency" if "latency" in opened.costs.costs else next(iter(opened.costs.costs))


def _gathered(folder: Path, cost: str | None, limits: list[str], command: str) -> ReportData:
    """All that a run knows where its networks are made, or what a folder of tables holds."""
    from dataclasses import replace

    from binas.base.files import exists
    from binas.report.assemble import choose, gather
    from binas.run.folder import load

    opened = load(folder)
    cost = cost or _usual_cost(opened)
    if not exists(folder / "networks.json"):
        return gather(opened.contributions, opened.costs, cost, folder, limits, [command])
    from binas.run.report_step import run_report
    from binas.run.run import open_run

    data = run_report(open_run(folder), cost)
    more = tuple(choose(opened.contributions, opened.costs, cost, limit) for limit in limits)
    return replace(data, chosen=(*data.chosen, *more), commands=(*data.commands, command))


def _command(folder: Path, options: dict[str, Path | str | None], limits: list[str]) -> str:
    """The command that writes this report again."""
    words = ["binas", "report", str(folder)]
    for name, value in options.items():
        words += [] if value is None else [name, str(value)]
    for limit in limits:
        words += ["--limit", limit]
    return join(words)
