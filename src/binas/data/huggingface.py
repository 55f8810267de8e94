"""Images through Hugging Face ``datasets``: the hub, local folders, Parquet files.

Only data is read: ``datasets`` runs no code of a dataset, and images are decoded by
:mod:`binas.data.decoding` with its guards, not by the dataset's own features.
"""

from __future__ import annotations

import hashlib
import importlib
import io
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
import torch
from numpy.typing import NDArray

from binas.base.errors import BinasError, DataError
from binas.base.files import exists, is_folder, is_regular, open_regular, read_bytes, walked
from binas.base.packed import check_unpacked
from binas.data.config import DataConfig
from binas.data.decoding import UnreadableError
from binas.data.division import Parts
from binas.data.file_images import FileImages
from binas.data.images import numbered_classes

MAX_ENCODED_BYTES = 2**28


def library() -> Any:
    """The module ``datasets``, or an error that says how to install it."""
    try:
        return importlib.import_module("datasets")
    except ImportError as error:
        raise DataError(
            "data of the kind huggingface needs the package datasets: pip install 'binas[huggingface]'."
        ) from error


@dataclass(frozen=True)
class Rows:
    """The rows of a dataset, as a source of encoded images."""

    dataset: Any
    column: str
    title: str
    on_disk: bool = False

    def opened(self, row: int) -> BinaryIO:
        """The encoded image of a row."""
        try:
            value = self.dataset[row][self.column]
        except Exception as error:  # the library raises anything
            raise UnreadableError(f"the row cannot be read ({type(error).__name__})") from error
        return encoded(value)

    def name(self, row: int) -> str:
        """Dataset and row, for messages."""
        return f"{row} of {self.title}"

    def identity(self, rows: Sequence[int]) -> str:
        """Hash of the rows taken and the size of the whole table in bytes."""
        return hashlib.sha256(repr((self.dataset.data.nbytes, list(rows))).encode()).hexdigest()


def dataset_parts(source: DataConfig) -> Parts:
    """The splits of a dataset as sets of images, not yet decoded."""
    splits = load_splits(source)
    classes = class_names(splits["train"][1], source)
    return Parts(**{kind: _labelled(split, name, source, classes) for kind, (name, split) in splits.items()})


def load_splits(source: DataConfig) -> dict[str, tuple[str, Any]]:
    """For train, and validation and test if there are: the split's name, and its images (encoded) and labels."""
    datasets = library()
    try:
        _check_parquet(source)
        splits = _load(datasets, source)
    except BinasError:
        raise
    except Exception as error:  # the library raises anything, from ConnectionError to errors of pyarrow
        reason = (str(error).splitlines() or [type(error).__name__])[0]
        raise DataError(f"cannot load the dataset {source.name or source.path}: {reason}") from error
    chosen = source.names.choose([str(name) for name in splits], source.title)
    return {kind: (name, _reduced(datasets, splits[name], name, source)) for kind, name in chosen.items()}


def _check_parquet(source: DataConfig) -> None:
    """Refuse Parquet files here that unpack to far more than they are; the library would write all of it to the disk.

    What stands many times for one value of a dictionary is not seen: footers do not say how long values are.
    """
    metadata = importlib.import_module("pyarrow.parquet").read_metadata
    for path in _parquet_files(source.path or Path(str(source.name))):
        with open_regular(path) as file:
            held = metadata(file)
        groups = (held.row_group(number) for number in range(held.num_row_groups))
        check_unpacked(sum(group.total_byte_size for group in groups), path, in_memory=False)


def _parquet_files(place: Path) -> list[Path]:
    """The Parquet files that are meant by a file, or by a folder and those below it."""
    if is_regular(place):
        return [place]
    found = walked(place) if is_folder(place) else ()
    return [
        folder / entry.name
        for folder, entries in found
        for entry in entries
        if entry.name.endswith(".parquet") and entry.is_file()
    ]


def _load(datasets: Any, source: DataConfig) -> dict[str, Any]:
    if source.path is None:
        loaded = datasets.load_dataset(source.name, source.subset, streaming=source.streaming)
    elif is_regular(source.path):
        files = {source.train: str(source.path)}
        loaded = datasets.load_dataset("parquet", data_files=files, streaming=source.streaming)
    elif exists(source.path / "dataset_dict.json"):  # written by save_to_disk
        saved = datasets.load_from_disk(str(source.path))
        for split in saved.values():  # Arrow believes what such a file says, and reads where that leads
            split.data.validate(full=True)
        loaded = {k: v.to_iterable_dataset() if source.streaming else v for k, v in saved.items()}
    else:
        loaded = datasets.load_dataset(str(source.path.resolve()), source.subset, streaming=source.streaming)
    return dict(loaded)


