"""Drawing architectures: uniform over decisions (the paper's) or architectures, mutation, crossover.

All functions take a ``numpy.random.Generator``; the same seed gives the same architectures.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Literal

import numpy as np
from pydantic import Field

from binas.base.errors import ProblemError
from binas.base.settings import Settings
from binas.space.architecture import Architecture
from binas.space.space import SearchSpace, Stage

How = Literal["decisions", "architectures"]


class DrawSettings(Settings):
    """Which random architectures are drawn, and how they are written."""

    count: int = Field(1, ge=1, le=1_000_000, description="how many architectures")
    seed: int = Field(0, ge=0, description="the same seed gives the same architectures")
    how: How = Field(
        "decisions", description="uniform over decisions (as in the paper) or over architectures"
    )
    form: Literal["compact", "blocks", "json"] = Field(
        "compact", description="compact strings, timm-style block strings, or JSON"
    )


def sample(space: SearchSpace, rng: np.random.Generator, how: How = "decisions") -> Architecture:
    """Draw one architecture.

    ``decisions``: every depth of a stage equally likely, every config of a block equally likely
    (section 3.2). ``architectures``: every architecture of the space equally likely, by choosing a
    stage's depth d with probability prod_{b<=d}|C_b| / sum_d' prod_{b<=d'}|C_b|.
    """
    if how not in ("decisions", "architectures"):
        raise ProblemError(f"unknown sampling {how!r}; use 'decisions' or 'architectures'.")
    return Architecture(tuple(_sample_stage(stage, rng, how) for stage in space.stages))


def sample_many(space: SearchSpace, count: int, seed: int, how: How = "decisions") -> list[Architecture]:
    """Draw ``count`` architectures independently from one seed."""
    rng = np.random.default_rng(seed)
    return [sample(space, rng, how) for _ in range(count)]


def _sample_stage(stage: Stage, rng: np.random.Generator, how: How) -> tuple[str, ...]:
    any_depth = how == "decisions"
    depth = stage.depths[int(rng.integers(len(stage.depths)))] if any_depth else _exact_depth(stage, rng)
    return tuple(configs[int(rng.integers(len(configs)))].name for configs in stage.blocks[:depth])


def _exact_depth(stage: Stage, rng: np.random.Generator) -> int:
    """A depth with probability proportional to its number of stages, in exact integer arithmetic."""
    sizes = [len(configs) for configs in stage.blocks]
    rest = random_below(stage.count, rng)
    for depth in stage.depths:
        weight = math.prod(sizes[:depth])
        if rest < weight:
            return depth
        rest -= weight
    raise AssertionError("a stage has fewer members than counted")


def random_below(limit: int, rng: np.random.Generator) -> int:
    """A uniform integer in [0, limit) for integers of any size, by rejection."""
    if limit < 1:
        raise ValueError(f"there is no whole number from 0 below {limit}")
    bits = limit.bit_length()
    size = (bits + 7) // 8
    while True:
        value = int.from_bytes(rng.bytes(size), "little") >> (8 * size - bits)
        if value < limit:
            return value


def mutate(
    space: SearchSpace, architecture: Architecture, rng: np.random.Generator, probability: float = 0.1
) -> Architecture:
    """Redraw every decision (depth of a stage, config of a block) with the given probability.

    Blocks that a larger depth adds get random configs.
    """
    stages = []
    for stage, names in zip(space.stages, architecture.stages, strict=True):
        depth = len(names)
        if rng.random() < probability:
            depth = stage.depths[int(rng.integers(len(stage.depths)))]
        configs = [
            block[int(rng.integers(len(block)))].name
            if b >= len(names) or rng.random() < probability
            else names[b]
            for b, block in enumerate(stage.blocks[:depth])
        ]
        stages.append(tuple(configs))
    return Architecture(tuple(stages))


def crossover(
    space: SearchSpace, first: Architecture, second: Architecture, rng: np.random.Generator
) -> Architecture:
    """Take each stage's depth and each block's config from one of the two parents at random."""
    stages = []
    for one, two in zip(first.stages, second.stages, strict=True):
        depth = len((one, two)[int(rng.integers(2))])
        stages.append(tuple(_inherit(one, two, b, rng) for b in range(depth)))
    child = Architecture(tuple(stages))
    space.check(child)
    return child


def _inherit(one: Sequence[str], two: Sequence[str], block: int, rng: np.random.Generator) -> str:
    choices = [names[block] for names in (one, two) if block < len(names)]
    return choices[int(rng.integers(len(choices)))]


def enumerate_all(space: SearchSpace, limit: int = 2_000_000) -> list[Architecture]:
    """Every architecture of a small space, in lexicographic order of depths and configs."""
    if space.count > limit:
        raise ProblemError(
            f"the space {space.name!r} has {space.count} architectures; at most {limit} are listed."
        )
    partial: list[tuple[tuple[str, ...], ...]] = [()]
    for stage in space.stages:
        options = _stage_options(stage)
        partial = [(*head, option) for head in partial for option in options]
    return [Architecture(stages) for stages in partial]


def _stage_options(stage: Stage) -> list[tuple[str, ...]]:
    options: list[tuple[str, ...]] = []
    for depth in stage.depths:
        rows: list[tuple[str, ...]] = [()]
        for configs in stage.blocks[:depth]:
            rows = [(*row, config.name) for row in rows for config in configs]
        options += rows
    return options
