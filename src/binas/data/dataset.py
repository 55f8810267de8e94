"""A dataset: images to train with, to validate with and to test with, kept apart."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import TYPE_CHECKING

from binas.base.errors import DataError, several
from binas.data.images import Images
from binas.data.statistics import PerChannel, channel_statistics

if TYPE_CHECKING:
    from binas.space import SearchSpace


@dataclass(frozen=True)
class ImageData:
    """Three sets of images that share none; ``mean`` and ``std`` per channel of the training images in 0..1."""

    name: str
    train: Images
    validation: Images
    test: Images
    mean: PerChannel
    std: PerChannel

    def __post_init__(self) -> None:
        for part in (self.validation, self.test):
            if (part.classes, part.channels, part.size) != (self.classes, self.channels, self.size):
                raise DataError(
                    f"{self.name}: training images are {_described(self.train)}, but validation or test "
                    f"images are {_described(part)}. All parts need the same classes, channels and size."
                )

    @classmethod
    def of(cls, name: str, train: Images, validation: Images, test: Images) -> ImageData:
        """The dataset of three sets, with the statistics of the training images."""
        mean, std = channel_statistics(train)
        return cls(name, train, validation, test, mean, std)

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
        if problems:
            advice = "Change channels, resolution and classes of the space, or channels and size of the data."
            raise DataError(several(f"{self.name} does not fit the space {space.name!r}", problems, advice))


def _described(part: Images) -> str:
    height, width = part.size
    return f"{len(part.classes)} classes of {part.channels} x {height} x {width}"
