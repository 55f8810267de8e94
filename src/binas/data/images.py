"""One set of labelled images: what training and measuring see, wherever the images come from."""

from __future__ import annotations

import hashlib
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Protocol, runtime_checkable
from unicodedata import category

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from binas.base.errors import DataError

NO_TEXT = ("Cc", "Cs")  # of Unicode: control characters, halves of surrogate pairs

Indices = Sequence[int] | NDArray[np.int64]


@dataclass(frozen=True)
class Batch:
    """``images`` (n, c, h, w) uint8, ``labels`` (n,) int64, ``indices`` (n,) int64: positions in the set."""

    images: Tensor
    labels: Tensor
    indices: Tensor

    def __len__(self) -> int:
        return len(self.labels)


@dataclass(frozen=True, slots=True)
class Pass:
    """How one pass over a set of images goes: what :meth:`Images.batches` was told."""

    size: int
    seed: int | None
    epoch: int
    start: int
    drop_last: bool
    places: Sequence[int] | None
    shards: int
    crop: float | None

    def spans(self, length: int) -> Iterator[range]:
        """The positions in the pass of each batch of a set of ``length`` images."""
        size, start = self.size, self.start
        if size < 1 or start < 0:
            raise DataError(f"a batch of {size} images starting at batch {start} is not possible.")
        end = length // size * size if self.drop_last else length
        for first in range(start * size, end, size):
            yield range(first, min(first + size, end))

    def rows(self, length: int) -> Iterator[Tensor]:
        """The indices of each batch of a set of ``length`` images, (n,) int64, or those at some places of it."""
        if self.seed is None:
            rows = torch.arange(length)
        else:
            rows = torch.from_numpy(np.random.default_rng([self.seed, self.epoch]).permutation(length))
        for span in self.spans(length):
            batch = rows[span.start : span.stop]
            yield batch if self.places is None else batch[self.kept(len(batch))]

    def kept(self, length: int) -> list[int]:
        """Which places of a batch of ``length`` images are wanted, in their order."""
        places = range(length) if self.places is None else self.places
        return [place for place in places if place < length]


@runtime_checkable
class Images(Protocol):
    """One set of labelled images of one size (height, width).

    ``indexed`` says whether an index names the same image in every epoch, so that results per image
    (teacher logits, say) may be kept by index; it is False for streams. ``fingerprint`` is a short hash
    of the content, or of what identifies it where reading all of it would be too slow.
    """

    @property
    def classes(self) -> tuple[str, ...]:
        """Names of the classes; label i means ``classes[i]``."""
        ...

    @property
    def channels(self) -> int:
        """1 (grey) or 3 (red, green, blue)."""
        ...

    @property
    def size(self) -> tuple[int, int]:
        """Height and width in pixels."""
        ...

    @property
    def indexed(self) -> bool:
        """Whether an index names the same image in every epoch."""
        ...

    @property
    def crops(self) -> bool:
        """Whether :meth:`batches` can cut random parts out of whole images, of which it otherwise shows the centre."""
        ...

    @property
    def fingerprint(self) -> str:
        """16 hexadecimal digits that change when the set changes."""
        ...

    def __len__(self) -> int:
        """Number of images."""
        ...

    def batches(
        self,
        size: int,
        *,
        seed: int | None = None,
        epoch: int = 0,
        start: int = 0,
        drop_last: bool = False,
        places: Sequence[int] | None = None,
        shards: int = 1,
        crop: float | None = None,
    ) -> Iterator[Batch]:
        """One pass in batches of ``size`` images, from batch number ``start`` on (to resume a pass).

        Without a seed the images come in order; with one, in an order that depends only on (seed, epoch), and of a stream
        on ``shards``. The last batch may be smaller, unless ``drop_last``. With ``places`` only the images at these places
        of each batch are read, in that order; ``shards`` says that they are asked for by shards, of which number i of n
        has the places i, i + n, ..., so that a set that is read along can give each shard files of its own. With ``crop``,
        where the set :attr:`crops`, each is a random part of at least that share of the whole image's area, which depends
        only on (seed, epoch, image).
        """
        ...


class IndexedImages(Images, Protocol):
    """A set whose labels are known and from which any images can be taken."""

    @property
    def labels(self) -> Tensor:
        """The label of each image, (n,) int64."""
        ...

    def take(self, indices: Indices) -> IndexedImages:
        """A set of the images at ``indices``, in that order."""
        ...


class Batched(ABC):
    """What sets of images share: :meth:`Images.batches` in terms of a :class:`Pass`."""

    def batches(
        self,
        size: int,
        *,
        seed: int | None = None,
        epoch: int = 0,
        start: int = 0,
        drop_last: bool = False,
        places: Sequence[int] | None = None,
        shards: int = 1,
        crop: float | None = None,
    ) -> Iterator[Batch]:
        """One pass in batches of ``size`` images; see :class:`Images`."""
        return self.walk(Pass(size, seed, epoch, start, drop_last, places, shards, crop))

    @abstractmethod
    def walk(self, how: Pass) -> Iterator[Batch]:
        """The batches of one pass."""


