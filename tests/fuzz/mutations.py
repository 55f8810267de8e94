"""Wrong files made of right ones: every mutation is a function of (content, random generator).

Some mutations are surely wrong wherever they fall (a number that is not finite, half of a surrogate pair, a key twice,
nesting, hundreds of digits), some only where the file has a form to break (another type, an unknown key): a reader says
with ``free`` which parts of its file may hold anything. All others may give a right file again and only must not harm.
"""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import yaml

Key = tuple[str | int, ...]
NUMBERS = (0, -1, 1, 2**31, 2**53 + 1, 2**63, 1e308, -1e308, 1e-320, 0.5, 1e15, 10**299, -0.0, 3.7, 1e100)
TEXTS = (
    "",
    " ",
    "x",
    "\u0000",
    "\u202e",
    "é" * 40,
    "../../etc",
    "1e999",
    "nan",
    "null",
    "a" * 5000,
    "0",
    "-",
    "_",
    "%",
)
WRONG_TYPES: tuple[Any, ...] = ([["x"]], {"x": ["x"]}, "no such thing", ["x", {}])
BYTES = (
    b"\x00",
    b"\xff\xfe",
    b"\xed\xa0\x80",
    b"[" * 50,
    b"{" * 50,
    b"9" * 400,
    b"1:" * 300,
    b"\r",
    b'"',
    b",",
    b"NaN",
    b"&a ",
)
MARK = "@@replaced@@"


@dataclass(frozen=True)
class Mutated:
    """The content of a file after a mutation, and how sure it is to be wrong."""

    content: bytes
    how: str
    wrong: bool = False
    at: Key = ()


def mutate(content: bytes, form: str, draw: random.Random) -> Mutated:
    """One mutation of a file of a form: json, yaml, lines, csv, text or bytes."""
    structured = {"json": _in_json, "yaml": _in_yaml, "lines": _in_lines, "csv": _in_csv}
    if form in structured and draw.random() < 0.7:
        return structured[form](content, draw)
    return _in_bytes(content, draw)


def _in_bytes(content: bytes, draw: random.Random) -> Mutated:
    how = draw.choice(("flip", "cut", "insert", "delete", "repeat", "zero", "swap"))
    data, place = bytearray(content), draw.randrange(len(content) + 1) if content else 0
    size = draw.choice((1, 2, 4, 16, 100))
    if how == "flip" and data:
        for _ in range(draw.choice((1, 1, 2, 8))):
            data[draw.randrange(len(data))] ^= 1 << draw.randrange(8)
    elif how == "cut":
        del data[place:]
    elif how == "insert":
        data[place:place] = draw.choice(BYTES)
    elif how == "delete":
        del data[place : place + size]
    elif how == "repeat":
        data[place:place] = data[max(0, place - size) : place] * draw.choice((1, 2, 50))
    elif how == "zero":
        data[place : place + size] = bytes(min(size, len(data) - place))
    else:
        other = draw.randrange(len(data) + 1)
        data[place : place + size], data[other : other + size] = (
            data[other : other + size],
            data[place : place + size],
        )
    return Mutated(bytes(data), f"bytes: {how}")


def _in_json(content: bytes, draw: random.Random) -> Mutated:
    text, how, wrong, at = _changed(json.loads(content), draw)
    return Mutated(text.encode("utf-8", "surrogatepass"), how, wrong, at)


def _in_yaml(content: bytes, draw: random.Random) -> Mutated:
    """As JSON, which is YAML but for the names of what is not finite."""
    text, how, wrong, at = _changed(yaml.safe_load(content), draw)
    return Mutated(text.replace("NaN", ".nan").encode("utf-8", "surrogatepass"), how, wrong, at)


def _in_lines(content: bytes, draw: random.Random) -> Mutated:
    """One line of a file of JSON lines."""
    lines = content.decode().splitlines()
    number = draw.randrange(len(lines))
    text, how, _, at = _changed(json.loads(lines[number]), draw)
    lines[number] = text
    if draw.random() < 0.2:
        draw.shuffle(lines)
    return Mutated(("\n".join(lines) + "\n").encode("utf-8", "surrogatepass"), how, False, (number, *at))


