"""The numbers behind a report: checked against the search and the tables they come from."""

import itertools
import json
import math
from dataclasses import replace

import numpy as np
import pytest
from made_up_report import SPACE, contributions, costs, full_report

from binas.base.errors import ArchitectureError, TableError
from binas.estimators import BilinearEstimator
from binas.report import frontier_numbers as traced
from binas.report.data import Chosen, Reference, ReportData
from binas.report.frontier_numbers import significant, slider, standard_errors
from binas.report.numbers import report_numbers, summary
from binas.search import BilinearObjective, Limit, SearchProblem, best_architectures, frontier
from binas.space import Architecture, enumerate_all, load_space, sample_many
from binas.tables import Column, Contributions, Cost, CostTable, Sample, Samples, parse_unit

PROBLEM = SearchProblem.build(contributions(), costs())


@pytest.fixture(scope="module")
def numbers():
    return report_numbers(full_report())


def small(**more) -> ReportData:
    return ReportData(SPACE, contributions(), costs(), "latency", **more)


def architecture_at(numbers, i):
    return "_".join(stage["variants"][stage["points"][i]] for stage in numbers["frontier"]["stages"])


def test_every_network_of_the_frontier_is_there(numbers):
    found = frontier(PROBLEM, "latency")
    assert len(numbers["frontier"]["costs"]) == numbers["frontier"]["networks"] == len(found)
    assert numbers["frontier"]["loss"] == 0.0
    for i, point in enumerate(found):
        assert architecture_at(numbers, i) == str(point.architecture)
        assert numbers["frontier"]["costs"][i] == pytest.approx(point.cost, rel=1e-11)
        assert numbers["frontier"]["accuracies"][i] == pytest.approx(point.accuracy, rel=1e-7)


def test_the_page_says_that_the_machine_was_busy(numbers):
    latency = costs()["latency"]
    about = latency.provenance.model_copy(update={"disturbance": 0.5})
    table = CostTable(SPACE, {"latency": replace(latency, provenance=about)})
    busy = report_numbers(ReportData(SPACE, contributions(), table, "latency"))
    assert "took over 50% longer" in busy["disturbed"]
    assert numbers["disturbed"] is None


def test_a_thinned_frontier_says_what_it_loses(monkeypatch):
    monkeypatch.setattr(traced, "MOST_POINTS", 20)
    found, whole = report_numbers(small())["frontier"], frontier(PROBLEM, "latency")
    assert len(found["costs"]) == 20
    assert found["networks"] == len(whole)
    assert (found["costs"][0], found["costs"][-1]) == pytest.approx((whole.costs[0], whole.costs[-1]))
    lost = [
        point.accuracy
        - max(a for c, a in zip(found["costs"], found["accuracies"], strict=True) if c <= point.cost + 1e-9)
        for point in whole
    ]
    assert found["loss"] == pytest.approx(max(lost), abs=1e-5)


def test_standard_errors_come_from_the_covariance():
    architectures = sample_many(SPACE, 5, 0)
    table = contributions()
    found = standard_errors(BilinearEstimator(table), architectures)
    for architecture, error in zip(architectures, found, strict=True):
        z = [1.0]
        for s, stage in enumerate(SPACE.stages):
            for b, block in enumerate(stage.blocks):
                names = architecture.stages[s]
                z += [float(b < len(names) and config.name == names[b]) for config in block]
        z += [
            float(len(architecture.stages[s]) == d)
            for s, stage in enumerate(SPACE.stages)
            for d in stage.depths
        ]
        assert error == pytest.approx(math.sqrt(np.array(z) @ table.covariance @ np.array(z)))


def test_standard_errors_without_covariance_are_those_of_the_search():
    table = Contributions(SPACE, 80.0, Column.full(SPACE, 0.1), 0.2, Column.full(SPACE, 0.05))
    architectures = sample_many(SPACE, 4, 1)
    objective = BilinearObjective.from_contributions(table)
    expected = [objective.standard_error(SPACE, item) for item in architectures]
    assert standard_errors(BilinearEstimator(table), architectures) == pytest.approx(expected)
    assert standard_errors(BilinearEstimator(replace(table, stderr=None)), architectures) is None


def test_runner_ups_are_the_best_after_the_optimum(numbers):
    asked = {entry["limit"]: entry for entry in numbers["runner_ups"]}
    for limit in (0.6, 0.9, 1.2):
        best = best_architectures(PROBLEM.with_limits([Limit("latency", limit)]), traced.RUNNER_UPS + 1).items
        assert asked[limit]["architecture"] == str(best[0].architecture)
        assert [item["architecture"] for item in asked[limit]["items"]] == [
            str(item.architecture) for item in best[1:]
        ]
    assert len(asked) >= traced.RUNNER_LIMITS


def test_runner_ups_stop_in_time_but_never_leave_out_what_was_asked_for(monkeypatch):
    monkeypatch.setattr(traced, "RUNNER_SECONDS", 0.0)
    found = report_numbers(small(chosen=full_report().chosen[:1]))["runner_ups"]
    assert [entry["limit"] for entry in found] == [0.6]


