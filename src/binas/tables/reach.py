"""The least and the most a cost can be over all architectures of a space, exactly."""

from __future__ import annotations

import math
from collections.abc import Callable

from binas.space.space import SearchSpace
from binas.tables.costs import Cost


def reach(space: SearchSpace, cost: Cost) -> tuple[float, float]:
    """Least and greatest cost of any architecture.

    Stages do not depend on each other: each takes its best depth, and every block its best config.
    """
    return _extreme(space, cost, min), _extreme(space, cost, max)


def _extreme(space: SearchSpace, cost: Cost, best: Callable[..., float]) -> float:
    together: Callable[[list[float]], float] = max if cost.combine == "max" else math.fsum
    stages = [cost.fixed]
    for stage, depths, blocks in zip(space.stages, cost.values.depths, cost.values.configs, strict=True):
        configs = [float(best(block)) for block in blocks]
        variants = [together([float(depths[i]), *configs[:depth]]) for i, depth in enumerate(stage.depths)]
        stages.append(best(variants))
    return together(stages)
