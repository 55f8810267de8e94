"""Shards of a batch: the same weights whatever number of processes trains, killed and resumed or not."""

import os
import signal
import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from functools import reduce
from pathlib import Path

import pytest
import torch
from PIL import Image
from small_data import bars, bench, quick
from small_networks import MBCONV
from small_run import small_run
from test_loop import KillAfter, Killed, linear_job, same
from torch import nn

from binas.base import workers
from binas.base.errors import ConfigError, TrainingError, WorkerError
from binas.data import DataConfig, load_data
from binas.run.run import open_run
from binas.run.workers import train_shared
from binas.training import Reporter, train_heaviest, train_supernet
from binas.training.loop import fit
from binas.training.team import Shards, Team, one_thread, suitable_shards

PHASE = {"shards": 3, "optimizer": "adamw", "ema": 0.9, "accumulate": 2, "augment": {"crop": 1, "mixup": 0.2}}
SETTINGS = quick(heaviest=PHASE, supernet=PHASE, checkpoint_seconds=0.0)


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """A run to open; its own training is not looked at."""
    yield open_run(small_run(tmp_path_factory.mktemp("run")))
    workers.dismiss()


def both(run, team, progress, folder, kill):
    """Both phases on bars; in the first process of a team ended, so to say, after some steps."""
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


@pytest.mark.parametrize("processes", [2, pytest.param(3, marks=pytest.mark.slow)])
def test_as_many_processes_as_you_like_train_the_same(run, alone, tmp_path, processes):
    """Three shards in two processes: one of them has two."""
    assert same(alone, train_shared(with_processes(run, processes), both, [str(tmp_path), 0], 3))


@pytest.mark.slow
def test_killed_and_resumed_with_another_number_of_processes(run, alone, tmp_path):
    killed = 0
    for processes, steps in ((2, 3), (1, 4), (3, 7), (2, 0)):
        try:
            resumed = train_shared(with_processes(run, processes), both, [str(tmp_path), steps], 3)
        except Killed:
            killed += 1
    assert killed == 3
    assert same(alone, resumed)


def shared(run, team, progress, folder):
    """The heaviest network, with statistics of the whole batch."""
    # AdamW would make steps of noise where gradients are zero but for rounding, as those of biases before BatchNorm.
    phase = {**PHASE, "statistics": "batch", "batch_size": 33, "epochs": 1, "optimizer": "sgd"}
    settings = quick(heaviest=phase, supernet=PHASE)
    return train_heaviest(MBCONV, replace(bench(Path(folder), settings, Reporter()), team=team))


def test_with_statistics_of_the_whole_batch_processes_agree_with_one(run, tmp_path):
    """33 images in three shards, in two processes: 22 and 11."""
    found = [
        train_shared(with_processes(run, count), shared, [str(tmp_path / str(count))], 3).state_dict()
        for count in (1, 2)
    ]
    for name, alone in found[0].items():
        assert torch.allclose(alone, found[1][name], rtol=1e-4, atol=1e-5), name


def write_stream(folder):
    """Bars in four Parquet files to train with, and some to validate and test with."""
    datasets = pytest.importorskip("datasets", reason="the package datasets is not installed")
    features = {"image": datasets.Image(), "label": datasets.ClassLabel(names=list("abcde"))}
    for seed, name in enumerate(("train-0", "train-1", "train-2", "train-3", "validation", "test")):
        made = bars(40, seed=seed)
        images = [Image.fromarray(pixels.transpose(1, 2, 0)) for pixels in made["images"]]
        columns = {"image": images, "label": made["labels"].tolist()}
        whole = datasets.Dataset.from_dict(columns, features=datasets.Features(features))
        whole.to_parquet(folder / f"{name}.parquet")


