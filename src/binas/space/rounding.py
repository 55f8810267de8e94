"""How widths are rounded; shared by what is built and what is counted."""

from __future__ import annotations


def round_channels(channels: float, divisor: int = 8) -> int:
    """Nearest multiple of ``divisor`` that is not below 90 % of ``channels`` (the MobileNet rule)."""
    rounded = max(divisor, int(channels + divisor / 2) // divisor * divisor)
    return rounded + divisor if rounded < 0.9 * channels else rounded
