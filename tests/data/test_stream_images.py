"""A stream shared out by files: what a shard reads, and that the number of processes changes nothing."""

import logging
from collections import Counter
from pathlib import Path

import pytest
import torch
from test_huggingface import load, made, rows

from binas.base.errors import DataError

datasets = pytest.importorskip("datasets", reason="the package datasets is not installed")
HOW = {"seed": 1, "epoch": 2, "drop_last": True}


@pytest.fixture
def reads(monkeypatch):
    """How many rows were read of each file."""
    from datasets.packaged_modules.parquet.parquet import Parquet

    found, reading = Counter(), Parquet._generate_tables

    def counting(self, files, **rest):
        for key, table in reading(self, files, **rest):
            found.update({Path(name).name: len(table) for name in files})
            yield key, table

    monkeypatch.setattr(Parquet, "_generate_tables", counting)
    return found


@pytest.fixture
def stream(tmp_path, monkeypatch, reads):
    """Makes the training images of a stream from the lengths of its files; each image is the number of its row."""
    # datasets waits 5 s after a pass over several Parquet files
    monkeypatch.setattr(datasets.config, "SLEEP_TIME_ON_THREADS_SHUTDOWN", 0, raising=False)

    def make(*lengths, parts=("validation", "test"), **options):
        whole, first = made(rows(sum(lengths))), 0
        for number, length in enumerate(lengths):
            whole.select(range(first, first + length)).to_parquet(tmp_path / f"train-{number:02}.parquet")
            first += length
        for part in parts:
            made(rows(6)).to_parquet(tmp_path / f"{part}.parquet")
        return load(tmp_path, streaming=True, shuffle_buffer=16, **options).train

    return make


def places_of(shards, size, count):
    """As processes ask for the images of their shards."""
    return [place for shard in shards for place in range(shard, size, count)]


def seen(batches):
    return [int(value) for batch in batches for value in batch.images[:, 0, 0, 0]]


def by_shard(part, size, count, **how):
    """The images of each shard, each read by itself."""
    return [
        seen(part.batches(size, places=range(shard, size, count), shards=count, **{**HOW, **how}))
        for shard in range(count)
    ]


def test_a_process_reads_the_files_of_its_shards_only(stream, reads):
    part, read = stream(20, 20, 20, 20), []
    for rank in range(2):
        reads.clear()
        list(part.batches(8, places=range(rank, 8, 2), shards=2, **HOW))
        read.append(dict(reads))
    assert [len(files) for files in read] == [2, 2]
    assert read[0] | read[1] == {f"train-{number:02}.parquet": 20 for number in range(4)}


@pytest.mark.parametrize("lengths", [(20, 20, 20), (5, 35, 20), (7, 11, 30, 9, 3)])
def test_one_process_gives_what_several_give_together(stream, lengths):
    """Ten images in three shards are 4, 3 and 3; of two processes the first one has two shards."""
    part = stream(*lengths)
    whole = list(part.batches(10, shards=3, **HOW))
    assert [batch.indices.tolist() for batch in whole] == [
        list(range(first, first + 10)) for first in range(0, 60, 10)
    ]
    for teams in ([[0, 1, 2]], [[0, 2], [1]], [[0], [1], [2]]):
        for shards in teams:
            places = places_of(shards, 10, 3)
            mine = list(part.batches(10, places=places, shards=3, **HOW))
            for batch, all_ in zip(mine, whole, strict=True):
                assert torch.equal(batch.images, all_.images[places])
                assert torch.equal(batch.labels, all_.labels[places])
                assert torch.equal(batch.indices, all_.indices[places])
    some = next(part.batches(10, places=[5, 0], shards=3, **HOW))
    assert torch.equal(some.images, whole[0].images[[5, 0]])