def streamed(run, team, progress, files, folder):
    """A linear network trained on a stream, and the files that this process has read for one epoch."""
    import datasets
    from datasets.packaged_modules.parquet.parquet import Parquet

    reading, read = Parquet._generate_tables, set()

    def recording(self, files, **rest):
        read.update(Path(name).name for name in files)
        return reading(self, files, **rest)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(datasets.config, "SLEEP_TIME_ON_THREADS_SHUTDOWN", 0, raising=False)
        patch.setattr(Parquet, "_generate_tables", recording)
        data = load_data(DataConfig(kind="huggingface", path=files, size=12, streaming=True))
        read.clear()
        job = linear_job(Path(folder), shards=2, epochs=1)
        return fit(replace(job, data=data, team=team)), read


def test_a_stream_is_shared_out_and_training_is_the_same(run, tmp_path):
    """Each of two processes reads two of four files."""
    (tmp_path / "files").mkdir()
    write_stream(tmp_path / "files")
    found = [
        train_shared(
            with_processes(run, count), streamed, [str(tmp_path / "files"), str(tmp_path / f"{count}")], 2
        )
        for count in (1, 2)
    ]
    assert same(found[0][0], found[1][0])
    assert [len(read) for _, read in found] == [4, 2]


def failing(run, team, progress, how):
    """Trains nothing; the second process leaves."""
    if team.rank == 1:
        if how == "killed":
            os.kill(os.getpid(), signal.SIGKILL)
        raise ConfigError("the second has had enough.")
    return team.gather(torch.zeros(3))


@pytest.mark.parametrize(
    ("how", "kind", "text"),
    [
        ("killed", WorkerError, "signal 9"),
        pytest.param("error", ConfigError, "enough", marks=pytest.mark.slow),
    ],
)
def test_a_process_that_leaves_takes_the_training_down_and_says_why(run, how, kind, text):
    with pytest.raises(kind, match=text):
        train_shared(with_processes(run, 2), failing, [how], 2)


@pytest.mark.parametrize("size", [1, 2, 3])
def test_shards_have_every_nth_image_whoever_does_them(size):
    """Ten images in three shards: 4, 3 and 3."""
    found = {}
    for rank in range(size):
        shards = Shards(nn.Linear(1, 1), Team(rank, size), 3)
        places = shards.places(10)
        mine = [shard for piece in shards.pieces for shard in piece]
        found |= {shard: places[shards.rows(shard, 10)] for shard in mine}
    assert found == {0: [0, 3, 6, 9], 1: [1, 4, 7], 2: [2, 5, 8]}
    alone = Shards(nn.Linear(1, 1), Team(), 1)
    assert (alone.places(10), alone.rows(0, 10)) == (None, slice(0, 10))


def test_what_no_shard_used_gets_no_gradient_and_the_rest_the_mean():
    network = nn.ModuleDict({name: nn.Linear(1, 1, bias=False) for name in "abc"})
    used = [("a",), ("a", "b")]

    def piece_loss(piece, number):
        loss = sum((piece[0] + 1) * network[name].weight.sum() for name in used[piece[0]])
        (loss / 2).backward()
        return loss.detach()

    network["b"].weight.grad = torch.full((1, 1), 5.0)  # of before: a step begins anew
    Shards(network, Team(), 2).backward(piece_loss, 10)
    assert network["a"].weight.grad.item() == 1.5
    assert network["b"].weight.grad.item() == 1.0
    assert network["c"].weight.grad is None


def test_a_shard_counts_by_its_images_and_batches_of_a_step_add_up():
    """33 images in two shards are 17 and 16; the mean over shards is then that over images."""
    network, images = nn.Linear(1, 1), torch.linspace(-1, 2, 33).reshape(33, 1)

    def piece_loss(piece, number):
        loss = ((number + 1) * network(images[piece[0] :: 2])).square().mean()
        (loss * shards.share(piece, 33)).backward()
        return loss.detach()

    shards = Shards(network, Team(), 2)
    assert [shards.share(piece, 33) for piece in shards.pieces] == [17 / 33, 16 / 33]
    losses = shards.backward(piece_loss, 33, 2)
    found = network.weight.grad.item()
    network.zero_grad()
    whole = [((number + 1) * network(images)).square().mean() for number in range(2)]
    sum(whole).backward()
    assert losses == pytest.approx([loss.item() for loss in whole], rel=1e-6)
    assert found == pytest.approx(network.weight.grad.item(), rel=1e-6)


