"""One figure as a file of its own, ``.html`` or ``.png``: a frontier, or a verified cost against measured networks.

The figures are those of the report; here only their numbers are put together.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from binas.base.errors import FileError
from binas.base.files import write_bytes, write_text
from binas.report.figures import Draw, draw_formula, draw_frontier, draw_rivals, png
from binas.report.frontier_numbers import frontier_points
from binas.report.page import FIGURES, page
from binas.search.frontier import Frontier
from binas.tables.costs import Cost
from binas.tables.units import Unit
from binas.version import TOOL

SCRIPTS = (*FIGURES, "plot.js")


def plot_frontier(frontier: Frontier, path: Path) -> None:
    """Write accuracy against cost: a page that shows the architecture of each point, or a picture."""
    _write(path, frontier_plot(frontier), (8, 5), draw_frontier)


def plot_verification(cost: Cost, path: Path) -> None:
    """Write predicted against measured networks: a page that shows the architecture of each, or a picture."""
    _write(path, verification_plot(cost), (6, 6), draw_formula)


def plot_rivals(numbers: Mapping[str, Any], path: Path) -> None:
    """Write a picture of ``series`` (kind of networks -> points with cost, accuracy, error) under a ``title``."""
    write_bytes(path, png(numbers, (8, 5), draw_rivals))


def frontier_plot(frontier: Frontier) -> dict[str, Any]:
    """The numbers of a frontier's figure."""
    title = f"{frontier.problem.space.name}: {len(frontier)} best networks ({frontier.certainty})"
    points = {**frontier_points(frontier), "stderr": None}
    return {
        **_numbers(title, frontier.cost, frontier.unit),
        "frontier": points,
        "references": [],
        "chosen": [],
    }


def verification_plot(cost: Cost) -> dict[str, Any]:
    """The numbers of the figure of a verified cost."""
    checked = cost.provenance.verification
    if checked is None:
        raise FileError(
            f"{cost.name} was not verified, so there is nothing to draw; run `binas costs verify`."
        )
    title = (
        f"{cost.name}: {checked.networks} networks held out, mean error {checked.mape_percent.value:.2f} %, "
        f"Spearman {checked.spearman.value:.3f}"
    )
    return {**_numbers(title, cost.name, cost.unit), "verification": checked.model_dump(mode="json")}


def _numbers(title: str, cost: str, unit: Unit) -> dict[str, Any]:
    described = {"unit": unit.name, "kind": unit.kind, "factor": unit.factor}
    return {
        "tool": TOOL,
        "title": title,
        "cost": cost,
        "unit": unit.name,
        "costs": {cost: described},
        "frontier": None,
        "verification": None,
    }


def _write(path: Path, numbers: Mapping[str, Any], size: tuple[float, float], draw: Draw) -> None:
    if path.suffix == ".html":
        write_text(path, page(numbers, SCRIPTS))
    elif path.suffix == ".png":
        write_bytes(path, png(numbers, size, draw))
    else:
        raise FileError(f"cannot draw {path}: name a file that ends in .html or .png.")
