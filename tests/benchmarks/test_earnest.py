"""What the benchmarks in earnest compute around a run: widths by bisection, targets, table."""

import json
import sys
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from binas.base.interval import Interval
from binas.search.rivals import Comparison, Leads, Outcome, Rival

sys.path.insert(0, str(Path(__file__).parents[2] / "benchmarks"))
import earnest


@pytest.fixture
def device(monkeypatch):
    """One on which a network takes as many ms as it is wide, known to 1 %; what is measured together is noted."""
    sessions = []

    def measured(run, entries, seconds):
        sessions.append(dict(entries))
        return {key: Interval(width, 0.99 * width, 1.01 * width) for key, width in entries.items()}

    monkeypatch.setattr(earnest, "measured", measured)
    return sessions


def test_each_network_gets_the_greatest_width_whose_measured_latency_keeps_the_limit(device):
    wanted = {"a": (0.5, "MobileNetV2"), "b": (0.9, "MobileNetV2"), "c": (0.5, "MobileNetV3-Small")}
    found = earnest.bisect(None, wanted, 1.0)
    for key, (limit, network) in wanted.items():
        able = [width for width in earnest.ladder(network) if 1.01 * width <= limit]
        assert found[key] == (max(able), max(able))
    measured = [key for session in device for key in session]
    assert len(measured) == len(set(measured))  # nothing twice
    assert len(device) <= 7


def test_a_limit_that_no_width_keeps_has_none(device):
    assert earnest.bisect(None, {"a": (1e-3, "MobileNetV2")}, 1.0) == {"a": (None, None)}


def test_widths_of_a_ladder_are_different_networks():
    for name in earnest.PUBLISHED:
        rungs = earnest.ladder(name)
        assert len({earnest.scaled_network(name, width).blocks for width in rungs}) == len(rungs) > 20


def row(limit, accuracy, lead):
    column = {
        "accuracy": accuracy - lead,
        "error": 0.3,
        "cost": limit,
        "lead": [lead, 0.3],
        "width": 0.5,
        "epochs": 3,
    }
    return {
        "question": f"latency={limit}ms",
        "limit": limit,
        "found": {"accuracy": accuracy, "error": 0.3, "cost": 0.9 * limit, "architecture": "a"},
        "columns": {"MobileNetV2": column},
    }


def result(*rows):
    heaviest = {"accuracy": 91.0, "error": 0.3, "first": 89.0, "tuned": True, "cost": 3.0}
    return {
        "limits": list(rows),
        "unit": "ms",
        "heaviest": heaviest,
        "published": list(earnest.PUBLISHED),
    }


def test_targets():
    rising = [row(1, 80, 1.0), row(2, 82, 1.0), row(3, 84, 1.0), row(4, 85, 0.1)]
    assert earnest.missed(result(*rising), 90.0) == []
    assert earnest.missed(result(*rising), 92.0) == ["heaviest 91.00 %, target 92 %"]
    (unclear,) = earnest.missed(result(rising[0], row(2, 82, 0.5), *rising[2:]), None)
    assert "at 2 of 4 limits" in unclear
    later = [{**item, "untrained": ["hand-scaled"]} for item in rising[:2]]
    (open_yet,) = earnest.missed(result(*later, *rising[2:]), None)
    assert "at 1 of 4 limits (some columns are not there yet)" in open_yet
    (left_out,) = earnest.missed({**result(*rising), "published": []}, None)
    assert "MobileNetV2 and MobileNetV3-Small not trained at every limit" in left_out
    (falling,) = earnest.missed(result(rising[1], rising[0]), None)
    assert "does not rise" in falling


def test_the_table_has_a_row_for_each_limit_and_says_what_does_not_fit():
    bare = {**row(2, 82, 1.0), "columns": {}}
    text = earnest.markdown(result(row(1, 80, 1.0), bare))
    assert "| 1 ms | **80.00** at 0.9 ms | 79.00 (+1.00 ± 0.30) at 1 ms, width 0.50, 3 epochs |" in text
    assert "| 2 ms | **82.00** at 1.8 ms | none fits |" in text
    assert text.endswith("91.00 ± 0.30 % at 3 ms (89.00 % before the supernet was trained).")


