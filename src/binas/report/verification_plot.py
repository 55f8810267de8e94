"""Drawing a verified cost table: predicted against measured networks. Numbers come from the table."""

from __future__ import annotations

import io
from pathlib import Path

from binas.base.errors import FileError
from binas.base.files import write_bytes, write_text
from binas.tables.costs import Cost
from binas.tables.verification import NetworkCheck, Verification

COLOURS = {"fit": "#9aa4b2", "held-out": "#1f6feb"}


def plot_verification(cost: Cost, path: Path) -> None:
    """Write the scatter plot as ``.html`` (interactive, works offline) or ``.png``."""
    if path.suffix == ".html":
        write_text(path, verification_html(cost))
    elif path.suffix == ".png":
        write_bytes(path, verification_png(cost))
    else:
        raise FileError(f"cannot draw {path}: name a file that ends in .html or .png.")


def _verified(cost: Cost) -> Verification:
    if cost.provenance.verification is None:
        raise FileError(
            f"{cost.name} was not verified, so there is nothing to draw; run `binas costs verify`."
        )
    return cost.provenance.verification


def _labels(cost: Cost, found: Verification) -> tuple[str, str, str]:
    title = (
        f"{cost.name}: {found.networks} networks held out, mean error {found.mape_percent.value:.2f} %, "
        f"Spearman {found.spearman.value:.3f}"
    )
    return title, f"measured ({cost.unit.name})", f"predicted by the table ({cost.unit.name})"


def _parts(found: Verification) -> dict[str, list[NetworkCheck]]:
    return {part: [check for check in found.checks if check.part == part] for part in COLOURS}


def _range(found: Verification) -> tuple[float, float]:
    numbers = [value for check in found.checks for value in (check.predicted, check.measured)]
    return min(numbers), max(numbers)


def verification_html(cost: Cost) -> str:
    """A page with an interactive scatter plot; hovering shows the architecture."""
    import plotly.graph_objects as go

    found = _verified(cost)
    title, x, y = _labels(cost, found)
    line = go.Scatter(x=_range(found), y=_range(found), mode="lines", name="equal", line={"color": "#cccccc"})
    figure = go.Figure(line)
    for part, checks in _parts(found).items():
        figure.add_scatter(
            x=[c.measured for c in checks],
            y=[c.predicted for c in checks],
            error_x={
                "array": [c.high - c.measured for c in checks],
                "arrayminus": [c.measured - c.low for c in checks],
            },
            customdata=[c.architecture.replace("_", "<br>") for c in checks],
            mode="markers",
            name=part,
            marker={"color": COLOURS[part]},
            hovertemplate="measured %{x:.5g}<br>predicted %{y:.5g}<br>%{customdata}<extra></extra>",
        )
    figure.update_layout(title=title, xaxis_title=x, yaxis_title=y, template="plotly_white")
    return str(figure.to_html(include_plotlyjs=True, full_html=True))


def verification_png(cost: Cost) -> bytes:
    """The same as a picture."""
    from matplotlib.figure import Figure

    found = _verified(cost)
    title, x, y = _labels(cost, found)
    figure = Figure(figsize=(6.5, 6), dpi=130, layout="constrained")
    axes = figure.add_subplot()
    axes.plot(_range(found), _range(found), color="#cccccc", linewidth=1)
    for part, checks in _parts(found).items():
        measured = [c.measured for c in checks]
        width = [[c.measured - c.low for c in checks], [c.high - c.measured for c in checks]]
        predicted = [c.predicted for c in checks]
        axes.errorbar(measured, predicted, xerr=width, fmt="o", markersize=4, color=COLOURS[part], label=part)
    axes.set(xlabel=x, ylabel=y)
    axes.set_title(title, fontsize=9)
    axes.legend()
    axes.grid(alpha=0.3)
    buffer = io.BytesIO()
    figure.savefig(buffer, format="png")
    return buffer.getvalue()
