import os
import signal

import pytest

from binas.base.interrupts import SIGNALS, Interrupted, listening, noted, postponed


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
