"""What steps in depth and in the options of configs bring, in points (paper section 5.3, figure 8).

Depth: Delta_b^s - Delta_{b-1}^s for every stage.

For an option (expansion, kernel, squeeze-excite, or any other a space has) and two of its values, in stage s and block b

    step(s, b) = 1/|C_high| sum_{c in C_high} Delta_{b,c}^s - 1/|C_low| sum_{c in C_low} Delta_{b,c}^s,

C_v being all configs of that block with the value v; per stage it is averaged over blocks, per block over stages
(appendix on averaging individual accuracy contributions).
"""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from binas.insights.effects import Array, Effect, Effects
from binas.space.space import Config, OptionValue, SearchSpace

NAME = "config"  # stands in for options where configs have names only


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


@dataclass(frozen=True, eq=False)
class OptionStep:
    """Changing one option from ``low`` to ``high``: overall, per stage (by name) and per block (from 1).

    ``balanced``: configs with either value have the same other options, so the effect is of this option alone.
    Stages and blocks that do not offer both values are left out.
    """

    option: str
    low: OptionValue
    high: OptionValue
    overall: Effect
    per_stage: dict[str, Effect]
    per_block: dict[int, Effect]
    balanced: bool

    @property
    def name(self) -> str:
        """For people: ``expansion 3 to 4``, ``adding se``."""
        if self.low is False and self.high is True:
            return f"adding {self.option}"
        return f"{self.option} {self.low} to {self.high}"

    def to_json(self) -> dict[str, Any]:
        """The numbers."""
        return {
            "name": self.name,
            "option": self.option,
            "from": self.low,
            "to": self.high,
            "balanced": self.balanced,
            "overall": self.overall.to_json(),
            "per_stage": {stage: effect.to_json() for stage, effect in self.per_stage.items()},
            "per_block": {str(block): effect.to_json() for block, effect in self.per_block.items()},
        }


def option_steps(effects: Effects) -> tuple[OptionStep, ...]:
    """Every step between neighbouring values of every option, in the order of the space."""
    return tuple(
        _step(effects, option, low, high)
        for option in _options(effects.space)
        for low, high in _pairs(effects.space, option)
    )


def _step(effects: Effects, option: str, low: OptionValue, high: OptionValue) -> OptionStep:
    stages = effects.space.stages
    cells: dict[tuple[int, int], Array] = {}
    balanced = True
    for s, stage in enumerate(stages):
        for b, block in enumerate(stage.blocks):
            lows, highs = _having(block, option, low), _having(block, option, high)
            if lows and highs:
                cells[s, b] = effects.mean(s, b, highs) - effects.mean(s, b, lows)
                balanced = balanced and _others(block, lows, option) == _others(block, highs, option)

    def average(which: Iterable[tuple[int, int]]) -> Effect:
        return effects.effect(np.mean([cells[cell] for cell in which], axis=0))

    per_stage = {
        stages[s].name: average(cell for cell in cells if cell[0] == s) for s in sorted({s for s, _ in cells})
    }
    per_block = {
        b + 1: average(cell for cell in cells if cell[1] == b) for b in sorted({b for _, b in cells})
    }
    return OptionStep(option, low, high, average(cells), per_stage, per_block, balanced)


def _blocks(space: SearchSpace) -> Iterator[tuple[Config, ...]]:
    return (block for stage in space.stages for block in stage.blocks)


def _options(space: SearchSpace) -> list[str]:
    """Names of all options that configs have, in order; the config's own name where there are none."""
    names = dict.fromkeys(key for block in _blocks(space) for config in block for key, _ in config.options)
    return list(names) or [NAME]


def _value(config: Config, option: str) -> OptionValue | None:
    return config.get(option, config.name if option == NAME else None)


def _having(block: tuple[Config, ...], option: str, value: OptionValue) -> list[int]:
    """Indices of the configs with this value; 1 and True are different values."""
    return [c for c, config in enumerate(block) if _same(_value(config, option), value)]


def _same(one: OptionValue | None, two: OptionValue) -> bool:
    return type(one) is type(two) and one == two


def _others(block: tuple[Config, ...], configs: list[int], option: str) -> dict[tuple[Any, ...], float]:
    """How the other options are shared out among some configs: combination -> share."""
    rest = Counter(tuple(sorted((k, repr(v)) for k, v in block[c].options if k != option)) for c in configs)
    return {key: count / len(configs) for key, count in rest.items()}


def _pairs(space: SearchSpace, option: str) -> list[tuple[OptionValue, OptionValue]]:
    """Steps that some block offers: numbers and switches to the next larger value, words from the first one."""
    pairs: dict[tuple[str, str], tuple[OptionValue, OptionValue]] = {}
    for block in _blocks(space):
        values = [value for config in block if (value := _value(config, option)) is not None]
        for low, high in _steps(values):
            pairs.setdefault((repr(low), repr(high)), (low, high))
    return list(pairs.values())


def _steps(values: list[OptionValue]) -> list[tuple[OptionValue, OptionValue]]:
    distinct = list({(type(value), value): value for value in values}.values())
    words = [value for value in distinct if isinstance(value, str)]
    numbers = sorted((v for v in distinct if not isinstance(v, str)), key=float)
    return [*itertools.pairwise(numbers), *((words[0], word) for word in words[1:])]
