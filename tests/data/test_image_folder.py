import io
import struct
import threading
import zlib

import numpy as np
import pytest
import torch
from PIL import Image
from small_images import encoded, pixels, write_classes

from binas.base.errors import DataError
from binas.data import (
    ArrayImages,
    Augmentation,
    AugmentConfig,
    DataConfig,
    FileImages,
    decoding,
    load_data,
    normalise,
)
from binas.data.config import Format, Names
from binas.data.decoding import UnreadableError, decode
from binas.data.file_images import AHEAD, work_ahead
from binas.data.folder import image_folder


def load(folder, **options):
    return load_data(DataConfig(kind="folder", path=folder, size=6, **options))


def contents(part):
    return {batch.images[0].numpy().tobytes() for batch in part.batches(1)}


def assert_apart(data):
    parts = [contents(part) for part in (data.train, data.validation, data.test)]
    assert sum(map(len, parts)) == len(set.union(*parts))


@pytest.mark.parametrize("cache", [None, True, False])
def test_one_folder_of_classes_is_split_in_three(tmp_path, cache):
    write_classes(tmp_path, {"cat": 20, "dog": 10})
    (tmp_path / "dog" / "notes.txt").write_text("not an image")
    (tmp_path / ".hidden").mkdir()
    data = load(tmp_path, cache=cache)
    assert data.classes == ("cat", "dog")
    assert [len(part) for part in (data.train, data.validation, data.test)] == [19, 5, 6]
    assert isinstance(data.train, FileImages if cache is False else ArrayImages)
    assert_apart(data)


def test_parts_in_folders_are_kept(tmp_path):
    write_classes(tmp_path / "train", {"cat": 4, "dog": 4}, seed=1)
    write_classes(tmp_path / "val", {"cat": 2, "dog": 3}, seed=2)
    write_classes(tmp_path / "test", {"dog": 2}, seed=3)  # a class may be missing where nothing is learnt
    data = load(tmp_path)
    assert [len(part) for part in (data.train, data.validation, data.test)] == [8, 5, 2]
    assert data.test.labels.tolist() == [1, 1]
    assert_apart(data)


def test_the_imagenet_way_val_for_testing_and_validation_split_off(tmp_path):
    write_classes(tmp_path / "train", {"cat": 10, "dog": 10}, seed=1)
    write_classes(tmp_path / "val", {"cat": 2, "dog": 3}, seed=2)
    data = load(tmp_path, test="val")
    assert [len(part) for part in (data.train, data.validation, data.test)] == [16, 4, 5]
    assert_apart(data)


def test_a_class_may_be_called_train(tmp_path):
    write_classes(tmp_path, {"bus": 5, "train": 5})
    assert load(tmp_path).classes == ("bus", "train")


@pytest.mark.parametrize("channels", [1, 3])
def test_cached_and_decoded_on_demand_are_the_same(tmp_path, channels):
    write_classes(tmp_path, {"cat": 12, "dog": 9})
    cached, lazy = (load(tmp_path, cache=cache, channels=channels) for cache in (True, False))
    options = {"seed": 3, "epoch": 1, "start": 1}
    for one, other in zip(cached.train.batches(4, **options), lazy.train.batches(4, **options), strict=True):
        assert torch.equal(one.images, other.images)
        assert torch.equal(one.labels, other.labels)
        assert torch.equal(one.indices, other.indices)
    assert lazy.mean == pytest.approx(cached.mean)
    assert lazy.channels == channels


def test_small_sets_are_cached_and_large_ones_are_not(tmp_path, monkeypatch):
    write_classes(tmp_path, {"cat": 6, "dog": 6})
    whole = 12 * 3 * 6 * 6
    monkeypatch.setattr("binas.data.file_images.CACHED_BYTES", whole)
    assert isinstance(load(tmp_path).train, ArrayImages)
    monkeypatch.setattr("binas.data.file_images.CACHED_BYTES", whole - 1)
    assert isinstance(load(tmp_path).train, FileImages)


def test_the_fingerprint_is_of_names_sizes_and_labels(tmp_path):
    prints = []
    for place, classes in (
        ("a", {"cat": 6, "dog": 6}),
        ("b", {"cat": 6, "dog": 6}),
        ("c", {"cat": 6, "dot": 6}),
    ):
        write_classes(tmp_path / place, classes)
        prints.append(load(tmp_path / place, cache=False).fingerprint())
    assert prints[0] == prints[1] != prints[2]
    (tmp_path / "a" / "cat" / "000.png").write_bytes(encoded(pixels(1, 8, 8, seed=9)[0]))
    assert load(tmp_path / "a", cache=False).fingerprint() != prints[0]


