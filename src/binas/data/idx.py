"""The idx format of MNIST and Fashion-MNIST: bytes with a small header, plain or compressed.

Header: two zero bytes, the type (8 = unsigned byte), the number of dimensions, each dimension as a
big-endian 32-bit number. Never more is decompressed than the header announces, nor than ``MAX_BYTES``.
"""

from __future__ import annotations

import gzip
import lzma
import math
import struct
import zlib
from pathlib import Path
from typing import IO, BinaryIO, cast

import numpy as np
from numpy.typing import NDArray

from binas.base.errors import DataError
from binas.base.files import open_regular

MAX_BYTES = 2**28  # five times Fashion-MNIST
UNSIGNED_BYTE = 8


def read_idx(path: Path, dimensions: int) -> NDArray[np.uint8]:
    """The array of an idx file of unsigned bytes with that many dimensions; ``.gz`` and ``.xz`` are unpacked."""
    try:
        with open_regular(path) as opened, _unpacked(opened, path) as file:
            shape = _shape(file.read(4 + 4 * dimensions), dimensions, path)
            announced = math.prod(shape)
            data = file.read(announced + 1)
    except (OSError, EOFError, ValueError, zlib.error, lzma.LZMAError) as error:
        reason = getattr(error, "strerror", None) or str(error) or type(error).__name__
        raise DataError(f"cannot read {path}: {reason}. Copy the file again.") from error
    if len(data) != announced:
        held = "more" if len(data) > announced else f"only {len(data)}"
        raise DataError(
            f"{path} announces {announced} bytes in its header and holds {held}. Copy the file again."
        )
    return np.frombuffer(bytearray(data), np.uint8).reshape(shape)


def idx_bytes(array: NDArray[np.uint8]) -> bytes:
    """The content of an idx file that holds ``array``."""
    header = struct.pack(f">4B{array.ndim}I", 0, 0, UNSIGNED_BYTE, array.ndim, *array.shape)
    return header + array.tobytes()


def _unpacked(file: BinaryIO, path: Path) -> IO[bytes]:
    if path.suffix == ".gz":
        return cast(IO[bytes], gzip.open(file, "rb"))
    return lzma.open(file, "rb") if path.suffix == ".xz" else file


def _shape(header: bytes, dimensions: int, path: Path) -> tuple[int, ...]:
    if len(header) < 4 + 4 * dimensions or header[:4] != bytes((0, 0, UNSIGNED_BYTE, dimensions)):
        raise DataError(
            f"{path} does not start like an idx file of bytes with {dimensions} dimensions "
            f"(it starts with {header[:4].hex(' ') or 'nothing'}). Is it the right file?"
        )
    shape = struct.unpack(f">{dimensions}I", header[4:])
    if not 0 < math.prod(shape) <= MAX_BYTES:
        size = " x ".join(map(str, shape))
        raise DataError(
            f"{path} announces an array of {size} bytes; at most {MAX_BYTES} are read, at least 1."
        )
    return shape
