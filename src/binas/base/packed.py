"""Packed files (``.npz``, PyTorch's, Parquet), of which a small one can unpack to more than a machine holds."""

from __future__ import annotations

import tokenize
import zipfile
import zlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from binas.base.errors import FileError
from binas.base.files import open_regular, size_of

MAX_BYTES = 8 * 2**30
MAX_RATIO = (
    100  # unpacked to packed bytes beyond ``PLAIN_BYTES``: images and weights are not packed to a hundredth
)
PLAIN_BYTES = 2**28
MAX_ENTRIES = 100_000
_DAMAGE = (
    *(
        OSError,
        EOFError,
        ValueError,
        ArithmeticError,
        KeyError,
        RuntimeError,
        MemoryError,
        zipfile.BadZipFile,
        zlib.error,
    ),
    *(tokenize.TokenError, SyntaxError),  # of the header of an array, which NumPy reads as Python writes it
)


def read_arrays(path: Path, names: Sequence[str]) -> dict[str, NDArray[Any]]:
    """Those of the named arrays that an ``.npz`` file has, read without pickle and unpacked within limits."""
    try:
        with open_regular(path) as file:
            check_packed(file, path)
            arrays = np.load(file, allow_pickle=False)
            return {name: arrays[name] for name in names if name in arrays}
    except _DAMAGE as error:
        raise FileError(
            f"cannot read {path} as .npz: {str(error)[:200]}. Write it with numpy.savez_compressed."
        ) from error


def check_packed(file: BinaryIO, path: Path) -> None:
    """Refuse a packed file that unpacks to more than one of its size may; it is left at its beginning."""
    with zipfile.ZipFile(file) as packed:
        entries = packed.infolist()
    if len(entries) > MAX_ENTRIES:
        raise FileError(f"{path} holds {len(entries)} files; at most {MAX_ENTRIES} are read.")
    check_unpacked(sum(entry.file_size for entry in entries), path)
    file.seek(0)


def check_unpacked(unpacked: int, path: Path, in_memory: bool = True) -> None:
    """Refuse what gives more than max(256 MiB, 100 times the file) bytes, or more than 8 GiB of memory."""
    most = max(PLAIN_BYTES, MAX_RATIO * size_of(path))
    most = min(most, MAX_BYTES) if in_memory else most
    if unpacked > most:
        raise FileError(
            f"{path} unpacks to {unpacked} bytes; at most {most} are read of a file of its size. Is it the right file?"
        )
