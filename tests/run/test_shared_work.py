"""Whatever number of processes does the work of a run, its tables, answers and weights are the same."""

import queue
import threading
from contextlib import contextmanager
from types import SimpleNamespace

import pytest

from binas.base.errors import WorkerError
from binas.base.workers import dismiss
from binas.run.workers import _met
from tiny_run import call, final, run_json, write_config


@pytest.fixture(autouse=True)
def nobody_left():
    yield
    dismiss()


@pytest.mark.slow
def test_a_run_of_two_processes_is_that_of_one(tmp_path):
    config = write_config(tmp_path, compare={"random": 2, "tune": 1})
    shards = [f"--set={part}.shards=2" for part in ("train.heaviest", "train.supernet", "finetune")]
    found = {}
    for processes in (1, 2):
        out = tmp_path / str(processes)
        run_json(config, "--out", out, *shards, f"--set=train.processes={processes}")
        found[processes] = final(out)
    assert found[1] == found[2]
    tuned = {}
    for processes in (1, 2):
        code, said = call(
            *("finetune", tmp_path / str(processes), "--arch", "lightest", "--name", "own", "--json"),
        )
        assert code == 0, said
        tuned[processes] = sorted(
            path.name for path in (tmp_path / str(processes)).glob("networks/own/finetune/weights-*")
        )
    assert tuned[1] == tuned[2]


def test_a_worker_that_dies_before_the_team_has_met_is_noticed():
    """Who waits for it would do so for hours."""
    dead = SimpleNamespace(inbox=queue.SimpleQueue())

    def heard(seconds=None):
        raise WorkerError("one of the worker processes was killed by signal 9")

    dead.heard = heard
    never = threading.Event()

    @contextmanager
    def meeting():
        never.wait()
        yield

    with pytest.raises(WorkerError, match="killed by signal 9"), _met([dead], meeting()):
        pass
    never.set()


def test_an_answer_that_comes_before_the_meeting_is_seen_is_not_lost():
    worker = SimpleNamespace(inbox=queue.SimpleQueue())
    answers, met = iter([("worker", {"result": None})]), threading.Event()

    def heard(seconds=None):
        answer = next(answers, None)
        met.set()
        if answer is None:
            raise queue.Empty
        return answer

    worker.heard = heard

    @contextmanager
    def meeting():
        met.wait()
        yield "team"

    with _met([worker], meeting()) as team:
        assert team == "team"
    assert worker.inbox.get() == ("worker", {"result": None})
