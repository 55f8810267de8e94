"""Augmentation on tensors: bytes in, normalised numbers out, the same for the same seed.

Crop, flip, cutout, erasing and mixup are a few lines of tensor code each: on 256 images of 28 x 28 they take
a third of the time of kornia's (``benchmarks/augmentation.py``), which builds a transformation matrix per
image and crops one image after another in floating point. Resized crops, AutoAugment and RandAugment are
kornia's.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Generator, Tensor
from torch.nn import functional

from binas.base.errors import DataError
from binas.data.config import AugmentConfig
from binas.data.dataset import ImageData
from binas.supernet.rows import side_by_side

SMALL = 64  # up to this many pixels a side, images are padded and cropped, not resized, and policies are CIFAR-10's
ERASED_SHARE = (0.02, 0.33)  # of the area, and height to width, as in the paper on random erasing
ERASED_ASPECT = (0.3, 3.3)


def default_augmentation(data: ImageData) -> AugmentConfig:
    """Sensible settings for images of this size and number of channels.

    Large images: resized crop, flip, AutoAugment and cutout (paper appendix C, which does not give the size
    of the cutout; a quarter of the side is ours). Small colour images: the usual CIFAR-10 settings. Small
    grey images: a shift of a few pixels and flip; switch flip off where left and right matter (digits).
    """
    side = min(data.size)
    if side > SMALL:
        policies = 64  # about one per image; on large images it costs little more than one per batch
        return AugmentConfig(
            resized_crop=0.08, flip=True, auto="autoaugment", policies=policies, cutout=side // 4
        )
    if data.channels == 3:
        return AugmentConfig(crop=side // 8, flip=True, auto="autoaugment", cutout=side // 2)
    return AugmentConfig(crop=side // 14, flip=True)


@dataclass(frozen=True)
class Augmented:
    """Normalised images (n, c, h, w), channels last; with mixup, image i is mixed with image ``other[i]``.

    The loss is ``weight * loss(labels) + (1 - weight) * loss(labels[other])``; without mixup ``weight`` is 1
    and ``other`` is None.
    """

    images: Tensor
    other: Tensor | None = None
    weight: float = 1.0


class Augmentation:
    """``augmentation(images, seed)``: the same result for the same images and seed, whatever ran before."""

    def __init__(
        self, config: AugmentConfig, size: tuple[int, int], mean: tuple[float, ...], std: tuple[float, ...]
    ) -> None:
        if max(config.crop, config.cutout) > min(size):
            raise DataError(
                f"augmentation: crop {config.crop} and cutout {config.cutout} must not exceed the images' "
                f"{size[0]} x {size[1]} pixels."
            )
        self.config, self.size, self.mean, self.std = config, size, mean, std
        self.crop: float | None = None  # of which the reader of images takes care
        self._resized_crop = None if config.resized_crop is None else _resized_crop(size, config.resized_crop)
        self._auto = None if config.auto == "none" else _policy(config, size)

    @classmethod
    def of(cls, data: ImageData, config: AugmentConfig | None = None) -> Augmentation:
        """The augmentation ``config`` (default: :func:`default_augmentation`) for the images of ``data``.

        A resized crop is left to the reader (``crop``) where it can see more of an image than its centre.
        """
        chosen = config or default_augmentation(data)
        read = chosen.resized_crop if data.train.crops else None
        own = chosen if read is None else chosen.model_copy(update={"resized_crop": None})
        augmentation = cls(own, data.size, data.mean, data.std)
        augmentation.crop = read
        return augmentation

    @torch.no_grad()  # kornia's policies hold parameters
    def __call__(self, images: Tensor, seed: int) -> Augmented:
        """Augment and normalise (n, c, h, w) bytes; PyTorch's global random state is left as it was."""
        with _seed(seed, images.device):
            # seeded anew: with the seed itself our draws would be the very numbers that kornia draws
            generator = Generator().manual_seed(int(torch.randint(2**62, ())))
            images = self._move(images, generator)
            images = normalise(self._recolour(images), self.mean, self.std)
            if self.config.cutout:
                images = cutout(images, self.config.cutout, generator)
            if self.config.erasing:
                images = erase(images, self.config.erasing, generator)
            return mixup(images, self.config.mixup, generator) if self.config.mixup else Augmented(images)

    def _move(self, images: Tensor, generator: Generator) -> Tensor:
        if self._resized_crop is not None:
            images = self._resized_crop(images / 255)
        elif self.config.crop:
            images = shift(images, self.config.crop, generator)
        return flip(images, generator) if self.config.flip else images

    def _recolour(self, images: Tensor) -> Tensor:
        """The policy, drawn anew for each of ``policies`` parts of the batch: kornia draws one per call."""
        if self._auto is None:
            return images
        images = images if images.is_floating_point() else images / 255
        grey = images.shape[1] == 1  # kornia's policies take colour images only
        parts = [
            self._auto(part.expand(-1, 3, -1, -1) if grey else part)
            for part in images.tensor_split(min(self.config.policies, len(images)))
        ]
        joined = torch.cat(parts).clamp(0, 1)
        return joined.mean(1, keepdim=True) if grey else joined


