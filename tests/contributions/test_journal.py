"""Recorded passes: whole or not there, for what they were recorded for, or refused."""

import numpy as np
import pytest

from binas.base.errors import BinasError, CheckpointError, FileError
from binas.contributions import Journal, Outcomes, TableEvaluator, factorial
from binas.testing import make_space

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
    with pytest.raises(CheckpointError, match=f"{next(iter(change))} was .*--redo"):
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
    with pytest.raises(FileError, match=r"pass-000000\.npy.*measured again"):
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


@pytest.mark.parametrize("mask", [0x01, 0x20, 0x80, 0xFF])
def test_one_changed_byte_is_noticed_wherever_it_is(tmp_path, mask):
    Journal(tmp_path, IDENTITY).write(0, SOME)
    path = tmp_path / "pass-000000.npy"
    whole = path.read_bytes()
    for place in range(len(whole)):
        changed = bytearray(whole)
        changed[place] ^= mask
        path.write_bytes(changed)
        with pytest.raises(FileError, match=r"pass-000000\.npy.*Delete it; the pass is measured again"):
            Journal(tmp_path, IDENTITY).read(0, 0, 1)
    path.write_bytes(whole)
    assert (Journal(tmp_path, IDENTITY).read(0, 0, 5).correct == SOME.correct).all()


@pytest.mark.parametrize("mask", [0x01, 0x20, 0x80, 0xFF])
def test_one_changed_byte_of_the_header_opens_nothing_else(tmp_path, mask):
    Journal(tmp_path, IDENTITY).write(0, SOME)
    path = tmp_path / "journal.json"
    whole, refused = path.read_bytes(), 0
    for place in range(len(whole)):
        changed = bytearray(whole)
        changed[place] ^= mask
        path.write_bytes(changed)
        try:  # a space may become a line break, which says the same
            assert (Journal(tmp_path, IDENTITY).read(0, 0, 5).correct == SOME.correct).all()
        except BinasError:
            refused += 1
    assert refused > len(whole) / 2


def test_a_pass_of_another_number_or_measurement_is_noticed(tmp_path):
    mine, other = Journal(tmp_path / "mine", IDENTITY), Journal(tmp_path / "other", {**IDENTITY, "seed": 4})
    mine.write(0, SOME)
    other.write(0, SOME)
    for path in (tmp_path / "mine" / "pass-000001.npy", tmp_path / "other" / "pass-000000.npy"):
        path.write_bytes((tmp_path / "mine" / "pass-000000.npy").read_bytes())
    for journal, number in ((mine, 1), (other, 0)):
        with pytest.raises(FileError, match="measured again"):
            journal.read(number, 0, 5)


@pytest.mark.parametrize(
    ("correct", "log"), [(17476.53, -1.0), (-0.1, -1), (np.nan, -1), (1, 0.5), (1, -np.inf)]
)
def test_what_is_no_outcome_is_not_read(tmp_path, correct, log):
    journal = Journal(tmp_path, IDENTITY)
    values = np.full(5, 0.5), np.full(5, -1.0)
    values[0][3], values[1][3] = correct, log
    journal.write(0, Outcomes(*(value.astype(np.float32) for value in values)))
    assert len(journal.read(0, 0, 3)) == 3
    with pytest.raises(FileError, match=r"pass-000000\.npy.*image 3.*measured again"):
        journal.read(0, 2, 5)


def test_only_a_pass_that_was_deleted_is_measured_again(tmp_path):
    """The advice works, costs one pass, and the answer is the one of before."""
    asked = []

    class Counting(TableEvaluator):
        def outcomes(self, images, depths, configs):
            asked.append(len(images))
            return super().outcomes(images, depths, configs)

    evaluator = Counting(make_space(2, 2, 3, 1), lambda found: 50.0 + sum(map(ord, str(found))) % 40, 20)

    def measured():
        *_, answer = factorial(evaluator, Journal(tmp_path, {"images": 20}), 6)
        return answer.to_data()

    first, path = measured(), tmp_path / "pass-000002.npy"
    changed = bytearray(path.read_bytes())
    changed[140] ^= 0x40
    path.write_bytes(changed)
    with pytest.raises(FileError, match=r"pass-000002\.npy.*Delete it"):
        measured()
    path.unlink()
    asked.clear()
    assert measured() == first
    assert asked == [20]
