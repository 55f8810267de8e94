"""Reading files that may be hostile and writing files that are never half written.

JSON and YAML only, and of regular files only: a pipe would be waited for, a device never ends. YAML is read without
tags, aliases or duplicate keys, so a "YAML bomb" cannot expand, and every value remembers its line for error messages.
JSON refuses duplicate keys too. Size, number of values, nesting and length of numbers are limited in both, so that what
is read costs seconds and less than 1 GiB, and every whole number that is read fits a floating point number.
"""

from __future__ import annotations

import errno
import json
import math
import os
import re
import shutil
import stat
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from fnmatch import fnmatch
from io import BufferedReader
from pathlib import Path
from typing import Any

import yaml

from binas.base.errors import FileError

MAX_YAML_BYTES = 4 * 2**20
MAX_JSON_BYTES = 160 * 2**20
MAX_TEXT_BYTES = 256 * 2**20  # in memory, where a character takes as much as the widest of the text
MAX_YAML_VALUES = 100_000
MAX_DIRECTIVES = 10  # of YAML: libyaml compares each with all before it
MAX_JSON_VALUES = 5_000_000
MAX_DIGITS = 300  # of a whole number: more do not fit a floating point number
MAX_DEPTH = 40
NEW_FILE_MODE = 0o644
UNFINISHED = ".part"  # how the names of files end that are being written

_NOT_THERE = (errno.ENOENT, errno.ENOTDIR, errno.ENAMETOOLONG, errno.ELOOP)
_NO_NAME = 123  # Windows: characters that no file name can have
_DIRECTIVE = re.compile("(?:^|[\n\r\x85\u2028\u2029])%")
_OCTAL = re.compile("[-+]?0[0-7_]+")

Key = tuple[str | int, ...]

# libyaml where PyYAML was built with it: the same events, many times faster.
_Parser: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


# What to do about an error of the system, in its own words first.
_ADVICE = {
    errno.ENOSPC: "Free some space there",
    errno.EDQUOT: "Free some of your quota there",
    errno.EIO: "The disk, or the way to it, fails: check it",
    errno.ESTALE: "The server has lost that folder: mount it again",
    errno.EACCES: "Check your rights there",
    errno.EPERM: "Check your rights there",
    errno.EROFS: "Make that file system writable",
    errno.EMFILE: "Allow more open files (`ulimit -n`)",
    errno.EPIPE: "What reads from it has ended: let it read to the end",
}


def touch(doing: str, path: Path) -> None:
    """Called before every operation on a file or folder of ours: the place where tests let a disk fail."""


@contextmanager
def reading(path: Path, advice: str = "Check the path.") -> Iterator[None]:
    """Whatever the system refuses while ``path`` is read is an error that names it and says what to do."""
    try:
        touch("read", path)
        yield
    except (OSError, ValueError) as error:
        raise FileError(f"cannot read {_shown(path)}: {_reason(error)}. {_advice(error, advice)}") from error


@contextmanager
def writing(path: Path, afterwards: str = "") -> Iterator[None]:
    """Whatever the system refuses while ``path`` is changed is an error that names it and says what to do.

    ``afterwards`` says how things are then.
    """
    try:
        touch("write", path)
        yield
    except (OSError, ValueError) as error:
        told = (
            f"cannot write {_shown(path)}: {_reason(error)}. {_advice(error, 'Check the path.')} {afterwards}"
        )
        raise FileError(told.rstrip()) from error


def _advice(error: Exception, otherwise: str) -> str:
    known = _ADVICE.get(getattr(error, "errno", None) or 0)
    return otherwise if known is None else f"{known}, then give the same command again."


def _shown(path: Path) -> str:
    text = str(path)
    return text if len(text) <= 300 else text[:300] + "..."


def _reason(error: Exception) -> str:
    return getattr(error, "strerror", None) or str(error)


def open_regular(path: Path, advice: str = "Check the path.") -> BufferedReader:
    """Open a file to read its bytes; anything but a regular file (a pipe, a device, a folder) is refused, not waited for."""
    with reading(path, advice):
        return _opened(path)


