"""Outcomes on disk, one file per finished pass: a measurement that is killed loses at most the pass it was in.

``journal.json`` says what was measured (weights, images, protocol, seed). ``pass-000007.npy`` holds pass 7: per image
correctness and log-probability, four bytes each, then a SHA-256, so that a changed byte is noticed. Paths are not stored,
they follow from (seed, image, pass). Reading takes slices of the files, so that memory does not grow with the number of
evaluations.
"""

from __future__ import annotations

import hashlib
import io
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from binas.base.errors import CheckpointError, FileError
from binas.base.files import (
    dump_json,
    exists,
    listed,
    read_bytes,
    read_json,
    reading,
    remove,
    write_bytes,
    write_text,
)
from binas.base.identity import changes
from binas.contributions.outcomes import Outcomes, first_impossible

FORMAT, VERSION = "binas/outcomes", 2
HEADER = "journal.json"
AGAIN = "Delete it; the pass is measured again."
MAX_BYTES = 4 * 2**30  # of a pass
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
        self._verified: set[int] = set()  # passes that were found to be as they were recorded

    def clear(self) -> None:
        """Remove all passes, then the header: passes without one belong to nobody and are removed as well."""
        for path in [*listed(self.folder, "pass-*.npy"), *listed(self.folder, ".pass-*")]:
            remove(path)
        remove(self.folder / HEADER)

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
        data = buffer.getvalue()
        self._verified.discard(number)
        write_bytes(self._path(number), data + self._digest(number, data))

    def read(self, number: int, first: int, end: int) -> Outcomes:
        """Outcomes of images ``first`` to ``end`` in one pass; a pass that is not as it was recorded is an error."""
        rows = np.array(self._entries(number)[first:end])
        outcomes = Outcomes(rows["correct"], rows["log_probability"])
        wrong = first_impossible(outcomes)
        if wrong is not None:
            raise FileError(
                f"{self._path(number)} holds correct={outcomes.correct[wrong]:g}, log_probability="
                f"{outcomes.log_probability[wrong]:g} for image {first + wrong}, which cannot be. {AGAIN}"
            )
        return outcomes

    def _entries(self, number: int) -> NDArray[np.void]:
        """A pass as it is on disk."""
        path = self._path(number)
        if number not in self._verified:  # once: a fit reads a pass slice by slice
            self._verify(number, read_bytes(path, MAX_BYTES, AGAIN))
        with reading(path, AGAIN):
            entries = np.lib.format.open_memmap(path, mode="r")
        if entries.dtype != ENTRY or entries.shape != (self.images,):
            raise FileError(f"{path} does not hold {self.images} outcomes. {AGAIN}")
        return entries

    def _verify(self, number: int, data: bytes) -> None:
        size = hashlib.sha256().digest_size
        if data[-size:] != self._digest(number, data[:-size]):
            raise FileError(
                f"{self._path(number)} is not the pass that was recorded: its SHA-256 differs. {AGAIN}"
            )
        self._verified.add(number)

    def _digest(self, number: int, data: bytes) -> bytes:
        """SHA-256 of a pass and of what it is a pass of, so that one of another measurement is noticed as well."""
        about = json.dumps([self.identity, number], sort_keys=True)
        return hashlib.sha256(about.encode() + b"\n" + data).digest()

    def _path(self, number: int) -> Path:
        return self.folder / f"pass-{number:06d}.npy"

    def _check(self) -> None:
        found = read_json(self.folder / HEADER)
        if not isinstance(found, dict) or (found.get("format"), found.get("version")) != (FORMAT, VERSION):
            raise CheckpointError(
                f"{self.folder / HEADER} is not the header of recorded passes, version {VERSION}. Delete it; the "
                "passes beside it are then discarded and measured again."
            )
        changed = changes({name: found.get(name) for name in self.identity}, self.identity)
        if changed:
            raise CheckpointError(
                f"the passes in {self.folder} were recorded for something else: {'; '.join(changed)}. Ask for the same "
                "again, or measure again with --redo. They were left as they are."
            )
