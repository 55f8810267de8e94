"""What a result depends on: one hash of it, and what has changed since, in words."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

from binas.base.files import open_regular, reading

LONGEST = 300  # characters of one change


def identity_of(mapping: Mapping[str, Any]) -> str:
    """Short SHA-256 of named values; their order does not matter."""
    text = json.dumps(mapping, sort_keys=True, allow_nan=False)
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def file_digest(path: Path) -> str:
    """SHA-256 of a file, read piece by piece."""
    with reading(path), open_regular(path) as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def flattened(mapping: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    """Nested settings as one level of dotted names."""
    result: dict[str, Any] = {}
    for key, value in mapping.items():
        nested = isinstance(value, Mapping)
        result |= flattened(value, f"{prefix}{key}.") if nested else {f"{prefix}{key}": value}
    return result


def only_lower(was: Mapping[str, Any], now: Mapping[str, Any], names: Collection[str]) -> bool:
    """Whether nothing but the numbers ``names`` differs, and each of them became lower, or is given for the first time."""
    different = [name for name in {*was, *now} if was.get(name) != now.get(name)]
    return all(
        name in names and now.get(name) is not None and (was.get(name) is None or now[name] < was[name])
        for name in different
    )


def changes(was: Mapping[str, Any], now: Mapping[str, Any]) -> list[str]:
    """What differs, for people: "X was a, now b" for each name; a name that is missing counts as None."""
    names = dict.fromkeys([*was, *now])
    return [
        f"{name} was {was.get(name)!r}, now {now.get(name)!r}"[:LONGEST]
        for name in names
        if was.get(name) != now.get(name)
    ]