def normalise(images: Tensor, mean: tuple[float, ...], std: tuple[float, ...]) -> Tensor:
    """(x - mean) / std per channel of bytes (taken as 0..1) or of numbers 0..1; float32, channels last."""
    top = 1.0 if images.is_floating_point() else 255.0
    scale = torch.tensor([1 / (top * s) for s in std], device=images.device).view(1, -1, 1, 1)
    offset = torch.tensor([-m / s for m, s in zip(mean, std, strict=True)], device=images.device)
    floats = images.to(torch.float32, memory_format=torch.channels_last)
    return side_by_side(torch.addcmul(offset.view(1, -1, 1, 1), floats, scale))


def resize(images: Tensor, side: int) -> Tensor:
    """Images (n, c, h, w) whose shorter side becomes ``side`` pixels, averaged over what a pixel covers; channels last."""
    height, width = images.shape[2:]
    if min(height, width) == side:
        return images
    size = round(height * side / min(height, width)), round(width * side / min(height, width))
    smaller = functional.interpolate(images, size=size, mode="bilinear", antialias=True)
    return side_by_side(smaller)


def shift(images: Tensor, padding: int, generator: Generator) -> Tensor:
    """A crop of the old size at a random place of each image with ``padding`` black pixels around it."""
    count, _, height, width = images.shape
    padded = functional.pad(images, (padding,) * 4)
    top, left = torch.randint(2 * padding + 1, (2, count), generator=generator).to(images.device)
    windows = padded.unfold(2, height, 1).unfold(3, width, 1)
    return windows[torch.arange(count, device=images.device), :, top, left]


def flip(images: Tensor, generator: Generator) -> Tensor:
    """Each image mirrored left to right with probability 1/2."""
    chosen = (torch.rand(len(images), generator=generator) < 0.5).to(images.device)
    return torch.where(chosen.view(-1, 1, 1, 1), images.flip(3), images)


def cutout(images: Tensor, side: int, generator: Generator) -> Tensor:
    """A square of ``side`` pixels set to 0 around a random pixel of each image, cut off at the borders."""
    top, left = (
        torch.randint(edge, (len(images),), generator=generator) - side // 2 for edge in images.shape[2:]
    )
    return _blank(images, top, top + side, left, left + side)


def erase(images: Tensor, probability: float, generator: Generator) -> Tensor:
    """With ``probability``, a rectangle inside the image set to 0: 2..33 % of the area, 0.3..3.3 high to wide."""
    height, width = images.shape[2:]
    draw = torch.rand(5, len(images), generator=generator)
    area = height * width * (ERASED_SHARE[0] + draw[0] * (ERASED_SHARE[1] - ERASED_SHARE[0]))
    low, high = (torch.log(torch.tensor(limit)) for limit in ERASED_ASPECT)
    aspect = torch.exp(low + draw[1] * (high - low))
    tall = (area * aspect).sqrt().round().clamp(1, height)
    wide = (area / aspect).sqrt().round().clamp(1, width)
    top = (draw[2] * (height + 1 - tall)).floor()
    left = (draw[3] * (width + 1 - wide)).floor()
    return _blank(images, top, torch.where(draw[4] < probability, top + tall, top), left, left + wide)


def mixup(images: Tensor, alpha: float, generator: Generator) -> Augmented:
    """Each image mixed with another of the batch; one weight per batch, Beta(alpha, alpha) distributed."""
    other = torch.randperm(len(images), generator=generator).to(images.device)
    seed = int(torch.randint(2**62, (), generator=generator))
    weight = float(np.random.default_rng(seed).beta(alpha, alpha))  # torch's own takes no generator
    return Augmented(torch.lerp(images, images[other], 1 - weight), other, weight)


def _blank(images: Tensor, top: Tensor, bottom: Tensor, left: Tensor, right: Tensor) -> Tensor:
    """Rows top..bottom-1 and columns left..right-1 of each image set to 0."""
    height, width = images.shape[2:]
    y, x = torch.arange(height), torch.arange(width)
    rows = (y >= top[:, None]) & (y < bottom[:, None])
    columns = (x >= left[:, None]) & (x < right[:, None])
    inside = rows[:, None, :, None] & columns[:, None, None, :]
    return images * ~inside.to(images.device)  # masked_fill would lose channels last


def _resized_crop(size: tuple[int, int], least: float) -> Any:
    from kornia.augmentation import RandomResizedCrop  # slow to import, and seldom needed

    return RandomResizedCrop(size, scale=(least, 1.0))


def _policy(config: AugmentConfig, size: tuple[int, int]) -> Any:
    from kornia.augmentation.auto import AutoAugment, RandAugment  # slow to import, and seldom needed

    if config.auto == "randaugment":
        return RandAugment(config.operations, config.magnitude)
    return AutoAugment("cifar10" if min(size) <= SMALL else "imagenet")


@contextmanager
def _seed(seed: int, device: torch.device) -> Iterator[None]:
    """Seed PyTorch's global random state, which kornia draws from, and put it back afterwards."""
    devices = [device] if device.type == "cuda" else []
    with torch.random.fork_rng(devices):
        torch.default_generator.manual_seed(seed)
        if devices:
            torch.cuda.manual_seed(seed)
        yield
