"""What makes a search space valid, whether it comes from a file or from Python."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

from binas.base.errors import SpaceError, several
from binas.space.architecture import CONFIG_NAME, EMPTY_STAGE
from binas.space.codes import MAX_NUMBER

if TYPE_CHECKING:
    from binas.space.space import Config, SearchSpace, Stage

SPACE_NAME = r"[A-Za-z0-9._-]{1,80}"
STAGE_NAME = r"[A-Za-z0-9.+-]{1,60}"
STAGE_KEYS = ("name", "depths", "configs", "blocks")
MAX_DEPTH = 1000
MAX_CONFIGS = 10_000
MAX_CHOICES = 250_000  # configs of all blocks: 1,000 blocks of 250


def check_choices(count: int) -> None:
    """Refuse a space with more configs in all its blocks than any table of it could hold."""
    if count > MAX_CHOICES:
        raise SpaceError(
            f"its blocks have {count} configs together; at most {MAX_CHOICES} can be searched. Leave some out."
        )


def check_space(space: SearchSpace) -> None:
    """Raise one error that lists everything that is wrong with a space."""
    check_choices(sum(len(configs) for stage in space.stages for configs in stage.blocks))
    problems = list(_space_problems(space))
    if problems:
        raise SpaceError(several(f"the space {str(space.name)[:80]!r} is not valid", problems))


def _space_problems(space: SearchSpace) -> Iterator[str]:
    if not re.fullmatch(SPACE_NAME, str(space.name)):
        yield f"its name must be 1 to 80 letters, digits, dots, dashes or underscores, got {space.name!r}"
    for key in ("channels", "resolution", "features", "classes"):
        value = getattr(space, key)
        if value is not None and not (_is_whole(value) and 1 <= value <= MAX_NUMBER):
            yield f"{key} must be a whole number from 1 to {MAX_NUMBER}, got {value!r}"
    yield from space.rules.problems(space.channels)
    if not space.stages:
        yield "it has no stages"
    for name in _repeats(stage.name for stage in space.stages):
        yield f"two stages are called {name!r}"
    for stage in space.stages:
        yield from (f"stage {str(stage.name)[:60]!r}: {problem}" for problem in _stage_problems(stage))


def _stage_problems(stage: Stage) -> Iterator[str]:
    if not re.fullmatch(STAGE_NAME, str(stage.name)):
        yield "its name must be 1 to 60 letters, digits, dots, plus signs or dashes"
    depths = stage.depths
    if not depths or not all(_is_whole(depth) and 0 <= depth <= MAX_DEPTH for depth in depths):
        yield f"depths must be whole numbers from 0 to {MAX_DEPTH}, got {list(depths)}"
        return
    if sorted(set(depths)) != list(depths):
        yield f"depths must increase without repeats, got {list(depths)}"
    if max(depths) != len(stage.blocks):
        yield f"the largest depth is {max(depths)} but {len(stage.blocks)} blocks are listed"
    yield from _option_problems(stage.attributes, STAGE_KEYS)
    done: set[int] = set()
    for b, configs in enumerate(stage.blocks, 1):
        if id(configs) not in done:  # blocks of a stage mostly share one list
            yield from (f"block {b}: {problem}" for problem in _block_problems(configs))
        done.add(id(configs))


def _block_problems(configs: tuple[Config, ...]) -> Iterator[str]:
    if not 1 <= len(configs) <= MAX_CONFIGS:
        yield f"a block has 1 to {MAX_CONFIGS} configs, got {len(configs)}"
    for name in _repeats(config.name for config in configs):
        yield f"two configs are called {name!r}; give each its own 'name:'"
    for config in configs:
        if not CONFIG_NAME.fullmatch(str(config.name)):
            advice = "use 1 to 60 letters, digits, dots or plus signs; list the configs with 'name:'"
            yield f"{str(config.name)[:60]!r} cannot name a config: {advice}"
        if config.name == EMPTY_STAGE:
            yield f"a config is called {EMPTY_STAGE!r}, which means an empty stage"
        yield from (f"config {config.name!r}: {p}" for p in _option_problems(config.options, ("name",)))


def _option_problems(options: Iterable[tuple[Any, Any]], reserved: tuple[str, ...]) -> Iterator[str]:
    options = list(options)
    for key in _repeats(key for key, _ in options):
        yield f"the key {key!r} is given twice"
    for key, value in options:
        if not isinstance(key, str) or key in reserved:
            yield f"{key!r} cannot be the key of an option"
        if type(value) not in (bool, int, float, str) or (type(value) is float and not math.isfinite(value)):
            yield f"{key} must be a finite number, text, or on or off, got {value!r}"


def _repeats(names: Iterable[Any]) -> list[Any]:
    return [name for name, times in Counter(names).items() if times > 1]


def _is_whole(value: object) -> bool:
    return type(value) is int