class ArrayImages(Batched):
    """Images held in memory: ``images`` (n, c, h, w) uint8 and ``labels`` (n,) int64.

    Memory: n * c * h * w bytes (12.5 MB for 16,000 grey images of 28 x 28).
    """

    indexed = True
    crops = False  # all there is of them is here

    def __init__(self, images: Tensor, labels: Tensor, classes: Sequence[str]) -> None:
        if images.dtype != torch.uint8 or images.ndim != 4 or images.shape[1] not in (1, 3):
            raise DataError(
                f"images have the shape {tuple(images.shape)} and the type {images.dtype}; "
                "give (n, c, h, w) bytes (uint8) with 1 or 3 channels."
            )
        if not images.shape[2] * images.shape[3]:
            raise DataError(f"images have the shape {tuple(images.shape)}: no pixels.")
        self.images = images
        self.labels = check_labels(labels, len(images), len(classes))
        self.classes = tuple(classes)

    @property
    def channels(self) -> int:
        """1 (grey) or 3 (red, green, blue)."""
        return int(self.images.shape[1])

    @property
    def size(self) -> tuple[int, int]:
        """Height and width in pixels."""
        return int(self.images.shape[2]), int(self.images.shape[3])

    @cached_property
    def fingerprint(self) -> str:
        """Short hash of pixels, labels, shape and class names."""
        digest = hashlib.sha256(repr((tuple(self.images.shape), self.classes)).encode())
        digest.update(self.labels.numpy().tobytes())
        digest.update(self.images.contiguous().numpy().data)
        return digest.hexdigest()[:16]

    def __len__(self) -> int:
        return len(self.labels)

    def take(self, indices: Indices) -> ArrayImages:
        """A set of the images at ``indices``, in that order (a copy)."""
        rows = torch.from_numpy(np.asarray(indices, dtype=np.int64))
        return ArrayImages(self.images[rows], self.labels[rows], self.classes)

    def walk(self, how: Pass) -> Iterator[Batch]:
        """One pass over what is in memory."""
        if how.crop is not None:
            raise DataError("images in memory have no parts that are not shown; augmentation crops them.")
        for rows in how.rows(len(self)):
            yield Batch(self.images[rows], self.labels[rows], rows)


def moved(values: Tensor, device: torch.device) -> Tensor:
    """The same values on a device; to a GPU through pinned memory, so that nothing waits for the copy."""
    if device.type == "cuda" and not values.is_cuda:
        return values.pin_memory().to(device, non_blocking=True)
    return values.to(device)


def numbered_classes(labels: NDArray[Any]) -> tuple[str, ...]:
    """The names "0", "1", ... up to the largest label; more classes than images cannot be meant."""
    largest = int(labels.max()) if labels.size else -1
    if labels.dtype.kind not in "iu" or not 0 <= largest < len(labels):
        raise DataError(
            f"labels are {labels.size} values of the type {labels.dtype}, the largest {largest}; "
            "give one whole number per image, counting classes from 0."
        )
    return tuple(str(number) for number in range(largest + 1))


def check_names(classes: Sequence[str], where: str) -> None:
    """Refuse names that are not text or stand there twice, and a single one, from which nothing could be told apart."""
    strange = [name for name in classes if any(category(sign) in NO_TEXT for sign in name)]
    if strange:
        raise DataError(
            f"the class {strange[0][:60]!r} of {where} is not text: it is not named in UTF-8, or holds control characters. "
            "Rename it."
        )
    if len(classes) == 1:
        raise DataError(f"{where} has a single class, {classes[0]!r}; there is nothing to tell it from.")
    twice = [name for name, times in Counter(classes).items() if times > 1]
    if twice:
        raise DataError(f"{where} has two classes named {twice[0][:60]!r}. Rename one of them.")


def check_labels(labels: Tensor, images: int, classes: int) -> Tensor:
    """``labels`` as int64, or an error that names the first that does not belong to an image and a class."""
    if not images:
        raise DataError("there are no images in the set.")
    if labels.ndim != 1 or len(labels) != images:
        raise DataError(
            f"{images} images came with labels of the shape {tuple(labels.shape)}: give one each."
        )
    if labels.is_floating_point() or labels.is_complex() or labels.dtype == torch.bool:
        raise DataError(f"labels are of the type {labels.dtype}; give whole numbers from 0 to {classes - 1}.")
    labels = labels.to(torch.int64)
    wrong = torch.nonzero((labels < 0) | (labels >= classes))[:, 0]
    if len(wrong):
        first = int(wrong[0])
        raise DataError(
            f"{len(wrong)} labels are out of range, the first at position {first}: {int(labels[first])}. "
            f"With {classes} classes labels are 0 to {classes - 1}."
        )
    return labels