def test_runner_ups_that_are_not_proven_in_time_are_left_out(monkeypatch):
    monkeypatch.setattr(traced, "RUNNER_SECONDS", 0.0)
    monkeypatch.setattr(traced, "ASKED_SECONDS", 0.0)
    assert report_numbers(small(chosen=full_report().chosen[:1]))["runner_ups"] == []


def test_positions_for_runner_ups_go_from_coarse_to_fine():
    found = traced._coarse_to_fine({"min": 10.0, "max": 90.0, "step": 0.2})
    assert len(set(found)) == len(found) == traced.RUNNER_LIMITS
    assert (min(found), max(found)) == (10.0, 90.0)
    first = sorted(found[:5])
    assert max(two - one for one, two in itertools.pairwise(first)) < 20


@pytest.mark.parametrize(("low", "high"), [(25.9, 99.6), (0.001, 0.0011), (3e6, 9e8), (5.0, 5.0), (0.0, 0.0)])
def test_the_slider_has_round_positions_that_reach_both_ends(low, high):
    found = slider(low, high)
    stops = (found["max"] - found["min"]) / found["step"]
    assert stops == pytest.approx(round(stops), abs=1e-6)
    assert stops <= traced.STOPS + 1
    assert found["min"] >= low - 1e-9 * abs(low)
    assert found["max"] >= high - 1e-9 * abs(high)
    assert f"{found['step']:e}"[0] in "125"


def test_chosen_networks_stand_beside_the_best_reference_at_their_cost():
    chosen = full_report().chosen[0]
    others = (
        Reference("dear", "random", 99.0, chosen.cost * 2),
        Reference("good", "random", 70.0, chosen.cost),
        Reference("bad", "random", 60.0, chosen.cost * 0.5),
    )
    found = report_numbers(small(chosen=(replace(chosen, measured_cost=None),), references=others))["chosen"][
        0
    ]
    assert [other["name"] for other in found["best_references"]] == ["good"]
    assert found["at"] == 0.6


def test_a_chosen_network_of_another_limit_is_placed_by_its_cost():
    chosen = replace(full_report().chosen[0], limit="macs <= 2 M")
    assert report_numbers(small(chosen=(chosen,)))["chosen"][0]["at"] == chosen.cost
    words = replace(chosen, limit="whatever I wrote")
    assert report_numbers(small(chosen=(words,)))["chosen"][0]["at"] == chosen.cost


def test_rankings_stand_beside_macs_and_the_noise_ceiling(numbers):
    ranking = numbers["ranking"]
    assert ranking["samples"] == 60
    assert 0.8 < ranking["estimators"][0]["kendall"]["value"] <= 1
    assert ranking["macs_only"]["kendall"]["value"] < ranking["estimators"][0]["kendall"]["value"]
    assert ranking["noise_ceiling"]["how"] == "split-half"
    assert len(ranking["predicted"]) == len(ranking["measured"]) == 60


def test_what_is_absent_is_empty_and_all_is_plain_json():
    found = report_numbers(small())
    assert json.loads(json.dumps(found, allow_nan=False)) == found
    assert found["verification"] is None
    assert found["ranking"] is None
    assert [found[key] for key in ("chosen", "references", "training", "times", "commands")] == [[]] * 5


def test_numbers_that_are_not_finite_become_null():
    rows = ({"phase": "supernet", "step": 1, "loss": math.nan, "big": math.inf},)
    row = report_numbers(small(metrics=rows))["training"][0]
    assert row == {"phase": "supernet", "step": 1, "loss": None, "big": None}


def test_a_space_of_names_has_no_macs_to_compare_with():
    space = load_space("nas-bench-macro")
    values = Column.build(space, lambda s, i: 0.1 * i, lambda s, b, c: 0.2 * c)
    table = CostTable(space, {"size": Cost("size", parse_unit("1"), 0.0, Column.full(space, 1.0))})
    rows = [Sample(a, 50.0 + i) for i, a in enumerate(enumerate_all(space)[::800])]
    found = report_numbers(
        ReportData(
            space, Contributions(space, 90.0, values), table, "size", samples=Samples(space, tuple(rows))
        )
    )
    assert found["ranking"]["macs_only"] is None
    assert found["ranking"]["noise_ceiling"] is None


def test_a_cost_that_is_a_maximum_can_be_traced():
    found = report_numbers(replace(small(), cost="peak_memory"))
    assert found["insights"]["cost"] is None
    assert all(rule["per_cost"] is None for rule in found["insights"]["rules"])
    assert len(found["frontier"]["costs"]) >= 1


def test_data_that_do_not_fit_are_refused():
    with pytest.raises(TableError, match="there is no cost 'energy'"):
        replace(small(), cost="energy")
    with pytest.raises(TableError, match="another space"):
        replace(small(), space=load_space("nas-bench-macro"))
    with pytest.raises(ArchitectureError):
        small(chosen=(Chosen("x", Architecture.parse("e1k1"), 80.0, None, 1.0),))


def test_a_summary_for_the_terminal(numbers):
    lines = summary(numbers, full_report())
    assert lines[0].startswith(f"{numbers['frontier']['networks']} best networks from 0.379")
    assert set(lines[1:]) <= set(numbers["insights"]["sentences"])


def test_significant_digits():
    assert significant(123.456789, 4) == 123.5
    assert significant(0.0, 3) == 0.0
