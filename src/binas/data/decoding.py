"""From the bytes of an image file to pixels of one size, guarded against hostile files."""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

import numpy as np
import torch
from PIL import Image, ImageOps
from torch import Tensor

MAX_PIXELS = 2**26  # 67 million: far above any photo, 200 MB decoded
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


def decode(
    source: Path | BinaryIO, size: tuple[int, int], channels: int, part: RandomPart | None = None
) -> Tensor:
    """The image as bytes (c, h, w): turned upright, resized to cover ``size`` (h, w), its centre cut out.

    Or, of the whole image, a random ``part`` resized to ``size``. Transparency is dropped, a moving image gives its first
    picture, JPEG is decoded at the least resolution that covers ``size``.
    """
    try:
        with Image.open(source, formats=FORMATS) as image:
            return _pixels(image, size, channels, part)
    except UnreadableError:
        raise
    except Exception as error:  # decoders of broken files raise anything from OSError to IndexError
        raise UnreadableError(str(error).split("\n")[0] or type(error).__name__) from error


def measure(source: Path | BinaryIO) -> None:
    """Read the header only: the kind of file and its size in pixels."""
    try:
        with Image.open(source, formats=FORMATS) as image:
            _check_header(image)
    except UnreadableError:
        raise
    except Exception as error:  # as above
        raise UnreadableError(str(error).split("\n")[0] or type(error).__name__) from error


def _check_header(image: Image.Image) -> None:
    if image.width * image.height > MAX_PIXELS:
        raise UnreadableError(f"{image.width} x {image.height} pixels; at most {MAX_PIXELS} are decoded")
    if image.mode.startswith(("I", "F")):
        raise UnreadableError(
            f"pixels of more than 8 bits (mode {image.mode}); save it with 8 bits per channel"
        )


def _pixels(
    image: Image.Image, size: tuple[int, int], channels: int, part: RandomPart | None = None
) -> Tensor:
    _check_header(image)
    height, width = size
    # Only JPEG follows a draft; it may lie on its side. A part of least area needs 1 / sqrt(least) as many pixels a side.
    side = max(size) if part is None else math.ceil(max(size) / math.sqrt(part.least))
    image.draft(_MODES[channels], (side, side))
    upright: Image.Image = ImageOps.exif_transpose(image)
    if upright.mode == "P":  # a palette may hold transparency that only RGBA can express
        upright = upright.convert("RGBA")
    coloured = upright.convert(_MODES[channels])
    if part is None:
        fitted = ImageOps.fit(coloured, (width, height), Image.Resampling.BILINEAR)
    else:
        box = part.box(*coloured.size)
        fitted = coloured.resize((width, height), Image.Resampling.BILINEAR, box=box)
    pixels = torch.from_numpy(np.array(fitted))
    return pixels[None] if channels == 1 else pixels.permute(2, 0, 1).contiguous()
