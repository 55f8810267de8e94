"""Recorded passes: whole or not there, for what they were recorded for, or refused."""

import numpy as np
import pytest

from binas.base.errors import CheckpointError, FileError
from binas.contributions import Journal, Outcomes

IDENTITY = {"images": 5, "seed": 3, "evaluator": "abc"}
SOME = Outcomes(np.array([1, 0, 1, 1, 0], dtype=bool), np.linspace(-3, 0, 5).astype(np.float32))


def test_passes_come_back_as_they_were_written(tmp_path):
    Journal(tmp_path, IDENTITY).write(7, SOME)
    journal = Journal(tmp_path, IDENTITY)
    assert journal.has(7)
    assert not journal.has(0)
    found = journal.read(7, 1, 4)
    assert (found.correct == SOME.correct[1:4]).all()
    assert (found.log_probability == SOME.log_probability[1:4]).all()
    assert len(found) == 3


@pytest.mark.parametrize("change", [{"seed": 4}, {"evaluator": "other weights"}, {"images": 6}])
def test_passes_of_something_else_are_refused_and_kept(tmp_path, change):
    Journal(tmp_path, IDENTITY).write(0, SOME)
    with pytest.raises(CheckpointError, match=f"{next(iter(change))} was .*--no-resume"):
        Journal(tmp_path, {**IDENTITY, **change})
    assert Journal(tmp_path, IDENTITY).has(0)
    assert not Journal(tmp_path, {**IDENTITY, **change}, fresh=True).has(0)


def test_a_foreign_header_is_refused(tmp_path):
    (tmp_path / "journal.json").write_text('{"format": "something else"}')
    with pytest.raises(CheckpointError, match="not the header"):
        Journal(tmp_path, IDENTITY)


def test_damaged_passes_are_named(tmp_path):
    journal = Journal(tmp_path, IDENTITY)
    journal.write(0, SOME)
    path = tmp_path / "pass-000000.npy"
    path.write_bytes(path.read_bytes()[:-3])
    with pytest.raises(FileError, match=r"pass-000000\.npy.*measured again"):
        journal.read(0, 0, 5)
    np.save(path, np.zeros(4))
    with pytest.raises(FileError, match="does not hold 5 outcomes"):
        journal.read(0, 0, 5)


def test_passes_without_a_header_belong_to_nobody(tmp_path):
    """Killed while an old measurement was discarded: what is left of it must not be taken for the new one."""
    Journal(tmp_path, {"images": 5, "evaluator": "old"}).write(0, SOME)
    (tmp_path / "journal.json").unlink()
    journal = Journal(tmp_path, {"images": 5, "evaluator": "new"})
    assert not journal.has(0)
    assert journal.first_missing(3) == 0


def test_a_pass_that_is_no_array_is_named(tmp_path):
    journal = Journal(tmp_path, {"images": 5})
    (tmp_path / "pass-000000.npy").write_bytes(b"PK\x03\x04 garbage")
    with pytest.raises(FileError, match="measured again"):
        journal.read(0, 0, 5)
