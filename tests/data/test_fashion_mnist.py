import gzip
import lzma
import os
import runpy
import shutil
import struct
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given, strategies as st
from small_images import pixels

from binas import load_space
from binas.base.errors import DataError
from binas.data import DataConfig, embedded, fashion_mnist, idx, load_data
from binas.data.fashion import DEBIAN, EMBEDDED, turn
from binas.data.idx import idx_bytes, read_idx
from binas.data.images import ArrayImages

TOOL = Path(__file__).parents[2] / "tools" / "make_embedded_data.py"


@pytest.fixture(scope="module")
def sample():
    return embedded()


def write_files(folder, train=40, test=20, suffix=".gz", side=28):
    """The four files of a small Fashion-MNIST."""
    pack = gzip.compress if suffix else bytes
    for part, count, seed in (("train", train, 1), ("t10k", test, 2)):
        images = pixels(count, side, side, 1, seed)[..., 0]
        labels = (np.arange(count) % 10).astype(np.uint8)
        (folder / f"{part}-images-idx3-ubyte{suffix}").write_bytes(pack(idx_bytes(images)))
        (folder / f"{part}-labels-idx1-ubyte{suffix}").write_bytes(pack(idx_bytes(labels)))


def test_the_sample_has_16000_and_10000_images_with_equal_classes(sample):
    parts = (sample.train, sample.validation, sample.test)
    assert [len(part) for part in parts] == [12800, 3200, 10000]
    for part in parts:
        assert part.labels.bincount().tolist() == [len(part) // 10] * 10
    sample.check(load_space("small-28"))
    assert sample.mean[0] == pytest.approx(0.286, abs=0.002)  # 0.2860 and 0.3530 on all 60,000 images
    assert sample.std[0] == pytest.approx(0.353, abs=0.002)


def test_no_image_of_the_sample_is_in_two_parts(sample):
    parts = (sample.train, sample.validation, sample.test)
    seen = [{image.numpy().tobytes() for image in part.images} for part in parts]
    assert not seen[0] & seen[1] | seen[0] & seen[2] | seen[1] & seen[2]


def test_turned_images_are_the_same_ones_and_their_turn_is_part_of_the_label(sample):
    turned = load_data(DataConfig(kind="embedded", turned=True))
    assert len(turned.classes) == 30
    assert turned.classes[:2] == ("t-shirt, upright", "t-shirt, lying")
    assert len(turned.train) + len(turned.validation) == 16000
    assert turned.test.labels.bincount().tolist() == [334, 333, 333] * 10
    plain = {
        image.numpy().tobytes(): int(label)
        for image, label in zip(sample.test.images, sample.test.labels, strict=True)
    }
    for image, label in zip(turned.test.images[:300], turned.test.labels[:300], strict=True):
        garment, quarter = divmod(int(label), 3)
        assert plain[image.rot90(-quarter, (1, 2)).contiguous().numpy().tobytes()] == garment
    assert turned.fingerprint() != sample.fingerprint()
    again = load_data(DataConfig(kind="embedded", turned=True))
    assert turned.fingerprint() == again.fingerprint()


def test_a_square_is_turned_counter_clockwise():
    square = torch.tensor([[[[1, 2], [3, 4]]]], dtype=torch.uint8)
    found = turn(ArrayImages(square.repeat(3, 1, 1, 1), torch.tensor([0, 0, 0]), ("a",)))
    pictures = {
        int(label): image[0].tolist() for image, label in zip(found.images, found.labels, strict=True)
    }
    expected = {0: [[1, 2], [3, 4]], 1: [[2, 4], [1, 3]], 2: [[4, 3], [2, 1]]}
    assert pictures == expected


def test_the_sample_is_small_and_licensed():
    assert sum(file.stat().st_size for file in EMBEDDED.iterdir()) < 10.5e6
    assert "Copyright (c) 2017 Zalando SE" in (EMBEDDED / "LICENSE").read_text()


def test_a_damaged_sample_is_noticed(tmp_path):
    folder = Path(shutil.copytree(EMBEDDED, tmp_path / "embedded"))
    labels = folder / "t10k-labels-idx1-ubyte.xz"
    labels.write_bytes(lzma.compress(idx_bytes(np.zeros(10_000, np.uint8))))
    with pytest.raises(DataError, match="Install binas again"):
        embedded(folder=folder)


@pytest.mark.slow
def test_the_sample_is_made_again_byte_for_byte(tmp_path):
    source = Path(os.environ.get("BINAS_FASHION_MNIST", DEBIAN))
    if not source.is_dir():
        pytest.skip("no Fashion-MNIST: BINAS_FASHION_MNIST is not set, Debian's package is not installed")
    command = [sys.executable, str(TOOL), "--source", str(source), "--out", str(tmp_path)]
    subprocess.run(command, check=True)
    names = {file.name for file in EMBEDDED.iterdir()}
    assert {file.name for file in tmp_path.iterdir()} == names
    for name in names:
        made, kept = (folder / name for folder in (tmp_path, EMBEDDED))
        if made.suffix == ".xz":  # another version of xz may pack the same bytes differently
            assert lzma.decompress(made.read_bytes()) == lzma.decompress(kept.read_bytes())
        else:
            assert made.read_bytes() == kept.read_bytes()


def test_the_tool_draws_evenly_and_writes_the_same_twice(tmp_path, monkeypatch):
    source, out = tmp_path / "source", tmp_path / "out"
    source.mkdir()
    write_files(source, train=20_000, test=10_000, side=4)
    contents = []
    monkeypatch.setattr(sys, "argv", [str(TOOL), "--source", str(source), "--out", str(out)])
    for _ in range(2):
        runpy.run_path(str(TOOL), run_name="__main__")
        contents.append({file.name: file.read_bytes() for file in out.iterdir()})
    assert contents[0] == contents[1]
    assert len(embedded(folder=out).test) == 10_000


@pytest.mark.parametrize("suffix", ["", ".gz"])
def test_the_full_set_is_read_from_its_four_files(tmp_path, suffix):
    write_files(tmp_path, suffix=suffix)
    data = load_data(DataConfig(kind="fashion-mnist", path=tmp_path))
    assert [len(part) for part in (data.train, data.validation, data.test)] == [30, 10, 20]
    assert data.test.images[:, 0].numpy().tolist() == pixels(20, 28, 28, 1, 2)[..., 0].tolist()
    assert data.classes[9] == "ankle boot"


def test_a_missing_file_is_named(tmp_path):
    write_files(tmp_path)
    (tmp_path / "t10k-labels-idx1-ubyte.gz").unlink()
    with pytest.raises(DataError, match=r"no t10k-labels-idx1-ubyte or .*apt install dataset-fashion-mnist"):
        fashion_mnist(tmp_path)


def test_a_label_out_of_range_and_unequal_counts_are_named(tmp_path):
    write_files(tmp_path)
    labels = tmp_path / "train-labels-idx1-ubyte.gz"
    labels.write_bytes(gzip.compress(idx_bytes(np.full(40, 10, np.uint8))))
    with pytest.raises(DataError, match="40 labels are out of range"):
        fashion_mnist(tmp_path)
    labels.write_bytes(gzip.compress(idx_bytes(np.zeros(39, np.uint8))))
    with pytest.raises(DataError, match="40 images came with labels"):
        fashion_mnist(tmp_path)


def idx_header(*shape, kind=8):
    return struct.pack(f">4B{len(shape)}I", 0, 0, kind, len(shape), *shape)


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"", "starts with nothing"),
        (b"\x00\x00\x08", "does not start like an idx file"),
        (idx_header(3, kind=13) + bytes(3), "does not start like an idx file"),
        (idx_header(1, 3) + bytes(3), "does not start like an idx file"),
        (idx_header(3) + bytes(2), "announces 3 bytes in its header and holds only 2"),
        (idx_header(3) + bytes(4), "holds more"),
        (idx_header(2**32 - 1), "at most"),
        (idx_header(0), "at least 1"),
    ],
)
@pytest.mark.parametrize("packed", [False, True])
def test_wrong_idx_files_are_refused(tmp_path, content, said, packed):
    path = tmp_path / ("labels.gz" if packed else "labels")
    path.write_bytes(gzip.compress(content) if packed else content)
    with pytest.raises(DataError, match=said):
        read_idx(path, 1)


