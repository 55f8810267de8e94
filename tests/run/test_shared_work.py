"""Whatever number of processes does the work of a run, its tables, answers and weights are the same."""

import pytest

from binas.base.workers import dismiss
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
