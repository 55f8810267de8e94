import base64
import io
import json
import socket
import sys
from collections import Counter

import numpy as np
import pytest
import torch
from PIL import Image
from small_images import encoded, pixels, write_classes

from binas.base.errors import DataError, FileError
from binas.data import ArrayImages, DataConfig, FileImages, StreamImages, load_data
from binas.data.decoding import UnreadableError
from binas.data.huggingface import encoded as opened

datasets = pytest.importorskip("datasets", reason="the package datasets is not installed")
parquet = pytest.importorskip("pyarrow.parquet")


def rows(count, classes=3, seed=0, channels=3):
    """Columns of a dataset whose images tell which row they are: a square of one value."""
    values = [np.full((6, 6, channels), seed * 60 + i, np.uint8) for i in range(count)]
    labels = [i % classes for i in range(count)]
    return {"image": [{"bytes": encoded(value), "path": None} for value in values], "label": labels}


def made(columns, names=("a", "b", "c"), label=None):
    features = {"image": datasets.Image(), "label": label or datasets.ClassLabel(names=list(names))}
    return datasets.Dataset.from_dict(columns, features=datasets.Features(features))


@pytest.fixture
def shards(tmp_path, monkeypatch):
    """A folder of Parquet: 60 training images in three files, 12 for testing."""
    # datasets waits 5 s after a pass over several Parquet files
    monkeypatch.setattr(datasets.config, "SLEEP_TIME_ON_THREADS_SHUTDOWN", 0, raising=False)
    whole = made(rows(60))
    for i in range(3):
        whole.select(range(20 * i, 20 * i + 20)).to_parquet(tmp_path / f"train-0000{i}-of-00003.parquet")
    made(rows(12, seed=1)).to_parquet(tmp_path / "test.parquet")
    return tmp_path


def load(path, **options):
    return load_data(DataConfig(kind="huggingface", path=path, size=6, **options))


def values(part, **options):
    return [int(value) for batch in part.batches(7, **options) for value in batch.images[:, 0, 0, 0]]


@pytest.mark.parametrize("cache", [None, False])
def test_a_folder_of_parquet(shards, cache):
    data = load(shards, cache=cache)
    assert isinstance(data.train, FileImages if cache is False else ArrayImages)
    assert data.classes == ("a", "b", "c")
    assert [len(part) for part in (data.train, data.validation, data.test)] == [48, 12, 12]
    assert sorted(values(data.train) + values(data.validation)) == list(range(60))
    assert values(data.test) == list(range(60, 72))
    assert data.validation.labels.bincount().tolist() == [4, 4, 4]
    for batch in data.train.batches(48):
        assert torch.equal(batch.labels, batch.images[:, 0, 0, 0].long() % 3)


def test_one_parquet_file_is_split_in_three(tmp_path):
    path = tmp_path / "mine.parquet"
    made(rows(30)).to_parquet(path)
    data = load(path)
    assert [len(part) for part in (data.train, data.validation, data.test)] == [18, 6, 6]
    assert data.fingerprint() != load(path, seed=1).fingerprint()


@pytest.mark.parametrize("inside", [False, True])
def test_parquet_that_unpacks_to_far_more_than_it_is_is_refused_before_it_is_read(
    tmp_path, monkeypatch, inside
):
    monkeypatch.setattr("binas.base.packed.PLAIN_BYTES", 2**20)
    monkeypatch.setattr(datasets, "load_dataset", lambda *_, **__: pytest.fail("it was read"))
    (tmp_path / "parts.parquet").mkdir()  # as some programs name a folder of parts
    path = tmp_path / "parts.parquet" / "bomb.parquet"
    zeros = {"image": [{"bytes": bytes(2**22), "path": None}] * 2, "label": [0, 1]}
    parquet.write_table(made(zeros).data.table, path, compression="zstd", use_dictionary=False)
    with pytest.raises(FileError, match=r"bomb\.parquet unpacks to .* Is it the right file"):
        load(tmp_path if inside else path)