def test_a_gzip_bomb_is_not_unpacked(tmp_path, monkeypatch):
    path = tmp_path / "labels.gz"
    path.write_bytes(gzip.compress(idx_header(10) + bytes(50_000_000)))
    unpacked = []
    read = gzip.GzipFile.read
    monkeypatch.setattr(
        gzip.GzipFile, "read", lambda file, size=-1: unpacked.append(read(file, size)) or unpacked[-1]
    )
    with pytest.raises(DataError, match="holds more"):
        read_idx(path, 1)
    assert sum(map(len, unpacked)) < 100
    path.write_bytes(gzip.compress(idx_header(idx.MAX_BYTES + 1)))
    with pytest.raises(DataError, match=f"at most {idx.MAX_BYTES}"):
        read_idx(path, 1)


@given(cut=st.integers(0, 60), suffix=st.sampled_from([".gz", ".xz"]))
def test_a_truncated_packed_file_is_refused(cut, suffix, tmp_path_factory):
    content = idx_bytes(np.arange(100, dtype=np.uint8))
    packed = gzip.compress(content) if suffix == ".gz" else lzma.compress(content)
    path = tmp_path_factory.mktemp("cut") / f"labels{suffix}"
    path.write_bytes(packed[:cut])
    with pytest.raises(DataError):
        read_idx(path, 1)


@given(shape=st.lists(st.integers(1, 5), min_size=1, max_size=3))
def test_idx_files_round_trip(shape, tmp_path_factory):
    array = np.arange(np.prod(shape), dtype=np.uint8).reshape(shape)
    path = tmp_path_factory.mktemp("idx") / "array"
    path.write_bytes(idx_bytes(array))
    assert np.array_equal(read_idx(path, len(shape)), array)
