"""Block families: how the blocks of a stage are built, elastic and plain.

A stage names its family (``family: mbconv`` when it does not). To add one, write an :class:`ElasticBlock` and
register a :class:`Family`; spaces, sampling, grouping, extraction and export then work with it.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from binas.errors import SpaceError
from binas.space.blockstrings import BlockCode
from binas.space.space import Config, Stage

Group = tuple[int, slice]


class ElasticBlock(nn.Module, ABC):
    """Shared weights of all configs of one block; the config index is an argument of every call."""

    configs: int

    @abstractmethod
    def forward(self, x: Tensor, config: int) -> Tensor:
        """Run all rows of ``x`` with one config."""

    def rank(self) -> tuple[int, ...]:
        """Where each config stands when rows are sorted; neighbours can share work in :meth:`run`."""
        return tuple(range(self.configs))

    @abstractmethod
    def static(self, config: int) -> nn.Module:
        """The plain block of one config with copied weights."""

    def start_from(self, config: int) -> None:
        """Before all configs are trained: let them start from the trained weights of one, the largest.

        A family that shares channel prefixes sorts channels by importance here. The output of ``config`` itself
        must not change. By default nothing is done.
        """

    def run(self, x: Tensor, groups: Sequence[Group]) -> Tensor:
        """Run rows sorted by rank of config, each group with its own; groups are (config, rows) in order."""
        parts = [self(x[rows], config) for config, rows in groups]
        return parts[0] if len(parts) == 1 else torch.cat(parts)


@dataclass(frozen=True, slots=True)
class Family:
    """What a block family knows: its elastic block, its plain twin with fresh weights, its block string."""

    name: str
    elastic: Callable[[Stage, int, int], ElasticBlock]
    plain: Callable[[Stage, int, Config, int], nn.Module]
    code: Callable[[Stage, int, Config], BlockCode] | None = None


_FAMILIES: dict[str, Family] = {}


def register(family: Family) -> None:
    """Make a family known under its name; a second one of the same name is refused."""
    if family.name in _FAMILIES:
        raise SpaceError(f"a block family called {family.name!r} is registered already.")
    _FAMILIES[family.name] = family


def family_names() -> tuple[str, ...]:
    """Names of the known families."""
    return tuple(sorted(_FAMILIES))


def family_of(stage: Stage) -> Family:
    """The family a stage names."""
    name = stage.get("family", "mbconv")
    if name not in _FAMILIES:
        known = ", ".join(family_names())
        raise SpaceError(f"stage {stage.name!r} has the unknown block family {name!r}; known are {known}.")
    return _FAMILIES[str(name)]


def stage_shape(stage: Stage) -> tuple[int, int]:
    """Output channels and stride of a stage."""
    width, stride = stage.get("channels"), stage.get("stride", 1)
    if type(width) is not int or type(stride) is not int or width < 1 or stride < 1:
        raise SpaceError(f"stage {stage.name!r} must say its channels and stride as whole numbers from 1.")
    return width, stride


def check_shape(stage: Stage, block: int, config: Config) -> tuple[int, int]:
    """Channels and stride of a block; a config may not change them, or blocks would not fit together."""
    width, stride = stage_shape(stage)
    stride = stride if block == 0 else 1
    options = stage.block_options(block, config)
    if options.get("channels") != width or options.get("stride", 1) != stride:
        raise SpaceError(f"config {config.name!r} of stage {stage.name!r} changes its channels or stride.")
    return width, stride
