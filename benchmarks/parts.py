"""A long benchmark in parts: what has been measured is kept at once and never measured twice.

A part is a name and a value that JSON can hold. Parts are of one state of code, data and peers: of another
none is found.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import binas
from binas.base.identity import file_digest, identity_of
from binas.base.lines import append_line, read_lines
from binas.base.packages import installed_version


@dataclass(frozen=True, eq=False)
class Parts:
    """Measured values by name, one line each of the file at ``path``."""

    path: Path
    known: dict[str, Any]

    @classmethod
    def of(cls, folder: Path, state: str, fresh: bool = False) -> Parts:
        """Those in ``folder`` of one state; with ``fresh`` they are forgotten."""
        path = folder / f"{state}.jsonl"
        folder.mkdir(parents=True, exist_ok=True)
        if fresh:
            path.unlink(missing_ok=True)
        return cls(path, {line["part"]: line["measured"] for line in read_lines(path)})

    def take(self, part: str, measure: Callable[[], Any]) -> Any:
        """What is known of a part, measured now where nothing is."""
        if part not in self.known:
            self.known[part] = measure()
            append_line(self.path, {"part": part, "measured": self.known[part]})
        return self.known[part]


def state_of(rooms: Iterable[str], files: Iterable[Path], modules: Iterable[str]) -> str:
    """Identity of what figures depend on: rooms of the package, further files, versions of the modules installed."""
    package = Path(binas.__file__).parent
    code = {
        str(path.relative_to(package)): file_digest(path)
        for room in rooms
        for path in sorted((package / room).rglob("*.py"))
    }
    given = {path.name: file_digest(path) for path in files}
    return identity_of({"code": code, "files": given, "versions": {m: installed_version(m) for m in modules}})
