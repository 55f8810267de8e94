"""Calling ``binas`` as a user does: what it prints, what it refuses, and what it leaves on the disk."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass
from io import StringIO
from pathlib import Path
from typing import Any
from unittest import mock

from binas.cli.main import main
from binas.training.team import one_thread
from tiny_run import built_once


@dataclass(frozen=True)
class Done:
    """How a call ended."""

    code: int
    stdout: str
    stderr: str


def binas(*arguments: object) -> Done:
    """A command in this process, through the entry point; exceptions that are bugs are raised."""
    out, err, digits = StringIO(), StringIO(), sys.get_int_max_str_digits()
    typed = ["binas", *map(str, arguments)]
    with (
        one_thread(),
        mock.patch.object(sys, "argv", typed),
        mock.patch("typer.main.get_command", built_once),
        redirect_stdout(out),
        redirect_stderr(err),
    ):
        try:
            main()
            code = 0
        except SystemExit as end:
            code = end.code if isinstance(end.code, int) else int(end.code is not None)
        finally:
            sys.set_int_max_str_digits(digits)  # which main() changes for its own process
    return Done(code, out.getvalue(), err.getvalue())


def fresh(*arguments: object, **more: Any) -> Done:
    """A command in a process of its own."""
    environment = {**os.environ, "NO_COLOR": "1", "COLUMNS": "200"}
    command = [sys.executable, "-m", "binas.cli.main", *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True, env=environment, check=False, **more)
    return Done(done.returncode, done.stdout, done.stderr)


def said(*arguments: object) -> str:
    """What a command that succeeds prints."""
    done = binas(*arguments)
    assert done.code == 0, done.stderr
    return done.stdout


def answer(*arguments: object) -> Any:
    """The one JSON document that a command prints, and nothing else."""
    return json.loads(said(*arguments, "--json"))


def refusal(*arguments: object) -> str:
    """Why a command refuses: one paragraph on standard error, after what was told of progress, and exit code 2."""
    done = binas(*arguments)
    assert done.code == 2, done.stdout
    *told, message = done.stderr.strip().splitlines()
    assert message.startswith("error: "), done.stderr
    assert not [line for line in told if line.startswith(("error", "Traceback"))], done.stderr
    return message


def contents(folder: Path) -> dict[str, bytes]:
    """Every file of a folder, byte for byte."""
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}
