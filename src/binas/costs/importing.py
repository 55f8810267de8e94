"""Tables of numbers measured elsewhere: a filled CSV of blocks, or the look-up table of another tool."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from pydantic import Field

from binas.base.errors import SpaceError, TableError
from binas.base.settings import Settings
from binas.costs.filled import import_filled, with_analytic
from binas.costs.foreign import read_once_for_all, read_tf_nas
from binas.costs.manifest import MANIFEST, SPACE, read_manifest
from binas.costs.plausible import doubts
from binas.space.files import load_space
from binas.tables.costs import Combine, CostTable
from binas.tables.entries import Provenance


class ImportSettings(Settings):
    """What a file of numbers is, and what they were measured on."""

    source: Literal["blocks", "once-for-all", "tf-nas"] = Field(
        "blocks", title="from", description="what the file is"
    )
    space: str | None = Field(None, description="the space; blocks: space.yaml beside the file")
    manifest: Path | None = Field(None, description="the manifest of the blocks; none = beside the file")
    unit: str | None = Field(None, description="unit of values whose row names none, e.g. ms")
    name: str = Field("latency", description="name of the cost")
    combine: Combine = Field("sum", description="parts add up, or the largest counts (peak memory)")
    device: str | None = Field(None, description="what it was measured on")
    runtime: str | None = Field(None, description="what ran the networks, with its version")
    threads: int | None = Field(None, ge=1, description="threads it used")
    batch: int | None = Field(None, ge=1, description="images of one run")
    dtype: str | None = Field(None, description="numbers it computed with, if not float32")
    table: str | None = Field(None, description="which table of the file (tf-nas: cpu, gpu)")

    @property
    def provenance(self) -> Provenance:
        """What is stated about the numbers."""
        keys = ("device", "runtime", "threads", "batch", "dtype")
        return Provenance(**{key: getattr(self, key) for key in keys})


def import_table(file: Path, settings: ImportSettings) -> tuple[CostTable, list[str]]:
    """The table of a file, the exact analytic costs included, and what to look at again."""
    table, warnings = _filled(file, settings) if settings.source == "blocks" else _foreign(file, settings)
    if table[settings.name].provenance.device is None:
        raise TableError(
            'say what the numbers were measured on, e.g. --device "Pixel 9": a table that does not say so cannot be '
            "told from one of another device."
        )
    return table, warnings


def _filled(file: Path, settings: ImportSettings) -> tuple[CostTable, list[str]]:
    space = load_space(settings.space or file.parent / SPACE)
    manifest = read_manifest(settings.manifest or file.parent / MANIFEST)
    unit, name, combine = settings.unit, settings.name, settings.combine
    done = import_filled(
        file, manifest, space, unit=unit, name=name, combine=combine, provenance=settings.provenance
    )
    return done.table, list(done.warnings)


def _foreign(file: Path, settings: ImportSettings) -> tuple[CostTable, list[str]]:
    if settings.space is None:
        raise SpaceError(f"say which space the table {file} is to be read for, e.g. --space ofa-mbv3.")
    space, name, stated = load_space(settings.space), settings.name, settings.provenance
    if settings.source == "once-for-all":
        cost = read_once_for_all(file, space, name, stated)
    else:
        cost = read_tf_nas(file, space, settings.table, name, stated)
    return with_analytic(space, cost), doubts(space, cost)
