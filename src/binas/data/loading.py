"""From the description of a dataset to its images: a function for each kind."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from binas.base.errors import PluginError
from binas.base.progress import Progress
from binas.base.workers import Work, launched, share_out
from binas.data.arrays import from_arrays, read_npz
from binas.data.config import KINDS, DataConfig
from binas.data.dataset import ImageData
from binas.data.division import Division, Parts, divide, divided, glimpse
from binas.data.fashion import embedded, fashion_mnist
from binas.data.file_images import FileImages, checked_elsewhere, fits_memory, refuse
from binas.data.folder import image_folder, tell_links_out
from binas.data.huggingface import dataset_parts
from binas.data.stream_images import read_stream


def load_data(source: DataConfig) -> ImageData:
    """The dataset that ``source`` describes; what cannot be read or used is reported here, before training.

    Where a launcher has started several processes, each of them looks at its share of the files.
    """
    if launched() and source.kind in FILES and not source.streaming:
        parts = divided(source.title, FILES[source.kind](source), _division(source))
        if not (fits_memory(parts) if source.cache is None else source.cache):
            shares = [[number, launched()] for number in range(launched())]
            found = share_out(checker, [source.model_dump_json(exclude_unset=True)], shares, launched())
            refuse([problem for problems in found for problem in problems])
            with checked_elsewhere():
                return _loaded(source)
    return _loaded(source)


def checker(source: str) -> Work:
    """What looks at a share of the files of a dataset: every n-th, and gives what is wrong with them."""
    config = DataConfig.model_validate_json(source)
    parts = divided(config.title, FILES[config.kind](config), _division(config))

    def unreadable(share: Sequence[int], progress: Progress) -> list[str]:
        files = [part for part in parts if isinstance(part, FileImages)]
        return [text for part in files for text in part.unreadable(config.check_images, *share)]

    return unreadable


def _loaded(source: DataConfig) -> ImageData:
    data: Any = KINDS.load(source.kind)(source)
    if not isinstance(data, ImageData):
        raise PluginError(
            f"the kind of data {source.kind!r} gives no ImageData; repair the package that adds it."
        )
    return data


def load_embedded(source: DataConfig) -> ImageData:
    """The Fashion-MNIST sample of binas."""
    return embedded(_division(source), turned=source.turned)


def load_fashion_mnist(source: DataConfig) -> ImageData:
    """Fashion-MNIST from its four idx files."""
    return fashion_mnist(source.path, _division(source), turned=source.turned)


def load_arrays(source: DataConfig) -> ImageData:
    """The arrays of an ``.npz`` file."""
    assert source.path is not None  # the model requires it
    return from_arrays(**read_npz(source.path), name=source.title, how=_division(source))


def load_folder(source: DataConfig) -> ImageData:
    """One subfolder of images per class; images that links bring in from outside are told of."""
    parts = _folder(source)
    tell_links_out(parts)
    return _divided(source, parts)


def load_huggingface(source: DataConfig) -> ImageData:
    """Anything that ``datasets.load_dataset`` reads."""
    return (
        read_stream(source, _division(source))
        if source.streaming
        else _divided(source, dataset_parts(source))
    )


def glimpse_folder(source: DataConfig, count: int) -> tuple[ImageData, tuple[int, int, int]]:
    """A few images of each part of a folder, and the numbers of images of all parts; see :func:`glimpse`."""
    return glimpse(source.title, _folder(source), _division(source), count, source.cache)


def _folder(source: DataConfig) -> Parts:
    assert source.path is not None  # the model requires it
    return image_folder(source.path, source.names, source.form)


FILES: Mapping[str, Callable[[DataConfig], Parts]] = {"folder": _folder, "huggingface": dataset_parts}


def _divided(source: DataConfig, parts: Parts) -> ImageData:
    return divide(source.title, parts, _division(source), source.cache, source.check_images)


def _division(source: DataConfig) -> Division:
    return Division(source.validation_share, source.test_share, source.seed, source.limit)
