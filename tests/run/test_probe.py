"""Probing: real steps in a temporary folder. How fast they are is not asked here, only that all is there."""

import tempfile

import pytest

from binas.base.times import Seconds
from binas.run.config import load_config
from binas.run.plan import Budget, images_of, make_plan
from binas.run.probe import probe, reading_seconds
from binas.run.start import with_shards
from binas.tasks import all_steps
from binas.tasks.outlook import Outlook
from binas.training import probe as timing
from binas.training.probe import Stopwatch
from tiny_run import SPACE, write_config


@pytest.fixture(scope="module")
def parts(tmp_path_factory):
    from binas.data.loading import load_data

    path = write_config(tmp_path_factory.mktemp("config"))
    config = with_shards(load_config(path, ["train.processes=1"]), None)
    return config, load_data(config.data)


def test_every_rate_is_known_and_nothing_stays(parts, tmp_path, monkeypatch):
    config, data = parts
    monkeypatch.setattr("binas.run.probe.SECONDS", 0.0)
    monkeypatch.setattr(timing, "EVALUATED", 0.0)
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    rates = probe(SPACE, data, config)
    assert rates.workers == 1
    assert (rates.table, rates.prepare) == (0.0, 0.0)  # this run has a table of costs
    assert all(value > 0 for name, value in rates if name not in ("table", "prepare", "read"))
    assert list(tmp_path.glob("binas-*")) == []
    outlook = Outlook(config, images_of(data), rates, len(data.classes), data.size)
    plan = make_plan(outlook, Budget(1e5))
    assert plan.expected.keys() == {step.name for step in all_steps()}
    assert all(isinstance(seconds, Seconds) for seconds in plan.expected.values())


def test_images_in_memory_take_no_time_to_read(parts):
    assert reading_seconds(parts[1].train) == 0.0


def test_the_first_steps_do_not_count(monkeypatch):
    clock = iter([0.0, 9.0, 12.0, 13.0, 14.0, 15.0, 16.0, 17.0])
    monkeypatch.setattr("binas.training.probe.time.perf_counter", lambda: next(clock))
    watch = Stopwatch()
    watch.start("heaviest", 7, 0)
    for done in range(1, 8):
        watch.advance(done)
    assert watch.step == 1.0


def test_of_two_steps_the_second_counts(monkeypatch):
    clock = iter([0.0, 9.0, 12.0])
    monkeypatch.setattr("binas.training.probe.time.perf_counter", lambda: next(clock))
    watch = Stopwatch()
    watch.start("heaviest", 2, 0)
    watch.advance(1)
    watch.advance(2)
    assert watch.step == 3.0