def _reduced(datasets: Any, split: Any, name: str, source: DataConfig) -> Any:
    """The split with the image column undecoded and the label column, and no other."""
    columns = [source.image_column, source.label_column]
    present = split.column_names or columns  # a stream may not know its columns
    missing = [column for column in columns if column not in present]
    if missing:
        raise DataError(
            f"the split {name!r} of {source.title} has no column {missing[0]!r}; it has {', '.join(present)}. "
            "Set image_column and label_column."
        )
    try:
        plain = split.with_format(None).select_columns(columns)
        return plain.cast_column(source.image_column, datasets.Image(decode=False))
    except Exception as error:  # as above
        held = (split.features or {}).get(source.image_column)
        raise DataError(
            f"the column {source.image_column!r} of {source.title} holds {held}, not images."
        ) from error


def class_names(split: Any, source: DataConfig) -> tuple[str, ...]:
    """Names of the classes: as configured, as the dataset names them, or from the labels that occur."""
    if source.class_names is not None:
        return source.class_names
    feature = (split.features or {}).get(source.label_column)
    named = getattr(feature, "names", None)
    if named:
        if not all(isinstance(name, str) for name in named):
            raise DataError(
                f"{source.title} has names of classes that are no text; list them in class_names."
            )
        return tuple(named)
    if source.streaming:
        raise DataError(f"{source.title} does not name its classes; list them in class_names to stream it.")
    values = _column(split, source.label_column)
    if values.dtype.kind in "UO" and all(isinstance(value, str) for value in values):
        return tuple(sorted(set(values.tolist())))
    return numbered_classes(values)


def label_number(value: Any, classes: dict[str, int]) -> int:
    """A label as a number: numbers stay, names are looked up, anything else is -1."""
    if isinstance(value, int | np.integer) and not isinstance(value, bool):
        return int(value)
    return classes.get(value, -1) if isinstance(value, str) else -1


def encoded(value: Any) -> BinaryIO:
    """The bytes of an undecoded image: inside the row, in a file beside it, or on the hub."""
    if not isinstance(value, dict) or not (value.get("bytes") or value.get("path")):
        raise UnreadableError("the row holds no image")
    return io.BytesIO(value["bytes"] or _image_bytes(value["path"]))


def _image_bytes(path: str) -> bytes:
    """The file a row names. The row may be hostile: fsspec follows whatever an address says, so it gets the hub's only."""
    if "::" in path:
        raise UnreadableError(
            f"{path[:200]} leads through another file or server; only files and the hub are read. Unpack archives, "
            "or leave streaming out"
        )
    if "://" in path and not path.startswith("hf://"):
        raise UnreadableError(f"{path[:200]} is an address, not a file; only files and the hub are read")
    try:
        data = _read_hub(path) if path.startswith("hf://") else read_bytes(Path(path), MAX_ENCODED_BYTES)
    except UnreadableError:
        raise
    except Exception as error:  # the hub's file system raises anything
        raise UnreadableError(str(error)) from error
    if len(data) > MAX_ENCODED_BYTES:
        raise UnreadableError(f"more than {MAX_ENCODED_BYTES} bytes")
    return data


def _read_hub(address: str) -> bytes:
    fsspec = importlib.import_module("fsspec")  # datasets needs it, so it is there
    with fsspec.open(address, "rb") as file:
        data: bytes = file.read(MAX_ENCODED_BYTES + 1)
    return data


def _labelled(split: Any, name: str, source: DataConfig, classes: tuple[str, ...]) -> FileImages:
    lookup = {text: number for number, text in enumerate(classes)}
    labels = [label_number(value, lookup) for value in _column(split, source.label_column).tolist()]
    rows = Rows(split, source.image_column, f"the split {name!r} of {source.title}")
    try:
        return FileImages(rows, torch.tensor(labels, dtype=torch.int64), classes, source.form)
    except DataError as error:
        raise DataError(f"the split {name!r} of {source.title}: {error}") from error


def _column(split: Any, column: str) -> NDArray[Any]:
    return np.asarray(split.with_format("numpy", columns=[column])[:][column])
