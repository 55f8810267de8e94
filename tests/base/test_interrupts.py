import os
import signal
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from binas.base.errors import FileError
from binas.base.interrupts import GO_ON, SIGNALS, Interrupted, asked, listening, noted, postponed


def send(number):
    os.kill(os.getpid(), number)


@pytest.mark.parametrize(
    ("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGUSR1, 138)]
)
def test_a_signal_is_raised_with_its_name_and_the_code_of_shells(number, code):
    with pytest.raises(Interrupted, match=f"interrupted by {number.name}") as raised, listening():
        send(number)
    assert raised.value.exit_code == code


def test_a_postponed_signal_is_noted_and_raised_at_the_end():
    reached = []

    def work():
        with postponed():
            send(signal.SIGTERM)
            reached.append(noted())
        reached.append("after the inner one")

    with pytest.raises(Interrupted), listening(), postponed():
        work()
    assert reached == [signal.SIGTERM, "after the inner one"]
    assert noted() is None


def test_a_second_signal_does_not_wait():
    reached = []

    def work():
        send(signal.SIGTERM)
        send(signal.SIGINT)
        reached.append("further")

    with pytest.raises(Interrupted, match="SIGINT"), listening(), postponed():
        work()
    assert (reached, noted()) == ([], None)


def test_whoever_would_send_another_can_see_that_one_was_heard():
    seen = []

    def work():
        with postponed():
            seen.append(asked())
            send(signal.SIGUSR1)
            seen.append(asked())

    with pytest.raises(Interrupted), listening():
        work()
    assert seen == [False, True]
    assert asked()  # while what it interrupts is unwound too
    with listening():
        assert not asked()


def test_what_is_raised_meanwhile_comes_first_and_the_signal_is_forgotten():
    def work():
        send(signal.SIGTERM)
        raise ValueError("other")

    with pytest.raises(ValueError, match="other"), listening(), postponed():
        work()
    assert noted() is None


def test_handlers_are_those_of_before_afterwards():
    before = [signal.getsignal(number) for number in SIGNALS]
    with listening():
        pass
    assert [signal.getsignal(number) for number in SIGNALS] == before


@pytest.mark.parametrize(
    ("error", "raised"), [(ValueError("Error calling function"), Interrupted), (FileError("full"), FileError)]
)
def test_compiled_code_may_make_another_error_of_it_but_what_users_must_know_is_said(error, raised):
    def work():
        try:
            send(signal.SIGTERM)
        except Interrupted:
            raise error from None

    with pytest.raises(raised), listening():
        work()
    with pytest.raises(type(error)), listening():  # of another command: nothing is left of the signal
        raise error


LOADED = """
import os, runpy, sys

class Asked:
    def find_spec(self, name, path, target=None):
        if name == "binas.cli.main":
            os.kill(os.getpid(), {number})

sys.meta_path.insert(0, Asked())
sys.argv = ["binas", "--version"]
runpy.run_module("binas", run_name="__main__")
"""


@pytest.mark.parametrize("number", SIGNALS)
def test_a_signal_while_the_program_is_loaded_is_one_sentence(number):
    script = LOADED.format(number=int(number))
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (128 + number, "")
    assert done.stderr == f"interrupted by {number.name}. {GO_ON}\n"


def test_the_installed_command_hears_signals_as_early():
    project = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text())["project"]
    assert project["scripts"] == {"binas": "binas.__main__:main"}
