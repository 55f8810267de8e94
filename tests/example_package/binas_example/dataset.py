"""A data set: lines that run across or down, at random places, on noise: no two images are the same."""

import numpy as np

from binas.data import DataConfig, Division, ImageData, from_arrays

COUNT = 120


def stripes(source: DataConfig) -> ImageData:
    """Grey images of ``size`` pixels a side; the fields of ``source`` that every kind has are kept to."""
    side, draw = source.size or 12, np.random.default_rng(source.seed)
    labels = np.arange(COUNT) % 2
    images = draw.integers(0, 32, (COUNT, side, side, 1)).astype(np.uint8)
    for image, label, place in zip(images, labels, draw.integers(side, size=COUNT), strict=True):
        image[(slice(None), place) if label else place] = 255
    how = Division(source.validation_share, source.test_share, source.seed, source.limit)
    return from_arrays(images, labels, classes=("across", "down"), name="stripes", how=how)
