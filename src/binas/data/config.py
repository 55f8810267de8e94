"""The description of a dataset in a run's configuration."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field, model_validator

from binas.data.decoding import Format
from binas.data.division import Names

Kind = Literal["embedded", "fashion-mnist", "folder", "huggingface", "arrays"]

_COMMON = {"kind", "validation_share", "seed", "limit"}
_DECODED = {"path", "size", "channels", "test_share", "workers", "train", "validation", "test"}
_KEPT = {"cache", "check_images"}
_TABLE = {"name", "subset", "image_column", "label_column", "class_names", "streaming"}
_STREAM = {"length", "shuffle_buffer"}
_OF_KIND: dict[str, set[str]] = {
    "embedded": _COMMON,
    "fashion-mnist": _COMMON | {"path"},
    "arrays": _COMMON | {"path", "test_share"},
    "folder": _COMMON | _DECODED | _KEPT,
    "huggingface": _COMMON | _DECODED | _KEPT | _TABLE,
    "huggingface with streaming": _COMMON | _DECODED | _TABLE | _STREAM,
}


class DataConfig(BaseModel):
    """Where images come from and how they are divided. A field that the kind does not use is refused."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)

    kind: Kind = Field(
        default="embedded",
        description="embedded: the Fashion-MNIST sample of binas; fashion-mnist: its four idx files; "
        "folder: one subfolder of images per class; huggingface: anything datasets.load_dataset reads; "
        "arrays: an .npz file.",
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

    @model_validator(mode="after")
    def _consistent(self) -> DataConfig:
        kind = f"{self.kind} with streaming" if self.kind == "huggingface" and self.streaming else self.kind
        unused = sorted(self.model_fields_set - _OF_KIND[kind])
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
