"""The base of everything a user may set, and of what is kept as a file."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Self, TypeVar

from pydantic import BaseModel, BeforeValidator, ConfigDict, PlainSerializer, model_validator

from binas.base.files import dump_json, write_text

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

    @model_validator(mode="after")
    def _countable(self) -> Self:
        """Refuse whole numbers that no machine counts to."""
        wrong = [name for name, value in self if type(value) is int and abs(value) >= 2**63]
        if wrong:
            raise ValueError(f"{wrong[0]} is larger than anything that can be counted")
        return self


class FileRecord(BaseModel):
    """What is kept as a JSON object of its own: the same holds for it."""

    model_config = Settings.model_config

    def save(self, path: Path) -> None:
        """Write it as JSON, atomically."""
        write_text(path, dump_json(self.model_dump(mode="json")))
