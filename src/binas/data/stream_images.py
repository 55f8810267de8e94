"""Images read along from a Hugging Face stream: nothing is downloaded first, nothing kept."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from itertools import islice
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from binas.base.errors import DataError
from binas.data.config import DataConfig
from binas.data.dataset import ImageData
from binas.data.decoding import RandomPart, UnreadableError, decode
from binas.data.division import Division
from binas.data.file_images import stacked, work_ahead
from binas.data.huggingface import class_names, encoded, label_number, load_splits
from binas.data.images import Batch, Batched, Pass, check_labels

Row = tuple[int, dict[str, Any]]


class StreamImages(Batched):
    """One pass after another over a stream; shuffled within a buffer (and by files where the split allows).

    An index is a position in the pass, not an image. Resuming reads again what was consumed, without
    decoding it. Memory: the buffer's encoded images and a few decoded batches.
    """

    indexed = False
    crops = True

    def __init__(
        self, stream: Any, length: int, classes: Sequence[str], source: DataConfig, title: str
    ) -> None:
        self.stream = stream
        self.length = length
        self.classes = tuple(classes)
        self.size = source.form.size
        self.channels = source.form.channels
        self.source = source
        self.title = title
        self._numbers = {text: number for number, text in enumerate(self.classes)}

    @property
    def fingerprint(self) -> str:
        """Short hash of the stream's description, part, length and classes: not of its content."""
        description = self.source.model_dump_json(exclude={"workers", "shuffle_buffer"})
        described = repr((description, self.title, self.length, self.classes))
        return hashlib.sha256(described.encode()).hexdigest()[:16]

    def __len__(self) -> int:
        return self.length

    def walk(self, how: Pass) -> Iterator[Batch]:
        """One pass, decoding a few batches ahead."""
        stream, first = self.stream, how.start * how.size
        if how.seed is not None:
            mixed = int(np.random.SeedSequence([how.seed, how.epoch]).generate_state(1)[0])
            stream = stream.shuffle(seed=mixed, buffer_size=self.source.shuffle_buffer)
        rows = enumerate(self._rows(stream.skip(first), first), first)
        for group, images in work_ahead(_groups(rows, how), partial(self._decode, how), self.source.workers):
            labels = [label_number(row[self.source.label_column], self._numbers) for _, row in group]
            indices = torch.tensor([position for position, _ in group], dtype=torch.int64)
            checked = self._check(labels) if labels else torch.empty(0, dtype=torch.int64)
            yield Batch(stacked(images, self), checked, indices)

    def _rows(self, stream: Any, first: int) -> Iterator[dict[str, Any]]:
        """The rows from position ``first`` up to the declared length, no more and no fewer."""
        seen = first
        for row in islice(_read(stream, self.title), self.length - first):
            seen += 1
            yield row
        if seen < self.length:
            raise DataError(
                f"{self.title} ended after {seen} images, but its length is given as {self.length}. Set "
                "data.length to the number of images it has."
            )

    def _decode(self, how: Pass, numbered: Row) -> Tensor:
        position, row = numbered
        part = RandomPart.of(how, position)
        try:
            return decode(encoded(row[self.source.image_column]), self.size, self.channels, part)
        except UnreadableError as error:
            raise DataError(f"cannot read image {position} of {self.title}: {error}.") from error

    def _check(self, labels: list[int]) -> Tensor:
        try:
            return check_labels(torch.tensor(labels), len(labels), len(self.classes))
        except DataError as error:
            raise DataError(f"{self.title}: {error}") from error


def read_stream(source: DataConfig, how: Division) -> ImageData:
    """The dataset of a stream: its own splits, or parts of the training split by position.

    Labels are not known before reading, so parts by position are drawn without regard to class. They keep
    the order of the files, so that a position always means the same image.
    """
    splits = load_splits(source)
    classes = class_names(splits["train"][1], source)
    streams = {kind: stream for kind, (_, stream) in splits.items()}
    lengths = {
        kind: _length(stream, name, source.length if kind == "train" else None, source)
        for kind, (name, stream) in splits.items()
    }
    if how.limit is not None:
        lengths = {kind: min(length, how.limit) for kind, length in lengths.items()}
        streams = {kind: stream.take(lengths[kind]) for kind, stream in streams.items()}
    _divide_by_position(streams, lengths, how)
    train, validation, test = (
        StreamImages(streams[kind], lengths[kind], classes, source, f"{source.title}, {kind}")
        for kind in ("train", "validation", "test")
    )
    for part in (train, validation, test):  # now, not after hours of training
        if next(part.batches(1), None) is None:
            raise DataError(f"there are no images in {part.title}.")
    return ImageData.of(source.title, train, validation, test)


def _divide_by_position(streams: dict[str, Any], lengths: dict[str, int], how: Division) -> None:
    """Add the parts that are missing to ``streams`` and ``lengths``, taken from the training stream."""
    test = 0.0 if "test" in streams else how.test_share
    validation = 0.0 if "validation" in streams else how.validation_share * (1 - test)
    if not test + validation:
        return
    whole, length = streams["train"], lengths["train"]
    draw = np.random.default_rng([how.seed]).random(length)
    number = np.digitize(draw, [test, test + validation])
    for value, kind in enumerate(("test", "validation", "train")):
        if kind in streams and kind != "train":
            continue
        mask = number == value
        if not mask.any():
            raise DataError(f"the stream's {length} images are too few to split off a part for {kind}.")
        # take() keeps shuffle() from changing the order of the files, on which positions depend.
        streams[kind] = whole.take(length).filter(partial(_at, mask), with_indices=True, input_columns=[])
        lengths[kind] = int(mask.sum())


def _at(mask: NDArray[np.bool_], position: int) -> bool:
    return bool(mask[position])


def _length(stream: Any, split: str, declared: int | None, source: DataConfig) -> int:
    """Images of a split: as declared, as its metadata says, or counted by reading the labels once."""
    told = (stream.info.splits or {}).get(split)
    length = declared or (told.num_examples if told is not None else 0)
    return int(length or sum(1 for _ in _read(stream.select_columns([source.label_column]), source.title)))


def _read(stream: Any, title: str) -> Iterator[dict[str, Any]]:
    try:
        yield from stream
    except Exception as error:  # damaged files, lost connections: each file system and format has its own
        reason = (str(error).splitlines() or [type(error).__name__])[0]
        raise DataError(f"cannot read on in {title}: {reason}") from error


def _groups(rows: Iterable[Row], how: Pass) -> Iterator[list[Row]]:
    iterator = iter(rows)
    while group := list(islice(iterator, how.size)):
        if len(group) == how.size or not how.drop_last:
            yield [group[place] for place in how.kept(len(group))]
