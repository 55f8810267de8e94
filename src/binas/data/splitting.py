"""Dividing labelled images into parts that share none, class by class, repeatable by a seed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from binas.base.errors import DataError, several

Rows = NDArray[np.int64]


def stratified_split(labels: ArrayLike, share: float, seed: int) -> tuple[Rows, Rows]:
    """Rows of two parts that share no image: (the rest, about ``share`` of every class).

    Of a class with n images, round(share * n) go to the second part, but at least one and never all; so a
    class needs two images. The paper keeps 20 % of the training set for validation (appendix C). Both
    parts are sorted; which images they hold depends only on labels, share and seed.
    """
    if not 0 < share < 1:
        raise DataError(
            f"a share of {share} cannot be split off; give a number between 0 and 1, such as 0.2."
        )
    rows = np.asarray(labels)
    second = []
    for number, of_class in _by_class(rows):
        if len(of_class) < 2:
            raise DataError(
                f"class {number} has one image; a split needs two or more. "
                "Add images, drop the class, or name a validation (and test) part of your own."
            )
        count = min(max(round(share * len(of_class)), 1), len(of_class) - 1)
        second.append(_drawn(of_class, count, seed, number))
    chosen = np.sort(np.concatenate(second))
    return np.setdiff1d(np.arange(len(rows)), chosen, assume_unique=True), chosen


def stratified_sample(labels: ArrayLike, count: int, seed: int) -> Rows:
    """Sorted indices of about ``count`` images with the classes in proportion, at least one of each."""
    rows = np.asarray(labels)
    if count >= len(rows):
        return np.arange(len(rows))
    parts = [
        _drawn(of_class, max(round(count * len(of_class) / len(rows)), 1), seed, number)
        for number, of_class in _by_class(rows)
    ]
    return np.sort(np.concatenate(parts))


def check_classes(labels: ArrayLike, classes: Sequence[str], least: int, where: str) -> None:
    """Raise an error that names the classes with fewer than ``least`` images."""
    counts = np.bincount(np.asarray(labels), minlength=len(classes))
    few = [f"{classes[i]!r} has {n}" for i, n in enumerate(counts.tolist()) if n < least]
    if few:
        advice = "Add images, or leave the class out."
        raise DataError(several(f"{where}: every class needs at least {least} images, but", few, advice))


def _by_class(labels: NDArray[Any]) -> list[tuple[int, Rows]]:
    return [(int(number), np.flatnonzero(labels == number)) for number in np.unique(labels)]


def _drawn(rows: Rows, count: int, seed: int, number: int) -> Rows:
    """``count`` of ``rows``; each class has its own stream, so that one class never moves another."""
    return np.random.default_rng([seed, number]).permutation(rows)[:count]
