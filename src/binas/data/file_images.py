"""Images that are decoded when they are needed, by a pool of threads, or once and then kept in memory."""

from __future__ import annotations

import hashlib
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import BinaryIO, Protocol, TypeVar

import numpy as np
import torch
from torch import Tensor

from binas.base.errors import DataError, several
from binas.data.config import Format
from binas.data.decoding import RandomPart, UnreadableError, decode, measure
from binas.data.images import ArrayImages, Batch, Batched, Images, IndexedImages, Indices, Pass, check_labels

CACHED_BYTES = 2**30
AHEAD = 3  # batches being decoded while one is used
CHECKED = 256  # images per step of a pass that only checks
_GLANCE = (8, 8)  # to check an image it is decoded to this size: of a JPEG, an eighth of the resolution

Item = TypeVar("Item")
Result = TypeVar("Result")


class Source(Protocol):
    """A numbered collection of encoded images: files of a folder, or rows of a table."""

    @property
    def on_disk(self) -> bool:
        """Whether every image is a file of its own."""
        ...

    def opened(self, row: int) -> Path | BinaryIO:
        """The encoded image of a row, as a path or a stream of bytes."""
        ...

    def name(self, row: int) -> str:
        """What to call the image in an error message."""
        ...

    def identity(self, rows: Sequence[int]) -> str:
        """A hash that changes when these images do; it need not read them."""
        ...


class FileImages(Batched):
    """Encoded images, decoded on demand by threads, a few batches ahead.

    Memory: about ``AHEAD`` + 1 batches. Pillow decodes without holding Python's lock, so threads add up.
    """

    indexed = True
    crops = True

    def __init__(
        self,
        source: Source,
        labels: Tensor,
        classes: Sequence[str],
        form: Format,
        rows: Indices | None = None,
    ) -> None:
        self.source = source
        self.rows = np.arange(len(labels)) if rows is None else np.asarray(rows, dtype=np.int64)
        self.labels = check_labels(labels, len(self.rows), len(classes))
        self.classes = tuple(classes)
        self.form = form
        self.size = form.size
        self.channels = form.channels

    @cached_property
    def fingerprint(self) -> str:
        """Short hash of the source's names and sizes, the labels, the classes and the shape."""
        described = repr((self.classes, self.size, self.channels, self.source.identity(self.rows.tolist())))
        return hashlib.sha256(described.encode() + self.labels.numpy().tobytes()).hexdigest()[:16]

    def __len__(self) -> int:
        return len(self.labels)

    def take(self, indices: Indices) -> FileImages:
        """A set of the images at ``indices``, in that order; nothing is read."""
        chosen = np.asarray(indices, dtype=np.int64)
        labels = self.labels[torch.from_numpy(chosen)]
        return FileImages(self.source, labels, self.classes, self.form, self.rows[chosen])

    def walk(self, how: Pass) -> Iterator[Batch]:
        """One pass, decoding a few batches ahead."""

        def shown(index: int) -> Tensor:
            return self.decode(index, RandomPart.of(how, index))

        groups = (rows.tolist() for rows in how.rows(len(self)))
        for group, images in work_ahead(groups, shown, self.form.workers):
            indices = torch.tensor(group, dtype=torch.int64)
            yield Batch(stacked(images, self), self.labels[indices], indices)

    def decode(self, index: int, part: RandomPart | None = None) -> Tensor:
        """The image at ``index`` as bytes (c, h, w), or a part of it."""
        row = int(self.rows[index])
        try:
            return decode(self.source.opened(row), self.size, self.channels, part)
        except UnreadableError as error:
            raise DataError(f"cannot read the image {self.source.name(row)}: {error}.") from error

    def cache(self) -> tuple[KeptImages, list[str]]:
        """All images decoded into memory, and what is wrong with those that cannot be read (left black)."""
        pixels = torch.zeros((len(self), self.channels, *self.size), dtype=torch.uint8)

        def keep(index: int) -> None:
            pixels[index] = decode(self.source.opened(int(self.rows[index])), self.size, self.channels)

        problems = self._problems(keep)
        return KeptImages(pixels, self), problems

    def unreadable(self, decoding: bool = True, first: int = 0, step: int = 1) -> list[str]:
        """What is wrong with each image that cannot be read, found by decoding or by its header only.

        Of every ``step``-th image from ``first`` on.
        """

        def look(index: int) -> None:
            opened = self.source.opened(int(self.rows[index]))
            if decoding:
                decode(opened, _GLANCE, self.channels)
            else:
                measure(opened)

        return self._problems(look, range(first, len(self), step))

    def _problems(self, visit: Callable[[int], None], indices: range | None = None) -> list[str]:
        def problem_of(index: int) -> str | None:
            try:
                visit(index)
            except UnreadableError as error:
                return f"{self.source.name(int(self.rows[index]))}: {error}"
            return None

        chosen = range(len(self)) if indices is None else indices
        groups = (chosen[first : first + CHECKED] for first in range(0, len(chosen), CHECKED))
        results = work_ahead(groups, problem_of, self.form.workers)
        return [problem for _, group in results for problem in group if problem]


