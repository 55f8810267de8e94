"""From the bytes of an image file to pixels of one size, guarded against hostile files."""

from __future__ import annotations

from pathlib import Path
from typing import BinaryIO

import numpy as np
import torch
from PIL import Image, ImageOps
from torch import Tensor

MAX_PIXELS = 2**26  # 67 million: far above any photo, 200 MB decoded
FORMATS = ("PNG", "JPEG", "WEBP", "BMP", "GIF", "TIFF", "PPM")  # no format that starts another program
_MODES = {1: "L", 3: "RGB"}


class UnreadableError(Exception):
    """One image cannot be decoded; the message says why."""


def decode(source: Path | BinaryIO, size: tuple[int, int], channels: int) -> Tensor:
    """The image as bytes (c, h, w): turned upright, resized to cover ``size`` (h, w), its centre cut out.

    Transparency is dropped, a moving image gives its first picture, JPEG is decoded at the least resolution that
    covers ``size``.
    """
    try:
        with Image.open(source, formats=FORMATS) as image:
            return _pixels(image, size, channels)
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


def _pixels(image: Image.Image, size: tuple[int, int], channels: int) -> Tensor:
    _check_header(image)
    height, width = size
    image.draft(_MODES[channels], (max(size), max(size)))  # only JPEG follows it; it may lie on its side
    upright: Image.Image = ImageOps.exif_transpose(image)
    if upright.mode == "P":  # a palette may hold transparency that only RGBA can express
        upright = upright.convert("RGBA")
    fitted = ImageOps.fit(upright.convert(_MODES[channels]), (width, height), Image.Resampling.BILINEAR)
    pixels = torch.from_numpy(np.array(fitted))
    return pixels[None] if channels == 1 else pixels.permute(2, 0, 1).contiguous()
