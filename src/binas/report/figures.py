"""The figures of a report as PNG files. Numbers come from :mod:`binas.report.numbers`, nothing is computed."""

from __future__ import annotations

import io
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from binas.base.files import write_bytes
from binas.base.interval import Z
from binas.base.packages import need
from binas.report.data import ReportData
from binas.report.numbers import report_numbers

COLOURS = ("#0f766e", "#c2410c", "#4338ca", "#a16207", "#9d174d", "#475569")
MARKERS = ("o", "s", "^", "D")
Numbers = Mapping[str, Any]
Draw = Callable[[Any, Numbers], None]


def write_figures(data: ReportData, folder: Path) -> list[Path]:
    """Write a PNG for every figure that there are numbers for, each atomically; the paths of the files."""
    return figures(report_numbers(data), Path(folder))


def figures(numbers: Numbers, folder: Path) -> list[Path]:
    """The same from numbers that are already there."""
    drawn: list[tuple[str, bool, tuple[float, float], Draw]] = [
        ("frontier", True, (8, 5), draw_frontier),
        ("insights", bool(numbers["insights"]["options"]), (13, 4.2), _insights),
        ("rules", any(_paying(numbers)), (8, 5), _rules),
        ("formula", numbers["verification"] is not None, (6, 6), draw_formula),
        ("prediction", numbers["ranking"] is not None, (6, 6), _prediction),
        ("training", bool(numbers["training"]), (9, 4), _training),
        ("time", bool(numbers["times"]), (8, 4), _times),
    ]
    paths = []
    for name, present, size, draw in drawn:
        if present:
            paths.append(folder / f"{name}.png")
            write_bytes(paths[-1], png(numbers, size, draw))
    return paths


def png(numbers: Numbers, size: tuple[float, float], draw: Draw) -> bytes:
    """A figure of ``size`` inches as the bytes of a PNG file."""
    need("matplotlib", "a PNG file")
    from matplotlib.figure import Figure

    figure = Figure(figsize=size, dpi=150, layout="constrained")
    draw(figure, numbers)
    buffer = io.BytesIO()
    figure.savefig(buffer, format="png")
    return buffer.getvalue()


def _axes(figure: Any, place: tuple[int, int, int] = (1, 1, 1)) -> Any:
    axes = figure.add_subplot(*place)
    axes.spines[["top", "right"]].set_visible(False)
    axes.grid(alpha=0.25)
    return axes


def _words(text: str) -> str:
    """Text that matplotlib shows as it is: a dollar sign would begin a formula."""
    return text.replace("$", r"\$")


def draw_frontier(figure: Any, numbers: Numbers) -> None:
    """Accuracy against cost, with references and chosen networks."""
    axes, traced = _axes(figure), numbers["frontier"]
    costs, accuracies = traced["costs"], traced["accuracies"]
    axes.step(
        costs, accuracies, where="post", color=COLOURS[0], linewidth=2, label="best network at each limit"
    )
    if traced["stderr"] is not None:
        pairs = list(zip(accuracies, traced["stderr"], strict=True))
        low, high = [a - Z * e for a, e in pairs], [a + Z * e for a, e in pairs]
        axes.fill_between(
            costs, low, high, step="post", color=COLOURS[0], alpha=0.15, linewidth=0, label="95 % band"
        )
    for n, group in enumerate(dict.fromkeys(item["group"] for item in numbers["references"])):
        some = [item for item in numbers["references"] if item["group"] == group]
        x, y = [item["cost"] for item in some], [item["accuracy"] for item in some]
        axes.scatter(x, y, s=18, color=COLOURS[5 - n % 5], marker=MARKERS[n % 3], label=_words(group))
    if numbers["chosen"]:
        x, y = [item["cost"] for item in numbers["chosen"]], [item["accuracy"] for item in numbers["chosen"]]
        axes.scatter(x, y, s=55, color="#b42318", marker="D", zorder=3, label="chosen")
    axes.set(
        xlabel=f"{numbers['cost']} ({numbers['unit']})", ylabel="accuracy (%)", title=_words(numbers["title"])
    )
    axes.legend(frameon=False, fontsize=8)


def draw_rivals(figure: Any, numbers: Numbers) -> None:
    """Accuracy against cost of several kinds of networks, with standard errors; the first kind is ours, joined by a line."""
    axes = _axes(figure)
    for n, (name, points) in enumerate(numbers["series"].items()):
        x, y = [point["cost"] for point in points], [point["accuracy"] for point in points]
        errors = [point["error"] for point in points]
        line, size = ("-", 7) if n == 0 else ("none", 5)
        style = {"color": COLOURS[n % 6], "marker": MARKERS[n % 4], "markersize": size, "linestyle": line}
        axes.errorbar(x, y, errors, **style, capsize=2, zorder=3 if n == 0 else 2, label=_words(name))
    labels = {"xlabel": f"{numbers['cost']} ({numbers['unit']})", "ylabel": "test accuracy (%)"}
    axes.set(**labels, title=_words(numbers["title"]))
    axes.legend(frameon=False, fontsize=8)


def _insights(figure: Any, numbers: Numbers) -> None:
    """The three panels of the paper's figure 8."""
    insights, stages = numbers["insights"], [stage["name"] for stage in numbers["space"]["stages"]]
    depth = _axes(figure, (1, 3, 1))
    for n, name in enumerate(dict.fromkeys(step["name"] for step in insights["depths"])):
        steps = {step["stage"]: step for step in insights["depths"] if step["name"] == name}
        _line(depth, stages, steps, name, n)
    depth.set(xlabel="stage", ylabel="points", title="depth")
    _block_costs(depth, insights)
    for place, (key, names) in enumerate((("per_stage", stages), ("per_block", _blocks(insights))), 2):
        axes = _axes(figure, (1, 3, place))
        for n, step in enumerate(insights["options"]):
            _line(axes, names, step[key], _words(step["name"]), n)
        axes.set(xlabel=key.removeprefix("per_"), title=f"options {key.replace('_', ' ')}")
        axes.legend(frameon=False, fontsize=8)
    depth.legend(frameon=False, fontsize=8)


