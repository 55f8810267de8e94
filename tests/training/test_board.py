"""Figures for TensorBoard: read back by TensorBoard itself, and no reason to stop."""

import pytest
from tensorboard.backend.event_processing.event_file_loader import EventFileLoader

from binas.base import files
from binas.base.progress import Progress
from binas.training.board import Board
from binas.training.reporting import Reporter, read_metrics


class Heard(Progress):
    def __init__(self):
        self.said = []

    def say(self, text):
        self.said.append(text)


def test_tensorboard_reads_what_was_added(tmp_path):
    board = Board(tmp_path, 4)
    board.add({"loss": 0.5, "rate": 0.25}, 5)
    board.close()
    version, begun, figures = EventFileLoader(str(board.path)).Load()
    assert (version.file_version, begun.step, figures.step) == ("brain.Event:2", 5, 5)
    assert {value.tag for value in figures.summary.value} == {"loss", "rate"}


def test_a_folder_that_cannot_be_made_is_said_once_and_stops_nothing(tmp_path):
    (tmp_path / "tensorboard").write_text("in the way")
    heard = Heard()
    reporter = Reporter(tmp_path, heard)
    reporter.start("heaviest", 2, 0)
    for step in (1, 2):
        reporter.advance(step, loss=0.5)
        reporter.record(step, step, {"loss": 0.5})
    reporter.finish()
    assert [line["step"] for line in read_metrics(tmp_path)] == [1, 2]
    (said,) = heard.said
    assert str(tmp_path / "tensorboard") in said


def test_a_disk_that_becomes_full_is_said_once_and_stops_nothing(tmp_path, monkeypatch):
    heard = Heard()
    reporter = Reporter(tmp_path, heard)
    reporter.start("heaviest", 2, 0)

    def full(doing, path):
        if "tfevents" in path.name:
            raise OSError(28, "No space left on device")

    monkeypatch.setattr(files, "touch", full)
    for step in (1, 2):
        reporter.advance(step, loss=0.5)
    reporter.finish()
    (said,) = heard.said
    assert "No space left" in said
    assert "Free some space" in said


@pytest.mark.parametrize("value", [float("nan"), float("inf")])
def test_any_number_can_be_added(tmp_path, value):
    board = Board(tmp_path, 0)
    board.add({"loss": value}, 1)
    assert not board.problem