class KeptImages(ArrayImages):
    """Images of files decoded into memory; random parts of whole images are still read from the files."""

    crops = True

    def __init__(self, images: Tensor, files: FileImages) -> None:
        super().__init__(images, files.labels, files.classes)
        self.files = files

    def take(self, indices: Indices) -> KeptImages:
        """A set of the images at ``indices``, in that order (a copy)."""
        return KeptImages(super().take(indices).images, self.files.take(indices))

    def walk(self, how: Pass) -> Iterator[Batch]:
        """One pass over what is in memory, or over parts of what is in the files."""
        return super().walk(how) if how.crop is None else self.files.walk(how)


class LazyImages(FileImages):
    """Images of files, each kept in memory from its first use on: for a process that needs only some of them.

    What is taken from a set shares what is kept.
    """

    kept: dict[int, Tensor]

    @classmethod
    def of(cls, files: FileImages, kept: dict[int, Tensor] | None = None) -> LazyImages:
        """The same images, of which ``kept`` are decoded already, by the rows of their source."""
        images = cls(files.source, files.labels, files.classes, files.form, files.rows)
        images.kept = {} if kept is None else kept
        return images

    @cached_property
    def fingerprint(self) -> str:
        """That of the same images in memory, which decodes them all."""
        pixels = stacked([self.decode(index) for index in range(len(self))], self)
        return ArrayImages(pixels, self.labels, self.classes).fingerprint

    def take(self, indices: Indices) -> LazyImages:
        """A set of the images at ``indices``, in that order; nothing is read."""
        return LazyImages.of(super().take(indices), self.kept)

    def decode(self, index: int, part: RandomPart | None = None) -> Tensor:
        """The image at ``index``, decoded at most once, or a part of it; see :meth:`FileImages.decode`."""
        row = int(self.rows[index])
        if part is not None:
            return super().decode(index, part)
        if row not in self.kept:
            self.kept[row] = super().decode(index)
        return self.kept[row]


@dataclass(frozen=True)
class Checked:
    """What one process has found out about the images of a dataset, so that others need not: of each part in turn.

    ``images`` are how many there are, ``left_out`` rows that a later part has as well; ``mean`` and ``std`` those of the
    training images.
    """

    images: tuple[int, ...]
    left_out: tuple[tuple[int, ...], ...]
    fingerprints: tuple[str, ...]
    mean: tuple[float, ...]
    std: tuple[float, ...]


def stacked(images: Sequence[Tensor], like: Images) -> Tensor:
    """Decoded images of a set as one tensor (n, c, h, w); there may be none."""
    return (
        torch.stack(list(images)) if images else torch.empty(0, like.channels, *like.size, dtype=torch.uint8)
    )


def fits_memory(parts: Sequence[IndexedImages]) -> bool:
    """Whether the images that are in files may be kept in memory, decoded."""
    in_files = [part for part in parts if isinstance(part, FileImages)]
    return sum(len(part) * part.channels * part.size[0] * part.size[1] for part in in_files) <= CACHED_BYTES


def prepare(parts: Sequence[IndexedImages], cache: bool | None, check: bool) -> list[IndexedImages]:
    """The parts, with those in files decoded into memory or checked; all unreadable images in one error.

    ``cache`` True decodes into memory, False leaves images in files, None decides by size (``CACHED_BYTES``
    for all parts). Images left in files are decoded once if ``check``, else only their headers are read.
    """
    keep = fits_memory(parts) if cache is None else cache
    ready: list[IndexedImages] = []
    problems: list[str] = []
    for part in parts:
        if not isinstance(part, FileImages) or (_checked.get() and not keep):
            ready.append(part)
            continue
        if _known.get() is not None:
            ready.append(LazyImages.of(part))
            continue
        kept, unreadable = part.cache() if keep else (part, part.unreadable(check))
        ready.append(kept)
        problems += unreadable
    refuse(problems)
    return ready


_checked = ContextVar("images left in files were checked", default=False)
_known = ContextVar[Checked | None]("what another process has found out", default=None)


@contextmanager
def checked_elsewhere(known: Checked | None = None) -> Iterator[None]:
    """Within it images that are left in files are not looked at before they are used: another process did that.

    With ``known`` nor are any compared with each other or decoded before: that process has told what it found.
    """
    before, known_before = _checked.set(True), _known.set(known)
    try:
        yield
    finally:
        _checked.reset(before)
        _known.reset(known_before)


def known_elsewhere() -> Checked | None:
    """What another process has found out about the images that are being read."""
    return _known.get()


def refuse(problems: Sequence[str]) -> None:
    """An error that lists what is wrong with images, if anything is."""
    if problems:
        advice = "Repair or remove them; nothing was trained."
        raise DataError(several(f"{len(problems)} images cannot be read", problems, advice))


def work_ahead(
    groups: Iterable[Sequence[Item]], work: Callable[[Item], Result], workers: int
) -> Iterator[tuple[Sequence[Item], list[Result]]]:
    """Each group with the results of its items, in order, while threads work on a few groups ahead."""
    pool = ThreadPoolExecutor(workers)
    waiting: deque[tuple[Sequence[Item], list[Future[Result]]]] = deque()
    try:
        for group in groups:
            waiting.append((group, [pool.submit(work, item) for item in group]))
            if len(waiting) > AHEAD:
                first, futures = waiting.popleft()
                yield first, [future.result() for future in futures]
        for first, futures in waiting:
            yield first, [future.result() for future in futures]
    finally:  # also when the reader stops early: do not decode what nobody waits for
        pool.shutdown(wait=True, cancel_futures=True)
