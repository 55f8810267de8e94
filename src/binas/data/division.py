"""Labelled images divided into the three parts of a dataset, which share none: class by class, repeatable by a seed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from binas.base.errors import DataError, several
from binas.data.config import PARTS
from binas.data.dataset import ImageData
from binas.data.file_images import FileImages, fits_memory, known_elsewhere, prepare
from binas.data.images import IndexedImages, check_names
from binas.data.overlap import keep_apart, without

Rows = NDArray[np.int64]


@dataclass(frozen=True)
class Division:
    """Shares of every class that go to validation and to test where no such part is given, and the seed.

    ``limit``: at most about that many images to train and validate with, and as many to test with.
    """

    validation_share: float = 0.2
    test_share: float = 0.2
    seed: int = 0
    limit: int | None = None


@dataclass(frozen=True)
class Parts:
    """Labelled images as they are on disk: a part that is missing is taken from ``train``."""

    train: IndexedImages
    validation: IndexedImages | None = None
    test: IndexedImages | None = None


def divide(
    name: str, parts: Parts, how: Division, cache: bool | None = None, check: bool = True
) -> ImageData:
    """The dataset of the parts given, with the missing ones split off class by class; every image is checked.

    ``cache`` and ``check`` are for images in files; see :func:`binas.data.file_images.prepare`. Images that are in two parts
    are found by their content (:func:`binas.data.overlap.keep_apart`), of those in files without ``check`` only links.
    """
    found = divided(name, parts, how)
    ready = prepare(found, cache, check)
    known = known_elsewhere()
    if known is not None:
        return ImageData.of_checked(name, ready, known, PARTS)
    content = check or not any(isinstance(part, FileImages) for part in found)
    gone = keep_apart(name, found, ready, content)
    left_out = tuple(tuple(sorted(gone.get(number, ()))) for number in range(len(PARTS)))
    kept = [without(part, rows) for part, rows in zip(ready, left_out, strict=True)]
    return replace(ImageData.of(name, *kept), left_out=left_out)


def glimpse(
    name: str, parts: Parts, how: Division, count: int, cache: bool | None = None
) -> tuple[ImageData, tuple[int, int, int]]:
    """A few images of each part, at most ``count``, held as all would be; and the numbers of images of all parts."""
    whole = divided(name, parts, how)
    keep = fits_memory(whole) if cache is None else cache
    few = [part.take(np.linspace(0, len(part) - 1, min(count, len(part))).astype(np.int64)) for part in whole]
    train, validation, test = map(len, whole)
    return ImageData.of(name, *prepare(few, keep, check=False)), (train, validation, test)


def divided(name: str, parts: Parts, how: Division) -> tuple[IndexedImages, IndexedImages, IndexedImages]:
    """The three parts, the missing ones split off class by class; nothing is read."""
    train, validation, test = parts.train, parts.validation, parts.test
    check_classes(train.labels, train.classes, 1 + (validation is None) + (test is None), name)
    labels = train.labels.numpy()
    rest = np.arange(len(labels))
    if test is None:
        rest, apart = stratified_split(labels, how.test_share, how.seed)
        test = train.take(apart)
    if how.limit is not None:
        rest = rest[stratified_sample(labels[rest], how.limit, how.seed)]
        test = _limit(test, how.limit, how.seed)
        validation = None if validation is None else _limit(validation, how.limit, how.seed)
    if validation is None:
        kept, apart = stratified_split(labels[rest], how.validation_share, how.seed)
        validation, rest = train.take(rest[apart]), rest[kept]
    return train.take(rest), validation, test


def _limit(images: IndexedImages, limit: int, seed: int) -> IndexedImages:
    return images.take(stratified_sample(images.labels, limit, seed))


def stratified_split(labels: ArrayLike, share: float, seed: int) -> tuple[Rows, Rows]:
    """Rows of two parts that share no image: (the rest, about ``share`` of every class).

    Of a class with n images, round(share * n) go to the second part, but at least one and never all; so a
    class needs two images. The paper keeps 20 % of the training set for validation (appendix C). Both
    parts are sorted; which images they hold depends only on labels, share and seed.
    """
    if not 0 < share < 1:
        raise DataError(
            f"a share of {share} cannot be split off; give a number between 0 and 1, such as 0.2."
        )
    rows = np.asarray(labels)
    second = []
    for number, of_class in _by_class(rows):
        if len(of_class) < 2:
            raise DataError(
                f"class {number} has one image; a split needs two or more. "
                "Add images, drop the class, or name a validation (and test) part of your own."
            )
        count = min(max(round(share * len(of_class)), 1), len(of_class) - 1)
        second.append(_draw(of_class, count, seed, number))
    chosen = np.sort(np.concatenate(second))
    return np.setdiff1d(np.arange(len(rows)), chosen, assume_unique=True), chosen


def stratified_sample(labels: ArrayLike, count: int, seed: int) -> Rows:
    """Sorted indices of about ``count`` images with the classes in proportion, at least one of each."""
    rows = np.asarray(labels)
    if count >= len(rows):
        return np.arange(len(rows))
    parts = [
        _draw(of_class, max(round(count * len(of_class) / len(rows)), 1), seed, number)
        for number, of_class in _by_class(rows)
    ]
    return np.sort(np.concatenate(parts))


def check_classes(labels: ArrayLike, classes: Sequence[str], least: int, where: str) -> None:
    """Raise an error for names of classes that cannot be used, and one that names those with fewer than ``least`` images."""
    check_names(classes, where)
    counts = np.bincount(np.asarray(labels), minlength=len(classes))
    few = [f"{classes[i]!r} has {n}" for i, n in enumerate(counts.tolist()) if n < least]
    if few:
        advice = "Add images, or leave the class out."
        raise DataError(several(f"{where}: every class needs at least {least} images, but", few, advice))


def _by_class(labels: NDArray[Any]) -> list[tuple[int, Rows]]:
    return [(int(number), np.flatnonzero(labels == number)) for number in np.unique(labels)]


def _draw(rows: Rows, count: int, seed: int, number: int) -> Rows:
    """``count`` of ``rows``; each class has its own stream, so that one class never moves another."""
    return np.random.default_rng([seed, number]).permutation(rows)[:count]
