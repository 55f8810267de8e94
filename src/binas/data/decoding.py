"""From the bytes of an image file to pixels of one size, guarded against hostile files."""

from __future__ import annotations

import math
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

import numpy as np
import torch
from PIL import Image, ImageOps
from torch import Tensor

from binas.base.files import open_regular
from binas.data.images import Pass

MAX_PIXELS = 2**26  # 67 million: far above any photo, 270 MB decoded
MAX_SCANS = 100  # of a progressive JPEG, each of which goes over all its pixels in a few bytes; programs write about ten
SCAN = b"\xff\xda"  # how each begins; not to be found within one
FORMATS = ("PNG", "JPEG", "WEBP", "BMP", "GIF", "TIFF", "PPM")  # no format that starts another program
ASPECTS = (3 / 4, 4 / 3)  # width to height of random parts
TRIES = 10  # draws of a part that may not fit into an image
_MODES = {1: "L", 3: "RGB"}


class UnreadableError(Exception):
    """One image cannot be decoded; the message says why."""


@dataclass(frozen=True, slots=True)
class RandomPart:
    """A part of an image to be cut out, drawn by ``seed``: ``least`` to all of its area, 3:4 to 4:3 wide to high."""

    least: float
    seed: tuple[int, ...]

    @classmethod
    def of(cls, how: Pass, index: int) -> RandomPart | None:
        """The part of an image that a pass shows; None where it shows whole images."""
        return None if how.crop is None else cls(how.crop, (how.seed or 0, how.epoch, index))

    def box(self, width: int, height: int) -> tuple[int, int, int, int]:
        """Left, top, right and bottom in an image of this size; its centre where no draw of ten fits into it."""
        draws = np.random.default_rng(self.seed).random((TRIES, 4))
        low, high = np.log(ASPECTS)
        for share, turn, x, y in draws.tolist():
            area = width * height * (self.least + share * (1 - self.least))
            aspect = np.exp(low + turn * (high - low))
            wide, tall = round(np.sqrt(area * aspect)), round(np.sqrt(area / aspect))
            if 0 < wide <= width and 0 < tall <= height:
                left, top = int(x * (width - wide + 1)), int(y * (height - tall + 1))
                return left, top, left + wide, top + tall
        wide, tall = min(width, round(height * ASPECTS[1])), min(height, round(width / ASPECTS[0]))
        left, top = (width - wide) // 2, (height - tall) // 2
        return left, top, left + wide, top + tall


class PixelBudget:
    """Lets threads decode at once as long as all their images together have at most ``pixels`` pixels."""

    def __init__(self, pixels: int) -> None:
        self.pixels, self.free = pixels, pixels
        self.changed = threading.Condition()

    @contextmanager
    def taken(self, pixels: int) -> Iterator[None]:
        """Wait until there is room for an image of so many pixels, and keep it meanwhile."""
        wanted = min(pixels, self.pixels)
        with self.changed:
            self.changed.wait_for(lambda: self.free >= wanted)
            self.free -= wanted
        try:
            yield
        finally:
            with self.changed:
                self.free += wanted
                self.changed.notify_all()


# Decoded images take 4 bytes a pixel, twice while they are converted: about 0.5 GiB, whatever the number of threads.
_BUDGET = PixelBudget(MAX_PIXELS)
# Pillow stores large images in blocks. Smaller ones would stay with the thread that freed them (an arena of malloc each);
# blocks beyond 32 MiB are always given back.
Image.core.set_block_size(2**26)  # type: ignore[attr-defined]  # it does not say that it has it


def decode(
    source: Path | BinaryIO, size: tuple[int, int], channels: int, part: RandomPart | None = None
) -> Tensor:
    """The image as bytes (c, h, w): turned upright, resized to cover ``size`` (h, w), its centre cut out.

    Or, of the whole image, a random ``part`` resized to ``size``. Transparency is dropped, a moving image gives its first
    picture, JPEG is decoded at the least resolution that covers ``size``.
    """
    try:
        with _opened(source) as file, Image.open(file, formats=FORMATS) as image:
            _check_scans(image, file)
            return _pixels(image, size, channels, part)
    except UnreadableError:
        raise
    except Exception as error:  # decoders of broken files raise anything from OSError to IndexError
        raise UnreadableError(str(error).split("\n")[0] or type(error).__name__) from error


def measure(source: Path | BinaryIO) -> None:
    """Read the header only: the kind of file and its size in pixels."""
    try:
        with _opened(source) as file, Image.open(file, formats=FORMATS) as image:
            _check_header(image)
    except UnreadableError:
        raise
    except Exception as error:  # as above
        raise UnreadableError(str(error).split("\n")[0] or type(error).__name__) from error


def _opened(source: Path | BinaryIO) -> BinaryIO:
    """The bytes of an image; a path must be that of a regular file."""
    return open_regular(source) if isinstance(source, Path) else source


def _check_header(image: Image.Image) -> None:
    if image.width * image.height > MAX_PIXELS:
        raise UnreadableError(f"{image.width} x {image.height} pixels; at most {MAX_PIXELS} are decoded")
    if image.mode.startswith(("I", "F")):
        raise UnreadableError(
            f"pixels of more than 8 bits (mode {image.mode}); save it with 8 bits per channel"
        )


def _check_scans(image: Image.Image, file: BinaryIO) -> None:
    """Refuse a progressive JPEG of so many scans that it takes minutes; the file is left where it was."""
    if "progressive" not in image.info:
        return
    place = file.tell()
    file.seek(0)
    scans = file.read().count(SCAN)
    file.seek(place)
    if scans > MAX_SCANS:
        raise UnreadableError(f"a progressive JPEG of {scans} scans; at most {MAX_SCANS} are decoded")


def _pixels(
    image: Image.Image, size: tuple[int, int], channels: int, part: RandomPart | None = None
) -> Tensor:
    _check_header(image)
    height, width = size
    # Only JPEG follows a draft; it may lie on its side. A part of least area needs 1 / sqrt(least) as many pixels a side.
    side = max(size) if part is None else math.ceil(max(size) / math.sqrt(part.least))
    image.draft(_MODES[channels], (side, side))
    with _BUDGET.taken(image.width * image.height):
        ImageOps.exif_transpose(image, in_place=True)
        fitted = _fitted(_in_mode(image, _MODES[channels]), (width, height), part)
        image.close()  # what is held longer would not be counted
    pixels = torch.from_numpy(np.array(fitted))
    return pixels[None] if channels == 1 else pixels.permute(2, 0, 1).contiguous()


def _fitted(image: Image.Image, size: tuple[int, int], part: RandomPart | None) -> Image.Image:
    """The centre that covers ``size`` (w, h), or a part of the image, resized to it."""
    if part is None:
        return ImageOps.fit(image, size, Image.Resampling.BILINEAR)
    return image.resize(size, Image.Resampling.BILINEAR, box=part.box(*image.size))


def _in_mode(image: Image.Image, mode: str) -> Image.Image:
    """The image in another mode, without a copy where it is in that mode."""
    if image.mode == "P":  # a palette may hold transparency that only RGBA can express
        image = image.convert("RGBA")
    return image if image.mode == mode else image.convert(mode)
