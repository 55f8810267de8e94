import io
import pickle
import zipfile
from dataclasses import replace

import numpy as np
import pytest
import torch
from hypothesis import given, strategies as st
from small_images import pixels

from binas import load_space
from binas.base import packed
from binas.base.errors import DataError, FileError
from binas.data import DataConfig, Division, ImageData, from_arrays, load_data
from binas.space import NetworkRules

LABELS = np.arange(30) % 3


def rows_of(part):
    return {image.numpy().tobytes() for image in part.images}


@pytest.mark.parametrize("layout", ["bytes", "channels first", "whole numbers", "floating point"])
def test_layouts_and_number_types_mean_the_same_images(layout):
    images = pixels(30)
    given = {
        "bytes": images,
        "channels first": images.transpose(0, 3, 1, 2),
        "whole numbers": images.astype(np.int64),
        "floating point": images / 255,
    }[layout]
    assert from_arrays(given, LABELS).fingerprint() == from_arrays(images, LABELS).fingerprint()


def test_grey_images_may_leave_out_the_channel():
    images = pixels(30, channels=1)
    data = from_arrays(images[..., 0], LABELS)
    assert (data.channels, data.size) == (1, (6, 6))
    assert data.fingerprint() == from_arrays(images, LABELS).fingerprint()


@given(counts=st.lists(st.integers(3, 12), min_size=2, max_size=4), own_test=st.booleans())
def test_the_three_parts_share_no_image(counts, own_test):
    labels = np.repeat(np.arange(len(counts)), counts)
    images = pixels(2 * len(labels))
    own = {"test_images": images[len(labels) :], "test_labels": labels} if own_test else {}
    data = from_arrays(images[: len(labels)], labels, **own)
    parts = [rows_of(part) for part in (data.train, data.validation, data.test)]
    assert sum(map(len, parts)) == len(set.union(*parts)) == len(labels) * (1 + own_test)
    for part in (data.train, data.validation, data.test):
        assert set(part.labels.tolist()) == set(range(len(counts)))


def test_shares_and_limit():
    labels = np.arange(100) % 2
    data = from_arrays(pixels(100), labels, how=Division(validation_share=0.25, test_share=0.2))
    assert [len(part) for part in (data.train, data.validation, data.test)] == [60, 20, 20]
    data = from_arrays(pixels(100), labels, how=Division(limit=10))
    assert [len(part) for part in (data.train, data.validation, data.test)] == [8, 2, 10]


def test_statistics_are_those_of_the_training_images():
    images = pixels(30)
    images[..., 2] = 7
    data = from_arrays(images, LABELS)
    train = data.train.images.double() / 255
    assert data.mean == pytest.approx(train.mean((0, 2, 3)).tolist())
    assert data.std[:2] == pytest.approx(train.std((0, 2, 3), correction=0).tolist()[:2])
    assert data.std[2] == 1  # constant: nothing to divide by


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"images": pixels(30)[:, :, :, :2]}, "1 or 3 channels"),
        ({"images": pixels(30, 3, 6, 3)}, "one place only"),
        ({"images": np.zeros(30)}, "give (n, h, w)"),
        ({"images": pixels(30) / 100}, "floating point 0..1"),
        ({"images": np.where(pixels(30) > 9, np.nan, 0.5)}, "without NaN"),
        ({"images": pixels(30).astype(np.int16) - 1}, "whole numbers 0..255"),
        ({"images": pixels(30).astype(str)}, "give numbers"),
        ({"images": pixels(29)}, "29 images came with labels"),
        ({"images": pixels(0), "labels": np.zeros(0, int)}, "counting classes from 0"),
        ({"labels": LABELS.astype(float)}, "counting classes from 0"),
        ({"labels": LABELS[:, None]}, "counting classes from 0"),
        ({"labels": LABELS - 1}, "position 0: -1"),
        ({"labels": LABELS + 10**12}, "counting classes from 0"),
        ({"labels": LABELS * 2}, "'1' has 0; '3' has 0"),
        ({"labels": np.repeat([0, 1], [28, 2])}, "at least 3 images, but: '1' has 2"),
        ({"classes": ["a", "b"]}, "With 2 classes labels are 0 to 1"),
        ({"classes": 3}, "list of names"),
        ({"test_images": pixels(3)}, "belong together"),
        ({"test_images": pixels(3, 5), "test_labels": [0, 1, 2]}, "same classes, channels and size"),
    ],
)
def test_wrong_arrays_are_refused(change, said):
    given = {"images": pixels(30), "labels": LABELS, **change}
    with pytest.raises(DataError) as caught:
        from_arrays(**given)
    assert said in str(caught.value)


def test_a_file_of_arrays(tmp_path):
    path = tmp_path / "mine.npz"
    np.savez_compressed(path, images=pixels(30), labels=LABELS, classes=["x", "y", "z"], other=[1])
    data = load_data(DataConfig(kind="arrays", path=path, seed=3))
    assert (data.name, data.classes) == ("mine.npz", ("x", "y", "z"))
    expected = from_arrays(pixels(30), LABELS, classes=["x", "y", "z"], how=Division(seed=3))
    assert data.fingerprint() == expected.fingerprint()


