"""Published networks compared with ours, on an invented device that takes time by multiply-accumulates."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest

from binas.base.errors import ProblemError
from binas.base.interval import Interval
from binas.costs.published.build import count
from binas.report.published import Builder, chosen_networks, compare_published, compare_with_ours
from binas.run.folder import load
from binas.search.frontier import frontier
from binas.space.published import published_networks
from binas.testing.paper_example import write_paper_example

FEW = ["MobileNetV2", "BINAS-A"]


class MacsDevice:
    """0.2 ms per million multiply-accumulates, 10 % slower from session to session."""

    def __init__(self) -> None:
        self.sessions: list[list[str]] = []

    def __call__(self, builders: Mapping[str, Builder]) -> dict[str, Interval]:
        self.sessions.append(list(builders))
        slower = 1.1 ** (len(self.sessions) - 1)
        found = {}
        for name, build in builders.items():
            ms = slower * count(*build()).macs / 5e6
            found[name] = Interval(ms, 0.99 * ms, 1.01 * ms)
        return found


@pytest.fixture(scope="module")
def example(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("example")
    write_paper_example(folder)
    return folder


def test_published_networks_in_one_session() -> None:
    device = MacsDevice()
    rows = compare_published(device, FEW)
    assert device.sessions == [["MobileNetV2", "MobileNetV3-Large", "BINAS-A"]]
    assert [row.name for row in rows] == sorted(
        device.sessions[0], key=lambda n: {r.name: r.latency.value for r in rows}[n]
    )
    by_name = {row.name: row for row in rows}
    assert by_name["MobileNetV3-Large"].ratio == 1.0
    assert by_name["MobileNetV2"].ratio == pytest.approx(300.77 / 216.59, rel=1e-3)
    assert by_name["MobileNetV2"].published_ratio is None
    assert by_name["BINAS-A"].published_ratio == pytest.approx(37 / 45)
    assert by_name["BINAS-A"].top1 == 75.9


def test_another_reference() -> None:
    rows = {row.name: row for row in compare_published(MacsDevice(), FEW, "BINAS-C")}
    assert set(rows) == {*FEW, "BINAS-C"}
    assert rows["BINAS-C"].ratio == 1.0
    assert rows["BINAS-A"].published_ratio == pytest.approx(37 / 45)


def test_which_networks() -> None:
    assert list(chosen_networks(None)) == list(published_networks())
    with pytest.raises(ProblemError, match="no published network 'ResNet'; known are MobileNetV2, "):
        chosen_networks(["ResNet"])


def test_ours_of_similar_latency(example: Path) -> None:
    """The best of the tables within each published latency; ratios are to the reference of the same session."""
    device = MacsDevice()
    rows = compare_published(device, [*FEW, "BINAS-B"])
    curve = frontier(load(example).problem(), "latency")
    ours = compare_with_ours(curve, rows, device)
    assert len(device.sessions) == 2
    assert device.sessions[1][0] == "MobileNetV3-Large"
    assert sorted(name for row in ours for name in row.compared_with) == sorted(row.name for row in rows)
    by_name = {row.name: row for row in rows}
    for row in ours:
        limit = max(by_name[name].latency.value for name in row.compared_with)
        assert row.name == str(curve.at(limit).architecture)
        assert row.top1 == curve.at(limit).accuracy
        assert row.ratio == pytest.approx(row.macs / by_name["MobileNetV3-Large"].macs)


def test_tables_slower_than_everything(example: Path) -> None:
    rows = compare_published(lambda builders: dict.fromkeys(builders, Interval(0.1, 0.1, 0.1)), FEW)
    curve = frontier(load(example).problem(), "latency")
    with pytest.raises(ProblemError, match="slower than all published networks"):
        compare_with_ours(curve, rows, MacsDevice())
