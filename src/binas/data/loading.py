"""From the description of a dataset to its images."""

from __future__ import annotations

from collections.abc import Callable

from binas.data.arrays import from_arrays, read_npz
from binas.data.config import DataConfig
from binas.data.dataset import ImageData
from binas.data.fashion_mnist import embedded, fashion_mnist


def load_data(source: DataConfig) -> ImageData:
    """The dataset that ``source`` describes, checked: every file is known to be readable."""
    return _LOADERS[source.kind](source)


def _embedded(source: DataConfig) -> ImageData:
    return embedded(source.validation_share, source.seed, source.limit)


def _fashion_mnist(source: DataConfig) -> ImageData:
    return fashion_mnist(source.path, source.validation_share, source.seed, source.limit)


def _arrays(source: DataConfig) -> ImageData:
    assert source.path is not None  # the model requires it
    return from_arrays(
        **read_npz(source.path),
        name=source.path.name,
        validation_share=source.validation_share,
        test_share=source.test_share,
        seed=source.seed,
        limit=source.limit,
    )


_LOADERS: dict[str, Callable[[DataConfig], ImageData]] = {
    "embedded": _embedded,
    "fashion-mnist": _fashion_mnist,
    "arrays": _arrays,
}