def test_what_is_still_to_be_trained_is_called_so_and_the_mean_of_all_is_given(tmp_path):
    shot = {"found": 70.0, "random": 68.0, "of": 20, "lead": [2.0, 0.4]}
    later = {**row(2, 82, 1.0), "columns": {}, "untrained": ["MobileNetV2"], "one_shot": shot}
    text = earnest.markdown(result(row(1, 80, 1.0), later))
    assert "| 2 ms | **82.00** at 1.8 ms | not there yet |" in text
    assert "the mean of all 20 random ones: 70.00 against 68.00 (+2.00 ± 0.40)." in text
    for number, width in enumerate((0.5, None, 0.7)):
        folder = tmp_path / f"MobileNetV2-{number}"
        folder.mkdir()
        (folder / "plan.json").write_text(json.dumps({"width": width}))
    (tmp_path / "MobileNetV2-0" / "outcome.json").write_text("{}")
    assert earnest._untrained("MobileNetV2", tmp_path, 3) == [2]
    effort = earnest.Effort(1.0, 1.0, ("MobileNetV2",), 2)
    assert [effort.trains(number, "MobileNetV2") for number in range(3)] == [True, True, False]
    assert not effort.trains(0, "MobileNetV3-Small")


def test_a_share_of_a_run_is_in_seconds_of_one_core(tmp_path, monkeypatch):
    records = {"train.heaviest": 100.0, "search": 20.0}
    monkeypatch.setattr(earnest, "processes_of", lambda _: 2)
    monkeypatch.setattr(earnest, "_seconds", lambda _, step: records.get(step, 0.0))
    run = SimpleNamespace(folder=tmp_path, answers=[1, 2], settings=lambda _: None)
    assert earnest.share_seconds(run) == 120.0


def test_rivals_are_tuned_where_the_run_did_not_ask_for_it(monkeypatch):
    """The best random one by validation images and the hand-scaled one, on all test images; no mean of chosen ones."""
    right = {"f": [1, 1, 1, 0], "a": [1, 0, 0, 0], "b": [1, 1, 0, 0], "h": [0, 1, 0, 0], "all": [1, 1, 1, 1]}
    tuned = {name: Outcome(50.0, np.array(row, dtype=bool)) for name, row in right.items()}
    shot = {name: Outcome(60.0 if name == "b" else 40.0, tuned[name].correct[:2]) for name in "fabh"}
    rivals = {name: Rival(architecture=name, cost=1.0, one_shot=item.percents) for name, item in shot.items()}
    drawn = (rivals["a"], rivals["b"])
    known = {"question": "q", "identity": "i", "cost": "macs", "limit": 1.0, "unit": "MACs", "images": 2}
    leads = Leads.of(rivals["f"], drawn, rivals["h"], shot, 2)
    item = Comparison(**known, found=rivals["f"], random=drawn, hand_scaled=rivals["h"], one_shot=leads)
    monkeypatch.setattr(earnest, "COMPARISONS", SimpleNamespace(read=lambda run: [item]))
    monkeypatch.setattr(
        earnest, "tuned_outcomes", lambda run, names, progress: {name: tuned[name] for name in names}
    )
    run = SimpleNamespace(space=SimpleNamespace(extreme=lambda: "all"))
    answers = [SimpleNamespace(question="q", architecture="f")]
    untouched, only_found = earnest.tuned_comparisons(run, answers, 0)
    assert (list(only_found), untouched["q"].tuned) == (["f"], None)
    compared, outcomes = earnest.tuned_comparisons(run, answers, None)
    assert list(outcomes) == ["f", "h", "b", "all"]
    columns = dict(earnest._compared_columns(compared["q"], 4))
    assert columns["random, best of 2"]["accuracy"] == 50.0
    assert columns["random, best of 2"]["lead"][0] == pytest.approx(25.0)
    assert columns["hand-scaled"]["accuracy"] == 25.0
    assert columns["random, mean of 0"] is None


def test_the_picture_has_a_series_for_each_column():
    shown = earnest.picture({**result(row(1, 80, 1.0), row(2, 82, 1.0)), "name": "x", "images": 100})
    assert {name: len(points) for name, points in shown["series"].items()} == {
        "found": 2,
        "MobileNetV2": 2,
        "heaviest": 1,
    }
