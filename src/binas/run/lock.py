"""One process at a time in a run's folder.

The lock belongs to an open file, so the system takes it back from a process that dies, however it dies.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from binas.base.errors import FileError

FILE = ".lock"


@contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Hold the folder (made if it is not there) for this process; an error if another one holds it.

    Windows has no such locks; there nothing is held.
    """
    if sys.platform == "win32":
        yield
        return
    import fcntl

    try:
        folder.mkdir(parents=True, exist_ok=True)
        file = (folder / FILE).open("a")
    except OSError as error:
        raise FileError(f"cannot work in {folder}: {error.strerror}. Give another --out.") from error
    with file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            raise FileError(
                f"another binas process is working in {folder}. Wait until it is done, or give another --out."
            ) from error
        yield