def _opened(path: Path) -> BufferedReader:
    handle = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0))
    if not is_regular(handle):
        os.close(handle)
        raise _not_regular("read", path, "Copy its content into one")
    return os.fdopen(handle, "rb")


def _not_regular(doing: str, path: Path, advice: str) -> FileError:
    if is_folder(path):
        return FileError(
            f"cannot {doing} {_shown(path)}: it is a folder, not a regular file. Name a file in it."
        )
    return FileError(f"cannot {doing} {_shown(path)}: it is not a regular file. {advice}.")


def is_regular(place: Path | int) -> bool:
    """Whether a path (links followed) or an open file is a regular file; False where there is nothing."""
    found = os.fstat(place) if isinstance(place, int) else _looked_at(place)
    return found is not None and stat.S_ISREG(found.st_mode)


def is_folder(path: Path) -> bool:
    """Whether a path (links followed) is a folder; False where there is nothing."""
    found = _looked_at(path)
    return found is not None and stat.S_ISDIR(found.st_mode)


def size_of(path: Path) -> int:
    """The bytes of a file, links followed."""
    return facts_of(path).st_size


def facts_of(path: Path) -> os.stat_result:
    """What the file system knows of a file that must be there, links followed."""
    with reading(path):
        return path.stat()


def read_bytes(path: Path, max_bytes: int, advice: str = "Check the path.") -> bytes:
    """The bytes of a regular file of at most ``max_bytes``."""
    with reading(path, advice), _opened(path) as file:
        size = os.fstat(file.fileno()).st_size
        data = b"" if size > max_bytes else file.read(size + 1)
    if max(size, len(data)) > max_bytes:
        raise FileError(
            f"{_shown(path)} has more than the {max_bytes} bytes that are read. Is it the right file?"
        )
    return data


def read_text(path: Path, max_bytes: int = MAX_JSON_BYTES) -> str:
    """The text of a UTF-8 file of at most ``max_bytes`` bytes, without a byte order mark."""
    try:
        text = read_bytes(path, max_bytes).decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise FileError(f"{path} is not UTF-8 text ({error.reason} at byte {error.start}).") from error
    if sys.getsizeof(text) > MAX_TEXT_BYTES:
        raise FileError(
            f"{_shown(path)} has {len(text)} characters and wide ones among them: more than the {MAX_TEXT_BYTES} bytes of "
            "memory that text may take. Write it in ASCII."
        )
    return text.replace("\r\n", "\n").replace("\r", "\n")


def write_text(path: Path, text: str) -> None:
    """Write a file atomically: it holds either the old content or all of the new. See :func:`write_bytes`."""
    try:
        data = text.encode("utf-8")
    except UnicodeEncodeError as error:
        raise FileError(
            f"cannot write {path}: half of a surrogate pair is not text. That file is as it was."
        ) from error
    write_bytes(path, data)


def write_bytes(path: Path, data: bytes) -> None:
    """Write a file atomically: a temporary file beside it, synced, then renamed over it.

    Only a regular file is ever replaced. Pipes and character devices (``/dev/stdout``, the shell's ``>(...)``) are written
    to; folders, sockets and disks are refused. A link is followed to a file in its own folder, and refused where it leads
    out of it: a file of somebody else's run may be such a link. The system's links to pipes and devices are followed.
    """
    if _is_stream(path):
        _pour(path, data)
        return
    with writing(path, "That file is as it was."):
        _replace(_linked_file(path), data)


def _is_stream(path: Path) -> bool:
    """Whether a path is a pipe or a character device, or one of the system's own links to one."""
    found = _looked_at(path)
    if found is None or not (stat.S_ISFIFO(found.st_mode) or stat.S_ISCHR(found.st_mode)):
        return False
    return not path.is_symlink() or path.parent.resolve().parts[1:2] in (("dev",), ("proc",))


def _pour(path: Path, data: bytes) -> None:
    """Write to a pipe or device; a pipe that nobody reads is an error, not waited for."""
    waits_not = getattr(os, "O_NONBLOCK", 0)
    with writing(path):
        try:
            handle = os.open(path, os.O_WRONLY | waits_not | getattr(os, "O_NOCTTY", 0))
        except OSError as error:
            if error.errno != errno.ENXIO:
                raise
            raise FileError(f"cannot write {path}: nobody reads from it. Start first what does.") from error
        with os.fdopen(handle, "wb") as file:
            if waits_not:
                os.set_blocking(handle, True)
            file.write(data)


