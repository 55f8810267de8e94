"""Images read along from a Hugging Face stream: nothing is downloaded first, nothing kept."""

from __future__ import annotations

import hashlib
import logging
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial
from itertools import count, islice
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
from binas.data.images import Batch, Batched, Pass, check_labels, check_names

AT_ONCE = 64  # rows taken from the library: one by one they cost ten times as much
LOG = logging.getLogger("binas")

Row = tuple[int, dict[str, Any]]


class StreamImages(Batched):
    """One pass after another over a stream; shuffled within a buffer (and by files where the split allows).

    A shuffled pass by n shards is shared out where there are n of ``files`` or more, 1 being said of a stream whose files
    cannot be read apart: the files are shuffled by (seed, epoch), and shard i reads those at i, i + n, ..., shuffled
    within an n-th of the buffer. Such shares differ in length, while every shard gives its places of each batch: what a
    longer one has left at the end is not shown in this epoch, and a shard that is through goes on with its share of the
    files shuffled anew. All other passes read the whole stream, whatever their places.

    An index is a position in the pass, not an image. Resuming reads again what was consumed, without
    decoding it. Memory: the buffer's encoded images and a few decoded batches.
    """

    indexed = False
    crops = True

    def __init__(
        self, stream: Any, length: int, classes: Sequence[str], source: DataConfig, title: str, files: int
    ) -> None:
        self.stream = stream
        self.length = length
        self.files = files
        self.classes = tuple(classes)
        self.size = source.form.size
        self.channels = source.form.channels
        self.source = source
        self.title = title
        self._numbers = {text: number for number, text in enumerate(self.classes)}
        self._told = False

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
        how = self._by_files(how)
        for group, images in work_ahead(self._groups(how), partial(self._decode, how), self.source.workers):
            labels = [label_number(row[self.source.label_column], self._numbers) for _, row in group]
            indices = torch.tensor([position for position, _ in group], dtype=torch.int64)
            checked = self._check(labels) if labels else torch.empty(0, dtype=torch.int64)
            yield Batch(stacked(images, self), checked, indices)

    def _by_files(self, how: Pass) -> Pass:
        """The pass, of one shard where it cannot be shared out; the process of the first image says what that costs."""
        if how.shards == 1 or (how.seed is not None and how.shards <= self.files):
            return how
        wanted = how.kept(how.size)
        if how.seed is not None and 0 in wanted and len(wanted) < how.size and not self._told:
            self._told = True
            LOG.warning(
                "%s is read whole by every process: giving each of %d shards files of its own takes as many files, splits "
                "for validation and test, and no limit.",
                self.title,
                how.shards,
            )
        return replace(how, shards=1)

    def _groups(self, how: Pass) -> Iterator[list[Row]]:
        """Of each batch the rows at the wanted places, with their positions; place p is that of shard p modulo n."""
        n, wanted = how.shards, {place % how.shards for place in how.kept(how.size)}
        shares = {shard: self._share(how, shard) for shard in wanted}
        for span in how.spans(self.length):
            read = {i: list(islice(rows, len(range(i, len(span), n)))) for i, rows in shares.items()}
            yield [(span[place], read[place % n][place // n]) for place in how.kept(len(span))]

    def _share(self, how: Pass, shard: int) -> Iterator[dict[str, Any]]:
        """The rows of one shard from batch ``how.start`` on, without end where the stream is shared out."""
        skipped = how.start * len(range(shard, how.size, how.shards))
        return islice(self._rounds(how, shard), skipped, None)

    def _rounds(self, how: Pass, shard: int) -> Iterator[dict[str, Any]]:
        """The whole stream, once, or one share of its files after another; fewer rows than are asked for are an error."""
        for number in count():
            seen = 0
            for row in _read(self._shuffled(how, shard, number), self.title):
                seen += 1
                yield row
            if how.shards == 1:
                raise DataError(
                    f"{self.title} ended after {seen} images, but its length is given as {self.length}. Set "
                    "data.length to the number of images it has."
                )
            if not seen:
                raise DataError(
                    f"files of {self.title} hold no images. Remove them, or train in fewer shards."
                )

    def _shuffled(self, how: Pass, shard: int, number: int) -> Any:
        """The stream in the order of a pass, or one shard's share of its files, shuffled for the ``number``-th time."""
        if how.seed is None:
            return self.stream
        mixed = int(np.random.SeedSequence([how.seed, how.epoch, number]).generate_state(1)[0])
        buffer = max(1, self.source.shuffle_buffer // how.shards)
        order = self.stream.shuffle(seed=mixed, buffer_size=buffer)
        if how.shards == 1:
            return order
        share = order.shard(how.shards, shard, contiguous=False)
        share.set_epoch(shard)  # draws of its own from the buffer
        return share

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
    check_names(classes, source.title)
    streams = {kind: stream for kind, (_, stream) in splits.items()}
    lengths = {
        kind: _length(stream, name, source.length if kind == "train" else None, source)
        for kind, (name, stream) in splits.items()
    }
    if how.limit is not None:
        lengths = {kind: min(length, how.limit) for kind, length in lengths.items()}
        streams = {kind: stream.take(lengths[kind]) for kind, stream in streams.items()}
    _divide_by_position(streams, lengths, how)
    whole = {kind: stream.num_shards for kind, (_, stream) in splits.items() if streams[kind] is stream}
    train, validation, test = (
        StreamImages(
            streams[kind], lengths[kind], classes, source, f"{source.title}, {kind}", whole.get(kind, 1)
        )
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
        for some in stream.iter(batch_size=AT_ONCE):
            yield from (dict(zip(some, row, strict=True)) for row in zip(*some.values(), strict=True))
    except Exception as error:  # damaged files, lost connections: each file system and format has its own
        reason = (str(error).splitlines() or [type(error).__name__])[0]
        raise DataError(f"cannot read on in {title}: {reason}") from error
