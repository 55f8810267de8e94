"""Cost tables as files: which space a table belongs to, when only the file is given."""

from __future__ import annotations

from pathlib import Path

from binas.base.errors import SpaceError
from binas.base.files import exists
from binas.space.files import builtin_names, load_space
from binas.space.space import SearchSpace
from binas.tables.reading import read_table
from binas.tables.spreadsheet import costs_data_from_csv


def space_of_table(path: Path, space: str | None = None) -> SearchSpace:
    """The space of a cost table: ``space`` if given, else ``space.yaml`` beside it or the built-in it names."""
    if space is not None:
        return load_space(space)
    for beside in (path.parent / "space.yaml", path.parent / "space.yml"):
        if exists(beside):
            return load_space(beside)
    data = read_table(path, costs_data_from_csv)
    made_for = data.get("space") if isinstance(data, dict) else None
    name = made_for.get("name") if isinstance(made_for, dict) else None
    if name in builtin_names():
        return load_space(str(name))
    raise SpaceError(
        f"{path} does not lie beside a space.yaml and names no built-in space; say which space it is for with --space."
    )
