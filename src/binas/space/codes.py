"""One block as a value: what a block string says, and what a block family builds, counts and writes.

Every config of every family becomes a :class:`BlockCode`; from it come the string, the costs and the network.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, get_args

import numpy as np

from binas.base.errors import SpaceError

if TYPE_CHECKING:
    from binas.space.space import OptionValue

Activation = Literal["re", "r6", "hs", "sw"]
ACTIVATIONS: tuple[str, ...] = get_args(Activation)
DEFAULT_ACTIVATION = "hs"
MAX_NUMBER = 1_000_000


@dataclass(frozen=True, slots=True)
class BlockCode:
    """One block string, parsed: ``channels`` are output channels, ``se`` a ratio of the expanded channels.

    What ``expansion`` is a ratio of is up to the family of ``kind``; ``extra`` holds the numbers of fields that
    a family adds to the grammar, in the order of their names.
    """

    kind: str
    kernel: int
    stride: int
    channels: int
    expansion: float = 1.0
    se: float = 0.0
    activation: str = DEFAULT_ACTIVATION
    repeats: int = 1
    skip: bool = True
    extra: tuple[tuple[str, float], ...] = ()

    def __post_init__(self) -> None:
        object.__setattr__(self, "extra", tuple(sorted(self.extra)))

    def __str__(self) -> str:
        parts = [self.kind, f"r{self.repeats}", f"k{self.kernel}", f"s{self.stride}"]
        if self.kind != "cn" or self.expansion != 1.0:
            parts.append(f"e{_plain(self.expansion)}")
        parts.append(f"c{self.channels}")
        if self.activation != DEFAULT_ACTIVATION:
            parts.append(f"n{self.activation}")
        if self.se:
            parts.append(f"se{_plain(self.se)}")
        parts += [f"{name}{_plain(number)}" for name, number in self.extra]
        if not self.skip:
            parts.append("noskip")
        return "_".join(parts)

    def get(self, field: str, default: float) -> float:
        """The number of a field that the family added."""
        return dict(self.extra).get(field, default)


def _plain(number: float) -> str:
    """Shortest text without an exponent that reads back as the same number."""
    return np.format_float_positional(number, trim="-")


def whole(value: OptionValue | None, key: str, where: str) -> int:
    """An option that must be a whole number; ``where`` names the config in the error."""
    if not isinstance(value, int) or isinstance(value, bool) or not 1 <= value <= MAX_NUMBER:
        raise SpaceError(f"{where}: {key} must be a whole number from 1 to {MAX_NUMBER}, got {value!r}.")
    return value


def positive(value: OptionValue | None, key: str, where: str) -> float:
    """An option that must be a number above 0."""
    if not isinstance(value, int | float) or isinstance(value, bool) or not 0 < value <= MAX_NUMBER:
        raise SpaceError(f"{where}: {key} must be a number above 0 and at most {MAX_NUMBER}, got {value!r}.")
    return float(value)


def switched(value: OptionValue | None, key: str, where: str) -> bool:
    """An option that must be on or off."""
    if not isinstance(value, bool):
        raise SpaceError(f"{where}: {key} must be on or off, got {value!r}.")
    return value


def activation(value: OptionValue | None, where: str) -> str:
    """An option that must name an activation of the block-string grammar."""
    if value not in ACTIVATIONS:
        known = ", ".join(ACTIVATIONS)
        raise SpaceError(f"{where} has the activation {value!r}; block strings know {known}.")
    return str(value)


def round_channels(channels: float, divisor: int = 8) -> int:
    """Nearest multiple of ``divisor`` that is not below 90 % of ``channels`` (the MobileNet rule).

    What is built and what is counted both round widths so.
    """
    rounded = max(divisor, int(channels + divisor / 2) // divisor * divisor)
    return rounded + divisor if rounded < 0.9 * channels else rounded
