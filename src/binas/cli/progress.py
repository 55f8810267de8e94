"""A progress bar on a terminal, silence elsewhere."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from binas.resources.measure import Report
    from binas.resources.session import Progress


@contextmanager
def progress_bar() -> Iterator[Report]:
    """A bar on standard error with the time left; nothing is shown when that is not a terminal."""
    from rich.console import Console
    from rich.progress import BarColumn, TextColumn
    from rich.progress import Progress as Bar

    console = Console(stderr=True)
    columns = (BarColumn(), TextColumn("{task.fields[left]}"), TextColumn("{task.description}", markup=False))
    hidden = not console.is_terminal
    # Drawn only when told of progress: a thread that refreshes it would run while something is timed.
    with Bar(*columns, console=console, transient=True, disable=hidden, auto_refresh=False) as bar:
        task = bar.add_task("", total=1.0, left="")

        def show(state: Progress) -> None:
            bar.update(task, completed=state.fraction, description=state.doing, left=time_left(state))
            bar.refresh()

        yield show


def time_left(state: Progress) -> str:
    """The time left for people; empty when it is not known."""
    if state.left is None:
        return ""
    minutes, seconds = divmod(round(state.left), 60)
    return f"{minutes} min {seconds:02d} s left" if minutes else f"{seconds} s left"