def test_an_image_folder_and_a_saved_dataset(tmp_path):
    write_classes(tmp_path / "images" / "train", {"cat": 6, "dog": 6}, seed=1)
    write_classes(tmp_path / "images" / "test", {"cat": 2, "dog": 2}, seed=2)
    data = load(tmp_path / "images")
    assert (data.classes, len(data.test)) == (("cat", "dog"), 4)
    saved = datasets.DatasetDict(train=made(rows(30)), validation=made(rows(6, seed=1)))
    saved.save_to_disk(tmp_path / "saved")
    for streaming in (False, True):
        data = load(tmp_path / "saved", streaming=streaming)
        assert (data.classes, len(data.validation)) == (("a", "b", "c"), 6)


def test_other_columns_and_labels(tmp_path):
    columns = rows(30)
    named = {"photo": columns["image"], "kind": [["ape", "bee", "cow"][i] for i in columns["label"]]}
    datasets.Dataset.from_dict(named).to_parquet(tmp_path / "names.parquet")
    data = load(tmp_path / "names.parquet", image_column="photo", label_column="kind", channels=1)
    assert (data.classes, data.channels) == (("ape", "bee", "cow"), 1)
    plain = made(columns, label=datasets.Value("int64"))
    plain.to_parquet(tmp_path / "numbers.parquet")
    assert load(tmp_path / "numbers.parquet").classes == ("0", "1", "2")
    given = load(tmp_path / "numbers.parquet", class_names=("x", "y", "z"))
    assert given.classes == ("x", "y", "z")


def test_a_stream_has_the_same_images_without_an_index(shards):
    data = load(shards, streaming=True)
    assert isinstance(data.train, StreamImages)
    assert not data.train.indexed
    assert len(data.train) == len(values(data.train))
    assert len(data.validation) == len(values(data.validation))
    assert sorted(values(data.train) + values(data.validation)) == list(range(60))
    assert values(data.test) == list(range(60, 72))
    for batch in data.train.batches(5):
        assert torch.equal(batch.labels, batch.images[:, 0, 0, 0].long() % 3)
    assert data.fingerprint() == load(shards, streaming=True).fingerprint()
    assert data.fingerprint() != load(shards, streaming=True, limit=30).fingerprint()


def test_parts_of_a_stream_stay_apart_in_every_epoch(shards):
    data = load(shards, streaming=True, shuffle_buffer=8)
    first = Counter(values(data.train))
    for epoch in range(4):
        assert Counter(values(data.train, seed=1, epoch=epoch)) == first
    assert set(first) & set(values(data.validation, seed=1)) == set()


@pytest.mark.parametrize("named", [False, True])
def test_a_shuffled_stream_is_repeatable_and_can_be_resumed(shards, named):
    if named:  # the training split is then taken whole, and shuffled by files too
        made(rows(6, seed=2)).to_parquet(shards / "validation.parquet")
    part = load(shards, streaming=True, shuffle_buffer=16).train
    whole = [batch.images for batch in part.batches(7, seed=1, epoch=2)]
    again = list(part.batches(7, seed=1, epoch=2, start=3))
    assert torch.equal(torch.cat(whole[3:]), torch.cat([batch.images for batch in again]))
    assert again[0].indices.tolist() == list(range(21, 28))
    assert values(part, seed=1, epoch=2) != values(part, seed=1, epoch=3)
    assert values(part, seed=1, epoch=2) != sorted(values(part))
    assert all(len(batch) == 7 for batch in part.batches(7, drop_last=True))
    some = part.batches(7, seed=1, epoch=2, places=[5, 0])
    assert torch.equal(next(some).images, whole[0][[5, 0]])


