"""One process at a time in a folder.

The lock belongs to an open file, so the system takes it back from a process that dies, however it dies.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from binas.base import files
from binas.base.errors import FileError

FILE = ".lock"


@contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Hold the folder (made if it is not there) for this process; an error if another one holds it."""
    from filelock import FileLock, Timeout

    try:
        files.touch("write", folder / FILE)
        folder.mkdir(parents=True, exist_ok=True)
        # A soft lock is a file that outlives a process that dies, so it is no way out where there are no locks.
        lock = FileLock(folder / FILE, timeout=0, fallback_to_soft=False)
        lock.acquire()
    except Timeout as error:
        raise FileError(
            f"another binas process is working in {folder}. Wait until it is done, or give another --out."
        ) from error
    except OSError as error:
        raise FileError(
            f"cannot work in {folder}: {error.strerror or error}. Give another --out, on a file system that can be "
            "written to and has locks."
        ) from error
    try:
        yield
    finally:
        lock.release()
