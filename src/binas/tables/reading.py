"""Steps every table goes through when it is read."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError

from binas.errors import TableError, several
from binas.files import read_json, read_text
from binas.space.space import SearchSpace
from binas.tables.entries import SpaceReference

Model = TypeVar("Model", bound=BaseModel)


def read_table(path: Path, from_csv: Callable[[str, str], Any]) -> Any:
    """Plain data of a ``.json`` or ``.csv`` table."""
    return from_csv(read_text(path), str(path)) if path.suffix == ".csv" else read_json(path)


def validate(model: type[Model], data: Any, where: str) -> Model:
    """Check plain data against a file model; all problems in one error."""
    try:
        return model.model_validate(data)
    except ValidationError as error:
        problems = [f"{_key(item['loc'])}: {item['msg']}" for item in error.errors()]
        schema = model.model_fields["format"].annotation.__args__[0].split("/")[1]  # type: ignore[union-attr]
        advice = f"See `binas schema {schema}` for the form of the file."
        raise TableError(several(f"{where} is not a {schema} table", list(dict.fromkeys(problems)), advice)) from error


def _key(location: tuple[str | int, ...]) -> str:
    parts = [str(part) for part in location if part not in ("float", "Entry")]
    return ".".join(parts) or "the whole file"


def check_space(made_for: SpaceReference | None, space: SearchSpace, where: str) -> None:
    """Refuse a table that says it was made for another space."""
    if made_for is None or made_for.fingerprint is None or made_for.fingerprint == space.fingerprint:
        return
    raise TableError(
        f"{where} was made for the space {made_for.name!r} (fingerprint {made_for.fingerprint}), not for "
        f"{space.name!r} ({space.fingerprint}). Use the tables of this space; if you know that its numbers are "
        'right for it, remove the "space" entry from the file.'
    )
