"""From the description of a dataset to its images."""

from __future__ import annotations

from binas.data.arrays import from_arrays, read_npz
from binas.data.config import DataConfig
from binas.data.dataset import ImageData
from binas.data.division import Division, Parts, divide
from binas.data.fashion_mnist import embedded, fashion_mnist
from binas.data.folder import image_folder
from binas.data.huggingface import dataset_parts
from binas.data.stream_images import read_stream


def load_data(source: DataConfig) -> ImageData:
    """The dataset that ``source`` describes; what cannot be read or used is reported here, before training."""
    how = Division(source.validation_share, source.test_share, source.seed, source.limit)
    if source.kind == "embedded":
        return embedded(how)
    if source.kind == "fashion-mnist":
        return fashion_mnist(source.path, how)
    if source.kind == "arrays":
        assert source.path is not None  # the model requires it
        return from_arrays(**read_npz(source.path), name=source.title, how=how)
    if source.streaming:
        return read_stream(source, how)
    parts = dataset_parts(source) if source.kind == "huggingface" else _folder(source)
    return divide(source.title, parts, how, source.cache, source.check_images)


def _folder(source: DataConfig) -> Parts:
    assert source.path is not None  # the model requires it
    return image_folder(source.path, source.names, source.form)