def _linked_file(path: Path) -> Path:
    """The path, or where a link leads to within its folder."""
    if not path.is_symlink():
        return path
    target = Path(os.path.realpath(path))
    if target.is_symlink() or not target.is_relative_to(os.path.realpath(path.parent)):  # a circle, or out
        raise FileError(
            f"cannot write {path}: it is a link to {path.readlink()}, which is no file of the same folder, and such links "
            "are not followed. Name the file itself, or remove the link. Nothing was written."
        )
    return target


def _replace(path: Path, data: bytes) -> None:
    """Write a regular file, or a new one, beside it first."""
    check_replaceable(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    mode = stat.S_IMODE(path.stat().st_mode) if path.exists() else NEW_FILE_MODE
    touch("create", path)
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name[:100]}.", suffix=UNFINISHED)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(data)
            file.flush()
            touch("sync", path)
            os.fsync(file.fileno())
        Path(name).chmod(mode)
        touch("rename", path)
        Path(name).replace(path)
    except BaseException:
        with suppress(OSError):  # a disk that fails keeps it; the next who works in the folder removes it
            Path(name).unlink(missing_ok=True)
        raise


def check_replaceable(path: Path) -> None:
    """Refuse what is there and no regular file, where a file is to be replaced: a folder, a pipe, a device, a link out.

    Whoever puts other files beside one, or works for long before it is written, asks this first.
    """
    if exists(path) and not is_regular(path):
        raise _not_regular("write", path, "Give the path of another file")
    _linked_file(path)


def is_unfinished(path: Path) -> bool:
    """Whether this is what a process that was killed within :func:`write_bytes` left."""
    return path.name.startswith(".") and path.name.endswith(UNFINISHED)


def remove(path: Path) -> None:
    """Delete a file, which need not be there."""
    with writing(path):
        path.unlink(missing_ok=True)


def move(path: Path, to: Path) -> None:
    """Give a file or folder another place on the same file system; folders on the way are made."""
    with writing(to, f"{_shown(path)} is where it was."):
        to.parent.mkdir(parents=True, exist_ok=True)
        path.rename(to)


def remove_tree(folder: Path) -> None:
    """Delete a folder and all that is in it."""
    with writing(folder):
        shutil.rmtree(folder)


def copy_tree(folder: Path, to: Path) -> None:
    """Copy a folder to a place where nothing is, all of it or nothing: beside it first, then renamed."""
    half = to.with_name(f".{to.name}.copy")
    with writing(to, "There is nothing of it there."):
        shutil.rmtree(half, ignore_errors=True)  # of a process that was killed
        shutil.copytree(folder, half)
        touch("rename", to)
        half.rename(to)


def listed(folder: Path, pattern: str = "*") -> list[Path]:
    """What fits a pattern in a folder, by name; nothing where there is no folder. ``**`` is any number of folders.

    A folder that cannot be read is an error: what is in it must not pass for missing.
    """
    return sorted(_fitting(folder, pattern.split("/"))) if exists(folder) else []


def _fitting(folder: Path, parts: Sequence[str]) -> Iterator[Path]:
    head, *rest = parts
    if head == "**":
        for place, _ in walked(folder):
            yield from _fitting(place, rest or ["*"])
        return
    _, entries = next(walked(folder))
    fit = [Path(entry.path) for entry in entries if fnmatch(entry.name, head)]
    if not rest:
        yield from fit
    for path in fit if rest else ():
        if is_folder(path):
            yield from _fitting(path, rest)


def walked(folder: Path) -> Iterator[tuple[Path, list[os.DirEntry[str]]]]:
    """A folder and all below it, each with what is in it; links to folders are not followed.

    A folder that cannot be read is an error: what is in it must not pass for missing.
    """
    waiting = [folder]
    while waiting:
        place = waiting.pop()
        with reading(place), os.scandir(place) as entries:
            found = list(entries)
            waiting += [Path(entry.path) for entry in found if entry.is_dir(follow_symlinks=False)]
        yield place, found


