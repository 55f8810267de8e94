"""The base of everything a user may set, and of what is kept as a file."""

from __future__ import annotations

from typing import Annotated, TypeVar

from pydantic import BaseModel, BeforeValidator, ConfigDict, PlainSerializer

Item = TypeVar("Item")
# One value or a list of them; a list of one is written as the value.
OneOrMore = Annotated[
    tuple[Item, ...],
    BeforeValidator(lambda given: given if isinstance(given, list | tuple) else (given,)),
    PlainSerializer(lambda values: values[0] if len(values) == 1 else list(values)),
]


class Settings(BaseModel):
    """Unknown keys are refused, values are finite and never change."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)


class FileRecord(BaseModel):
    """What is kept as a JSON object of its own: the same holds for it."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)
