"""What was replaced: kept up to a size, and brought back when it fits again."""

import json
import os
import shutil

import pytest

from binas.base.progress import Progress
from binas.run.old import OLD, drop_emptied, find_old, half_moved, keep_old, limit_old, places
from binas.run.run import open_run
from tiny_run import call, final, run_json

MIB = 2**20


class Heard(Progress):
    def __init__(self):
        self.said = []

    def say(self, text):
        self.said.append(text)


def set_aside(folder, step, size):
    (folder / f"{step}.bin").write_bytes(b"x" * size)
    return keep_old(folder, step, [f"{step}.bin"])


def test_places_are_listed_newest_first_and_by_step(tmp_path, monkeypatch):
    times = iter(["2026-01-01T10:00:00+00:00", "2026-01-01T10:00:00+00:00", "2026-01-01T09:00:00+00:00"])
    monkeypatch.setattr("binas.run.old.now", lambda: next(times))
    made = [set_aside(tmp_path, step, 1) for step in ("train.supernet", "train.supernet", "sample")]
    assert [path.name for path in made] == [
        "2026-01-01T100000-train.supernet",
        "2026-01-01T100000-train.supernet-2",
        "2026-01-01T090000-sample",
    ]
    assert places(tmp_path) == [made[1], made[0], made[2]]
    assert places(tmp_path, "train.supernet") == [made[1], made[0]]
    assert places(tmp_path, "train") == []


@pytest.mark.parametrize(("gib", "left"), [(1.0, 3), (2.5 / 1024, 2), (0.0, 1)])
def test_the_oldest_goes_beyond_the_limit_and_the_newest_stays(tmp_path, gib, left):
    made = [set_aside(tmp_path, "sample", MIB) for _ in range(3)]
    heard = Heard()
    limit_old(tmp_path, gib, heard)
    assert places(tmp_path) == made[::-1][:left]
    assert len(heard.said) == 3 - left


def test_nothing_is_found_where_files_are_gone(copied):
    record = json.loads((copied / "steps" / "check.json").read_text())
    place = keep_old(copied, "check", ["estimator.json", "steps/check.json"])
    assert find_old(copied, "check", record["identity"])[0] == place
    assert find_old(copied, "check", "another") is None
    (place / "estimator.json").unlink()
    assert find_old(copied, "check", record["identity"]) is None


def test_a_setting_changed_back_uses_what_was_made_before(copied, finished):
    """Training included, and without being allowed: nothing is lost by it."""
    change = ["--set", "train.supernet.learning_rate=0.02", "--set", "sample.count=5", "--redo"]
    assert "train.supernet" in run_json("--out", copied, *change)["done"]
    back = ["--set", "train.supernet.learning_rate=0.01", "--set", "sample.count=6"]
    done = run_json("--out", copied, *back)["done"]
    assert {"train.supernet", "estimate", "search", "measure"}.isdisjoint(done)
    was, now = final(finished), final(copied)
    found_meanwhile = ("weights", "networks")  # there are more of them
    assert {key: now[key] for key in now if key not in found_meanwhile} == {
        key: was[key] for key in was if key not in found_meanwhile
    }
    assert run_json("--out", copied)["done"] == []


def test_what_is_redone_on_request_is_not_brought_back(copied):
    assert call("estimate", copied, "--redo")[0] == 0
    log = [json.loads(line) for line in (copied / "log.jsonl").read_text().splitlines()]
    assert [event["event"] for event in log if event["step"] == "estimate"][-1] == "finished"
    assert not any(event["event"] == "brought back" for event in log)


def test_the_network_tuned_by_its_own_command_is_the_runs(copied, finished):
    """As several GPUs would do it: `binas finetune RUN --arch` under a launcher, then `binas run`."""
    record = open_run(copied).networks["latency=30%"]
    shutil.rmtree(copied / "networks" / record.name)
    (copied / "steps" / "finetune.json").unlink()
    assert call("finetune", copied, "--arch", record.architecture, "--quiet")[0] == 0
    made = {path: path.stat().st_mtime_ns for path in (copied / "networks" / record.name).rglob("*.*")}
    assert "finetune" in run_json("--out", copied)["done"]
    assert made.items() <= {path: path.stat().st_mtime_ns for path in made}.items()
    assert list((copied / "old").glob("*-finetune")) == []
    assert final(copied) == final(finished)


@pytest.mark.parametrize("moved", [["steps/check.json"], ["steps/check.json", "estimator.json"]])
def test_what_was_being_moved_when_the_process_was_killed_is_brought_back(copied, finished, moved):
    place = keep_old(copied, "check", moved)
    assert (half_moved(copied, "check") is None) == (len(moved) == 2)
    assert "check" not in run_json("--out", copied)["done"]
    assert not place.exists()
    assert final(copied) == final(finished)


def test_a_move_of_what_fits_no_more_is_ended(copied):
    place = keep_old(copied, "check", ["steps/check.json"])
    assert "check" in run_json("--out", copied, "--set", "check.resamples=11")["done"]
    assert json.loads((place / "steps" / "check.json").read_text())["state"] == "finished"
    assert (place / "estimator.json").exists()


def test_what_a_kill_left_empty_is_removed(tmp_path):
    figures, kept = (tmp_path / "old" / f"2026-01-01T10000{number}-sample" for number in (1, 2))
    for place in (figures, kept):
        (place / "steps").mkdir(parents=True)
        (place / "metrics.jsonl").write_text("{}\n")
    (kept / "steps" / "sample.json").write_text("{}")
    drop_emptied(tmp_path)
    assert places(tmp_path) == [kept]


def test_of_one_second_the_last_changed_is_the_newest(tmp_path):
    for number, step in enumerate(("search", "check", "report")):
        place = tmp_path / OLD / f"2026-01-31T120000-{step}"
        place.mkdir(parents=True)
        os.utime(place, ns=(number, number))
    (tmp_path / OLD / "2026-01-31T115959-train").mkdir()
    names = [place.name.rpartition("-")[2] for place in places(tmp_path)]
    assert names == ["report", "check", "search", "train"]