def test_named_splits_of_a_stream_are_shuffled_by_file_too(shards):
    made(rows(6, seed=2)).to_parquet(shards / "validation.parquet")
    part = load(shards, streaming=True, shuffle_buffer=4).train
    starts = {values(part, seed=1, epoch=epoch)[0] // 20 for epoch in range(12)}
    assert starts == {0, 1, 2}


def test_a_stream_counts_itself_or_believes_what_is_declared(tmp_path):
    path = tmp_path / "mine.parquet"
    made(rows(30)).to_parquet(path)
    assert sum(map(len, _parts(load(path, streaming=True)))) == 30
    assert sum(map(len, _parts(load(path, streaming=True, length=20)))) == 20
    assert sum(map(len, _parts(load(path, streaming=True, limit=10)))) == 10
    with pytest.raises(DataError, match="too few to split off"):
        load(path, streaming=True, limit=1)


def _parts(data):
    return data.train, data.validation, data.test


def test_a_stream_needs_class_names(tmp_path):
    path = tmp_path / "mine.parquet"
    made(rows(30), label=datasets.Value("int64")).to_parquet(path)
    with pytest.raises(DataError, match="list them in class_names"):
        load(path, streaming=True)
    assert load(path, streaming=True, class_names=("a", "b", "c")).classes == ("a", "b", "c")
    with pytest.raises(DataError, match=r"mine\.parquet, \w+: .*out of range"):
        load(path, streaming=True, class_names=("a", "b"))


@pytest.mark.parametrize("streaming", [False, True])
def test_damage_is_reported(tmp_path, streaming):
    columns = rows(30)
    for i in (3, 4, 5):
        columns["image"][i]["bytes"] = columns["image"][i]["bytes"][:40]
    made(columns).to_parquet(tmp_path / "mine.parquet")
    expected = "cannot read image" if streaming else "3 images cannot be read: .*4 of the split 'train'"
    with pytest.raises(DataError, match=expected):
        load(tmp_path / "mine.parquet", streaming=streaming)
    whole = (tmp_path / "mine.parquet").read_bytes()
    (tmp_path / "mine.parquet").write_bytes(whole[: len(whole) // 2])
    with pytest.raises(DataError, match=r"cannot (load|read)"):
        load(tmp_path / "mine.parquet", streaming=streaming)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"image_column": "photo"}, "no column 'photo'; it has image, label"),
        ({"label_column": "kind"}, "no column 'kind'"),
        ({"image_column": "label", "label_column": "image"}, "holds .*, not images"),
        ({"train": "training"}, "no part 'training'; it has train, test"),
        ({"class_names": ("a", "b")}, "split 'train' of .*With 2 classes labels are 0 to 1"),
    ],
)
def test_wrong_settings_are_explained(shards, options, said):
    with pytest.raises(DataError, match=said):
        load(shards, **options)


def test_unlabelled_and_missing_data_are_explained(tmp_path):
    columns = rows(30)
    columns["label"] = [-1] * 30
    made(columns).to_parquet(tmp_path / "mine.parquet")
    with pytest.raises(DataError, match="30 labels are out of range"):
        load(tmp_path / "mine.parquet")
    with pytest.raises(DataError, match="cannot load the dataset"):
        load(tmp_path / "none")
    with pytest.raises(DataError, match="cannot load the dataset nobody/nothing"):
        load_data(DataConfig(kind="huggingface", name="nobody/nothing", size=6))


def test_a_stream_whose_test_split_has_no_labels_is_refused_before_training(shards):
    columns = rows(12)
    columns["label"] = [-1] * 12
    made(columns).to_parquet(shards / "test.parquet")
    with pytest.raises(DataError, match="test: 1 labels are out of range"):
        load(shards, streaming=True)


def test_splits_that_are_not_used_may_hold_anything(shards):
    datasets.Dataset.from_dict({"text": ["a", "b"]}).to_parquet(shards / "validation.parquet")
    with pytest.raises(DataError, match=r"cannot load|no column"):
        load(shards)
    saved = datasets.DatasetDict(train=made(rows(30)), extra=datasets.Dataset.from_dict({"text": ["a"]}))
    saved.save_to_disk(shards / "saved")
    assert len(load(shards / "saved").test) == 6


def test_code_that_comes_with_a_dataset_is_not_run(tmp_path):
    folder = tmp_path / "script"
    folder.mkdir()
    (folder / "script.py").write_text(f"open({str(tmp_path / 'was-run')!r}, 'w')\n")
    with pytest.raises(DataError, match="cannot load the dataset"):
        load(folder)
    assert not (tmp_path / "was-run").exists()


