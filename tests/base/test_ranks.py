"""Processes of a launcher as workers of the first one: answers, errors, ends. Nothing here needs torch."""

import json
import os
import signal
import socket
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import pytest

from binas.base import ranks
from binas.base.interrupts import GO_ON
from binas.version import __version__

HERE = str(Path(__file__).parent)
SCRIPT = """
import os, sys, time, threading
from pathlib import Path
sys.path.insert(0, {here!r})
from binas.base import ranks, workers
from binas.base.launch import Launch
from binas.base.workers import share_out
import pieces

class Files:
    def set(self, key, value):
        (Path({folder!r}) / "new").write_text(value)
        (Path({folder!r}) / "new").rename(Path({folder!r}) / key)
    def get(self, key):
        print("waits", flush=True)
        while not (Path({folder!r}) / key).exists():
            time.sleep(0.02)
        return (Path({folder!r}) / key).read_bytes()

ranks.ALARM_SECONDS, ranks.TOLD_SECONDS = 0.2, 0.0
{before}
launch = Launch({rank}, {size}, {rank}, {size}, "127.0.0.1", 1)
if launch.rank:
    ranks.hold_signals()
    ranks.follow(Files(), launch)
crew = []
ranks.gather(Files(), launch, crew)
workers.enlist(crew)
print("all here", flush=True)
{work}
ranks.dismiss_all(crew, 0)
"""


def start(folder, rank, size, work="", before=""):
    """One process of a launcher."""
    work = textwrap.dedent(work)
    script = SCRIPT.format(here=HERE, folder=str(folder), rank=rank, size=size, work=work, before=before)
    return subprocess.Popen(
        [sys.executable, "-c", script], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )


class Job:
    """Some processes that were launched, the first one doing ``work``."""

    def __init__(self, folder, work, size=2):
        self.processes = [start(folder, rank, size, work) for rank in range(size)]

    def heard(self):
        """The next line of the first process."""
        return self.processes[0].stdout.readline().strip()

    def end(self):
        """Exit codes, and all that was said on stderr."""
        said = [process.communicate()[1] for process in self.processes]
        return [process.returncode for process in self.processes], said


def test_the_others_do_what_the_first_one_shares_out_and_end_with_it(tmp_path):
    work = """
    import json
    print(json.dumps(list(share_out(pieces.times, [3], range(7), 2))), flush=True)
    results = share_out(pieces.times, [1], range(5), 2)
    next(results)
    results.close()  # who stops early gets no answers of before
    try:
        list(share_out(pieces.times, [1], [1, -1, 2], 2))
    except workers.BinasError as error:
        print(error, flush=True)
    print(json.dumps([workers.launched(), list(share_out(pieces.times, [5], range(4), 2))]), flush=True)
    """
    job = Job(tmp_path, work, 3)
    assert job.heard() == "all here"
    assert json.loads(job.heard()) == [0, 3, 6, 9, 12, 15, 18]
    assert job.heard() == "-1 is negative."
    assert json.loads(job.heard()) == [3, [0, 5, 10, 15]]
    assert job.end() == ([0, 0, 0], ["", "", ""])


WAITING = """
class Told(workers.Progress):
    def say(self, text):
        print("busy", flush=True)
list(share_out(pieces.waiting, [], [0], 1, Told()))
"""
ALONE = "print('busy', flush=True); time.sleep(600)"


@pytest.mark.parametrize("work", [WAITING, ALONE])
def test_one_that_dies_takes_all_down_with_one_message(tmp_path, work):
    """Also when the first one is busy with something else, and does not listen."""
    job = Job(tmp_path, work, 3)
    assert [job.heard(), job.heard()] == ["all here", "busy"]
    job.processes[1].kill()
    codes, said = job.end()
    assert codes[1] == -signal.SIGKILL
    assert codes[0] != 0
    assert codes[2] == 2
    assert "process 1 of this job is gone" in said[0]
    assert not said[1]


