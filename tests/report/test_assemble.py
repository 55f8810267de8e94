"""What a folder holds for a report."""

import json
import subprocess
import sys
from dataclasses import replace

import pytest
from made_up_report import METRICS, SPACE, contributions, costs, full_report, verification

from binas.base.errors import ProblemError, TableError, UnitError
from binas.report.assemble import choose, gather
from binas.search import SearchProblem, solve
from binas.tables import CostTable, Provenance


def test_a_folder_with_nothing_else_gives_the_tables_only(tmp_path):
    data = gather(contributions(), costs(), "latency", tmp_path)
    assert (data.samples, data.verification, data.metrics, data.config, data.chosen) == (
        None,
        None,
        (),
        "",
        (),
    )


def test_what_lies_in_the_folder_is_picked_up(tmp_path):
    full_report().samples.save(tmp_path / "samples.json")
    (tmp_path / "metrics.jsonl").write_text("".join(json.dumps(row) + "\n" for row in METRICS))
    (tmp_path / "config.yaml").write_text("space: demo\n")
    checked = verification(SearchProblem.build(contributions(), costs()))
    latency = replace(costs()["latency"], provenance=Provenance(verification=checked))
    table = CostTable(SPACE, {**costs().costs, "latency": latency})
    data = gather(contributions(), table, "latency", tmp_path, ["latency=0.9ms"], ["binas report x"])
    assert len(data.samples) == 60
    assert list(data.metrics) == METRICS
    assert data.config == "space: demo\n"
    assert data.verification == checked
    assert data.commands == ("binas report x",)
    assert [item.limit for item in data.chosen] == ["latency <= 0.9 ms"]


def test_a_chosen_network_is_the_proven_one():
    found = choose(contributions(), costs(), "latency", "latency=900us")
    best = solve(SearchProblem.build(contributions(), costs(), ["latency=0.9ms"])).evaluation
    assert (found.architecture, found.accuracy, found.cost) == (
        best.architecture,
        best.accuracy,
        best.costs["latency"],
    )
    assert found.stderr > 0
    assert found.parameters == best.costs["params"]


@pytest.mark.parametrize(
    ("limit", "error"),
    [("latency=0.01ms", ProblemError), ("latency=1", UnitError), ("energy=1mJ", ProblemError)],
)
def test_limits_that_cannot_be_kept_or_read(limit, error):
    with pytest.raises(error):
        choose(contributions(), costs(), "latency", limit)


def test_an_unknown_cost_names_the_known_ones(tmp_path):
    with pytest.raises(TableError, match="latency, macs"):
        gather(contributions(), costs(), "energy", tmp_path)


def test_a_report_of_tables_alone_never_loads_torch():
    script = (
        "import sys\n"
        "import binas.report.assemble, binas.report.page, binas.report.numbers, binas.report.figures\n"
        "assert not {'torch', 'matplotlib'} & set(sys.modules)\n"
    )
    subprocess.run([sys.executable, "-c", script], check=True)