def exists(path: Path) -> bool:
    """Whether there is something at ``path``; False too for what can be no path (too long, a NUL byte, a circle of links).

    Any other failure is an error: a disk or server that does not answer must not pass for a missing file.
    """
    return _looked_at(path) is not None


def _looked_at(path: Path) -> os.stat_result | None:
    """What the file system knows of a path, links followed; None where there is nothing, see :func:`exists`."""
    try:
        touch("look", path)
        return path.stat()
    except ValueError:  # a NUL byte
        return None
    except OSError as error:
        if error.errno in _NOT_THERE or getattr(error, "winerror", None) == _NO_NAME:
            return None
        raise FileError(
            f"cannot look at {_shown(path)}: {_reason(error)}. It may well be there, so it is not taken for missing. "
            f"{_advice(error, 'Check the disk and your rights, then give the same command again.')}"
        ) from error


def read_json(path: Path, allow_nan: bool = False) -> Any:
    """Parse a JSON file; NaN and Infinity, which are not JSON, are refused unless the caller checks them."""
    return parse_json(read_text(path), str(path), allow_nan)


def parse_json(text: str, where: str, allow_nan: bool = False) -> Any:
    """Parse JSON text, naming ``where`` it came from in any error."""

    def refuse(name: str) -> Any:
        raise FileError(f"{where} holds the value {name[:40]}, which is not a finite number.")

    def finite(digits: str) -> float:
        number = float(digits)
        return number if math.isfinite(number) or allow_nan else refuse(digits)

    def unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        result = dict(pairs)
        if len(result) < len(pairs):
            twice = next(name for name, times in Counter(name for name, _ in pairs).items() if times > 1)
            raise FileError(f"{where} has the key {twice[:60]!r} twice in one object; keep one of them.")
        return result

    if text.count(",") + text.count("[") + text.count("{") > MAX_JSON_VALUES:
        raise FileError(f"{where} holds more than {MAX_JSON_VALUES} values. Is it the right file?")
    try:
        data = json.loads(
            text,
            parse_int=lambda digits: _whole(digits, where),
            parse_float=finite,
            parse_constant=float if allow_nan else refuse,
            object_pairs_hook=unique,
        )
    except json.JSONDecodeError as error:
        raise FileError(
            f"{where} is not complete JSON: {error.msg} at line {error.lineno}, column {error.colno}. "
            "Was the file cut off while being copied?"
        ) from error
    except RecursionError as error:
        raise FileError(f"{where} is nested too deeply to be a binas file.") from error
    _check_nesting(data, where)
    if "\\ud" in text or "\\uD" in text:
        _check_text(data, where)
    return data


def _whole(digits: str, where: str) -> int:
    """A whole number; Python's own guard is for printing too, and lifted there (``cli/main.py``)."""
    if len(digits) > MAX_DIGITS:
        raise FileError(
            f"{where} holds a whole number of {len(digits)} digits, {digits[:20]}...; at most {MAX_DIGITS} are read."
        )
    return int(digits)


def _check_nesting(data: Any, where: str) -> None:
    """Level by level, so that what is nested deeply is refused here and not by whoever walks it later."""
    level, depth = [data] if isinstance(data, dict | list) else [], 0
    while level:
        depth += 1
        if depth > MAX_DEPTH:
            raise FileError(f"{where} is nested more than {MAX_DEPTH} levels deep.")
        holders = (item.values() if isinstance(item, dict) else item for item in level)
        level = [child for items in holders for child in items if isinstance(child, dict | list)]


def _check_text(data: Any, where: str) -> None:
    """JSON can write half of a surrogate pair, which is not text: nothing could print or keep it."""
    try:
        json.dumps(data, ensure_ascii=False).encode()
    except UnicodeEncodeError as error:
        raise FileError(f"{where} holds half of a surrogate pair (\\ud...), which is not text.") from error