def test_a_missing_package_is_named(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "datasets", None)
    with pytest.raises(DataError, match=r"pip install 'binas\[huggingface\]'"):
        load(tmp_path)


def test_images_beside_the_table_are_read_and_addresses_are_not(tmp_path):
    path = tmp_path / "a.png"
    path.write_bytes(encoded(pixels(1)[0]))
    with Image.open(opened({"bytes": None, "path": str(path)})) as image:
        assert image.size == (6, 6)
    for value, said in (
        ({"bytes": None, "path": "https://example.org/a.png"}, "is an address"),
        ({"bytes": None, "path": f"zip://a.png::{tmp_path / 'none.zip'}"}, "leave streaming out"),
        ({"bytes": None, "path": str(tmp_path / "none.png")}, "No such file"),
        ({"bytes": None, "path": str(tmp_path)}, "not a regular file"),
        ({"bytes": None, "path": "a\0.png"}, "null byte"),
        ({"bytes": None, "path": None}, "holds no image"),
        (None, "holds no image"),
    ):
        with pytest.raises(UnreadableError, match=said):
            opened(value)


class TestHostileRows:
    """A row names where its image is: only files and the hub are opened, whatever it says."""

    @pytest.fixture
    def server(self):
        with socket.create_server(("127.0.0.1", 0)) as listening:
            listening.setblocking(False)
            yield listening

    @pytest.fixture
    def paths(self, tmp_path, server):
        """Paths that fsspec follows to an image, or to a server of somebody else."""
        import fsspec

        image = encoded(pixels(1)[0])
        (tmp_path / "a.png").write_bytes(image)
        text = "base64:" + base64.b64encode(image).decode()
        (tmp_path / "references.json").write_text(json.dumps({"version": 1, "refs": {"x": text}}))
        with fsspec.open("memory://hidden.png", "wb") as file:
            file.write(image)
        host = f"127.0.0.1:{server.getsockname()[1]}"
        return [
            f"reference://x::{tmp_path / 'references.json'}",
            f"simplecache::{tmp_path / 'a.png'}",
            f"ftp://{host}/x::hf://datasets/a/b/c.png",
            f"hf://datasets/a/b/c.png::http://{host}/x",
            f"http://{host}/a.png",
            f"file://{tmp_path / 'a.png'}",
            f"local://{tmp_path / 'a.png'}",
            "memory://hidden.png",
        ]

    @pytest.mark.parametrize("streaming", [False, True])
    def test_nothing_is_opened_and_nobody_is_called(self, tmp_path, monkeypatch, server, paths, streaming):
        import fsspec
        import pyarrow
        from pyarrow import parquet

        opening, asked = fsspec.open, []

        def recording(url, *rest, **more):
            asked.append(url)
            return opening(url, *rest, **more)

        monkeypatch.setattr(fsspec, "open", recording)
        for number, path in enumerate(paths):
            columns = {"image": [{"bytes": None, "path": path}] * 30, "label": ["a", "b", "c"] * 10}
            table = tmp_path / f"{number}.parquet"
            parquet.write_table(pyarrow.table(columns), table)  # datasets would put the bytes into it
            with pytest.raises(DataError, match=r"cannot (be )?read.*(is an address|leave streaming out)"):
                load(table, streaming=streaming, class_names=("a", "b", "c"))
        assert not set(asked) & set(paths)
        with pytest.raises(BlockingIOError):  # nobody has connected
            server.accept()

    def test_the_hub_is_read(self, monkeypatch):
        import fsspec

        place = "hf://datasets/somebody/photos/a.png"
        monkeypatch.setattr(fsspec, "open", lambda url, mode: io.BytesIO(url.encode()))
        assert opened({"bytes": None, "path": place}).read() == place.encode()


@pytest.mark.parametrize("cache", [True, False])
def test_rows_that_are_in_two_splits_are_found(tmp_path, cache):
    made(rows(30)).to_parquet(tmp_path / "train.parquet")
    made(rows(9)).to_parquet(tmp_path / "test.parquet")
    with pytest.raises(DataError, match="9 test images are"):
        load(tmp_path, cache=cache)
