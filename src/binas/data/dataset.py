"""A dataset: images to train with, to validate with and to test with, kept apart."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
import torch
from torch import Tensor

from binas.base.errors import DataError, several
from binas.data.file_images import Checked, FileImages
from binas.data.images import ArrayImages, Images, IndexedImages

if TYPE_CHECKING:
    from binas.space import SearchSpace

PerChannel = tuple[float, ...]
SAMPLE = 2048  # images whose statistics are taken where all of them are too many


@dataclass(frozen=True)
class ImageData:
    """Three sets of images that share none.

    ``mean`` and ``std`` per channel of pixels in 0..1 are what images are normalised with: those of the training images,
    or what the rules of a space say (:meth:`for_space`). ``left_out`` are rows of each part, as it was found, that a later
    one has as well.
    """

    name: str
    train: Images
    validation: Images
    test: Images
    mean: PerChannel
    std: PerChannel
    left_out: tuple[tuple[int, ...], ...] = ((), (), ())

    def __post_init__(self) -> None:
        for part in (self.validation, self.test):
            if (part.classes, part.channels, part.size) != (self.classes, self.channels, self.size):
                raise DataError(
                    f"{self.name}: training images are {_describe(self.train)}, but validation or test "
                    f"images are {_describe(part)}. All parts need the same classes, channels and size."
                )

    @classmethod
    def of(cls, name: str, train: Images, validation: Images, test: Images) -> ImageData:
        """The dataset of three sets, with the statistics of the training images."""
        mean, std = channel_statistics(train)
        return cls(name, train, validation, test, mean, std)

    @classmethod
    def of_checked(
        cls, name: str, parts: Sequence[IndexedImages], known: Checked, part_names: Sequence[str]
    ) -> ImageData:
        """The same dataset in another process than the one that has checked it; nothing is read."""
        train, validation, test = (
            _as_known(part, known, number, f"{part_names[number]} images of {name}")
            for number, part in enumerate(parts)
        )
        return cls(name, train, validation, test, known.mean, known.std, known.left_out)

    @property
    def checked(self) -> Checked | None:
        """What other processes need not find out again; None for streams, which are read as they come."""
        parts = (self.train, self.validation, self.test)
        if not all(part.indexed for part in parts):
            return None
        counts = tuple(len(part) for part in parts)
        return Checked(counts, self.left_out, tuple(part.fingerprint for part in parts), self.mean, self.std)

    @property
    def classes(self) -> tuple[str, ...]:
        """Names of the classes; label i means ``classes[i]``."""
        return self.train.classes

    @property
    def channels(self) -> int:
        """1 (grey) or 3 (red, green, blue)."""
        return self.train.channels

    @property
    def size(self) -> tuple[int, int]:
        """Height and width in pixels."""
        return self.train.size

    def fingerprint(self) -> str:
        """Short hash of the three parts: runs on the same data have the same, whatever its name."""
        parts = "/".join(part.fingerprint for part in (self.train, self.validation, self.test))
        return hashlib.sha256(parts.encode()).hexdigest()[:16]

    def for_space(self, space: SearchSpace) -> ImageData:
        """The same images, normalised as ``space`` declares where it does; an error where they do not fit it."""
        mean, std = space.rules.mean, space.rules.std
        fitting = self
        if mean is not None and std is not None and len(mean) == self.channels:
            fitting = replace(self, mean=mean, std=std)
        fitting.check(space)
        return fitting

    def check(self, space: SearchSpace) -> None:
        """Raise an error that lists all in which the images do not fit networks of ``space``."""
        problems = []
        if space.channels not in (None, self.channels):
            problems.append(f"the space takes {space.channels} channels, the images have {self.channels}")
        side = space.resolution
        if side is not None and self.size != (side, side):
            height, width = self.size
            problems.append(f"the space takes {side} x {side} pixels, the images have {height} x {width}")
        if space.classes not in (None, len(self.classes)):
            problems.append(f"the space has {space.classes} classes, the images have {len(self.classes)}")
        declared = (space.rules.mean, space.rules.std)
        if declared != (None, None) and declared != (self.mean, self.std):
            problems.append("the space declares another normalisation of images (take data.for_space(space))")
        if problems:
            advice = "Change channels, resolution and classes of the space, or channels and size of the data."
            raise DataError(several(f"{self.name} does not fit the space {space.name!r}", problems, advice))


def _as_known(part: IndexedImages, known: Checked, number: int, what: str) -> IndexedImages:
    """The part of that number without the rows that are left out, with the fingerprint that is known."""
    left_out, count = known.left_out[number], known.images[number]
    kept = part.take(np.setdiff1d(np.arange(len(part)), left_out)) if left_out else part
    if len(kept) != count:
        raise DataError(
            f"this process finds {len(kept)} {what}, the first one {count}: the folder must be the same for all of them."
        )
    if isinstance(kept, FileImages):
        # A cached property: computed, it would read all files.
        kept.__dict__["fingerprint"] = known.fingerprints[number]
    return kept


def _describe(part: Images) -> str:
    height, width = part.size
    return f"{len(part.classes)} classes of {part.channels} x {height} x {width}"


def channel_statistics(images: Images) -> tuple[PerChannel, PerChannel]:
    """Mean and standard deviation per channel of pixels in 0..1; a constant channel has the std 1.

    From counts of the 256 values, so exact and small in memory: over all images that are held in memory,
    over ``SAMPLE`` of them otherwise (an error of the mean of about std / 45 at most).
    """
    if isinstance(images, ArrayImages):
        return _moments(_counts(images.images))
    counts, seen = torch.zeros(images.channels, 256, dtype=torch.int64), 0
    for batch in images.batches(64, seed=0):
        counts += _counts(batch.images)
        seen += len(batch)
        if seen >= SAMPLE:
            break
    return _moments(counts)


def _counts(images: Tensor) -> Tensor:
    """How often each of the 256 values occurs per channel, (c, 256) int64."""
    return torch.stack([torch.bincount(channel.flatten(), minlength=256) for channel in images.unbind(1)])


def _moments(counts: Tensor) -> tuple[PerChannel, PerChannel]:
    share = counts.double() / counts.sum(1, keepdim=True)
    values = torch.from_numpy(np.arange(256) / 255)
    mean = share @ values
    variance = (share * (values - mean[:, None]) ** 2).sum(1)
    std = torch.where(variance > 0, variance.sqrt(), torch.ones_like(variance))
    return tuple(mean.tolist()), tuple(std.tolist())
