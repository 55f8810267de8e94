"""One progress protocol: logged where nobody listens, a bar or plain lines for people, parts of a whole."""

import errno
import io
import logging
import os

import pytest

from binas.base.progress import TRUSTED, Progress, Several, Terminal
from binas.base.times import Seconds


class Heard(Progress):
    """Keeps what it is told."""

    def __init__(self):
        self.lines = []

    def show(self, done, doing="", left=None):
        self.lines.append((done, doing, left))

    def say(self, text):
        self.lines.append(text)


def test_nobody_listens_but_an_application_can_route_it(capfd, caplog):
    with caplog.at_level(logging.DEBUG, "binas"), Progress().during("costs") as progress:
        progress.show(0.25, "round 1", 61.0)
        progress.say("a noisy machine")
    assert [(record.levelname, record.getMessage()) for record in caplog.records] == [
        ("DEBUG", "costs begins"),
        ("DEBUG", "25%, 1 min 01 s left, round 1"),
        ("INFO", "a noisy machine"),
    ]
    assert capfd.readouterr() == ("", "")


def test_a_part_tells_of_the_whole():
    heard = Heard()
    part = heard.part(1, 4, "network 2 of 4")
    part.show(0.5, "epoch 1", 3.0)
    part.say("done")
    part.part(1, 2).show(0.0)
    part.begin("tuning")
    assert heard.lines == [
        (0.375, "network 2 of 4 epoch 1", None),
        "network 2 of 4: done",
        (0.375, "network 2 of 4", None),
        (0.25, "network 2 of 4 tuning", None),
    ]


def test_work_that_fails_is_ended():
    class Ended(Heard):
        def end(self):
            self.lines.append("ended")

    heard = Ended()
    with pytest.raises(ZeroDivisionError), heard.during("x"):
        raise ZeroDivisionError
    assert heard.lines == ["ended"]


class TestSeveral:
    """Three pieces of 100, 50 and 50 seconds, the last of which does not depend on the machine's speed."""

    EXPECTED = {"train": Seconds(100.0), "estimate": Seconds(50.0), "measure": Seconds(fixed=50.0)}  # noqa: RUF012

    @pytest.fixture
    def clock(self, monkeypatch):
        now = [0.0]
        monkeypatch.setattr("binas.base.progress.time.monotonic", lambda: now[0])
        return now

    def test_one_bar_and_one_time_left(self, clock):
        heard = Heard()
        several = Several(heard, self.EXPECTED)
        several.begin("train")
        several.show(0.0)
        clock[0] = 50.0
        several.show(0.5, "epoch 1")
        clock[0] = 100.0
        several.end()
        several.begin("estimate")
        begun, _, halfway, ended, following = heard.lines
        assert (begun, halfway) == ((0.0, "train", 200.0), (0.25, "train epoch 1", 150.0))
        assert (ended, following) == ("train: 1 min 40 s", (0.5, "estimate", 100.0))

    def test_a_machine_that_is_half_as_fast(self, clock):
        """Work takes twice as long as expected, so the rest of it will; what is fixed stays."""
        heard = Heard()
        several = Several(heard, self.EXPECTED)
        several.begin("train")
        several.show(0.0)
        clock[0] = 200.0
        several.show(1.0)
        pace = (200 + TRUSTED) / (100 + TRUSTED)
        assert heard.lines[-1][2] == pytest.approx(50 * pace + 50)
        several.end()
        several.begin("estimate")
        assert heard.lines[-1] == (0.5, "estimate", pytest.approx(100 * pace / 2 + 50))

    def test_resumed_in_the_middle(self, clock):
        """Only what is done now counts: the first half was done before."""
        heard = Heard()
        several = Several(heard, self.EXPECTED)
        several.begin("train")
        several.show(0.5)
        clock[0] = 25.0
        several.show(0.75)
        assert heard.lines[-1][0] == pytest.approx(0.375)
        assert heard.lines[-1][2] == pytest.approx(125.0)

    def test_the_time_left_that_a_piece_knows_itself(self, clock):
        heard = Heard()
        several = Several(heard, self.EXPECTED)
        several.begin("measure")  # the others were done already
        several.show(0.2, "round 3", 7.0)
        assert heard.lines[-1] == (pytest.approx(0.8), "measure round 3", 7.0)

    def test_pieces_that_nobody_expected(self, clock):
        heard = Heard()
        several = Several(heard, {})
        several.begin("more")
        several.show(0.0)
        clock[0] = 3.0
        several.show(0.5)
        several.say("text")
        several.end()
        assert heard.lines[-2:] == ["more: text", "more: 3 s"]
        assert heard.lines[2] == (0.5, "more", pytest.approx(3.0))


class TestTerminal:
    def test_plain_lines_now_and_then_where_nobody_looks(self, capfd, monkeypatch):
        clock = iter([0.0, 0.0, 1.0, 20.0, 40.0, 45.0, 50.0])
        monkeypatch.setattr("binas.base.progress.time.monotonic", lambda: next(clock))
        terminal = Terminal()
        terminal.begin("supernet")
        terminal.show(0.0)
        terminal.show(0.5, "epoch 1")
        terminal.show(0.6, "epoch 1")
        terminal.show(0.8, "epoch 2", 12.0)
        terminal.end()
        assert capfd.readouterr().err.splitlines() == [
            "supernet: begins",
            "supernet: 50%, 20 s left, epoch 1",
            "supernet: 80%, 12 s left, epoch 2",
            "supernet: 50 s",
        ]

    def test_a_bar_on_a_terminal(self, capfd, monkeypatch):
        monkeypatch.setattr("sys.stderr.isatty", lambda: True, raising=False)
        monkeypatch.setenv("FORCE_COLOR", "1")
        monkeypatch.setattr("binas.base.progress.REDRAW_SECONDS", 0.0)
        terminal = Terminal()
        terminal.begin("costs")
        terminal.show(0.5, "round 3 of 6", 61.0)
        terminal.say("a noisy machine")
        terminal.end()
        written = capfd.readouterr().err
        assert "1 min 01 s left" in written
        assert "costs round 3 of 6" in written
        assert "costs: a noisy machine" in written

    def test_shown_without_a_beginning(self, capfd, monkeypatch):
        clock = iter([0.0, 100.0])
        monkeypatch.setattr("binas.base.progress.time.monotonic", lambda: next(clock))
        Terminal().show(0.5, "epoch 1")
        assert capfd.readouterr().err == "50%, epoch 1\n"

    @pytest.mark.parametrize("is_terminal", [False, True])
    @pytest.mark.parametrize("number", [errno.EIO, errno.ENOSPC])
    def test_work_goes_on_where_nothing_can_be_written(self, monkeypatch, number, is_terminal):
        """Its terminal was closed, the disk of its output is full."""

        class Deaf(io.StringIO):
            def isatty(self):
                return is_terminal

            def write(self, text):
                raise OSError(number, os.strerror(number))

        monkeypatch.setattr("sys.stderr", Deaf())
        monkeypatch.setattr("binas.base.progress.REDRAW_SECONDS", 0.0)
        terminal = Terminal()
        with terminal.during("supernet"):
            terminal.show(0.5, "epoch 1")
            terminal.say("a noisy machine")
        assert terminal.bar is None