class Talkative(Team):
    """A team that counts how often its processes exchange something."""

    __slots__ = ()
    calls = 0

    def gather(self, mine):
        Talkative.calls += 1
        return mine[None]


def test_nothing_is_exchanged_while_gradients_add_up():
    network = nn.Linear(1, 1)

    def piece_loss(piece, number):
        loss = network(torch.ones(1, 1)).sum()
        loss.backward()
        return loss.detach()

    Shards(network, Talkative(), 2).backward(piece_loss, 8, 4)
    assert Talkative.calls == 1


@dataclass(frozen=True)
class InThreads(Team):
    """Processes of a team as threads of one; ``received`` counts the numbers that each has received."""

    meet: threading.Barrier = None
    table: dict = field(default_factory=dict)
    received: list = field(default_factory=list)

    def _all(self, mine):
        self.table[self.rank] = mine
        self.meet.wait()
        found = [self.table[rank] for rank in range(self.size)]
        self.meet.wait()
        return found

    def gather(self, mine):
        self.received.append(self.size * mine.numel())
        return torch.stack(self._all(mine))

    def trade(self, parts):
        self.received.append(parts.numel())
        return torch.stack([theirs[self.rank] for theirs in self._all(parts)])


@pytest.mark.parametrize("size", [1, 2, 3, 5])
@pytest.mark.parametrize("length", [1, 7, 60])
def test_sums_are_those_in_the_order_of_the_shards_to_the_bit_and_traffic_does_not_grow(size, length):
    count, generator = 5, torch.Generator().manual_seed(length)
    rows = torch.randn((count, length), generator=generator)
    wanted = reduce(torch.add, rows)
    assert length < 60 or not torch.equal(wanted, reduce(torch.add, rows.flip(0)))  # the order does matter
    meet, table = threading.Barrier(size), {}
    teams = [InThreads(rank, size, meet, table) for rank in range(size)]

    def total(team):
        shards = Shards(nn.Linear(1, 1), team, count)
        return shards._total([rows[piece[0]] for piece in shards.pieces])

    with ThreadPoolExecutor(size) as pool:
        assert all(torch.equal(found, wanted) for found in pool.map(total, teams))
    own = -(-count // size)  # rows of the process that has most; rounding up adds a column a process at most
    assert all(sum(team.received) <= (own + 1) * (length + size) for team in teams)


def test_statistics_of_shards_are_means_and_counters_move_once():
    norm = nn.BatchNorm2d(1, momentum=0.5)

    def piece_loss(piece, number):
        return norm(torch.tensor([0.0, 2.0 + 4 * piece[0]]).view(2, 1, 1, 1)).sum().detach()

    Shards(norm, Team(), 2).backward(piece_loss, 10)
    assert norm.running_mean.item() == (0.5 * 1 + 0.5 * 3) / 2
    assert norm.num_batches_tracked.item() == 1


def test_a_run_starts_with_shards_that_its_processes_and_batches_carry(monkeypatch):
    assert suitable_shards(quick(processes=4), 64) == 2
    assert suitable_shards(quick(processes=4), 1000) == 4
    assert suitable_shards(quick(processes=4), 10) == 1
    monkeypatch.setattr(workers, "_launched", 8)
    assert suitable_shards(quick(), 64) == 8


def test_more_processes_than_shards_are_refused(tmp_path):
    job = linear_job(tmp_path, shards=1)
    with pytest.raises(TrainingError, match=r"train\.heaviest\.shards is 1.* some of 2 processes"):
        fit(replace(job, team=Team(0, 2)))


def test_one_thread_is_given_back():
    before = torch.get_num_threads()
    with one_thread():
        assert torch.get_num_threads() == 1
    assert torch.get_num_threads() == before
