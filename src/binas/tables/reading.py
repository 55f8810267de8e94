"""Steps every table goes through when it is read."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError

from binas.base.errors import TableError, several
from binas.base.files import read_json, read_text
from binas.base.typed import found_problems
from binas.space.space import SearchSpace
from binas.tables.entries import SpaceReference

Model = TypeVar("Model", bound=BaseModel)


def is_csv(path: Path) -> bool:
    """Whether a table's file is a spreadsheet rather than JSON."""
    return path.suffix.lower() == ".csv"


def read_table(path: Path, from_csv: Callable[[str, str], Any]) -> Any:
    """Plain data of a ``.json`` or ``.csv`` table; NaN is read so that it can be reported with its key."""
    return from_csv(read_text(path), str(path)) if is_csv(path) else read_json(path, allow_nan=True)


def validate(model: type[Model], data: Any, where: str) -> Model:
    """Check plain data against a file model; all problems in one error, each key once."""
    try:
        return model.model_validate(data)
    except ValidationError as error:
        problems: dict[str, str] = {}
        for item in found_problems(error):
            problems.setdefault(_key(item["loc"]), item["msg"])
        if (other := _other_format(data)) and "format" in problems:  # what else differs follows from it
            problems = {"format": f"{problems['format']}, but this is a file of {other}"}
        schema = model.model_fields["format"].annotation.__args__[0].split("/")[1]  # type: ignore[union-attr]
        advice = f"See `binas schema {schema}` for the form of the file."
        listed = [f"{key}: {message}" for key, message in problems.items()]
        raise TableError(several(f"{where} is not a {schema} table", listed, advice)) from error


def _other_format(data: Any) -> str | None:
    """The format that a file says it has, if it is of the form of ours."""
    said = data.get("format") if isinstance(data, dict) else None
    return said[:60] if isinstance(said, str) and said.startswith("binas/") else None


def _key(location: tuple[str | int, ...]) -> str:
    parts = [str(part) for part in location if part not in ("float", "Entry", "[key]")]
    return ".".join(parts) or "the whole file"


def other_space(made_for: SpaceReference | None, space: SearchSpace) -> list[str]:
    """The problem that a table says it was made for another space, or none.

    The fingerprint decides; a table without one is known by the name of its space.
    """
    if made_for is None:
        return []
    same_name = made_for.fingerprint is None and made_for.name == space.name
    if same_name or made_for.fingerprint == space.fingerprint:
        return []
    known = f" (fingerprint {made_for.fingerprint})" if made_for.fingerprint else ""
    return [
        f"it was made for the space {made_for.name!r}{known}, not for {space.name!r} ({space.fingerprint}): "
        'use the tables of this space, or remove the "space" entry if you know that its numbers are right'
    ]