def dump_json(data: Any) -> str:
    """Readable JSON with a final newline; refuses NaN."""
    try:
        return json.dumps(data, indent=1, ensure_ascii=False, allow_nan=False) + "\n"
    except ValueError as error:
        raise FileError(f"cannot write JSON: a value is NaN or infinite ({error}).") from error


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
    if len(_DIRECTIVE.findall(text)) > MAX_DIRECTIVES:
        raise FileError(
            f"{where} has more than {MAX_DIRECTIVES} lines that start with %, as YAML's directives do. Is it the right file?"
        )
    try:
        _check_events(text, where)
        node = yaml.compose(text, Loader=_Parser)
        builder = _Builder(where)
        return YamlDocument(None if node is None else builder.build(node, ()), builder.lines)
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        place = f" at line {mark.line + 1}" if mark is not None else ""
        problem = getattr(error, "problem", None) or str(error)
        raise FileError(f"{where} is not valid YAML{place}: {problem}.") from error


def _check_events(text: str, where: str) -> None:
    """Refuse what makes YAML dangerous before anything is built."""
    depth = 0
    for number, event in enumerate(yaml.parse(text, Loader=_Parser)):
        problem, tag = None, getattr(event, "tag", None)
        if number > MAX_YAML_VALUES:
            problem = f"more than {MAX_YAML_VALUES} values. Is it the right file?"
        elif isinstance(event, yaml.AliasEvent):
            problem = f"YAML aliases (*{event.anchor}) are not read; repeat the value."
        elif tag not in (None, "!"):
            problem = f"YAML tags ({tag}) are not read; write plain values."
        elif isinstance(event, yaml.MappingStartEvent | yaml.SequenceStartEvent):
            depth += 1
            problem = f"nested more than {MAX_DEPTH} levels deep." if depth > MAX_DEPTH else None
        elif isinstance(event, yaml.MappingEndEvent | yaml.SequenceEndEvent):
            depth -= 1
        if problem is not None:
            raise FileError(f"{where}, line {event.start_mark.line + 1}: {problem}")


class _Builder:
    """Plain data from YAML nodes, with the line of every key."""

    def __init__(self, where: str) -> None:
        self.where = where
        self.lines: dict[Key, int] = {}
        self._scalars: Any = yaml.SafeLoader("")

    def build(self, node: yaml.Node, key: Key) -> Any:
        self.lines.setdefault(key, node.start_mark.line + 1)
        if isinstance(node, yaml.MappingNode):
            return self._mapping(node, key)
        if isinstance(node, yaml.SequenceNode):
            return [self.build(child, (*key, i)) for i, child in enumerate(node.value)]
        return self._scalar(node)

    def _mapping(self, node: yaml.MappingNode, key: Key) -> dict[Any, Any]:
        result: dict[Any, Any] = {}
        for name_node, value_node in node.value:
            line = name_node.start_mark.line + 1
            if not isinstance(name_node, yaml.ScalarNode):
                raise FileError(f"{self.where}, line {line}: a key must be a name, not a list or a mapping.")
            name = self._scalar(name_node)
            if name in result:
                raise FileError(
                    f"{self.where}, line {line}: the key {name!r} appears twice; keep one of them."
                )
            self.lines[(*key, name)] = line
            result[name] = self.build(value_node, (*key, name))
        return result

    def _scalar(self, node: yaml.Node) -> Any:
        place = f"{self.where}, line {node.start_mark.line + 1}"
        if node.tag.endswith((":int", ":float")):
            _check_number(str(node.value), place)
        try:
            return self._scalars.construct_object(node)
        except (ValueError, KeyError) as error:  # a date such as 2024-13-45, a value that is only a sign
            raise FileError(f"{place}: a value cannot be read ({error}).") from error


def _check_number(text: str, place: str) -> None:
    """Refuse what takes long to read or does not mean what it looks like."""
    if ":" in text:
        raise FileError(
            f"{place}: YAML reads {text[:20]} as a number to the base 60; write the number, or put quotes around text."
        )
    if _OCTAL.fullmatch(text):
        raise FileError(
            f"{place}: YAML reads {text[:20]} as a number to the base 8; write it without the 0 before it, or put quotes "
            "around text."
        )
    if len(text) > MAX_DIGITS:
        raise FileError(
            f"{place}: a number of {len(text)} digits, {text[:20]}...; at most {MAX_DIGITS} are read."
        )
