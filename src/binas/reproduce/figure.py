"""The picture of a finding, as PNG. Nothing is computed here."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from binas.report.figures import COLOURS, MARKERS, png
from binas.reproduce._base import Finding, Panel, Series

WIDTH, HEIGHT = 5.2, 4.2  # inches of a panel


def picture(finding: Finding) -> bytes:
    """All panels side by side."""

    def draw(figure: Any, _: Any) -> None:
        for number, panel in enumerate(finding.panels, 1):
            axes = figure.add_subplot(1, len(finding.panels), number)
            axes.spines[["top", "right"]].set_visible(False)
            _panel(axes, panel)

    return png({}, (WIDTH * len(finding.panels), HEIGHT), draw)


def _panel(axes: Any, panel: Panel) -> None:
    for number, series in enumerate(panel.series):
        _series(axes, series, number)
    if panel.equal:
        low, high = axes.get_xlim()
        axes.plot([low, high], [low, high], "--", color="#9aa4b2", linewidth=1)
    if panel.log:
        axes.set_xscale("log")
    across, up = (panel.x, panel.y)[:: -1 if _lying(panel) else 1]
    axes.set(xlabel=across, ylabel=up)
    axes.set_title(panel.title, fontsize=10)
    if len(panel.series) > 1:
        axes.legend(frameon=False, fontsize=7)


def _lying(panel: Panel) -> bool:
    """Whether values go to the right: bars lie, so that their names can be read."""
    return any(series.kind == "bars" for series in panel.series)


def _series(axes: Any, series: Series, number: int) -> None:
    """Points, a line or bars; values that are not known are left out."""
    colour = COLOURS[number % len(COLOURS)]
    known = [k for k, value in enumerate(series.y) if value is not None]
    x, y = [series.x[k] for k in known], [series.y[k] for k in known]
    error, across = _errors(series.error, known), _errors(series.error_x, known)
    if series.kind == "bars":
        axes.barh(x[::-1], y[::-1], xerr=None if error is None else error[::-1], color=colour)
        return
    style = "-" if series.kind == "line" else "none"
    marker = MARKERS[number % len(MARKERS)]
    drawn = {"color": colour, "marker": marker, "markersize": 4, "linestyle": style, "capsize": 2}
    axes.errorbar(x, y, error, across, label=series.name, **drawn)


def _errors(errors: Sequence[float | None] | None, known: Sequence[int]) -> list[float] | None:
    """Half lengths of error bars; NaN, which draws none, where an error is not known: no bar is not a bar of length 0."""
    if errors is None:
        return None
    return [math.nan if errors[k] is None else float(errors[k] or 0.0) for k in known]
