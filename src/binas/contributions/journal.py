"""Outcomes on disk, one file per finished pass: a measurement that is killed loses at most the pass it was in.

``journal.json`` says what was measured (weights, images, protocol, seed). ``pass-000007.npy`` holds pass 7: per image
correctness and log-probability, four bytes each. Paths are not stored, they follow from (seed, image, pass).
Reading takes slices of the files, so that memory does not grow with the number of evaluations.
"""

from __future__ import annotations

import io
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from binas.base.errors import CheckpointError, FileError
from binas.base.files import dump_json, exists, read_json, write_bytes, write_text
from binas.base.identity import changes
from binas.contributions.outcomes import Outcomes

FORMAT, VERSION = "binas/outcomes", 1
HEADER = "journal.json"
ENTRY = np.dtype([("correct", "<f4"), ("log_probability", "<f4")])


class Journal:
    """The recorded passes of one measurement."""

    def __init__(self, folder: Path, identity: Mapping[str, Any], fresh: bool = False) -> None:
        """Open what is in ``folder`` if it has the same ``identity``, or start; ``fresh`` discards what is there."""
        self.folder, self.identity = folder, dict(identity)
        if exists(folder / HEADER) and not fresh:
            self._check()
        else:
            self.clear()
            write_text(folder / HEADER, dump_json({"format": FORMAT, "version": VERSION, **self.identity}))
        self.images = int(self.identity["images"])

    def clear(self) -> None:
        """Remove all passes, then the header: passes without one belong to nobody and are removed as well."""
        for path in [*self.folder.glob("pass-*.npy"), *self.folder.glob(".pass-*")]:
            path.unlink()
        (self.folder / HEADER).unlink(missing_ok=True)

    def first_missing(self, end: int) -> int:
        """The first pass before ``end`` that is not recorded, or ``end``."""
        return next((number for number in range(end) if not self.has(number)), end)

    def has(self, number: int) -> bool:
        """Whether a pass is recorded."""
        return exists(self._path(number))

    def write(self, number: int, outcomes: Outcomes) -> None:
        """Record a whole pass."""
        entries = np.empty(len(outcomes), dtype=ENTRY)
        entries["correct"], entries["log_probability"] = outcomes.correct, outcomes.log_probability
        buffer = io.BytesIO()
        np.save(buffer, entries, allow_pickle=False)
        write_bytes(self._path(number), buffer.getvalue())

    def read(self, number: int, first: int, end: int) -> Outcomes:
        """Outcomes of images ``first`` to ``end`` in one pass."""
        path = self._path(number)
        try:
            entries = np.lib.format.open_memmap(path, mode="r")
        except (OSError, ValueError, EOFError) as error:
            raise FileError(f"cannot read {path}: {error}. Delete it; the pass is measured again.") from error
        if entries.dtype != ENTRY or entries.shape != (self.images,):
            raise FileError(
                f"{path} does not hold {self.images} outcomes. Delete it; the pass is measured again."
            )
        rows = np.array(entries[first:end])
        return Outcomes(rows["correct"], rows["log_probability"])

    def _path(self, number: int) -> Path:
        return self.folder / f"pass-{number:06d}.npy"

    def _check(self) -> None:
        found = read_json(self.folder / HEADER)
        if not isinstance(found, dict) or (found.get("format"), found.get("version")) != (FORMAT, VERSION):
            raise CheckpointError(
                f"{self.folder / HEADER} is not the header of recorded passes, version {VERSION}."
            )
        changed = changes({name: found.get(name) for name in self.identity}, self.identity)
        if changed:
            raise CheckpointError(
                f"the passes in {self.folder} were recorded for something else: {'; '.join(changed)}. Ask for the same "
                "again, or discard them with --no-resume. Nothing was changed."
            )
