import os
import signal
import subprocess
import sys
import time

import numpy as np
import pytest
from pieces import times

from binas.base import workers
from binas.base.cores import usable_cores
from binas.base.errors import ConfigError, WorkerError
from binas.base.progress import Progress
from binas.base.workers import dismiss, hired, share_out


def describing():
    return lambda item, progress: {
        "sum": item + 0.1,
        "process": os.getpid(),
        "threads": os.environ["OMP_NUM_THREADS"],
    }


def dying():
    return lambda item, progress: os.kill(os.getpid(), signal.SIGKILL)


def broken():
    return lambda item, progress: print("not an answer") or 1 / 0


class Heard(Progress):
    def __init__(self):
        self.said, self.shown = [], []

    def say(self, text):
        self.said.append(text)

    def show(self, done, doing="", left=None):
        self.shown.append((done, doing))


@pytest.fixture(autouse=True, scope="module")
def nobody_left():
    yield
    dismiss()


def test_results_come_in_order_with_all_that_was_said():
    heard = Heard()
    assert list(share_out(times, [3], range(7), 2, heard, "piece")) == [0, 3, 6, 9, 12, 15, 18]
    assert sorted(heard.said) == [f"piece {i + 1} of 7: item {i}" for i in range(7)]
    assert heard.shown[-1] == (1.0, "7 of 7 done")


def test_arrays_go_and_come_as_they_are():
    array = np.array([[1.5, 2.25], [np.pi, 1e-30]], dtype=np.float32)
    (result,) = share_out(times, [2], [array], 1)
    assert result.dtype == np.float32
    assert np.array_equal(result, 2 * array)


def test_workers_are_other_processes_of_one_thread_and_serve_again():
    first = list(share_out(describing, [], [0.2, 0.3], 2))
    again = list(share_out(describing, [], [0.2], 2))
    assert [item["sum"] for item in first] == [0.2 + 0.1, 0.3 + 0.1]
    assert {item["threads"] for item in first} == {"1"}
    assert os.getpid() not in {item["process"] for item in first}
    assert again[0]["process"] in [worker.process.pid for worker in workers._idle]


def test_an_error_of_ours_arrives_as_it_was_and_the_workers_end():
    with pytest.raises(ConfigError, match=r"^-1 is negative\.$"):
        list(share_out(times, [1], [1, -1, 2], 2))
    assert list(share_out(times, [1], [5], 2)) == [5]


def test_a_bug_arrives_with_its_traceback_and_what_it_printed_is_no_answer():
    with pytest.raises(RuntimeError, match="ZeroDivisionError"):
        list(share_out(broken, [], [0], 1))


def test_a_worker_that_is_killed_is_named():
    with pytest.raises(WorkerError, match="killed by signal 9"):
        list(share_out(dying, [], [0, 1], 2))


def test_who_stops_early_ends_the_workers():
    results = share_out(times, [1], range(5), 2)
    assert next(results) == 0
    results.close()
    with hired(2) as team:
        assert all(worker.alive() for worker in team)


def test_workers_end_with_the_process_that_started_them():
    script = (
        "import time\n"
        "from binas.base.workers import hired\n"
        "with hired(2) as team:\n"
        "    print(*(worker.process.pid for worker in team), flush=True)\n"
        "    time.sleep(600)\n"
    )
    master = subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, text=True)
    pids = [int(pid) for pid in master.stdout.readline().split()]
    assert len(pids) == 2
    master.kill()
    master.wait()
    while any(_runs(pid) for pid in pids):
        time.sleep(0.05)  # a test that never ends would be one that fails


def _runs(pid):
    try:
        state = open(f"/proc/{pid}/stat").read().rpartition(")")[2].split()[0]  # noqa: PTH123, SIM115
    except OSError:
        return False
    return state != "Z"


@pytest.mark.parametrize(
    ("text", "cores"), [("max 100000", None), ("150000 100000", 1), ("50000 100000", 1), ("", None)]
)
def test_cores_of_a_container(tmp_path, text, cores):
    (tmp_path / "cpu.max").write_text(text)
    every = usable_cores(tmp_path / "none")
    assert usable_cores(tmp_path / "cpu.max") == (every if cores is None else cores)
