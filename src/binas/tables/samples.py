"""Architectures with their measured accuracy: what predictors learn from and estimators are judged by.

On disk (``samples.json``)::

    {"format": "binas/samples", "version": 1, "space": {"name": ..., "fingerprint": ...}, "unit": "percent",
     "samples": [{"architecture": "e3k5-e3k3_e4k5", "accuracy": 91.2, "error": 0.28, "images": 10000,
                  "halves": [91.0, 91.4], "correct": "9v8..."}, ...],
     "provenance": {"source": ...}}

``error`` is the standard error of the accuracy, ``images`` the number of images behind it, ``halves`` the
accuracies on two disjoint halves of these images, the same halves for every row: they tell how much of a
ranking is noise. ``correct`` says which images were classified rightly, a bit each in base64 (:func:`pack`), the same
images in the same order for every row: it tells how much of an error all rows share. All four may be left out.
"""

from __future__ import annotations

import base64
import binascii
import math
from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Annotated, Any, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel, ConfigDict, Field

from binas.base.errors import ArchitectureError, TableError, several
from binas.base.files import dump_json, read_json, write_text
from binas.space.architecture import Architecture
from binas.space.space import SearchSpace
from binas.tables.entries import Provenance, SpaceReference, reference
from binas.tables.reading import other_space, validate

Array = NDArray[np.float64]

FORMAT = "binas/samples"
FILE = "samples.json"

StrictFloat = Annotated[float, Field(strict=True)]


class SampleEntry(BaseModel):
    """One architecture and its accuracy."""

    model_config = ConfigDict(extra="forbid")
    architecture: str = Field(description="Compact string, e.g. e3k5-e3k3_e4k5")
    accuracy: StrictFloat = Field(description="Measured accuracy in percent")
    error: Annotated[float, Field(strict=True, allow_inf_nan=False)] | None = Field(
        None, description="Standard error in percentage points"
    )
    images: Annotated[int, Field(strict=True)] | None = Field(None, description="Images behind the accuracy")
    halves: Annotated[list[StrictFloat], Field(min_length=2, max_length=2)] | None = Field(
        None, description="Accuracy on each of two disjoint halves of the images, in percent"
    )
    correct: str | None = Field(
        None,
        description="Which images were classified rightly: a bit each, the first in the highest bit of a byte, base64",
    )


class SamplesFile(BaseModel):
    """A binas table of measured architectures, version 1: accuracy in percent."""

    model_config = ConfigDict(extra="forbid")
    format: Literal["binas/samples"]
    version: Literal[1]
    space: SpaceReference | None = None
    unit: Literal["percent"] = "percent"
    samples: list[SampleEntry]
    provenance: Provenance = Provenance()


@dataclass(frozen=True, slots=True)
class Sample:
    """One architecture with its accuracy in percent; NaN and None mean not known."""

    architecture: Architecture
    accuracy: float
    error: float = math.nan
    images: int | None = None
    halves: tuple[float, float] | None = None
    correct: str | None = None

    def to_data(self) -> dict[str, Any]:
        """The row of the file: only what is known."""
        data: dict[str, Any] = {"architecture": str(self.architecture), "accuracy": self.accuracy}
        if not math.isnan(self.error):
            data["error"] = self.error
        if self.images is not None:
            data["images"] = self.images
        if self.halves is not None:
            data["halves"] = list(self.halves)
        if self.correct is not None:
            data["correct"] = self.correct
        return data


def pack(correct: NDArray[np.bool_]) -> str:
    """Which images were classified rightly, (images,), as text: a bit each in base64."""
    return base64.b64encode(np.packbits(correct).tobytes()).decode("ascii")


