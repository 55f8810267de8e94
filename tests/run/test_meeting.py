"""Processes of a launcher that wait for one that never comes: they say so, and end when they are asked to."""

import os
import signal
import socket
import subprocess
import sys

import pytest

from binas.base.interrupts import GO_ON

SCRIPT = """
import sys
from binas.base import ranks
from binas.cli.main import main
ranks.LATE_SECONDS = 0
sys.argv = ["binas", "--version"]
main()
"""


def free_port():
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return listener.getsockname()[1]


def left(process):
    """What else it says, without the remarks of torch."""
    lines = process.communicate()[1].splitlines()
    return [line for line in lines if line.startswith(("error", "interrupted", "Traceback"))]


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
@pytest.mark.parametrize(
    ("rank", "said"),
    [
        (0, "still waiting for 1 of 2 processes: 1 did not come yet."),
        (1, "process 1 of this job still waits"),
    ],
)
def test_one_that_waits_for_others_says_so_and_ends_when_it_is_told_to(rank, said, number):
    place = {
        "RANK": str(rank),
        "WORLD_SIZE": "2",
        "MASTER_ADDR": "127.0.0.1",
        "MASTER_PORT": str(free_port()),
    }
    process = subprocess.Popen(
        [sys.executable, "-c", SCRIPT],
        env={**os.environ, "OMP_NUM_THREADS": "1", **place},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    while said not in process.stderr.readline():
        assert process.poll() is None
    process.send_signal(number)
    assert left(process) == [f"interrupted by {number.name}. {GO_ON}"]
    assert process.returncode == 128 + number
