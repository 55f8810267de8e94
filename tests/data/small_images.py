"""Small made-up images for the tests of the data room."""

from __future__ import annotations

import io
from pathlib import Path

import numpy as np
from PIL import Image


def pixels(count: int, height: int = 6, width: int = 6, channels: int = 3, seed: int = 0) -> np.ndarray:
    """Random bytes (n, h, w, c), every image different."""
    return np.random.default_rng(seed).integers(0, 256, (count, height, width, channels), dtype=np.uint8)


def encoded(image: np.ndarray, kind: str = "PNG") -> bytes:
    """An image file's content."""
    buffer = io.BytesIO()
    Image.fromarray(image.squeeze()).save(buffer, kind)
    return buffer.getvalue()


def write_classes(folder: Path, classes: dict[str, int], seed: int = 0) -> None:
    """One subfolder per class with that many PNG files."""
    for number, (name, count) in enumerate(classes.items()):
        (folder / name).mkdir(parents=True)
        for i, image in enumerate(pixels(count, seed=1000 * seed + number)):
            (folder / name / f"{i:03}.png").write_bytes(encoded(image))