def unpack(text: str, images: int) -> NDArray[np.bool_]:
    """What :func:`pack` wrote, (images,); an error where it is not that of so many images."""
    try:
        data = np.frombuffer(base64.b64decode(text, validate=True), dtype=np.uint8)
    except (binascii.Error, ValueError) as error:
        raise TableError(f"the outcomes of images cannot be read: {error}.") from error
    if len(data) != -(-images // 8):
        raise TableError(f"there are {8 * len(data)} bits for the outcomes of {images} images.")
    return np.unpackbits(data, count=images).astype(bool)


@dataclass(frozen=True, eq=False)
class Samples:
    """Measured architectures of one space, each at most once."""

    space: SearchSpace
    rows: tuple[Sample, ...]
    provenance: Provenance = field(default_factory=Provenance)

    def __post_init__(self) -> None:
        problems = _row_problems(self.space, self.rows)
        if problems:
            raise TableError(several(f"samples of {self.space.name!r}", problems))

    def __len__(self) -> int:
        return len(self.rows)

    @property
    def architectures(self) -> list[Architecture]:
        """The architecture of every row."""
        return [row.architecture for row in self.rows]

    @cached_property
    def accuracy(self) -> Array:
        """Accuracies in percent, (n,)."""
        return np.array([row.accuracy for row in self.rows], dtype=np.float64)

    @cached_property
    def error(self) -> Array:
        """Standard errors in points, (n,); NaN where not known."""
        return np.array([row.error for row in self.rows], dtype=np.float64)

    @cached_property
    def halves(self) -> Array | None:
        """Accuracies on the two halves of the images, (n, 2); None unless every row has them."""
        known = [row.halves for row in self.rows if row.halves is not None]
        return np.array(known) if known and len(known) == len(self.rows) else None

    @cached_property
    def outcomes(self) -> NDArray[np.bool_] | None:
        """Which images each architecture classifies rightly, (n, images); None unless every row says it of as many."""
        known = [unpack(row.correct, row.images) for row in self.rows if row.correct and row.images]
        same = len(known) == len(self.rows) > 0 and len({len(row) for row in known}) == 1
        return np.stack(known) if same else None

    def take(self, indices: Iterable[int]) -> Samples:
        """The rows at these indices, in this order."""
        return Samples(self.space, tuple(self.rows[i] for i in indices), self.provenance)

    def split(self, count: int, seed: int) -> tuple[Samples, Samples]:
        """``count`` rows drawn at random, and the others."""
        if not 0 <= count <= len(self):
            raise TableError(f"cannot take {count} of {len(self)} samples; measure more architectures.")
        order = np.random.default_rng(seed).permutation(len(self)).tolist()
        return self.take(order[:count]), self.take(order[count:])

    def to_data(self) -> dict[str, Any]:
        """The JSON object of the file."""
        return {
            "format": FORMAT,
            "version": 1,
            "space": reference(self.space),
            "unit": "percent",
            "samples": [row.to_data() for row in self.rows],
            "provenance": self.provenance.to_data(),
        }

    def sentence(self) -> str:
        """The range of what was measured."""
        accuracy, images = self.accuracy, self.provenance.to_data().get("images", 0)
        return (
            f"{len(self)} architectures on {images:,} images: {accuracy.min():.2f} to {accuracy.max():.2f} %, mean "
            f"{accuracy.mean():.2f} %"
        )

    def save(self, path: Path) -> None:
        """Write as JSON, atomically."""
        write_text(Path(path), dump_json(self.to_data()))


def _row_problems(space: SearchSpace, rows: tuple[Sample, ...]) -> list[str]:
    problems, seen = [], dict[Architecture, int]()
    for number, row in enumerate(rows, 1):
        try:
            space.check(row.architecture)
        except ArchitectureError as error:
            problems.append(f"row {number}: {str(error).rstrip('.')}")
            continue
        first = seen.setdefault(row.architecture, number)
        if first != number:
            problems.append(f"rows {first} and {number} are the same architecture; keep one of them")
        problems += [f"row {number}: {text}" for text in _number_problems(row)]
    return problems


def _number_problems(row: Sample) -> list[str]:
    problems = []
    for name, value in (("accuracy", row.accuracy), *(("halves", half) for half in row.halves or ())):
        if not 0.0 <= value <= 100.0:
            problems.append(f"{name} is {value}, not a percentage")
    if math.isinf(row.error) or row.error < 0:
        problems.append(f"error is {row.error}")
    if row.images is not None and row.images < 1:
        problems.append(f"images is {row.images}")
    elif row.correct is not None:
        problems += _bit_problems(row)
    return problems


def _bit_problems(row: Sample) -> list[str]:
    """What is wrong with the outcomes of single images."""
    if row.images is None:
        return ["correct is there without images, the number of its bits"]
    try:
        share = 100 * float(unpack(row.correct or "", row.images).mean())
    except TableError as error:
        return [f"correct: {str(error).rstrip('.')}"]
    told = abs(share - row.accuracy) <= 1e-6
    return [] if told else [f"correct says {share:.6g} %, accuracy {row.accuracy:.6g}"]


def samples_from_data(data: Any, space: SearchSpace, where: str) -> Samples:
    """Build from the JSON object, checking everything and reporting all problems at once."""
    parsed = validate(SamplesFile, data, where)
    problems = other_space(parsed.space, space)
    rows = []
    for number, entry in enumerate(parsed.samples, 1):
        try:
            rows.append(_row(entry))
        except ArchitectureError as error:
            problems.append(f"row {number}: {str(error).rstrip('.')}")
    problems = problems or _row_problems(space, tuple(rows))
    if problems:
        advice = f"Every row must be another architecture of the space {space.name!r} with a finite accuracy."
        raise TableError(several(where, problems, advice))
    return Samples(space, tuple(rows), parsed.provenance)


def _row(entry: SampleEntry) -> Sample:
    return Sample(
        Architecture.parse(entry.architecture),
        entry.accuracy,
        math.nan if entry.error is None else entry.error,
        entry.images,
        None if entry.halves is None else (entry.halves[0], entry.halves[1]),
        entry.correct,
    )


def load_samples(path: Path, space: SearchSpace) -> Samples:
    """Read measured architectures (JSON) and check them against the space."""
    return samples_from_data(read_json(Path(path), allow_nan=True), space, str(path))
