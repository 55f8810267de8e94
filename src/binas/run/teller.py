"""What a step tells while it works."""

from __future__ import annotations


class Teller:
    """Tells nobody: the base of the others, and the one for tests."""

    def begin(self, step: str) -> None:
        """A step begins."""

    def show(self, done: float, doing: str, left: float | None = None) -> None:
        """``done`` is the share of the step from 0 to 1, ``left`` its seconds left where they are known."""

    def say(self, text: str) -> None:
        """Something to be read, such as a warning."""

    def end(self) -> None:
        """The step is over."""


class Share(Teller):
    """Tells of one part of a step, such as one network of several, as that part of the whole."""

    def __init__(self, whole: Teller, number: int, count: int, name: str) -> None:
        self.whole, self.number, self.count, self.name = whole, number, count, name

    def show(self, done: float, doing: str, left: float | None = None) -> None:
        """Pass it on; the time left is that of the part, so it is not."""
        self.whole.show((self.number + done) / self.count, f"{self.name} {doing}".strip())

    def say(self, text: str) -> None:
        """Pass it on."""
        self.whole.say(f"{self.name}: {text}")