def test_the_first_one_that_dies_takes_all_down_and_the_second_says_so(tmp_path):
    job = Job(tmp_path, ALONE, 3)
    assert [job.heard(), job.heard()] == ["all here", "busy"]
    job.processes[0].kill()
    codes, said = job.end()
    assert codes == [-signal.SIGKILL, 2, 2]
    assert "the first process of this job is gone" in said[1]
    assert not said[2]


def test_one_that_is_told_to_stop_tells_the_first(tmp_path):
    work = """
    import signal
    heard = threading.Event()
    for number in ranks.SIGNALS:
        signal.signal(number, lambda n, _: (print("told", n, flush=True), heard.set()))
    print("busy", flush=True)
    while not heard.wait(0.05):
        pass
    ranks.dismiss_all(crew, 130)
    sys.exit(130)
    """
    job = Job(tmp_path, work)
    assert [job.heard(), job.heard()] == ["all here", "busy"]
    os.kill(job.processes[1].pid, signal.SIGTERM)
    assert job.heard() == f"told {int(signal.SIGTERM)}"
    assert job.end() == ([130, 130], ["", ""])


ORPHAN = """
import os, threading
from binas.base import ranks
from binas.base.launch import Launch
ranks.end_with_agent(Launch({rank}, 2, {rank}, 2, "127.0.0.1", 1, os.getppid()))
print(os.getpid(), flush=True)
threading.Event().wait()
"""
AGENT = "import subprocess, sys; subprocess.call([sys.executable, '-c', sys.argv[1]])"


@pytest.mark.parametrize(
    ("rank", "said"), [(0, "what started the processes of this job is gone, so they end.\n"), (1, "")]
)
def test_one_whose_agent_is_gone_is_told_to_stop(rank, said):
    """torchrun that is killed, or gets a signal it does not know, ends nobody."""
    agent = subprocess.Popen(
        [sys.executable, "-c", AGENT, ORPHAN.format(rank=rank)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert agent.stdout.readline().strip().isdigit()
    agent.kill()
    assert agent.communicate() == ("", said)  # read to the end: nobody is left that could write


@pytest.mark.parametrize("rank", [0, 1])
def test_that_nobody_reads_what_is_said_keeps_none_from_ending(tmp_path, rank):
    """Whoever killed the launcher may have killed what reads its output too."""
    reader, writer = os.pipe()
    os.close(reader)
    agent = subprocess.Popen(
        [sys.executable, "-c", AGENT, ORPHAN.format(rank=rank)], stdout=subprocess.PIPE, stderr=writer
    )
    os.close(writer)
    assert agent.stdout.readline().strip().isdigit()
    agent.kill()
    assert agent.communicate()[0] == b""


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_one_that_is_told_to_stop_before_it_has_met_the_first_ends(tmp_path, number):
    process = start(tmp_path, 1, 2)
    assert process.stdout.readline() == "waits\n"
    process.send_signal(number)
    assert process.communicate()[1] == f"interrupted by {number.name}. {GO_ON}\n"
    assert process.returncode == 128 + number


def test_the_first_one_says_who_has_not_come(tmp_path):
    process = start(tmp_path, 0, 3, before="ranks.LATE_SECONDS = 0")
    assert process.stderr.readline() == "still waiting for 2 of 3 processes: 1, 2 did not come yet.\n"
    process.kill()
    process.communicate()


def test_the_first_one_gives_up_by_naming_who_has_not_come(tmp_path):
    said = start(tmp_path, 0, 3, before="ranks.COMING_SECONDS = 0.0").communicate()[1]
    assert "2 have not come: 1, 2. Look at what they say" in said


def test_one_that_came_and_is_gone_again_is_not_waited_for(tmp_path):
    """While another one has not come at all."""
    process = start(tmp_path, 0, 3)
    while not (tmp_path / ranks.PLACE).exists():
        assert process.poll() is None
        time.sleep(0.02)
    host, port, word = json.loads((tmp_path / ranks.PLACE).read_text())
    with socket.create_connection((host, port)) as connection:
        connection.sendall(json.dumps([word, 1, __version__]).encode() + b"\n")
    assert "process 1 of this job is gone" in process.communicate()[1]
    assert process.returncode != 0
