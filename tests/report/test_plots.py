"""A figure in a file of its own."""

import json
import re

import pytest
from made_up_report import contributions, costs
from matplotlib.figure import Figure
from test_calibrate import SPACE, isolated, networks

from binas.base.errors import FileError
from binas.costs.verify import check_formula
from binas.report.figures import draw_rivals
from binas.report.page import page
from binas.report.plots import (
    SCRIPTS,
    frontier_plot,
    plot_frontier,
    plot_rivals,
    plot_verification,
    verification_plot,
)
from binas.search import SearchProblem, frontier


@pytest.fixture(scope="module")
def cost():
    fit, held_out = (networks(isolated(), 0.9, (-0.03,) * 3, 0.4, n, 0.02, n) for n in (14, 20))
    return check_formula(SPACE, isolated(), fit, held_out)


@pytest.fixture(scope="module")
def traced():
    return frontier(SearchProblem.build(contributions(), costs()), "latency")


def embedded(text):
    return json.loads(re.search('id="numbers">(.*)</script>', text)[1])


def test_every_network_is_on_the_page(cost):
    numbers = embedded(page(verification_plot(cost), SCRIPTS))
    shown = [check["architecture"] for check in numbers["verification"]["checks"]]
    assert shown == [check.architecture for check in cost.provenance.verification.checks]


def test_every_point_of_a_frontier_is_on_the_page(traced):
    points = embedded(page(frontier_plot(traced), SCRIPTS))["frontier"]
    assert points["costs"] == pytest.approx(traced.costs.tolist())
    assert points["accuracies"] == pytest.approx(traced.accuracies.tolist())
    names = [[stage["variants"][i] for i in stage["points"]] for stage in points["stages"]]
    shown = ["_".join(stages) for stages in zip(*names, strict=True)]
    assert shown == [str(traced.architecture(i)) for i in range(len(traced))]


@pytest.mark.parametrize("ending", ["html", "png"])
def test_files(cost, traced, tmp_path, ending):
    plot_verification(cost, tmp_path / f"check.{ending}")
    plot_frontier(traced, tmp_path / f"frontier.{ending}")
    start = {"html": b"<!doctype html>", "png": b"\x89PNG"}[ending]
    for path in tmp_path.iterdir():
        assert path.read_bytes().startswith(start)


def test_kinds_of_networks_are_drawn_with_their_errors(tmp_path):
    """Read back from the axes: each kind by its name, at its costs and accuracies, with bars of one standard error."""
    point = {"cost": 1.0, "accuracy": 80.0, "error": 0.5}
    numbers = {
        "title": "$x$",
        "cost": "latency",
        "unit": "ms",
        "series": {"found": [point], "hand-scaled": [point]},
    }
    figure = Figure()
    draw_rivals(figure, numbers)
    (axes,) = figure.axes
    assert [text.get_text() for text in axes.get_legend().get_texts()] == ["found", "hand-scaled"]
    (bar,) = axes.containers[0].lines[2][0].get_segments()
    assert bar.tolist() == [[1.0, 79.5], [1.0, 80.5]]
    plot_rivals(numbers, tmp_path / "rivals.png")
    assert (tmp_path / "rivals.png").read_bytes().startswith(b"\x89PNG")


def test_other_endings_are_refused(cost, traced, tmp_path):
    with pytest.raises(FileError, match=r"\.html or \.png"):
        plot_verification(cost, tmp_path / "check.pdf")
    with pytest.raises(FileError, match=r"\.html or \.png"):
        plot_frontier(traced, tmp_path / "frontier.svg")


def test_a_table_that_was_not_verified_cannot_be_drawn(tmp_path):
    with pytest.raises(FileError, match="binas costs verify"):
        plot_verification(isolated(), tmp_path / "check.html")