@pytest.mark.parametrize("cache", [True, False])
def test_all_unreadable_files_are_listed_before_training(tmp_path, cache):
    write_classes(tmp_path, {"cat": 10, "dog": 10})
    photo = encoded(pixels(1, 64, 64)[0], "JPEG")
    bad = {
        "cat/cut.png": encoded(pixels(1)[0])[:-30],
        "cat/empty.png": b"",
        "dog/cut.jpg": photo[: len(photo) // 2],
        "dog/script.png": b"%!PS-Adobe-3.0 EPSF-3.0\n%%BoundingBox: 0 0 9 9\n",
        "dog/text.gif": b"no picture at all",
    }
    for name, content in bad.items():
        (tmp_path / name).write_bytes(content)
    with pytest.raises(DataError, match="5 images cannot be read") as caught:
        load(tmp_path, cache=cache)
    assert all(name in str(caught.value) for name in bad)


def test_headers_only_is_quicker_and_finds_less(tmp_path):
    write_classes(tmp_path, {"cat": 10, "dog": 10})
    (tmp_path / "cat" / "000.png").write_bytes(encoded(pixels(1, 40, 40)[0])[:-2000])
    data = load(tmp_path, cache=False, check_images=False, validation_share=0.9)
    part = next(part for part in (data.train, data.validation, data.test) if _holds(part, "000.png"))
    with pytest.raises(DataError, match=r"cannot read the image .*cat.000\.png"):
        list(part.batches(4))
    (tmp_path / "cat" / "000.png").write_bytes(b"x")
    with pytest.raises(DataError, match="1 images cannot be read"):
        load(tmp_path, cache=False, check_images=False)


def _holds(part, name):
    return any(part.source.name(row).endswith(f"cat/{name}") for row in part.rows.tolist())


def huge_png(side):
    """The header of an image of side x side pixels, without the pixels."""

    def chunk(kind, data):
        body = kind + data
        return struct.pack(">I", len(data)) + body + struct.pack(">I", zlib.crc32(body))

    header = chunk(b"IHDR", struct.pack(">IIBBBBB", side, side, 8, 2, 0, 0, 0))
    return b"\x89PNG\r\n\x1a\n" + header + chunk(b"IDAT", zlib.compress(b"\0" * 9)) + chunk(b"IEND", b"")


@pytest.mark.filterwarnings("ignore::PIL.Image.DecompressionBombWarning")
@pytest.mark.parametrize("side", [8200, 12000, 100_000])
@pytest.mark.parametrize("look", [lambda file: decode(file, (4, 4), 3), decoding.measure])
def test_decompression_bombs_are_not_decoded(side, look):
    with pytest.raises(UnreadableError, match="pixels"):
        look(io.BytesIO(huge_png(side)))


def test_more_than_eight_bits_are_refused():
    with pytest.raises(UnreadableError, match="more than 8 bits"):
        decode(io.BytesIO(encoded(np.full((4, 4), 1000, np.uint16))), (4, 4), 1)


def test_decoding_resizes_and_cuts_out_the_centre():
    image = np.zeros((10, 30, 3), np.uint8)
    image[:, 10:20] = (200, 100, 50)
    for size in ((10, 10), (5, 5), (20, 20)):
        found = decode(io.BytesIO(encoded(image)), size, 3)
        assert found.shape == (3, *size)
        inside = found[:, :, 2:-2].flatten(1)
        assert torch.equal(inside.amin(1), torch.tensor([200, 100, 50], dtype=torch.uint8))
        assert torch.equal(inside.amax(1), torch.tensor([200, 100, 50], dtype=torch.uint8))
    tall = decode(io.BytesIO(encoded(pixels(1, 12, 8)[0])), (3, 2), 1)
    assert tall.shape == (1, 3, 2)


@pytest.mark.parametrize("kind", ["PNG", "BMP", "GIF", "TIFF", "PPM", "WEBP", "JPEG"])
def test_all_formats_are_decoded(kind):
    image = np.full((8, 8, 3), 90, np.uint8)
    found = decode(io.BytesIO(encoded(image, kind)), (8, 8), 3)
    assert (found.int() - 90).abs().max() <= 2


def test_transparent_and_palette_images_are_decoded():
    palette = Image.fromarray(pixels(1, 8, 8)[0]).convert("P")
    palette.info["transparency"] = bytes(range(256))
    for image in (palette, palette.convert("RGBA"), palette.convert("LA")):
        buffer = io.BytesIO()
        image.save(buffer, "PNG")
        assert decode(io.BytesIO(buffer.getvalue()), (4, 4), 3).shape == (3, 4, 4)


def test_photos_are_turned_upright():
    image = Image.fromarray(np.repeat([[0, 255]], 8, 0).repeat(4, 1).astype(np.uint8))
    exif = image.getexif()
    exif[0x0112] = 6  # turn a quarter clockwise
    buffer = io.BytesIO()
    image.save(buffer, "JPEG", exif=exif)
    found = decode(io.BytesIO(buffer.getvalue()), (8, 8), 1)[0]
    assert found[0].max() < 40
    assert found[-1].min() > 215


@pytest.mark.parametrize(
    ("make", "said", "options"),
    [
        (lambda path: None, "not a folder with one subfolder", {}),
        (lambda path: (path / "train").mkdir(), "has no subfolders", {}),
        (lambda path: write_classes(path, {"cat": 3, "dog": 2}), "'dog' has 2", {}),
        (lambda path: write_classes(path, {"cat": 3, "dog": 0}), "'dog' has 0", {}),
        (lambda path: write_classes(path, {"cat": 0, "dog": 0}), "no image files", {}),
        (
            lambda path: write_classes(path / "train", {"cat": 3, "dog": 3}),
            "no part 'mine'",
            {"validation": "mine"},
        ),
        (lambda path: write_classes(path, {"cat": 3, "dog": 3}), "no part 'train'", {"test": "dog"}),
        (lambda path: write_classes(path / "train", {"cat": 3}), "same part twice", {"test": "train"}),
    ],
)
def test_unusable_folders_are_explained(tmp_path, make, said, options):
    make(tmp_path)
    with pytest.raises(DataError, match=said):
        load(tmp_path, **options)


def test_a_class_that_is_only_in_the_test_part_is_refused(tmp_path):
    write_classes(tmp_path / "train", {"cat": 4, "dog": 4})
    write_classes(tmp_path / "test", {"cow": 4})
    with pytest.raises(DataError, match="has the class 'cow'"):
        load(tmp_path)


def test_a_part_that_is_a_link_to_another_is_refused(tmp_path):
    write_classes(tmp_path / "train", {"cat": 4, "dog": 4})
    (tmp_path / "test").symlink_to(tmp_path / "train")
    with pytest.raises(DataError, match="are the same folder"):
        load(tmp_path)


def test_work_is_done_a_few_groups_ahead_and_stops_with_the_reader():
    started, lock = [], threading.Lock()

    def work(item):
        with lock:
            started.append(item)
        return -item

    groups = ([3 * i, 3 * i + 1, 3 * i + 2] for i in range(1000))
    results = work_ahead(groups, work, 2)
    assert next(results) == ([0, 1, 2], [0, -1, -2])
    assert next(results) == ([3, 4, 5], [-3, -4, -5])
    results.close()
    assert len(started) <= 3 * (AHEAD + 2)


def test_files_are_found_in_subfolders_and_by_name(tmp_path):
    write_classes(tmp_path, {"cat": 2, "dog": 3})
    write_classes(tmp_path / "cat", {"kittens": 2})
    found = image_folder(tmp_path, Names(), Format((6, 6))).train
    assert [name.split("/")[-2] for name in map(found.source.name, found.rows.tolist())] == (
        ["cat"] * 2 + ["kittens"] * 2 + ["dog"] * 3
    )


def wide_pictures(folder):
    """Pictures three times as wide as high, black but for a left end of some grey each: their centre is black."""
    for shade, name in ((255, "a"), (200, "b")):
        (folder / name).mkdir(parents=True)
        for number in range(12):
            picture = np.zeros((20, 60, 3), dtype=np.uint8)
            picture[:, :14] = shade - number
            (folder / name / f"{number:02}.png").write_bytes(encoded(picture))


@pytest.mark.parametrize("cache", [True, False])
def test_a_random_resized_crop_sees_the_whole_image(tmp_path, cache):
    """The centre of these pictures, cut to size, is black all over."""
    wide_pictures(tmp_path)
    train = load_data(DataConfig(kind="folder", path=tmp_path, size=16, cache=cache)).train
    assert not next(train.batches(8)).images.any()
    first, other = (next(train.batches(8, seed=1, epoch=epoch, crop=0.08)) for epoch in (0, 1))
    assert first.images.shape == (8, 3, 16, 16)
    assert first.images.any()
    assert not torch.equal(first.images, other.images)
    again = next(train.batches(8, seed=1, crop=0.08, places=[5, 2]))
    assert torch.equal(again.images, first.images[[5, 2]])  # draws belong to images, not to who reads them


def test_who_reads_images_crops_them_only_once(tmp_path):
    wide_pictures(tmp_path)
    data = load_data(DataConfig(kind="folder", path=tmp_path, size=16))
    augmentation = Augmentation.of(data, AugmentConfig(resized_crop=0.08))
    assert augmentation.crop == 0.08
    plain = next(data.train.batches(4)).images
    assert torch.equal(augmentation(plain, 1).images, normalise(plain, data.mean, data.std))