def test_files_of_one_length_are_shown_once_in_every_epoch_and_change_hands(stream):
    part, first = stream(20, 20, 20, 20), set()
    for epoch in range(4):
        shards = by_shard(part, 8, 2, epoch=epoch)
        assert sorted(shards[0] + shards[1]) == list(range(80))
        first.add(frozenset(value // 20 for value in shards[0]))
        assert by_shard(part, 8, 2, epoch=epoch) == shards
    assert len(first) > 1
    assert by_shard(part, 8, 2, seed=5) != by_shard(part, 8, 2)


def test_shards_draw_differently_from_files_in_one_order(stream):
    one, other = ([value % 40 for value in shard] for shard in by_shard(stream(40, 40), 8, 2))
    assert sorted(one) == sorted(other) == list(range(40))
    assert one != other
    assert one != sorted(one)


def test_a_shard_that_is_through_begins_anew_and_a_longer_one_is_cut(stream):
    """Files of 10, 30 and 20: each shard gives 20 images, whatever its file."""
    shards = by_shard(stream(10, 30, 20), 6, 3)
    assert [len(shard) for shard in shards] == [20, 20, 20]
    short, long, even = sorted(shards, key=lambda shard: _file(shard[0]))
    assert sorted(short[:10]) == list(range(10))
    assert len(set(map(_file, short[10:]))) == 1
    assert len(set(long)) == 20
    assert set(map(_file, long)) == {1}
    assert sorted(even) == list(range(40, 60))


def _file(value):
    return 0 if value < 10 else 1 if value < 40 else 2


def test_what_is_shown_again_is_shuffled_anew(stream):
    part = stream(20, 20)
    part.length = 80  # twice what there is
    shards = by_shard(part, 8, 2)
    for shard in shards:
        assert len({value // 20 for value in shard[:20]}) == len({value // 20 for value in shard[20:]}) == 1
        assert sorted(value % 20 for value in shard[:20]) == list(range(20))
        assert [value % 20 for value in shard[:20]] != [value % 20 for value in shard[20:]]
    assert sorted(shards[0][20:] + shards[1][20:]) == list(range(40))


def test_an_interrupted_pass_goes_on_as_it_would_have(stream):
    """Also within a second round: the share of five images is through after two batches."""
    part = stream(5, 35, 20)
    whole = list(part.batches(10, shards=3, **HOW))
    assert len(whole) == 6
    for start in range(6):
        again = list(part.batches(10, shards=3, start=start, **HOW))
        for batch, before in zip(again, whole[start:], strict=True):
            assert torch.equal(batch.images, before.images)
            assert torch.equal(batch.indices, before.indices)


def test_a_smaller_last_batch_is_shared_out_too(stream):
    part = stream(15, 15)
    how = {"seed": 1, "shards": 2}
    assert [len(batch) for batch in part.batches(8, **how)] == [8, 8, 8, 6]
    assert [len(batch) for batch in part.batches(8, places=range(1, 8, 2), **how)] == [4, 4, 4, 3]
    assert sorted(seen(part.batches(8, **how))) == list(range(30))


@pytest.mark.parametrize(
    ("given", "shards"),
    [({}, 4), ({"parts": ("test",)}, 2), ({"limit": 40}, 2)],
    ids=["fewer files than shards", "split off by position", "a limit"],
)
def test_what_cannot_be_shared_out_is_read_whole_and_said_once(stream, reads, caplog, given, shards):
    part = stream(20, 20, 20, **given)
    plain = [batch.images for batch in part.batches(8, **HOW)]
    for rank in (1, 0, 0):
        places = list(range(rank, 8, shards))
        reads.clear()
        mine = list(part.batches(8, places=places, shards=shards, **HOW))
        assert sum(reads.values()) >= 8 * len(plain)
        assert all(torch.equal(batch.images, all_[places]) for batch, all_ in zip(mine, plain, strict=True))
        assert len(caplog.records) == (rank == 0)
    assert caplog.records[0].levelno == logging.WARNING
    assert "train is read whole by every process" in caplog.text


def test_nothing_is_said_where_nothing_is_read_twice(stream, caplog):
    part = stream(20, 20, 20)
    assert len(list(part.batches(8, shards=4, **HOW))) == 7  # one process does all shards
    assert seen(part.batches(8, places=[0], shards=2)) == list(range(0, 60, 8))  # in order, without a seed
    assert not caplog.records


def test_lengths_that_are_wrong_are_errors_and_no_endless_search(stream):
    with pytest.raises(DataError, match="ended after 40 images, but its length is given as 50"):
        stream(20, 20, length=50)
    with pytest.raises(DataError, match="hold no images"):
        list(stream(0, 20).batches(8, seed=1, shards=2))
