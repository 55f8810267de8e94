"""The description of a dataset in a run's configuration."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field, model_validator

Kind = Literal["embedded", "fashion-mnist", "folder", "huggingface", "arrays"]

_COMMON = {"kind", "validation_share", "seed", "limit"}
_DECODED = {"path", "size", "channels", "test_share", "cache", "workers", "train", "validation", "test"}
_NAMED = {"name", "subset", "image_column", "label_column", "streaming", "length", "shuffle_buffer"}
_OF_KIND: dict[str, set[str]] = {
    "embedded": _COMMON,
    "fashion-mnist": _COMMON | {"path"},
    "arrays": _COMMON | {"path", "test_share"},
    "folder": _COMMON | _DECODED,
    "huggingface": _COMMON | _DECODED | _NAMED,
}


class DataConfig(BaseModel):
    """Where images come from and how they are divided. A field that a kind does not use is refused."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    kind: Kind = Field(
        "embedded",
        description="embedded: the Fashion-MNIST sample of binas; fashion-mnist: its four idx files; "
        "folder: one subfolder of images per class; huggingface: anything datasets.load_dataset reads; "
        "arrays: an .npz file.",
    )
    path: Path | None = Field(
        None, description="Folder or file to read; for huggingface a local folder or Parquet file."
    )
    name: str | None = Field(None, description="huggingface: the name of a dataset on the hub.")
    subset: str | None = Field(
        None, description="huggingface: the configuration of the dataset, if it has several."
    )
    train: str = Field("train", description="Name of the training part (subfolder or split).")
    validation: str | None = Field(
        None, description="Name of the validation part; default: found by its usual names, else split off."
    )
    test: str | None = Field(
        None, description="Name of the test part; default: found by its usual name, else split off."
    )
    image_column: str = Field("image", description="huggingface: the column that holds the images.")
    label_column: str = Field("label", description="huggingface: the column that holds the labels.")
    size: int | None = Field(
        None, ge=1, le=4096, description="Pixels per side; images are resized and cropped to it."
    )
    channels: Literal[1, 3] = Field(3, description="1: converted to grey; 3: converted to colour.")
    validation_share: float = Field(0.2, gt=0, lt=1, description="Share of every class kept for validation.")
    test_share: float = Field(0.2, gt=0, lt=1, description="Share kept for testing if there is no test part.")
    seed: int = Field(0, ge=0, description="Which images go to which part.")
    limit: int | None = Field(
        None, ge=1, description="At most about this many images to train and validate, and to test."
    )
    cache: bool | None = Field(
        None, description="Keep decoded images in memory; default: if they take at most 1 GiB."
    )
    workers: int = Field(4, ge=1, le=256, description="Threads that read and decode images.")
    streaming: bool = Field(False, description="huggingface: read along instead of downloading all first.")
    length: int | None = Field(
        None, ge=1, description="huggingface, streaming: images of the training split, if it does not say."
    )
    shuffle_buffer: int = Field(
        4096, ge=1, description="huggingface, streaming: images among which the next is drawn."
    )

    @model_validator(mode="after")
    def _uses_all(self) -> DataConfig:
        unused = sorted(self.model_fields_set - _OF_KIND[self.kind])
        if unused:
            raise ValueError(f"data of the kind {self.kind!r} does not use {', '.join(unused)}")
        if self.kind in ("arrays", "folder") and self.path is None:
            raise ValueError(f"data of the kind {self.kind!r} needs a path")
        if self.kind == "folder" and self.size is None:
            raise ValueError(f"data of the kind {self.kind!r} needs a size")
        return self
