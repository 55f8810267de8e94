"""Drawing a frontier: one self-contained HTML file, or a PNG. Numbers come from the Frontier, nothing is computed."""

from __future__ import annotations

import io
from pathlib import Path

from binas.base.errors import FileError
from binas.base.files import write_bytes, write_text
from binas.search.frontier import Frontier


def plot_frontier(frontier: Frontier, path: Path) -> None:
    """Write accuracy against cost as ``.html`` (interactive, works offline) or ``.png``."""
    if path.suffix == ".html":
        write_text(path, frontier_html(frontier))
    elif path.suffix == ".png":
        write_bytes(path, frontier_png(frontier))
    else:
        raise FileError(f"cannot draw {path}: name a file that ends in .html or .png.")


def _labels(frontier: Frontier) -> tuple[str, str, str]:
    kind = "exact" if frontier.exact else f"certified within {frontier.error:.2g} points"
    title = f"{frontier.problem.space.name}: {len(frontier)} best networks ({kind})"
    return title, f"{frontier.cost} ({frontier.unit.name})", "predicted accuracy (%)"


def frontier_html(frontier: Frontier) -> str:
    """A page with an interactive step plot; hovering shows the architecture."""
    import plotly.graph_objects as go

    title, x, y = _labels(frontier)
    names = [str(frontier.architecture(i)).replace("_", "<br>") for i in range(len(frontier))]
    line = go.Scatter(
        x=frontier.costs.tolist(),
        y=frontier.accuracies.tolist(),
        customdata=names,
        mode="lines+markers",
        line={"shape": "hv"},
        marker={"size": 4},
        hovertemplate=f"{x.split(' ')[0]} %{{x:.5g}} {frontier.unit.name}<br>accuracy %{{y:.4f}}<br>%{{customdata}}"
        "<extra></extra>",
    )
    figure = go.Figure(line)
    figure.update_layout(title=title, xaxis_title=x, yaxis_title=y, template="plotly_white")
    return str(figure.to_html(include_plotlyjs=True, full_html=True))


def frontier_png(frontier: Frontier) -> bytes:
    """The same as a picture."""
    from matplotlib.figure import Figure

    title, x, y = _labels(frontier)
    figure = Figure(figsize=(8, 5), dpi=130, layout="constrained")
    axes = figure.add_subplot()
    axes.step(frontier.costs, frontier.accuracies, where="post", linewidth=1.5, color="#1f6feb")
    axes.set(title=title, xlabel=x, ylabel=y)
    axes.grid(alpha=0.3)
    buffer = io.BytesIO()
    figure.savefig(buffer, format="png")
    return buffer.getvalue()
