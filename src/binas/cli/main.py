"""``binas``: the entry point. Every command is a thin layer over a function of the library."""

from __future__ import annotations

import gc

gc.disable()  # nothing is garbage while modules are loaded: a tenth of the time to start

import io  # noqa: E402
import os  # noqa: E402

from binas.base.cores import ONE_THREAD  # noqa: E402

# Threads that wait for each other spin, and beside other busy processes that all but stops them. This program shares its
# work among processes of one thread (base/workers.py) instead; measuring sets the threads it is asked for.
for _name, _value in ONE_THREAD.items():
    os.environ.setdefault(_name, _value)  # now: NumPy and torch look at it when they are loaded

import sys  # noqa: E402
from contextlib import ExitStack  # noqa: E402
from typing import Annotated  # noqa: E402

import typer  # noqa: E402

from binas.base.errors import BinasError  # noqa: E402
from binas.base.interrupts import Interrupted, listening  # noqa: E402
from binas.base.launch import take_launch  # noqa: E402
from binas.base.packages import explain_import  # noqa: E402
from binas.base.progress import speak  # noqa: E402
from binas.cli import (  # noqa: E402
    comparing_commands,
    costs_commands,
    reproduce_commands,
    run_commands,
    search_commands,
    space_commands,
    task_commands,
)
from binas.version import TOOL  # noqa: E402

gc.enable()

app = typer.Typer(
    name="binas",
    help="The most accurate network within your limits, proven and explained.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode="markdown",
    add_completion=False,
)
for room in (
    run_commands,
    task_commands,
    search_commands,
    space_commands,
    costs_commands,
    comparing_commands,
    reproduce_commands,
):
    app.registered_commands += room.app.registered_commands
    app.registered_groups += room.app.registered_groups


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(TOOL)
        raise typer.Exit


@app.callback()
def options(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version and exit.")
    ] = False,
) -> None:
    """The most accurate network within your limits, proven and explained."""


def main() -> None:
    """Run the command line; bad input becomes one paragraph and exit code 2."""
    _prepare()
    with ExitStack() as ending:  # other processes of a launcher end after all has been said in this one
        _run(ending)


def _run(ending: ExitStack) -> None:
    try:
        with listening():
            _take_part(ending)
            app()
    except BinasError as error:
        _leave(f"error: {error}")
    except ModuleNotFoundError as error:  # a package of an extra; anything else is a bug, and shown as one
        missing = explain_import(error, "this command")
        if missing is None:
            raise
        _leave(f"error: {missing}")
    except OSError as error:
        told = _what_failed(error)
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        if isinstance(error, BrokenPipeError):  # the reader of our output went away, as in `binas ... | head`
            sys.exit(0)
        _leave(f"error: {told}")
    except Interrupted as interruption:
        _leave(interruption.sentence, interruption.exit_code)


def _can_answer() -> bool:
    """Whether what was printed can be delivered."""
    try:
        os.write(sys.stdout.fileno(), b"\n")
    except OSError:
        return False
    return True


def _what_failed(error: OSError) -> str:
    """An error of the system that nobody has explained: with the file it is about, where there is one."""
    reason = error.strerror or str(error)
    if error.filename is not None:
        return f"{os.fsdecode(error.filename)} cannot be used: {reason}. Check it, then give the same command again."
    if not _can_answer():
        return f"the answer could not be written: {reason}."
    return f"{reason}, and the system does not say where. Check disks and connections, then give the same command again."


def _take_part(ending: ExitStack) -> None:
    """Of several processes of a launcher, go on in the first one; the others work for it and never come back."""
    launch = take_launch(os.environ)
    if launch is None:
        return
    from binas.run.ranks import help_out, lead

    if launch.rank:
        help_out(launch)
    lead(launch, ending)


def _prepare() -> None:
    """Let everything be printed: long numbers, and signs that a terminal cannot show, as '?'."""
    sys.set_int_max_str_digits(0)  # spaces may have more architectures than Python likes to print
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")


def _leave(message: str, code: int = 2) -> None:
    speak(message)
    sys.exit(code)


if __name__ == "__main__":
    main()
