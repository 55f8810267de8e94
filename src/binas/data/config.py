"""What a configuration says about images: where they come from, and how training changes them. Loads no torch.

Another installed package adds a kind of data with an entry point in the group ``binas.datasets`` that names a function
``(DataConfig) -> ImageData``.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from pydantic import Field, PositiveInt, field_validator, model_validator

from binas.base.errors import DataError
from binas.base.plugins import Registry
from binas.base.settings import FileRecord, Settings

if TYPE_CHECKING:
    from binas.data.dataset import ImageData

KINDS = Registry(
    "kind of data",
    "binas.datasets",
    {
        "embedded": "binas.data.loading:load_embedded",
        "fashion-mnist": "binas.data.loading:load_fashion_mnist",
        "folder": "binas.data.loading:load_folder",
        "huggingface": "binas.data.loading:load_huggingface",
        "arrays": "binas.data.loading:load_arrays",
    },
    lambda thing: None if callable(thing) else "is no function of a DataConfig",
    DataError,
)
PARTS = ("train", "validation", "test")
USUAL_NAMES = {"validation": ("validation", "val", "valid"), "test": ("test",)}
_COMMON = {"kind", "validation_share", "seed", "limit"}
_DECODED = {"path", "size", "channels", "test_share", "workers", "train", "validation", "test"}
_KEPT = {"cache", "check_images"}
_TABLE = {"name", "subset", "image_column", "label_column", "class_names", "streaming"}
_STREAM = {"length", "shuffle_buffer"}
_OF_KIND: dict[str, set[str]] = {
    "embedded": _COMMON | {"turned"},
    "fashion-mnist": _COMMON | {"path", "turned"},
    "arrays": _COMMON | {"path", "test_share"},
    "folder": _COMMON | _DECODED | _KEPT,
    "huggingface": _COMMON | _DECODED | _KEPT | _TABLE,
    "huggingface with streaming": _COMMON | _DECODED | _TABLE | _STREAM,
}
_OF_A_PLUGIN = _COMMON | _DECODED | {"name"}


@dataclass(frozen=True)
class Names:
    """Subfolders (or splits) of the parts; None: found by their usual names, or split off."""

    train: str = "train"
    validation: str | None = None
    test: str | None = None

    def choose(self, present: Sequence[str], where: str) -> dict[str, str]:
        """The part of each kind among those ``present``; a part that is named must be there, and only once."""
        asked = {"train": self.train, "validation": self.validation, "test": self.test}
        chosen = {kind: name for kind, name in asked.items() if name is not None}
        missing = [name for name in chosen.values() if name not in present]
        if missing or len(set(chosen.values())) < len(chosen):
            wrong = f"has no part {missing[0]!r}" if missing else "is given the same part twice"
            raise DataError(
                f"{where} {wrong}; it has {', '.join(present) or 'none'}. Name train, validation, test."
            )
        for kind, usual in USUAL_NAMES.items():
            free = [name for name in usual if name in present and name not in chosen.values()]
            if kind not in chosen and free:
                chosen[kind] = free[0]
        return chosen


@dataclass(frozen=True)
class Format:
    """What images are decoded to: ``size`` (h, w) in pixels, 1 or 3 channels; and by how many threads."""

    size: tuple[int, int]
    channels: int = 3
    workers: int = 4


class AugmentConfig(Settings):
    """What is done to training images, in this order; everything off is plain normalisation."""

    crop: int = Field(
        default=0, ge=0, description="Pixels of black border before a random crop of the old size; 0: off."
    )
    resized_crop: float | None = Field(
        default=None,
        gt=0,
        le=1,
        description="Least share of the area that a random crop keeps before it is enlarged.",
    )
    flip: bool = Field(default=False, description="Mirror left and right, every second image on average.")
    auto: Literal["none", "autoaugment", "randaugment"] = Field(
        default="none", description="A policy of kornia."
    )
    policies: int = Field(
        default=8,
        ge=1,
        description="auto: parts of a batch that draw their own policy; the batch size: one per image.",
    )
    operations: int = Field(default=2, ge=1, le=15, description="randaugment: operations per image.")
    magnitude: int = Field(
        default=9, ge=1, le=29, description="randaugment: strength of each operation, of 30."
    )
    cutout: int = Field(default=0, ge=0, description="Side in pixels of a square set to the mean; 0: off.")
    erasing: float = Field(default=0.0, ge=0, le=1, description="Probability of a rectangle set to the mean.")
    mixup: float = Field(
        default=0.0, ge=0, description="Alpha of the Beta distribution images are mixed by; 0: off."
    )

    @model_validator(mode="after")
    def _one_crop(self) -> AugmentConfig:
        if self.crop and self.resized_crop is not None:
            raise ValueError("crop and resized_crop exclude each other; set one of them")
        return self


class DataConfig(Settings):
    """Where images come from and how they are divided. A field that the kind does not use is refused."""

    kind: str = Field(
        default="embedded",
        description="embedded: the Fashion-MNIST sample of binas; fashion-mnist: its four idx files; "
        "folder: one subfolder of images per class; huggingface: anything datasets.load_dataset reads; "
        "arrays: an .npz file; or a kind that an installed package adds.",
    )
    path: Path | None = Field(
        default=None, description="Folder or file to read; for huggingface a local folder or Parquet file."
    )
    name: str | None = Field(default=None, description="huggingface: the name of a dataset on the hub.")
    subset: str | None = Field(default=None, description="huggingface: its configuration, if it has several.")
    train: str = Field(default="train", description="Name of the training part (subfolder or split).")
    validation: str | None = Field(
        default=None, description="Name of the validation part; default: by its usual names, else split off."
    )
    test: str | None = Field(
        default=None, description="Name of the test part; default: by its usual name, else split off."
    )
    turned: bool = Field(
        default=False,
        description="embedded, fashion-mnist: each image turned by 0 to 2 quarters, which is to be told as well: 30 classes "
        "instead of 10.",
    )
    image_column: str = Field(default="image", description="huggingface: the column that holds the images.")
    label_column: str = Field(default="label", description="huggingface: the column that holds the labels.")
    class_names: tuple[str, ...] | None = Field(
        default=None,
        min_length=2,
        description="huggingface: names of labels 0, 1, ..., if the data has none.",
    )
    size: int | None = Field(
        default=None, ge=1, le=4096, description="Pixels per side; images are resized and cropped to it."
    )
    channels: Literal[1, 3] = Field(default=3, description="1: converted to grey; 3: converted to colour.")
    validation_share: float = Field(
        default=0.2, gt=0, lt=1, description="Share of every class kept for validation."
    )
    test_share: float = Field(
        default=0.2, gt=0, lt=1, description="Share of every class kept for testing if there is no test part."
    )
    seed: int = Field(default=0, ge=0, description="Decides which images go to which part.")
    limit: int | None = Field(
        default=None, ge=1, description="At most about this many images to train and validate, and to test."
    )
    cache: bool | None = Field(
        default=None, description="Keep decoded images in memory; default: if they take at most 1 GiB."
    )
    check_images: bool = Field(
        default=True, description="Decode every image once before training; off: read headers only."
    )
    workers: int = Field(default=4, ge=1, le=256, description="Threads that read and decode images.")
    streaming: bool = Field(default=False, description="huggingface: read along, download nothing first.")
    length: int | None = Field(
        default=None, ge=1, description="streaming: images of the training split, if it does not tell."
    )
    shuffle_buffer: int = Field(
        default=4096, ge=1, description="streaming: images among which the next ones are drawn."
    )

    @field_validator("kind")
    @classmethod
    def _known(cls, kind: str) -> str:
        if kind not in KINDS:
            raise ValueError(f"must be one of {', '.join(KINDS)}")
        return kind

    @model_validator(mode="after")
    def _consistent(self) -> DataConfig:
        kind = f"{self.kind} with streaming" if self.kind == "huggingface" and self.streaming else self.kind
        unused = sorted(self.model_fields_set - _OF_KIND.get(kind, _OF_A_PLUGIN))
        if unused:
            raise ValueError(f"data of the kind {kind} does not use {', '.join(unused)}")
        if self.kind in ("arrays", "folder") and self.path is None:
            raise ValueError(f"data of the kind {self.kind} needs a path")
        if self.kind == "huggingface" and (self.path is None) == (self.name is None):
            raise ValueError("data of the kind huggingface needs either a path or a name on the hub")
        if self.kind in ("folder", "huggingface") and self.size is None:
            raise ValueError(f"data of the kind {self.kind} needs a size, such as 224")
        return self

    @property
    def names(self) -> Names:
        """The names of the parts."""
        return Names(self.train, self.validation, self.test)

    @property
    def form(self) -> Format:
        """What images are decoded to."""
        assert self.size is not None  # required above for every kind that decodes
        return Format((self.size, self.size), self.channels, self.workers)

    @property
    def title(self) -> str:
        """What to call the data in messages and reports."""
        return self.name or (self.path.name if self.path is not None else self.kind)


class DataRecord(FileRecord):
    """What the images of a run are."""

    fingerprint: str
    images: dict[str, PositiveInt]
    classes: tuple[str, ...]
    channels: PositiveInt
    height: PositiveInt
    width: PositiveInt

    @field_validator("images")
    @classmethod
    def _all_parts(cls, images: dict[str, int]) -> dict[str, int]:
        if set(images) != set(PARTS):
            raise ValueError(f"there must be numbers of {', '.join(PARTS)} images, and no others")
        return {name: images[name] for name in PARTS}

    @classmethod
    def of(cls, data: ImageData) -> DataRecord:
        """What is known of images that were read."""
        height, width = data.size
        return cls(
            fingerprint=data.fingerprint(),
            images={name: len(getattr(data, name)) for name in PARTS},
            classes=data.classes,
            channels=data.channels,
            height=height,
            width=width,
        )

    def sentence(self) -> str:
        """Numbers and shape, for people."""
        train, validation, test = self.images.values()
        return (
            f"{train:,} images to train with, {validation:,} to validate, {test:,} to test; {len(self.classes)} classes of "
            f"{self.channels} x {self.height} x {self.width}"
        )
