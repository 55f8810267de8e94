import numpy as np
import pytest
import torch
from hypothesis import given, strategies as st

from binas.base.errors import DataError
from binas.data import ArrayImages, FileImages, Images, StreamImages


def made(count=10, classes=("a", "b")):
    images = torch.arange(count * 4, dtype=torch.uint8).view(count, 1, 2, 2)
    return ArrayImages(images, torch.arange(count) % len(classes), classes)


def joined(images, **options):
    return torch.cat([batch.indices for batch in images.batches(**options)])


def test_in_order_without_a_seed():
    batches = list(made(10).batches(4))
    assert [len(batch) for batch in batches] == [4, 4, 2]
    assert torch.equal(torch.cat([batch.images for batch in batches]), made(10).images)
    assert torch.equal(torch.cat([batch.labels for batch in batches]), made(10).labels)


def test_batches_hold_the_images_their_indices_name():
    images = made(10)
    for batch in images.batches(3, seed=1, epoch=2):
        assert torch.equal(batch.images, images.images[batch.indices])
        assert torch.equal(batch.labels, images.labels[batch.indices])
        assert (batch.images.dtype, batch.labels.dtype, batch.indices.dtype) == (
            torch.uint8,
            torch.int64,
            torch.int64,
        )


@given(
    count=st.integers(1, 40),
    size=st.integers(1, 12),
    start=st.integers(0, 5),
    seed=st.none() | st.integers(0, 2**40),
    epoch=st.integers(0, 3),
    drop_last=st.booleans(),
)
def test_a_pass_sees_every_image_once_and_can_be_resumed(count, size, start, seed, epoch, drop_last):
    images = made(count)
    options = {"size": size, "seed": seed, "epoch": epoch, "drop_last": drop_last}
    whole = [batch.indices.tolist() for batch in images.batches(**options)]
    flat = [index for batch in whole for index in batch]
    assert len(flat) == len(set(flat)) == (count // size * size if drop_last else count)
    rest = [batch.indices.tolist() for batch in images.batches(**options, start=start)]
    assert rest == whole[start:]
    places = [3, 0, 7]
    some = [batch.indices.tolist() for batch in images.batches(**options, places=places)]
    assert some == [[batch[place] for place in places if place < len(batch)] for batch in whole]


def test_the_order_depends_on_seed_and_epoch_only():
    images = made(200)
    first = joined(images, size=7, seed=1, epoch=0)
    torch.manual_seed(3)
    assert torch.equal(first, joined(images, size=50, seed=1, epoch=0))
    assert not torch.equal(first, joined(images, size=7, seed=1, epoch=1))
    assert not torch.equal(first, joined(images, size=7, seed=2, epoch=0))


def test_take_and_fingerprint():
    images = made(10)
    taken = images.take([3, 1])
    assert torch.equal(taken.images, images.images[[3, 1]])
    assert torch.equal(taken.labels, images.labels[[3, 1]])
    assert taken.fingerprint == images.take(np.array([3, 1])).fingerprint
    others = [
        images.take([1, 3]),
        ArrayImages(taken.images, taken.labels, ("a", "c")),
        ArrayImages(taken.images, 1 - taken.labels, taken.classes),
        ArrayImages(taken.images ^ 1, taken.labels, taken.classes),
        ArrayImages(taken.images.reshape(2, 1, 4, 1), taken.labels, taken.classes),
    ]
    assert len({other.fingerprint for other in [taken, *others]}) == len(others) + 1


def test_all_kinds_keep_to_the_interface():
    needed = {name for name in vars(Images) if not name.startswith("_")}
    assert needed == {"classes", "channels", "size", "indexed", "fingerprint", "batches", "crops"}
    assert isinstance(made(), Images)
    for kind in (FileImages, StreamImages):
        assert callable(kind.batches)
        assert callable(kind.__len__)
    assert (ArrayImages.indexed, FileImages.indexed, StreamImages.indexed) == (True, True, False)


@pytest.mark.parametrize(
    ("images", "labels", "said"),
    [
        (torch.zeros(2, 1, 2, 2), torch.tensor([0, 1]), "float32"),
        (torch.zeros(2, 2, 2, 2, dtype=torch.uint8), torch.tensor([0, 1]), "1 or 3 channels"),
        (torch.zeros(2, 2, 2, dtype=torch.uint8), torch.tensor([0, 1]), "(2, 2, 2)"),
        (torch.zeros(0, 1, 2, 2, dtype=torch.uint8), torch.tensor([], dtype=torch.int64), "no images"),
        (torch.zeros(2, 1, 0, 2, dtype=torch.uint8), torch.tensor([0, 1]), "no pixels"),
        (torch.zeros(2, 1, 2, 2, dtype=torch.uint8), torch.tensor([0, 2]), "position 1: 2"),
        (torch.zeros(2, 1, 2, 2, dtype=torch.uint8), torch.tensor([-1, 0]), "position 0: -1"),
        (torch.zeros(2, 1, 2, 2, dtype=torch.uint8), torch.tensor([0, 1, 0]), "one each"),
        (torch.zeros(2, 1, 2, 2, dtype=torch.uint8), torch.tensor([0.0, 1.0]), "whole numbers"),
    ],
)
def test_wrong_images_and_labels_are_refused(images, labels, said):
    with pytest.raises(DataError, match=said.replace("(", r"\(").replace(")", r"\)")):
        ArrayImages(images, labels, ("a", "b"))


@pytest.mark.parametrize(("size", "start"), [(0, 0), (-1, 0), (4, -1)])
def test_impossible_batches_are_refused(size, start):
    with pytest.raises(DataError, match="not possible"):
        list(made().batches(size, start=start))
