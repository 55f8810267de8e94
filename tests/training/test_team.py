"""Shards of a batch: the same weights whatever number of processes trains, killed and resumed or not."""

from dataclasses import replace

import pytest
from small_data import bench, quick
from small_networks import MBCONV
from small_run import small_run
from test_loop import KillAfter, Killed, same

from binas.base import workers
from binas.run.run import open_run
from binas.run.workers import train_shared
from binas.training import Reporter, train_heaviest, train_supernet

PHASE = {"shards": 3, "optimizer": "adamw", "ema": 0.9, "accumulate": 2, "augment": {"crop": 1, "mixup": 0.2}}
SETTINGS = quick(heaviest=PHASE, supernet=PHASE, checkpoint_seconds=0.0)


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """A run to open; its own training is not looked at."""
    yield open_run(small_run(tmp_path_factory.mktemp("run")))
    workers.dismiss()


def both(run, team, progress, folder, kill):
    """Both phases on bars; in the first process of a team ended, so to say, after some steps."""
    from pathlib import Path

    reporter = KillAfter(Path(folder), kill) if kill and team.first else Reporter()
    where = replace(bench(Path(folder), SETTINGS, reporter), team=team)
    return train_supernet(train_heaviest(MBCONV, where), where)


def with_processes(run, count):
    train = run.config.train.model_copy(update={"processes": count})
    return replace(run, config=run.config.model_copy(update={"train": train}))


@pytest.fixture(scope="module")
def alone(run, tmp_path_factory):
    """The supernet that one process trains, shard after shard."""
    return train_shared(with_processes(run, 1), both, [str(tmp_path_factory.mktemp("alone")), 0], 3)


@pytest.mark.parametrize("processes", [2, 3])
def test_as_many_processes_as_you_like_train_the_same(run, alone, tmp_path, processes):
    """Three shards in two processes: one of them has two."""
    assert same(alone, train_shared(with_processes(run, processes), both, [str(tmp_path), 0], 3))


def test_killed_and_resumed_with_another_number_of_processes(run, alone, tmp_path):
    killed = 0
    for processes, steps in ((2, 3), (1, 4), (3, 7), (2, 0)):
        try:
            resumed = train_shared(with_processes(run, processes), both, [str(tmp_path), steps], 3)
        except Killed:
            killed += 1
    assert killed == 3
    assert same(alone, resumed)
