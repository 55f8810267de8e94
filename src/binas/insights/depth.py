"""What depth brings: Delta_b^s - Delta_{b-1}^s for every stage (paper section 4.3, figure 6 left)."""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from typing import Any

import numpy as np

from binas.insights.effects import Effect, Effects


@dataclass(frozen=True, eq=False)
class DepthStep:
    """Making a stage deeper: from one allowed depth to the next.

    The cost of ``effect`` is that of the added blocks, averaged over their configs, and of the depth itself;
    ``block_cost`` is the mean over all blocks and configs of the stage, as the paper draws it.
    """

    stage: str
    shallow: int
    deep: int
    effect: Effect
    block_cost: float | None

    @property
    def name(self) -> str:
        """For people: ``depth 2 to 3``."""
        return f"depth {self.shallow} to {self.deep}"

    def to_json(self) -> dict[str, Any]:
        """The numbers."""
        return {
            "name": self.name,
            "stage": self.stage,
            "from": self.shallow,
            "to": self.deep,
            **self.effect.to_json(),
            "block_cost": self.block_cost,
        }


def depth_steps(effects: Effects) -> tuple[DepthStep, ...]:
    """Delta_b^s - Delta_{b-1}^s for neighbouring allowed depths of every stage, in points."""
    steps = []
    for s, stage in enumerate(effects.space.stages):
        for i, (shallow, deep) in enumerate(itertools.pairwise(stage.depths)):
            step = _deeper(effects, s, i)
            steps.append(DepthStep(stage.name, shallow, deep, step, _block_cost(effects, s)))
    return tuple(steps)


def _deeper(effects: Effects, s: int, i: int) -> Effect:
    """The step from allowed depth number i of stage s to the next."""
    stage = effects.space.stages[s]
    gained = effects.depth(s, i + 1) - effects.depth(s, i)
    paid = gained.copy()
    for block in range(stage.depths[i], stage.depths[i + 1]):
        paid += effects.mean(s, block, range(len(stage.blocks[block])))
    return effects.effect(gained, paid)


def _block_cost(effects: Effects, s: int) -> float | None:
    """1/D sum_b 1/|C| sum_c t_{b,c}^s."""
    if effects.cost is None or not effects.cost.values.configs[s]:
        return None
    return float(np.mean([block.mean() for block in effects.cost.values.configs[s]]))
