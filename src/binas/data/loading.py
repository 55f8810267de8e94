"""From the description of a dataset to its images: a function for each kind."""

from __future__ import annotations

from typing import Any

from binas.base.errors import PluginError
from binas.data.arrays import from_arrays, read_npz
from binas.data.config import KINDS, DataConfig
from binas.data.dataset import ImageData
from binas.data.division import Division, Parts, divide, glimpse
from binas.data.fashion import embedded, fashion_mnist
from binas.data.folder import image_folder
from binas.data.huggingface import dataset_parts
from binas.data.stream_images import read_stream


def load_data(source: DataConfig) -> ImageData:
    """The dataset that ``source`` describes; what cannot be read or used is reported here, before training."""
    data: Any = KINDS.load(source.kind)(source)
    if not isinstance(data, ImageData):
        raise PluginError(
            f"the kind of data {source.kind!r} gives no ImageData; repair the package that adds it."
        )
    return data


def load_embedded(source: DataConfig) -> ImageData:
    """The Fashion-MNIST sample of binas."""
    return embedded(_division(source))


def load_fashion_mnist(source: DataConfig) -> ImageData:
    """Fashion-MNIST from its four idx files."""
    return fashion_mnist(source.path, _division(source))


def load_arrays(source: DataConfig) -> ImageData:
    """The arrays of an ``.npz`` file."""
    assert source.path is not None  # the model requires it
    return from_arrays(**read_npz(source.path), name=source.title, how=_division(source))


def load_folder(source: DataConfig) -> ImageData:
    """One subfolder of images per class."""
    assert source.path is not None  # the model requires it
    return _divided(source, image_folder(source.path, source.names, source.form))


def load_huggingface(source: DataConfig) -> ImageData:
    """Anything that ``datasets.load_dataset`` reads."""
    return (
        read_stream(source, _division(source))
        if source.streaming
        else _divided(source, dataset_parts(source))
    )


def glimpse_folder(source: DataConfig, count: int) -> tuple[ImageData, tuple[int, int, int]]:
    """A few images of each part of a folder, and the numbers of images of all parts; see :func:`glimpse`."""
    assert source.path is not None  # the model requires it
    parts = image_folder(source.path, source.names, source.form)
    return glimpse(source.title, parts, _division(source), count, source.cache)


def _divided(source: DataConfig, parts: Parts) -> ImageData:
    return divide(source.title, parts, _division(source), source.cache, source.check_images)


def _division(source: DataConfig) -> Division:
    return Division(source.validation_share, source.test_share, source.seed, source.limit)
