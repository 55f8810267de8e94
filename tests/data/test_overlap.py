"""Images in two parts are found by content: refused where many, left out and told where few."""

from __future__ import annotations

import logging
import os
import shutil
import threading
import tracemalloc
from pathlib import Path

import numpy as np
import pytest
import torch
from small_images import encoded, pixels, write_classes

from binas.base import files
from binas.base.errors import DataError, FileError
from binas.data import DataConfig, file_images, from_arrays, load_data, overlap


def folder(place: Path, test: int = 120) -> Path:
    """Training and test images of two classes, all different."""
    write_classes(place / "train", {"a": 20, "b": 20})
    write_classes(place / "test", {"a": test, "b": test}, seed=1)
    return place


def load(place: Path, **more):
    return load_data(DataConfig(kind="folder", path=place, size=6, **more))


@pytest.mark.parametrize("how", ["copy", "link", "hard link"])
@pytest.mark.parametrize("cache", [True, False])
def test_a_copied_test_set_is_refused(tmp_path, how, cache):
    place = folder(tmp_path, test=4)
    source, target = place / "train" / "a" / "003.png", place / "test" / "a" / "new.png"
    {"copy": shutil.copy, "link": os.symlink, "hard link": os.link}[how](source, target)
    with pytest.raises(
        DataError, match=r"1 of 9 test images are train images as well.*new\.png.*remove the copies"
    ):
        load(place, cache=cache)


@pytest.mark.parametrize("cache", [True, False])
def test_a_few_copies_are_left_out_of_training_and_told(tmp_path, caplog, cache):
    place = folder(tmp_path)
    before = len(load(place, cache=cache, validation_share=0.1).train)
    kept = set(range(20)) - {0}
    for number in sorted(kept)[:2]:  # one of them may be a validation image
        shutil.copy(place / "train" / "a" / f"{number:03}.png", place / "test" / "b" / f"copy{number}.png")
    with caplog.at_level(logging.WARNING, "binas"):
        data = load(place, cache=cache, validation_share=0.1)
    assert before - 2 <= len(data.train) < before
    assert len(data.test) == 242
    assert "left out of train" in caplog.text


def test_files_of_the_same_length_and_end_are_told_apart(tmp_path):
    place = folder(tmp_path, test=4)
    image = encoded(pixels(1)[0], "BMP")
    (place / "train" / "a" / "x.bmp").write_bytes(image + bytes(5000))
    (place / "test" / "a" / "x.bmp").write_bytes(image[:-1] + b"\x01" + bytes(5000))
    assert len(load(place).test) == 9


def test_arrays_are_compared_by_their_pixels():
    images, labels = pixels(60), np.arange(60) % 2
    test = images[40:].copy()
    test[0] = images[3]
    with pytest.raises(DataError, match=r"1 of 20 test images are .* and test image 0"):
        from_arrays(images[:40], labels[:40], test_images=test, test_labels=labels[40:])


def test_images_that_are_all_alike_are_counted_not_paired():
    images = np.zeros((3000, 1, 1), np.uint8)
    tracemalloc.start()
    with pytest.raises(DataError, match="480 of 480 validation images"):
        from_arrays(images, np.arange(3000) % 2)
    most = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert most < 20 * 2**20  # pairs of 1920 and 480 rows would take 60 MiB


def test_copies_within_a_pool_do_not_end_on_both_sides_of_a_split(caplog):
    images = pixels(1000)
    images[700] = images[20]
    labels = np.zeros(1000, int)
    labels[500:] = 1
    with caplog.at_level(logging.WARNING, "binas"):
        data = from_arrays(images, labels)
    parts = [
        {image.numpy().tobytes() for image in part.images}
        for part in (data.train, data.validation, data.test)
    ]
    assert not parts[0] & parts[1]
    assert not (parts[0] | parts[1]) & parts[2]


def test_a_single_class_is_told(tmp_path):
    write_classes(tmp_path, {"only": 8})
    with pytest.raises(DataError, match="a single class, 'only'"):
        load(tmp_path)


def test_links_to_folders_and_loops_are_told(tmp_path):
    write_classes(tmp_path / "images", {"a": 4, "b": 4})
    (tmp_path / "images" / "a" / "round").symlink_to(tmp_path / "images")
    with pytest.raises(DataError, match="round is a link to a folder"):
        load(tmp_path / "images")


@pytest.mark.parametrize("place", ["a", "a/nested", "a/nested/000.png"])
def test_a_disk_that_fails_does_not_pass_for_missing_images(tmp_path, monkeypatch, place):
    write_classes(tmp_path, {"a": 4, "b": 4})
    write_classes(tmp_path / "a", {"nested": 4})

    def fails(doing, path):
        if path == tmp_path / place:
            raise OSError(5, "Input/output error")

    monkeypatch.setattr(files, "touch", fails)
    with pytest.raises(
        FileError, match=rf"{place}: Input/output error.*check it, then give the same command"
    ):
        load(tmp_path)


