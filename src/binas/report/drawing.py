"""How the blocks of a space are drawn: which option is the width, which the glyph, which are badges."""

from __future__ import annotations

from typing import Any

from binas.space.space import OptionValue, SearchSpace

WIDTHS = ("expansion", "width", "ratio", "channels")
GLYPHS = ("kernel",)


def drawing(space: SearchSpace) -> dict[str, Any]:
    """Options by their part in the drawing: width (a number), glyph (a whole number), badges (switches), words (others).

    Configs that have neither width nor glyph are drawn with their names.
    """
    values = _values(space)
    width = next((key for key in WIDTHS if _numbers(values.get(key, []))), None)
    glyph = next((key for key in GLYPHS if _whole(values.get(key, []))), None)
    badges = [key for key, found in values.items() if all(isinstance(value, bool) for value in found)]
    words = [key for key in values if key not in (width, glyph, *badges)]
    most = max((float(value) for value in values.get(width or "", [])), default=1.0)
    return {
        "width": width,
        "most": most,
        "glyph": glyph,
        "badges": badges,
        "words": words,
    }


def _values(space: SearchSpace) -> dict[str, list[OptionValue]]:
    """All values of every option."""
    found: dict[str, list[OptionValue]] = {}
    for stage in space.stages:
        for block in stage.blocks:
            for config in block:
                for key, value in config.options:
                    found.setdefault(key, []).append(value)
    return found


def _numbers(values: list[OptionValue]) -> bool:
    """Whether there are values, all of them numbers above zero."""
    return bool(values) and all(
        isinstance(v, int | float) and not isinstance(v, bool) and 0 < v < float("inf") for v in values
    )


def _whole(values: list[OptionValue]) -> bool:
    """Whether all are whole numbers small enough to be drawn as a grid of dots."""
    return _numbers(values) and all(isinstance(value, int) and value <= 9 for value in values)
