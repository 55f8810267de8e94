"""From labelled images to a dataset of three parts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from binas.data.dataset import ImageData
from binas.data.file_images import prepared
from binas.data.images import IndexedImages
from binas.data.splitting import check_classes, stratified_sample, stratified_split
from binas.errors import DataError

USUAL_NAMES = {"validation": ("validation", "val", "valid"), "test": ("test",)}


@dataclass(frozen=True)
class Names:
    """Subfolders (or splits) of the parts; None: found by their usual names, or split off."""

    train: str = "train"
    validation: str | None = None
    test: str | None = None

    def chosen(self, present: Sequence[str], where: str) -> dict[str, str]:
        """The part of each kind among those ``present``; a part that is named must be there, and only once."""
        asked = {"train": self.train, "validation": self.validation, "test": self.test}
        chosen = {kind: name for kind, name in asked.items() if name is not None}
        missing = [name for name in chosen.values() if name not in present]
        if missing or len(set(chosen.values())) < len(chosen):
            wrong = f"has no part {missing[0]!r}" if missing else "is given the same part twice"
            raise DataError(
                f"{where} {wrong}; it has {', '.join(present) or 'none'}. Name train, validation, test."
            )
        for kind, usual in USUAL_NAMES.items():
            free = [name for name in usual if name in present and name not in chosen.values()]
            if kind not in chosen and free:
                chosen[kind] = free[0]
        return chosen


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
    train, test = found.train, found.test
    needed = 1 + (found.validation is None) + (test is None)
    check_classes(train.labels, train.classes, needed, name)
    if test is None:
        train, test = _split(train, how.test_share, how.seed)
    if how.limit is not None:
        train, test = (_limited(part, how) for part in (train, test))
    if found.validation is None:
        train, validation = _split(train, how.validation_share, how.seed)
    else:
        validation = found.validation if how.limit is None else _limited(found.validation, how)
    return ImageData.of(name, *prepared((train, validation, test), cache, check))


def _split(images: IndexedImages, share: float, seed: int) -> tuple[IndexedImages, IndexedImages]:
    rest, apart = stratified_split(images.labels, share, seed)
    return images.take(rest), images.take(apart)


def _limited(images: IndexedImages, how: Division) -> IndexedImages:
    assert how.limit is not None
    return images.take(stratified_sample(images.labels, how.limit, how.seed))
