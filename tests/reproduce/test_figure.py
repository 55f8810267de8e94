"""Pictures of findings: what stands on which axis."""

from __future__ import annotations

import pytest
from pydantic import ValidationError

from binas.reproduce._base import Finding, Panel, Series
from binas.reproduce.figure import _panel, picture


@pytest.mark.parametrize(("kind", "across", "up"), [("line", "passes", "tau"), ("bars", "tau", "passes")])
def test_bars_lie_and_their_values_are_named_below(kind: str, across: str, up: str) -> None:
    figure = pytest.importorskip("matplotlib.figure").Figure()
    axes = figure.add_subplot()
    series = Series(name="own", x=("a", "b"), y=(1.0, None), error=(0.1, None), kind=kind)
    _panel(axes, Panel(title="", x="passes", y="tau", series=(series,)))
    assert (axes.get_xlabel(), axes.get_ylabel()) == (across, up)


def test_panels_stand_side_by_side() -> None:
    pytest.importorskip("matplotlib")
    panel = Panel(title="", x="x", y="y", series=(Series(name="own", x=(1.0,), y=(2.0,)),))
    one, two = (picture(Finding(sentence="", rows=(), panels=(panel,) * count)) for count in (1, 2))
    widths = [int.from_bytes(data[16:20], "big") for data in (one, two)]
    assert widths[1] > 1.5 * widths[0]


@pytest.mark.parametrize(
    "change", [{"y": (1.0,)}, {"error": (1.0,)}, {"x": (1.0, "b")}, {"y": (1.0, 1e308)}, {"error_x": ()}]
)
def test_series_that_cannot_be_drawn_are_refused(change: dict[str, tuple[float, ...]]) -> None:
    right = {"name": "own", "x": (1.0, 2.0), "y": (1.0, None)}
    assert Series.model_validate(right)
    with pytest.raises(ValidationError):
        Series.model_validate(right | change)