class _Harmful:
    def __reduce__(self):
        return (pytest.fail, ("a pickle was run",))


def test_hostile_files_of_arrays_are_refused(tmp_path, monkeypatch):
    path = tmp_path / "mine.npz"
    objects = np.array([_Harmful()], dtype=object)
    np.savez(path, images=objects, labels=LABELS)
    with pytest.raises(FileError, match="allow_pickle=False"):
        load_data(DataConfig(kind="arrays", path=path))
    path.write_bytes(pickle.dumps({"images": 1}))
    with pytest.raises(FileError, match="not a zip file"):
        load_data(DataConfig(kind="arrays", path=path))
    np.savez(path, pictures=pixels(3), labels=LABELS)
    with pytest.raises(DataError, match="no array images"):
        load_data(DataConfig(kind="arrays", path=path))
    np.savez_compressed(path, images=pixels(30), labels=LABELS)
    monkeypatch.setattr(packed, "MAX_BYTES", 1000)
    with pytest.raises(FileError, match="at most 1000 are read"):
        load_data(DataConfig(kind="arrays", path=path))
    with pytest.raises(FileError, match="No such file"):
        load_data(DataConfig(kind="arrays", path=tmp_path / "none.npz"))


def test_a_header_that_announces_too_much_is_refused(tmp_path):
    header = io.BytesIO()
    shape = {"descr": "|u1", "fortran_order": False, "shape": (2**50, 28, 28)}
    np.lib.format.write_array_header_1_0(header, shape)
    path = tmp_path / "mine.npz"
    with zipfile.ZipFile(path, "w") as file:
        file.writestr("images.npy", header.getvalue() + b"few bytes")
    with pytest.raises(FileError, match=r"cannot read .*mine\.npz"):
        load_data(DataConfig(kind="arrays", path=path))


@given(cut=st.integers(0, 1500))
def test_a_truncated_file_is_refused(cut, tmp_path_factory):
    whole = io.BytesIO()
    np.savez_compressed(whole, images=pixels(30), labels=LABELS)
    path = tmp_path_factory.mktemp("cut") / "mine.npz"
    path.write_bytes(whole.getvalue()[:cut])
    with pytest.raises(FileError, match="cannot read"):
        load_data(DataConfig(kind="arrays", path=path))


def test_data_is_checked_against_the_space():
    space = load_space("small-28")
    data = from_arrays(pixels(40, 28, 28, 1), np.arange(40) % 10)
    data.check(space)
    with pytest.raises(DataError) as caught:
        from_arrays(pixels(40), np.arange(40) % 4).check(space)
    for part in (
        "takes 1 channels, the images have 3",
        "28 x 28 pixels",
        "has 10 classes, the images have 4",
    ):
        assert part in str(caught.value)


def test_parts_must_agree():
    data = from_arrays(pixels(30), LABELS)
    other = from_arrays(pixels(30), LABELS, classes=["x", "y", "z"])
    with pytest.raises(DataError, match="same classes"):
        ImageData("mixed", data.train, other.validation, data.test, data.mean, data.std)
    assert torch.equal(data.train.labels, other.train.labels)
    assert data.fingerprint() != other.fingerprint()


def test_images_are_normalised_as_the_space_declares():
    space = load_space("small-28")
    declaring = replace(space, rules=NetworkRules(mean=(0.25,), std=(0.5,)))
    data = from_arrays(pixels(40, 28, 28, 1), np.arange(40) % 10)
    assert data.for_space(space) == data
    own = data.for_space(declaring)
    assert (own.mean, own.std) == ((0.25,), (0.5,))
    assert own.fingerprint() == data.fingerprint()
    with pytest.raises(DataError, match="declares another normalisation"):
        data.check(declaring)


def test_a_header_that_is_no_python_is_told(tmp_path):
    """NumPy reads the header of an array as Python writes it, and stumbles over what is none in its own ways."""
    buffer = io.BytesIO()
    np.save(buffer, np.zeros(3))
    data = buffer.getvalue().replace(b"}", b"\0")
    path = tmp_path / "mine.npz"
    with zipfile.ZipFile(path, "w") as packed:
        packed.writestr("images.npy", data)
    with pytest.raises(FileError, match=r"cannot read .*mine\.npz"):
        load_data(DataConfig(kind="arrays", path=path))


@pytest.mark.parametrize(
    ("classes", "says"),
    [
        (["x"], "arrays has a single class, 'x'"),
        (["x", "y", "x"], "two classes named 'x'"),
        (["x", "y\x1b[31m", "z"], "not text"),
        (["x", "y\nz", "z"], "not text"),
    ],
)
def test_classes_that_cannot_be_told_apart_or_shown_are_refused(classes, says):
    with pytest.raises(DataError, match=says):
        from_arrays(pixels(30), np.arange(30) % len(classes), classes=classes)


def test_labels_of_a_single_class_are_refused():
    with pytest.raises(DataError, match="a single class, '0'"):
        from_arrays(pixels(30), np.zeros(30, int))
