"""Effects: differences and averages of contributions, each with its standard error and its cost.

Every number of the paper's section 5.3 is a weighted sum w'theta of theta = (base, configs, depths). So its standard error
is sqrt(w' Cov w), and what it costs is the same sum over a cost table.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from binas.base.errors import TableError
from binas.space.space import SearchSpace
from binas.tables.contributions import Contributions
from binas.tables.costs import Cost

Array = NDArray[np.float64]
CLEAR = (
    3.0  # standard errors from zero that count as clear: many effects are looked at, and noise must not speak
)


@dataclass(frozen=True, eq=False)
class Effect:
    """``value`` in percentage points with its standard error (None where it is not known), and its ``cost``.

    ``weights`` says which sum of contributions it is, so that effects can be compared with each other.
    """

    value: float
    stderr: float | None
    cost: float | None
    weights: Array = field(repr=False)

    @property
    def per_cost(self) -> float | None:
        """Points per unit of cost; None where there is no cost above zero."""
        return None if self.cost is None or self.cost <= 0 else self.value / self.cost

    @property
    def clear(self) -> bool:
        """Whether the value is clearly not zero: beyond three standard errors, or not zero where none is known."""
        return abs(self.value) > CLEAR * (self.stderr or 0.0)

    def to_json(self) -> dict[str, Any]:
        """The numbers; null where not known."""
        return {"value": self.value, "stderr": self.stderr, "cost": self.cost, "per_cost": self.per_cost}


@dataclass(frozen=True, eq=False)
class Effects:
    """Makes effects of the contributions of a space, and what they cost (a cost that adds up)."""

    contributions: Contributions
    cost: Cost | None = None

    def __post_init__(self) -> None:
        if self.cost is not None and self.cost.combine == "max":
            raise TableError(
                f"{self.cost.name} is a maximum over blocks, so a choice has no cost of its own in it; choose a cost that "
                "adds up, such as latency, macs or params."
            )

    @property
    def space(self) -> SearchSpace:
        """The space of the tables."""
        return self.contributions.space

    @property
    def errors_known(self) -> bool:
        """Whether the table carries standard errors at all."""
        return self.contributions.covariance is not None or self.contributions.stderr is not None

    @cached_property
    def _values(self) -> Array:
        return np.concatenate([[self.contributions.base], self.contributions.values.flat()])

    def depth(self, stage: int, index: int) -> Array:
        """Weights that pick the contribution of a stage's allowed depth number ``index``."""
        weights = np.zeros(len(self._values))
        weights[1 + self.space.layout.depth_slices[stage].start + index] = 1.0
        return weights

    def mean(self, stage: int, block: int, configs: Sequence[int]) -> Array:
        """Weights of the mean over some configs of a block, 1/|C| sum_{c in C} Delta_{b,c}^s."""
        weights = np.zeros(len(self._values))
        start = 1 + self.space.layout.config_slices[stage][block].start
        weights[[start + c for c in configs]] = 1.0 / len(configs)
        return weights

    def effect(self, weights: Array, cost_weights: Array | None = None) -> Effect:
        """The effect w'theta; its cost is that of ``cost_weights`` where what is paid for differs from what is gained."""
        paid = weights if cost_weights is None else cost_weights
        cost = None
        if self.cost is not None:
            cost = float(paid[1:] @ self.cost.values.flat())
        return Effect(float(weights @ self._values), self._stderr(weights), cost, weights)

    def difference(self, one: Effect, two: Effect) -> Effect:
        """``one`` - ``two``, with the standard error of the difference; costs are not compared."""
        weights = one.weights - two.weights
        return Effect(float(weights @ self._values), self._stderr(weights), None, weights)

    def _stderr(self, weights: Array) -> float | None:
        (error,) = self.contributions.errors(weights[None])
        return None if math.isnan(error) else float(error)
