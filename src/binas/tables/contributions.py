"""What each design choice contributes to accuracy (paper section 3.2), in percentage points.

ACC = base + sum_s Delta^s_{d^s} + sum_s sum_{b <= d^s} Delta^s_{b, c_b}      (equation of the estimator)
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from binas.errors import TableError, several
from binas.files import dump_json, write_text
from binas.space.space import SearchSpace
from binas.tables.entries import (
    Column,
    ConfigEntries,
    DepthEntries,
    EntryReader,
    Number,
    Provenance,
    SpaceReference,
    column,
    config_data,
    depth_data,
    known_column,
    number_data,
    reference,
)
from binas.tables.reading import is_csv, other_space, read_table, validate

FORMAT = "binas/contributions"


class ContributionsFile(BaseModel):
    """A binas contributions table, version 1: accuracy in percentage points."""

    model_config = ConfigDict(extra="forbid")
    format: Literal["binas/contributions"]
    version: Literal[1]
    space: SpaceReference | None = None
    unit: Literal["percent"] = "percent"
    base: Number = Field(description="Expected accuracy of a random architecture, E[Acc], in percent")
    depths: DepthEntries = Field(description="stage -> depth -> Delta_b^s")
    configs: ConfigEntries = Field(description="stage -> one object per block: config -> Delta_{b,c}^s")
    provenance: Provenance = Provenance()


@dataclass(frozen=True, eq=False)
class Contributions:
    """Contributions of a space: base accuracy, per depth, per config; NaN standard errors are unknown."""

    space: SearchSpace
    base: float
    values: Column
    base_stderr: float = math.nan
    stderr: Column | None = None
    count: Column | None = None
    provenance: Provenance = field(default_factory=Provenance)
    base_count: float = math.nan

    def to_data(self) -> dict[str, Any]:
        """The JSON object of the file."""
        return {
            "format": FORMAT,
            "version": 1,
            "space": reference(self.space),
            "unit": "percent",
            "base": number_data(self.base, self.base_stderr, self.base_count),
            "depths": depth_data(self.space, self.values, self.stderr, self.count),
            "configs": config_data(self.space, self.values, self.stderr, self.count),
            "provenance": self.provenance.to_data(),
        }

    def save(self, path: Path) -> None:
        """Write as ``.json`` or ``.csv``, atomically."""
        from binas.tables.spreadsheet import contributions_to_csv

        path = Path(path)
        write_text(path, contributions_to_csv(self) if is_csv(path) else dump_json(self.to_data()))


def contributions_from_data(data: Any, space: SearchSpace, where: str) -> Contributions:
    """Build from the JSON object, checking everything and reporting all problems at once."""
    parsed = validate(ContributionsFile, data, where)
    reader = EntryReader(space, "contributions", other_space(parsed.space, space))
    base = reader.single(parsed.base, "base")
    depths, configs = reader.depths(parsed.depths, required=True), reader.configs(parsed.configs)
    if reader.problems:
        advice = f"The table must cover the space {space.name!r} completely with finite numbers"
        raise TableError(several(where, reader.problems, advice + "."))
    return Contributions(
        space,
        base.value,
        column(depths, configs, "value"),
        math.nan if base.stderr is None else base.stderr,
        known_column(depths, configs, "stderr"),
        known_column(depths, configs, "count"),
        parsed.provenance,
        math.nan if base.count is None else base.count,
    )


def load_contributions(path: Path, space: SearchSpace) -> Contributions:
    """Read a contributions table (``.json`` or ``.csv``) and check it against the space."""
    from binas.tables.spreadsheet import contributions_data_from_csv

    return contributions_from_data(read_table(Path(path), contributions_data_from_csv), space, str(path))
