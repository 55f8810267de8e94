"""Typed files: JSON checked against a pydantic model or a dataclass, with advice where it does not fit."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any, TypeVar

from pydantic import TypeAdapter, ValidationError
from pydantic_core import ErrorDetails

from binas.base.errors import BinasError, FileError
from binas.base.files import read_json

Value = TypeVar("Value")
MOST_PROBLEMS = 1000  # that are told apart

_adapter: Callable[[Any], TypeAdapter[Any]] = cache(TypeAdapter)


def read_typed(model: type[Value], path: Path, advice: str, error: type[BinasError] = FileError) -> Value:
    """The value in a JSON file; one that does not fit ``model`` is an ``error`` that ends with ``advice``."""
    return check_typed(model, read_json(path), str(path), advice, error)


def check_typed(
    model: type[Value], data: Any, where: str, advice: str, error: type[BinasError] = FileError
) -> Value:
    """Plain data as a value of ``model``; ``where`` it comes from is named in the error."""
    try:
        value: Value = _adapter(model).validate_python(data)
    except ValidationError as problem:
        raise error(f"{where} is damaged: {first_problem(problem)}. {advice}") from problem
    return value


def first_problem(error: ValidationError) -> str:
    """The first thing wrong, as "key: message"."""
    first = found_problems(error)[0]
    return f"{'.'.join(map(str, first['loc'])) or 'the whole file'}: {first['msg']}"


def found_problems(error: ValidationError) -> list[ErrorDetails]:
    """All that is wrong, without links to pydantic's pages; of very many only their number, which is the problem then."""
    count = error.error_count()
    if count <= MOST_PROBLEMS:
        return error.errors(include_url=False, include_context=False)
    message = f"{count} values are not what they should be; is it the right file?"
    return [{"type": "too_many", "loc": (), "msg": message, "input": None}]
