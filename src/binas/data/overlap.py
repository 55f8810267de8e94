"""Images that are in two parts of a dataset, found by their content: copies, and links to the same file.

An accuracy measured on images that were trained on says nothing. Of files that are as long as a file of another part the
end is compared, then all of it: each step reads only what the one before left over. Arrays are compared by their pixels,
rows of a table that are left undecoded by their bytes.
"""

from __future__ import annotations

import hashlib
import logging
from collections.abc import Callable, Hashable, Sequence
from itertools import combinations
from pathlib import Path

import numpy as np

from binas.base.errors import DataError
from binas.base.files import facts_of, open_regular, size_of
from binas.base.identity import file_digest
from binas.data.config import PARTS
from binas.data.file_images import FileImages
from binas.data.images import ArrayImages, IndexedImages

MOST_SHARED = 0.01  # of the images of a part: more is no slip but a folder that was copied
TAIL = 4096  # bytes at the end of a file
LOG = logging.getLogger("binas")

Place = tuple[int, int]  # number of the part, number of the image in it


def keep_apart(
    name: str, found: Sequence[IndexedImages], ready: Sequence[IndexedImages], content: bool = True
) -> dict[int, set[int]]:
    """Rows of train, validation and test, by the number of the part, that a later one of them has as well: a warning tells.

    ``found`` are the parts as they are on disk, ``ready`` the same images prepared for use. More than ``MOST_SHARED`` of the
    images of a part in an earlier one is an error. Without ``content`` only links to the same file are found, which reads
    nothing. A stream, which can be read only once, is not compared.
    """
    gone: dict[int, set[int]] = {}
    for earlier, later, here, there in shared_images(found, ready, content):
        said = (
            f"{name}: {len(there)} of {len(found[later])} {PARTS[later]} images are {PARTS[earlier]} images as well, such "
            f"as {_name(found, earlier, here[0])} and {_name(found, later, there[0])}"
        )
        if len(there) > MOST_SHARED * len(found[later]):
            raise DataError(f"{said}. What is measured on must not be trained on: remove the copies.")
        LOG.warning("%s; they are left out of %s.", said, PARTS[earlier])
        gone.setdefault(earlier, set()).update(here)
    return gone


def shared_images(
    found: Sequence[IndexedImages], ready: Sequence[IndexedImages], content: bool = True
) -> list[tuple[int, int, list[int], list[int]]]:
    """For each two parts that share images: their numbers, and the rows in the one and in the other; the first are the same.

    Rows, not pairs of them: of images that are all alike there are as many pairs as the one number times the other.
    """
    groups, result = _groups(found, ready, content), []
    for one, two in combinations(range(len(found)), 2):
        sides = [[[row for part, row in group if part == side] for group in groups] for side in (one, two)]
        both = [(here, there) for here, there in zip(*sides, strict=True) if here and there]
        if both:
            here, there = ([row for pair in both for row in pair[side]] for side in (0, 1))
            result.append((one, two, here, there))
    return result


def _groups(
    found: Sequence[IndexedImages], ready: Sequence[IndexedImages], content: bool
) -> list[list[Place]]:
    """Places in different parts that hold the same image."""
    paths, rows = _in_files(found, ready, content)
    if not content:
        return _alike(list(paths), lambda place: _inode(paths[place]))
    pixels = {
        (number, row): image
        for number, part in enumerate(ready)
        if isinstance(part, ArrayImages) and (number, 0) not in paths
        for row, image in enumerate(part.images.contiguous().numpy())
    }
    groups = [list(paths)]
    for key in (size_of, _tail, file_digest):
        groups = [alike for group in groups for alike in _alike(group, lambda place: key(paths[place]))]  # noqa: B023
    groups += _alike(list(rows), lambda place: rows[place])
    return groups + _alike(list(pixels), lambda place: _digest(pixels[place].tobytes()))


def _in_files(
    found: Sequence[IndexedImages], ready: Sequence[IndexedImages], content: bool
) -> tuple[dict[Place, Path], dict[Place, bytes]]:
    """The files of images, and digests of encoded images that are rows of a table and not kept decoded."""
    paths: dict[Place, Path] = {}
    rows: dict[Place, bytes] = {}
    for number, (part, prepared) in enumerate(zip(found, ready, strict=True)):
        if not isinstance(part, FileImages) or not (part.source.on_disk or content):
            continue
        if not part.source.on_disk and isinstance(prepared, ArrayImages):
            continue
        for row in range(len(part)):
            opened = part.source.opened(int(part.rows[row]))
            if isinstance(opened, Path):
                paths[number, row] = opened
            else:
                rows[number, row] = _digest(opened.read())
    return paths, rows


def _alike(places: Sequence[Place], key: Callable[[Place], Hashable]) -> list[list[Place]]:
    """Places of the same key that are in more than one part."""
    groups: dict[Hashable, list[Place]] = {}
    for place in places:
        groups.setdefault(key(place), []).append(place)
    return [group for group in groups.values() if len({part for part, _ in group}) > 1]


def _inode(path: Path) -> tuple[int, int]:
    found = facts_of(path)
    return found.st_dev, found.st_ino


def _tail(path: Path) -> bytes:
    """Of the last bytes: heads of images made by one program are often the same."""
    with open_regular(path) as file:
        file.seek(max(0, size_of(path) - TAIL))
        return _digest(file.read(TAIL))


def _digest(data: bytes) -> bytes:
    return hashlib.blake2b(data, digest_size=16).digest()


def without(part: IndexedImages, rows: Sequence[int]) -> IndexedImages:
    """A part without the images of some rows."""
    return part.take(np.setdiff1d(np.arange(len(part)), rows)) if rows else part


def _name(found: Sequence[IndexedImages], part: int, row: int) -> str:
    images = found[part]
    if isinstance(images, FileImages):
        return images.source.name(int(images.rows[row]))
    return f"{PARTS[part]} image {row}"
