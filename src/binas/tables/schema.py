"""The published JSON Schemas of binas files."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from binas.base.errors import TableError
from binas.space.files import space_schema
from binas.tables.contributions import ContributionsFile
from binas.tables.costs import CostsFile
from binas.tables.samples import SamplesFile

SCHEMAS: dict[str, Callable[[], dict[str, Any]]] = {
    "space": space_schema,
    "contributions": ContributionsFile.model_json_schema,
    "costs": CostsFile.model_json_schema,
    "samples": SamplesFile.model_json_schema,
}


def schema(kind: str) -> dict[str, Any]:
    """JSON Schema (draft 2020-12) of a space, contributions, costs or samples file."""
    if kind not in SCHEMAS:
        raise TableError(f"there is no schema {kind[:40]!r}; known are {', '.join(SCHEMAS)}.")
    body = SCHEMAS[kind]()
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", "$id": f"binas/{kind}/1", **body}
