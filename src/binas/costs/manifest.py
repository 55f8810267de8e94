"""The manifest of a folder of exported blocks: which file stands for which entries of a cost table."""

from __future__ import annotations

import csv
import io
from pathlib import Path
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, StringConstraints

from binas.base.errors import TableError
from binas.base.files import dump_json, write_text
from binas.base.settings import Settings
from binas.base.typed import read_typed
from binas.tables.entries import SpaceReference

MANIFEST, FILL_IN, SPACE = "manifest.json", "fill-in.csv", "space.yaml"
HEADER = ["key", "file", "value", "unit"]
FileName = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9._+-]{1,200}\.onnx$")]


class BlockSettings(Settings):
    """What is exported beside the blocks of a space."""

    batch: int = Field(1, ge=1, description="images of one run")
    networks: int = Field(
        20,
        ge=0,
        le=1000,
        description="whole networks to measure too, so that the sum of blocks can be checked",
    )
    seed: int = Field(0, ge=0, description="of the drawn networks")


class Use(BaseModel):
    """One entry of a cost table: stage, block from 1, config."""

    model_config = ConfigDict(extra="forbid", frozen=True)
    stage: str
    block: int
    config: str


class BlockFile(BaseModel):
    """One ONNX file: a block with the entries it stands for, the fixed part, or a whole network."""

    model_config = ConfigDict(extra="forbid", frozen=True)
    key: str = Field(description="names the row of the CSV")
    kind: Literal["block", "fixed", "network"]
    file: FileName
    sha256: str
    inputs: tuple[tuple[int, ...], ...] = Field(description="shapes of x0, x1, ... with the batch")
    uses: tuple[Use, ...] = ()
    architecture: str | None = None


class Manifest(BaseModel):
    """What an exported folder holds."""

    model_config = ConfigDict(extra="forbid", frozen=True)
    format: Literal["binas/blocks"] = "binas/blocks"
    version: Literal[1] = 1
    tool: str
    space: SpaceReference
    batch: int = Field(ge=1, description="images of one run; a value is that of the whole batch")
    dtype: Literal["float32"] = "float32"
    files: tuple[BlockFile, ...] = Field(min_length=1)

    @property
    def counts(self) -> dict[str, int]:
        """How many files there are of each kind."""
        kinds = [item.kind for item in self.files]
        return {kind: kinds.count(kind) for kind in ("block", "fixed", "network")}

    def sentences(self, folder: Path) -> list[str]:
        """What is in the folder, and what to do with it."""
        blocks, _, networks = self.counts.values()
        return [
            f"wrote {blocks} blocks, the fixed part and {networks} networks to {folder}, for batch {self.batch}.",
            f"Measure every file and write the values into {folder / FILL_IN}, then:",
            f'binas costs import {folder / FILL_IN} --unit ms --device "..." --out costs.json',
        ]

    def save(self, folder: Path) -> None:
        """Write the manifest and the CSV to fill in."""
        write_text(folder / MANIFEST, dump_json(self.model_dump(mode="json", exclude_none=True)))
        write_text(folder / FILL_IN, self.fill_in())

    def fill_in(self) -> str:
        """The CSV to fill in: a row per file, value and unit empty."""
        buffer = io.StringIO()
        writer = csv.writer(buffer, lineterminator="\n")
        writer.writerow(HEADER)
        writer.writerows([item.key, item.file, "", ""] for item in self.files)
        return buffer.getvalue()


def read_manifest(path: Path) -> Manifest:
    """Read the manifest of an exported folder."""
    return read_typed(Manifest, path, "Take the manifest that `binas costs export-blocks` wrote.", TableError)
