"""Images from NumPy arrays, in memory or in an ``.npz`` file (read without pickle)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray

from binas.base.errors import DataError
from binas.base.packed import read_arrays
from binas.data.dataset import ImageData
from binas.data.division import Division, Parts, divide
from binas.data.images import ArrayImages, numbered_classes

KEYS = ("images", "labels", "test_images", "test_labels", "classes")
_USUAL = Division()


def from_arrays(
    images: ArrayLike,
    labels: ArrayLike,
    *,
    test_images: ArrayLike | None = None,
    test_labels: ArrayLike | None = None,
    classes: ArrayLike | None = None,
    name: str = "arrays",
    how: Division = _USUAL,
) -> ImageData:
    """A dataset from arrays: ``images`` (n, h, w), (n, h, w, c) or (n, c, h, w) with 1 or 3 channels.

    Bytes are taken as they are; other numbers must be 0..255 (whole) or 0..1 (floating point). ``labels``
    are 0..K-1. Without test arrays, a share of every class is split off for testing; then a share of every
    class of the rest for validation.
    """
    if (test_images is None) != (test_labels is None):
        raise DataError("test_images and test_labels belong together: give both or neither.")
    names = _class_names(classes, labels)
    pool = array_images(images, labels, names)
    test = None if test_images is None else array_images(test_images, test_labels, names)
    return divide(name, Parts(pool, test=test), how)


def read_npz(path: Path) -> dict[str, Any]:
    """The arrays of an ``.npz`` file: images and labels, and perhaps test_images, test_labels, classes."""
    known = read_arrays(path, KEYS)
    missing = [key for key in ("images", "labels") if key not in known]
    if missing:
        raise DataError(f"{path} has no array {' and no array '.join(missing)}; it needs images and labels.")
    return known


def array_images(images: ArrayLike, labels: ArrayLike | None, classes: Sequence[str]) -> ArrayImages:
    """Images in memory from arrays in any of the layouts of :func:`from_arrays`."""
    pixels = _as_bytes(_channels_first(np.asarray(images)))
    numbers = torch.from_numpy(_numbers(labels).astype(np.int64))
    return ArrayImages(torch.from_numpy(pixels), numbers, classes)


def _class_names(classes: ArrayLike | None, labels: ArrayLike) -> tuple[str, ...]:
    if classes is None:
        return numbered_classes(_numbers(labels))
    names = np.asarray(classes)
    if names.ndim != 1 or names.dtype.kind not in "US":
        raise DataError(
            f"classes have the shape {names.shape} and the type {names.dtype}; give a list of names."
        )
    try:
        return tuple(names.astype(str).tolist())
    except UnicodeError as error:
        raise DataError(f"classes hold a name that is not text: {error}. Write names in ASCII.") from error


def _numbers(labels: ArrayLike | None) -> NDArray[Any]:
    numbers = np.asarray(labels)
    if numbers.dtype.kind not in "iu" or numbers.ndim != 1:
        raise DataError(
            f"labels have the shape {numbers.shape} and the type {numbers.dtype}; "
            "give one whole number per image, counting classes from 0."
        )
    return numbers


def _channels_first(images: NDArray[Any]) -> NDArray[Any]:
    if images.ndim == 3:
        return images[:, None]
    first = images.ndim == 4 and images.shape[1] in (1, 3)
    last = images.ndim == 4 and images.shape[3] in (1, 3)
    if first == last:
        raise DataError(
            f"images have the shape {images.shape}; give (n, h, w), (n, h, w, c) or (n, c, h, w), "
            "with 1 or 3 channels in one place only."
        )
    return images if first else images.transpose(0, 3, 1, 2)


def _as_bytes(images: NDArray[Any]) -> NDArray[np.uint8]:
    if images.dtype == np.uint8:
        return np.ascontiguousarray(images)
    if images.dtype.kind not in "iuf" or not images.size:
        raise DataError(f"images are {images.size} values of the type {images.dtype}; give numbers.")
    top = 1 if images.dtype.kind == "f" else 255
    low, high = images.min(), images.max()
    if not (low >= 0 and high <= top):  # False for NaN too
        raise DataError(
            f"images of the type {images.dtype} hold values from {low} to {high}; give bytes, "
            "whole numbers 0..255 or floating point 0..1, without NaN."
        )
    whole = np.empty(images.shape, np.uint8)
    for some, into in zip(
        _chunks(images), _chunks(whole), strict=True
    ):  # of all at once copies would be many times as large
        into[...] = np.rint(some * 255) if top == 1 else some
    return whole


def _chunks(images: NDArray[Any]) -> Iterator[NDArray[Any]]:
    """A thousand images at a time."""
    return (images[first : first + 1000] for first in range(0, len(images), 1000))
