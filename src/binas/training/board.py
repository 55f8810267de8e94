"""Figures for TensorBoard: events written one by one, by the process that has them, never a reason to stop.

TensorBoard's own writer works in a thread of its own, where a full disk ends in a traceback and lost figures.
"""

from __future__ import annotations

import itertools
import os
import socket
import time
from collections.abc import Mapping
from pathlib import Path
from typing import IO, Any

from binas.base.errors import FileError
from binas.base.files import writing

_numbers = itertools.count()


class Board:
    """An event file in a folder; the first time it cannot be written it is given up, and :attr:`problem` says why."""

    def __init__(self, folder: Path, after: int) -> None:
        """``after`` is the last step whose earlier figures stay: those that follow are written again."""
        from tensorboard.compat.proto.event_pb2 import Event, SessionLog

        name = f"events.out.tfevents.{int(time.time())}.{socket.gethostname()}.{os.getpid()}.{next(_numbers)}"
        self.path, self.problem = folder / name, ""
        self._file: IO[bytes] | None = None
        self._write(Event(wall_time=time.time(), file_version="brain.Event:2"))
        begun = SessionLog(status=SessionLog.START)
        self._write(Event(wall_time=time.time(), step=after + 1, session_log=begun))

    def add(self, figures: Mapping[str, float], step: int) -> None:
        """Figures by their names, at a step."""
        from tensorboard.compat.proto.event_pb2 import Event
        from tensorboard.compat.proto.summary_pb2 import Summary

        values = [Summary.Value(tag=name, simple_value=value) for name, value in figures.items()]
        self._write(Event(wall_time=time.time(), step=step, summary=Summary(value=values)))

    def close(self) -> None:
        """No more figures."""
        self._try(lambda file: file.close())

    def _write(self, event: Any) -> None:
        from tensorboard.summary.writer.record_writer import RecordWriter

        self._try(lambda file: RecordWriter(file).write(event.SerializeToString()))

    def _try(self, action: Any) -> None:
        """Do something with the file, which is opened when first asked for; after a failure nothing any more."""
        if self.problem:
            return
        try:
            with writing(self.path):
                if self._file is None:
                    self.path.parent.mkdir(parents=True, exist_ok=True)
                    self._file = self.path.open("wb", buffering=0)  # nothing is left to write when it fails
                action(self._file)
        except FileError as error:
            self.problem = str(error)
