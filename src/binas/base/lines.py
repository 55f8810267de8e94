"""JSON lines, appended while work goes on, and one policy for a process that is killed within a line.

What is appended later stands on a line of its own; whoever reads passes over the line that was cut off.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable
from functools import reduce
from operator import or_
from pathlib import Path
from typing import Any, BinaryIO

from binas.base.errors import FileError
from binas.base.files import NEW_FILE_MODE, exists, is_regular, parse_json, read_text, write_text, writing


def append_line(path: Path, value: Any) -> None:
    """Add one value at the end of a file, which need not be there yet; a link is not followed out of its folder."""
    line = _line(value)
    with writing(path, "What was there is kept."), _open_to_append(path) as file:
        if file.tell():
            file.seek(-1, 2)
            line = line if file.read() == b"\n" else "\n" + line
        file.write(line.encode())


def _open_to_append(path: Path) -> BinaryIO:
    if path.is_symlink():
        raise FileError(f"cannot write {path}: it is a link. What was there is kept.")
    flags = os.O_RDWR | os.O_CREAT | os.O_APPEND
    optional = (getattr(os, name, 0) for name in ("O_NOFOLLOW", "O_NONBLOCK", "O_BINARY"))
    handle = os.open(path, reduce(or_, optional, flags), NEW_FILE_MODE)
    if not is_regular(handle):
        os.close(handle)
        raise FileError(f"cannot write {path}: it is not a regular file. What was there is kept.")
    return os.fdopen(handle, "a+b")


def write_lines(path: Path, values: Iterable[Any]) -> None:
    """Write a file of lines anew, atomically."""
    write_text(path, "".join(_line(value) for value in values))


def read_lines(path: Path) -> list[Any]:
    """All values, oldest first; none of a file that is not there. Lines that were cut off are passed over."""
    if not exists(path):
        return []
    values = []
    for number, text in enumerate(read_text(path).split("\n"), 1):
        try:
            values.append(parse_json(text, f"{path}, line {number}"))
        except FileError as error:
            if not isinstance(error.__cause__, json.JSONDecodeError):
                raise
    return values


def _line(value: Any) -> str:
    """In ASCII, so that no cut falls within a character."""
    try:
        return json.dumps(value, allow_nan=False) + "\n"
    except ValueError as error:
        raise FileError(f"cannot write JSON: a value is NaN or infinite ({error}).") from error
