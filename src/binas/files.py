"""Reading files that may be hostile and writing files that are never half written.

JSON and YAML only. YAML is read without tags, aliases or duplicate keys, so a "YAML bomb" cannot
expand, and every value remembers its line for error messages.
"""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from binas.errors import FileError

MAX_YAML_BYTES = 4 * 2**20
MAX_JSON_BYTES = 512 * 2**20
MAX_DEPTH = 40

Key = tuple[str | int, ...]


def read_text(path: Path, max_bytes: int = MAX_JSON_BYTES) -> str:
    """The text of a UTF-8 file of at most ``max_bytes`` bytes."""
    try:
        size = path.stat().st_size
        if size > max_bytes:
            raise FileError(f"{path} has {size} bytes; at most {max_bytes} are read. Is it the right file?")
        return path.read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        raise FileError(f"{path} is not UTF-8 text ({error.reason} at byte {error.start}).") from error
    except OSError as error:
        raise FileError(f"cannot read {path}: {error.strerror}. Check the path.") from error


def write_text(path: Path, text: str) -> None:
    """Write a file atomically: it holds either the old content or all of the new."""
    write_bytes(path, text.encode("utf-8"))


def write_bytes(path: Path, data: bytes) -> None:
    """Write a file atomically: a temporary file beside it, synced, then renamed over it."""
    with _reported(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
        try:
            with os.fdopen(handle, "wb") as file:
                file.write(data)
                file.flush()
                os.fsync(file.fileno())
            Path(name).chmod(0o644)
            Path(name).replace(path)
        except BaseException:
            Path(name).unlink(missing_ok=True)
            raise


@contextmanager
def _reported(path: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise FileError(f"cannot write {path}: {error.strerror}. Nothing was changed.") from error


def read_json(path: Path) -> Any:
    """Parse a JSON file; NaN and Infinity, which are not JSON, are refused."""
    return parse_json(read_text(path), str(path))


def parse_json(text: str, where: str) -> Any:
    """Parse JSON text, naming ``where`` it came from in any error."""

    def refuse(name: str) -> Any:
        raise FileError(f"{where} holds the value {name}, which is not a finite number.")

    try:
        return json.loads(text, parse_constant=refuse)
    except json.JSONDecodeError as error:
        raise FileError(
            f"{where} is not complete JSON: {error.msg} at line {error.lineno}, column {error.colno}. "
            "Was the file cut off while being copied?"
        ) from error
    except RecursionError as error:
        raise FileError(f"{where} is nested too deeply to be a binas file.") from error


def dump_json(data: Any) -> str:
    """Readable JSON with a final newline; refuses NaN."""
    return json.dumps(data, indent=1, ensure_ascii=False, allow_nan=False) + "\n"


@dataclass(frozen=True)
class YamlDocument:
    """Plain data of a YAML file, and the line of each key for error messages."""

    data: Any
    lines: dict[Key, int]

    def line(self, key: Key) -> int | None:
        """Line of ``key`` or of its nearest enclosing value."""
        while key and key not in self.lines:
            key = key[:-1]
        return self.lines.get(key)


def read_yaml(path: Path) -> YamlDocument:
    """Read a YAML file safely."""
    return parse_yaml(read_text(path, MAX_YAML_BYTES), str(path))


def parse_yaml(text: str, where: str = "text") -> YamlDocument:
    """Parse YAML without aliases, tags or duplicate keys, remembering line numbers."""
    try:
        _check_events(text, where)
        node = yaml.compose(text, Loader=yaml.SafeLoader)
        lines: dict[Key, int] = {}
        return YamlDocument(None if node is None else _build(node, (), lines, where), lines)
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        place = f" at line {mark.line + 1}" if mark is not None else ""
        problem = getattr(error, "problem", None) or str(error)
        raise FileError(f"{where} is not valid YAML{place}: {problem}.") from error


def _check_events(text: str, where: str) -> None:
    """Refuse what makes YAML dangerous before anything is built."""
    depth = 0
    for event in yaml.parse(text, Loader=yaml.SafeLoader):
        line = event.start_mark.line + 1
        if isinstance(event, yaml.AliasEvent):
            raise FileError(f"{where}, line {line}: YAML aliases (*{event.anchor}) are not read; repeat the value.")
        if getattr(event, "tag", None) is not None and event.tag not in ("!",):
            raise FileError(f"{where}, line {line}: YAML tags ({event.tag}) are not read; write plain values.")
        if isinstance(event, yaml.MappingStartEvent | yaml.SequenceStartEvent):
            depth += 1
            if depth > MAX_DEPTH:
                raise FileError(f"{where}, line {line}: nested more than {MAX_DEPTH} levels deep.")
        elif isinstance(event, yaml.MappingEndEvent | yaml.SequenceEndEvent):
            depth -= 1


def _build(node: yaml.Node, key: Key, lines: dict[Key, int], where: str) -> Any:
    lines[key] = node.start_mark.line + 1
    if isinstance(node, yaml.MappingNode):
        result: dict[Any, Any] = {}
        for name_node, value_node in node.value:
            name = _build(name_node, (*key, "?"), lines, where)
            if isinstance(name, list | dict) or name in result:
                raise FileError(f"{where}, line {name_node.start_mark.line + 1}: key {name!r} appears twice or is a list.")
            result[name] = _build(value_node, (*key, name), lines, where)
            lines[(*key, name)] = name_node.start_mark.line + 1
        return result
    if isinstance(node, yaml.SequenceNode):
        return [_build(child, (*key, i), lines, where) for i, child in enumerate(node.value)]
    return yaml.SafeLoader("").construct_object(node)  # type: ignore[no-untyped-call]
