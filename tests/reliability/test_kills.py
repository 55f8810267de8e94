"""A short turn of each harness; the long ones are run by hand, see kills.py and faults.py."""

import random

import pytest
from faults import Breaker, sweep
from kills import SCENARIOS, Killer

from binas.base import files
from binas.base.errors import FileError


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "most", "least"), [("plain", 4, 4), ("every batch", 4, 4), ("changed back", 6, 1)]
)
def test_a_killed_run_ends_as_if_nothing_had_been(tmp_path, name, most, least):
    killer = Killer(random.Random(7), tmp_path)
    killer.run(next(item for item in SCENARIOS if item.name == name), most)
    assert least <= killer.kills <= most
    assert killer.problems == []


@pytest.mark.slow
def test_a_run_on_a_disk_that_fails_says_where_and_goes_on_later(tmp_path):
    breaker = Breaker(random.Random(3), tmp_path)
    breaker.run(SCENARIOS[0], 6)
    assert breaker.kills == 6
    assert breaker.problems == []


@pytest.mark.slow
def test_a_sweep_lets_each_operation_fail_once(tmp_path, capsys):
    assert sweep(tmp_path, 200, 6) == 0
    assert "6 faults, each at another operation" in capsys.readouterr().out


@pytest.mark.parametrize("doing", ["write", "create", "sync", "rename"])
def test_every_part_of_a_write_can_fail_and_leaves_the_old_file(tmp_path, monkeypatch, doing):
    path = tmp_path / "table.json"
    path.write_text("old")

    def fails(what, where):
        if what == doing:
            raise OSError(30, "Read-only file system")

    monkeypatch.setattr(files, "touch", fails)
    with pytest.raises(FileError, match=r"table\.json: Read-only.*writable.*same command again.*as it was"):
        files.write_text(path, "new")
    assert [item.name for item in tmp_path.iterdir()] == ["table.json"]
    assert path.read_text() == "old"