def _block_costs(axes: Any, insights: Numbers) -> None:
    """What a block of each stage costs, on the right, as the paper draws it."""
    paid = {
        step["stage"]: step["block_cost"] for step in insights["depths"] if step["block_cost"] is not None
    }
    if paid:
        right = axes.twinx()
        per = insights["per"]
        values = [value / per["scale"] for value in paid.values()]
        right.plot([_words(name) for name in paid], values, "--", color="#9aa4b2")
        right.set_ylabel(f"{insights['cost']} of a block ({per['unit']}), dashed")
        right.set_ylim(bottom=0)


def _blocks(insights: Numbers) -> list[str]:
    return sorted({block for step in insights["options"] for block in step["per_block"]}, key=int)


def _line(axes: Any, names: list[str], effects: Mapping[str, Any], label: str, n: int) -> None:
    seen = [name for name in names if name in effects]
    errors = [Z * (effects[name]["stderr"] or 0.0) for name in seen]
    values = [effects[name]["value"] for name in seen]
    axes.errorbar(
        [_words(name) for name in seen],
        values,
        errors,
        color=COLOURS[n % 6],
        marker=MARKERS[n % 4],
        markersize=4,
        label=label,
    )


def _paying(numbers: Numbers) -> list[Mapping[str, Any]]:
    return [rule for rule in numbers["insights"]["rules"] if rule["per_cost"] is not None][:14]


def _rules(figure: Any, numbers: Numbers) -> None:
    axes, rules, per = _axes(figure), _paying(numbers)[::-1], numbers["insights"]["per"]
    values = [rule["per_cost"] * per["scale"] for rule in rules]
    names = [_words(f"{rule['stage']} {rule['rule']}") for rule in rules]
    errors = [Z * (rule["per_cost_stderr"] or 0.0) * per["scale"] for rule in rules]
    axes.errorbar(values, range(len(names)), xerr=errors, fmt="o", color=COLOURS[0])
    axes.set_yticks(range(len(names)), names, fontsize=8)
    if min(values) > 0 and max(values) > 30 * min(values):
        axes.set_xscale("log")
    axes.set(xlabel=f"points per {per['unit']}")


def _equal(axes: Any, values: list[float]) -> None:
    axes.plot([min(values), max(values)], [min(values), max(values)], "--", color="#9aa4b2", linewidth=1)


def draw_formula(figure: Any, numbers: Numbers) -> None:
    """Networks by the table against measured ones."""
    axes, checked = _axes(figure), numbers["verification"]
    _equal(axes, [check[key] for check in checked["checks"] for key in ("measured", "predicted")])
    for n, part in enumerate(("held-out", "fit")):
        some = [check for check in checked["checks"] if check["part"] == part]
        x, y = [check["measured"] for check in some], [check["predicted"] for check in some]
        width = [
            [check["measured"] - check["low"] for check in some],
            [check["high"] - check["measured"] for check in some],
        ]
        axes.errorbar(x, y, xerr=width, fmt=MARKERS[n], markersize=4, color=COLOURS[n], label=part)
    unit = numbers["unit"]
    axes.set(xlabel=f"measured ({unit})", ylabel=f"predicted ({unit})")
    axes.set_title(f"mean error {checked['mape_percent']['value']:.2f} %", fontsize=10)
    axes.legend(frameon=False)


def _prediction(figure: Any, numbers: Numbers) -> None:
    axes, ranking = _axes(figure), numbers["ranking"]
    _equal(axes, [*ranking["measured"], *ranking["predicted"]])
    errors = [Z * (error or 0.0) for error in ranking["measured_stderr"]]
    axes.errorbar(
        ranking["measured"], ranking["predicted"], xerr=errors, fmt="o", markersize=4, color=COLOURS[0]
    )
    own = ranking["estimators"][0]
    correlations = ", ".join(
        f"{name.capitalize()} {own[name]['value']:.3f}"
        for name in ("kendall", "spearman")
        if own[name]["value"] is not None
    )
    axes.set(xlabel="measured accuracy (%)", ylabel="predicted accuracy (%)")
    axes.set_title(correlations, fontsize=10)


def _training(figure: Any, numbers: Numbers) -> None:
    rows = numbers["training"]
    axes, losses = _axes(figure, (1, 2, 1)), _axes(figure, (1, 2, 2))
    for phase in dict.fromkeys(row["phase"] for row in rows):
        some = [row for row in rows if row["phase"] == phase]
        keys = dict.fromkeys(
            key for row in some for key, value in row.items() if isinstance(value, int | float)
        )
        for key in [key for key in keys if key not in ("epoch", "step", "learning_rate")]:
            seen = [row for row in some if row.get(key) is not None]
            place = losses if "loss" in key else axes
            place.plot(
                [row["step"] for row in seen],
                [row[key] for row in seen],
                marker=".",
                label=_words(f"{phase}: {key}"),
            )
    axes.set(xlabel="step", ylabel="accuracy (%)")
    losses.set(xlabel="step", ylabel="loss")
    for place in (axes, losses):
        if place.has_data():
            place.legend(frameon=False, fontsize=8)


def _times(figure: Any, numbers: Numbers) -> None:
    axes, items = _axes(figure), numbers["times"][::-1]
    axes.barh([_words(item["name"]) for item in items], [item["seconds"] for item in items], color=COLOURS[0])
    axes.set(xlabel="seconds")
