"""From labelled images to a dataset of three parts."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from binas.data.dataset import ImageData
from binas.data.file_images import prepared
from binas.data.images import IndexedImages
from binas.data.splitting import check_classes, stratified_sample, stratified_split


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
    """Labelled images as they are found: a part that is missing is taken from ``train``."""

    train: IndexedImages
    validation: IndexedImages | None = None
    test: IndexedImages | None = None


def divide(
    name: str, found: Parts, how: Division, cache: bool | None = None, check: bool = True
) -> ImageData:
    """The dataset of the parts found, with the missing ones split off class by class; every image is checked.

    ``cache`` and ``check`` are for images in files; see :func:`binas.data.file_images.prepared`.
    """
    train, validation, test = found.train, found.validation, found.test
    check_classes(train.labels, train.classes, 1 + (validation is None) + (test is None), name)
    labels = train.labels.numpy()
    rest = np.arange(len(labels))
    if test is None:
        rest, apart = stratified_split(labels, how.test_share, how.seed)
        test = train.take(apart)
    if how.limit is not None:
        rest = rest[stratified_sample(labels[rest], how.limit, how.seed)]
        test = _limited(test, how.limit, how.seed)
        validation = None if validation is None else _limited(validation, how.limit, how.seed)
    if validation is None:
        kept, apart = stratified_split(labels[rest], how.validation_share, how.seed)
        validation, rest = train.take(rest[apart]), rest[kept]
    return ImageData.of(name, *prepared((train.take(rest), validation, test), cache, check))


def _limited(images: IndexedImages, limit: int, seed: int) -> IndexedImages:
    return images.take(stratified_sample(images.labels, limit, seed))