def _in_csv(content: bytes, draw: random.Random) -> Mutated:
    """One cell of a spreadsheet; a value that is not finite is wrong wherever a number stood."""
    rows = [line.split(",") for line in content.decode().splitlines()]
    plain = [row for row in rows if not row[0].startswith(('"#', "#"))]
    row = draw.choice(plain or rows)
    cell = draw.randrange(len(row))
    new = draw.choice(
        ("nan", "inf", "-1", "1e999", "1e308", "9" * 400, "x", "", '"', "\x00", "1,5", " ", "é")
    )
    number = _is_number(row[cell]) and row is not rows[0]
    row[cell] = new
    if draw.random() < 0.1:
        row.append(row[0])
    return Mutated(
        "\n".join(map(",".join, rows)).encode(), f"cell: {new[:8]}", number and new in ("x", "1e999")
    )


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


ALWAYS_WRONG = ("NaN", "infinite", "digits", "deep", "surrogate")


def _changed(data: Any, draw: random.Random) -> tuple[str, str, bool, Key]:
    """The JSON text of data with one thing changed, how, whether that is wrong, and where."""
    places = list(_places(data))
    at = draw.choice(places)
    ways: list[Callable[[], tuple[str, str, bool]]] = [
        lambda: (_put(data, at, draw.choice(NUMBERS)), "number", False),
        lambda: (_put(data, at, draw.choice(TEXTS)), "text", False),
        lambda: (_put(data, at, draw.choice((True, False, None, [], {}))), "empty", False),
        lambda: (_put(data, at, _at(data, draw.choice(places))), "swap", False),
        lambda: (_put(data, at, _other_type(_at(data, at), draw)), "type", True),
        lambda: (_put(data, at, MARK).replace(f'"{MARK}"', "NaN"), "NaN", True),
        lambda: (
            _put(data, at, MARK).replace(f'"{MARK}"', draw.choice(("1.0e+999", "-1.0e+400"))),
            "infinite",
            True,
        ),
        lambda: (_put(data, at, MARK).replace(f'"{MARK}"', "7" * 401), "digits", True),
        lambda: (_put(data, at, MARK).replace(f'"{MARK}"', "[" * 60 + "]" * 60), "deep", True),
        lambda: (_put(data, at, MARK).replace(MARK, "\\ud800"), "surrogate", True),
        lambda: (_without(data, at), "missing", False),
        lambda: _with_key(data, at),
        lambda: _twice(data, at),
        lambda: (_put(data, at, [_at(data, at)] * draw.choice((2, 3000))), "many", False),
    ]
    text, how, wrong = draw.choice(ways)()
    return text, how, wrong, at


def _places(data: Any, key: Key = ()) -> Iterator[Key]:
    yield key
    items = data.items() if isinstance(data, dict) else enumerate(data) if isinstance(data, list) else ()
    for name, value in items:
        yield from _places(value, (*key, name))


def _at(data: Any, key: Key) -> Any:
    for part in key:
        data = data[part]
    return data


def _put(data: Any, key: Key, value: Any) -> str:
    """JSON text of ``data`` with ``value`` at ``key``."""
    if not key:
        return json.dumps(value)
    copy = json.loads(json.dumps(data, default=str))
    holder = _at(copy, _as_text(key[:-1], data))
    holder[_as_text(key, data)[-1]] = value
    return json.dumps(copy)


def _as_text(key: Key, data: Any) -> Key:
    """Keys as JSON writes them: YAML knows others than text."""
    parts: list[str | int] = []
    for part in key:
        parts.append(part if isinstance(data, list) else json.loads(json.dumps({part: 0})).popitem()[0])
        data = data[part]
    return tuple(parts)


def _other_type(value: Any, draw: random.Random) -> Any:
    if isinstance(value, list | dict):
        return "no such thing"  # a number may stand for an object that holds one
    return draw.choice(WRONG_TYPES if not isinstance(value, str) else (*WRONG_TYPES[:2], 7.5))


def _without(data: Any, key: Key) -> str:
    copy = json.loads(json.dumps(data, default=str))
    if not key:
        return ""
    holder = _at(copy, _as_text(key[:-1], data))
    del holder[_as_text(key, data)[-1]]
    return json.dumps(copy)


def _with_key(data: Any, key: Key) -> tuple[str, str, bool]:
    value = _at(data, key)
    if not isinstance(value, dict):
        return _put(data, key, {"zzz": value}), "key", False
    return _put(data, key, {**value, "zzz": [1]}), "key", True


def _twice(data: Any, key: Key) -> tuple[str, str, bool]:
    value = _at(data, key)
    if not isinstance(value, dict) or not value:
        return _put(data, key, [value, value]), "twice", False
    name = json.dumps(str(next(iter(value))))
    return _put(data, key, {MARK: 0, **value}).replace(f'"{MARK}"', name), "key twice", True