def test_a_disk_that_fails_while_threads_decode_is_told(tmp_path, monkeypatch):
    write_classes(tmp_path, {"a": 20, "b": 20})
    data = load(tmp_path, cache=False, check_images=False, workers=4)

    def fails(doing, path):
        if path.name == "007.png" and threading.current_thread() is not threading.main_thread():
            raise OSError(5, "Input/output error")

    monkeypatch.setattr(files, "touch", fails)
    with pytest.raises(
        DataError, match=r"007\.png: Input/output error.*check it, then give the same command"
    ):
        list(data.train.batches(4)), list(data.validation.batches(4)), list(data.test.batches(4))


@pytest.mark.parametrize("what", ["pipe", "zero"])
def test_pipes_and_devices_are_not_opened(tmp_path, what):
    write_classes(tmp_path, {"a": 4, "b": 4})
    strange = tmp_path / "a" / "x.png"
    if what == "pipe":
        os.mkfifo(strange)
    else:
        strange.symlink_to("/dev/zero")
    with pytest.raises(DataError, match=r"no files that can be read.*x\.png"):
        load(tmp_path)


def test_names_that_are_not_utf_8(tmp_path):
    write_classes(tmp_path / "images", {"a": 4, "b": 4})
    (tmp_path / "images" / "a" / "000.png").rename(tmp_path / "images" / "a" / os.fsdecode(b"\xff.png"))
    assert len(load(tmp_path / "images").fingerprint()) == 16
    (tmp_path / "images" / "a").rename(tmp_path / "images" / os.fsdecode(b"\xff"))
    with pytest.raises(DataError, match="not named in UTF-8"):
        load(tmp_path / "images")


@pytest.mark.parametrize("how", ["link", "hard link"])
def test_links_are_found_even_where_nothing_is_checked(tmp_path, how):
    place = folder(tmp_path, test=4)
    source, target = place / "train" / "a" / "003.png", place / "test" / "a" / "new.png"
    {"link": os.symlink, "hard link": os.link}[how](source, target)
    with pytest.raises(DataError, match=r"1 of 9 test images are train images as well"):
        load(place, cache=False, check_images=False)


@pytest.mark.parametrize("cache", [True, False])
def test_another_process_reads_only_what_it_uses(tmp_path, monkeypatch, cache):
    place, opened = folder(tmp_path), []
    shutil.copy(place / "train" / "a" / "001.png", place / "test" / "b" / "copy.png")
    first = load(place, cache=cache)
    assert first.checked is not None
    decode = file_images.decode

    def counted(source, *given):
        opened.append(source)
        return decode(source, *given)

    monkeypatch.setattr(file_images, "decode", counted)
    monkeypatch.setattr(overlap, "open_regular", None)  # nothing is compared
    with file_images.checked_elsewhere(first.checked):
        other = load(place, cache=cache)
        assert other.fingerprint() == first.fingerprint()
    assert (other.mean, other.std, other.left_out) == (first.mean, first.std, first.left_out)
    assert not opened
    mine = [batch for _ in range(2) for batch in other.train.batches(6, places=[1, 4])]
    assert len(opened) == sum(map(len, mine)) // (2 if cache else 1)
    whole = list(first.train.batches(6))
    assert all(
        torch.equal(a.images, b.images[[1, 4]]) for a, b in zip(mine, whole, strict=False) if len(b) > 4
    )
    assert sum(map(len, other.left_out)) == 1
    assert other.test.fingerprint == first.test.fingerprint


def test_another_process_that_sees_other_files_says_so(tmp_path):
    place = folder(tmp_path, test=4)
    known = load(place).checked
    (place / "test" / "a" / "000.png").unlink()
    with file_images.checked_elsewhere(known), pytest.raises(DataError, match=r"7 test images.*first one 8"):
        load(place)


class TestLinksOut:
    """Images may be shared by links; those that lead out of the data folder are told of, once."""

    def test_links_to_files_and_folders_outside_are_told_with_their_number(self, tmp_path, caplog):
        place = folder(tmp_path / "mine", test=4)
        write_classes(tmp_path / "other", {"b": 5, "c": 1}, seed=7)
        shutil.rmtree(place / "test" / "b")
        (place / "test" / "b").symlink_to(tmp_path / "other" / "b")
        (place / "train" / "a" / "new.png").symlink_to(tmp_path / "other" / "c" / "000.png")
        with caplog.at_level(logging.WARNING, "binas"):
            data = load(place)
        (said,) = caplog.messages
        assert f"{place}: 6 of 50 images are outside" in said
        assert f"{place / 'train' / 'a' / 'new.png'}, which is {tmp_path / 'other' / 'c' / '000.png'}" in said
        assert len(data.test) == 9

    def test_links_within_the_folder_and_to_all_of_it_are_not(self, tmp_path, caplog):
        place = folder(tmp_path / "mine", test=4)
        write_classes(place / ".pool", {"a": 1}, seed=7)
        (place / "train" / "a" / "new.png").symlink_to(place / ".pool" / "a" / "000.png")
        (tmp_path / "link").symlink_to("mine")
        with caplog.at_level(logging.WARNING, "binas"):
            assert len(load(tmp_path / "link").test) == 8
        assert caplog.messages == []
