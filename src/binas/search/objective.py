"""What a search maximises.

* :class:`BilinearObjective`: r + q_beta' beta + alpha' Q beta from contributions (section 3.3), the normal case.
* :class:`StagewiseObjective`: any sum of per-stage functions f_s(depth, configs); still solved exactly.
* :class:`QuadraticObjective`: full quadratic form of the learned predictors (section 4.2).
* :class:`CallableObjective`: any function of an architecture, optionally differentiable in (alpha, beta).

``value`` of an objective and :func:`architecture_cost` walk through the names of one architecture, slowly and exactly
rounded. The verifier relies on them, so they share nothing with the fast way through ``space.layout``, which
:func:`objective_values` and ``Cost.total`` take for many architectures at once.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from binas.base.errors import ProblemError
from binas.space.architecture import Architecture
from binas.space.space import SearchSpace
from binas.tables.contributions import Contributions, errors_of_sums
from binas.tables.costs import Cost
from binas.tables.entries import Column

Array = NDArray[np.float64]
Indices = NDArray[np.int64]

LARGEST = 1e150  # totals beyond this would overflow on the way


def _row(space: SearchSpace, architecture: Architecture) -> Array:
    """z = (alpha * active, beta) of one architecture, straight from its names."""
    alpha, beta = [], []
    for stage, names in zip(space.stages, architecture.stages, strict=True):
        for b, block in enumerate(stage.blocks):
            alpha += [b < len(names) and config.name == names[b] for config in block]
        beta += [depth == len(names) for depth in stage.depths]
    return np.array([*alpha, *beta], dtype=np.float64)


def column_total(space: SearchSpace, column: Column, architecture: Architecture) -> float:
    """sum_s [depth part + config parts] of one architecture, summed exactly rounded."""
    return math.fsum(_entries(space, column, architecture))


def architecture_cost(space: SearchSpace, cost: Cost, architecture: Architecture) -> float:
    """fixed + the entries of an architecture's choices, or the largest of these where the cost is a maximum."""
    if cost.combine == "max":
        return max(cost.fixed, *_entries(space, cost.values, architecture))
    return cost.fixed + column_total(space, cost.values, architecture)


def _entries(space: SearchSpace, column: Column, architecture: Architecture) -> Iterator[float]:
    """The number of every decision of an architecture: depths and configs of active blocks."""
    for s, (stage, names) in enumerate(zip(space.stages, architecture.stages, strict=True)):
        yield float(column.depths[s][stage.depths.index(len(names))])
        for b, name in enumerate(names):
            yield float(column.configs[s][b][space.config_index(s, b, name)])


@dataclass(frozen=True, eq=False)
class BilinearObjective:
    """ACC = base + sum_s Delta^s_d + sum_s sum_{b<=d} Delta^s_{b,c}, with optional standard errors."""

    kind: ClassVar[str] = "bilinear"
    base: float
    values: Column
    base_stderr: float = math.nan
    stderr: Column | None = None
    covariance: Array | None = None  # of (base, configs, depths), in the order of ``space.layout``

    @classmethod
    def from_contributions(cls, contributions: Contributions) -> BilinearObjective:
        """The paper's estimator (equation of ACC in section 3.3)."""
        c = contributions
        return cls(c.base, c.values, c.base_stderr, c.stderr, c.covariance)

    @classmethod
    def negative_cost(cls, cost: Cost) -> BilinearObjective:
        """Maximising this minimises the cost."""
        return cls(-cost.fixed, cost.values.map(lambda x: -x))

    def value(self, space: SearchSpace, architecture: Architecture) -> float:
        """Objective of one architecture."""
        return self.base + column_total(space, self.values, architecture)

    def standard_error(self, space: SearchSpace, architecture: Architecture) -> float | None:
        """sqrt((1, z)' covariance (1, z)), z = (alpha * active, beta); without a covariance, errors are independent.

        None where they are not known.
        """
        weights = np.append(1.0, space.layout.rows([architecture]))[None]
        (error,) = errors_of_sums(weights, self.base_stderr, self.stderr, self.covariance)
        return None if math.isnan(error) else float(error)


@dataclass(frozen=True, eq=False)
class StagewiseObjective:
    """base + sum_s f_s(depth, configs): ``tables[s][depth]`` has shape (|C_1|, ..., |C_depth|)."""

    kind: ClassVar[str] = "stagewise"
    base: float
    tables: tuple[Mapping[int, Array], ...]

    @classmethod
    def from_function(
        cls, space: SearchSpace, function: Callable[[int, tuple[int, ...]], float], base: float = 0.0
    ) -> StagewiseObjective:
        """Tabulate ``function(stage, config indices of its active blocks)`` for every stage of the space."""
        tables = []
        for s, stage in enumerate(space.stages):
            if stage.count > 5_000_000:
                raise ProblemError(f"stage {stage.name!r} has {stage.count} variants; too many to tabulate.")
            table = {}
            for depth in stage.depths:
                shape = tuple(len(configs) for configs in stage.blocks[:depth])
                table[depth] = np.array([function(s, index) for index in np.ndindex(*shape)]).reshape(shape)
            tables.append(table)
        return cls(base, tuple(tables))

    def value(self, space: SearchSpace, architecture: Architecture) -> float:
        """Objective of one architecture."""
        parts = []
        for s, names in enumerate(architecture.stages):
            index = tuple(space.config_index(s, b, name) for b, name in enumerate(names))
            parts.append(float(self.tables[s][len(names)][index]))
        return self.base + math.fsum(parts)

    def standard_error(self, space: SearchSpace, architecture: Architecture) -> float | None:
        """Not known for tabulated functions."""
        return None


@dataclass(frozen=True, eq=False)
class QuadraticObjective:
    """b + a'z + z'Qz with z = (alpha * active, beta): alpha is zero for blocks past the depth.

    Covers full alpha-alpha, beta-beta and alpha-beta interactions (section 4.2, equation of the
    quadratic predictor).
    """

    kind: ClassVar[str] = "quadratic"
    constant: float
    linear: Array
    quadratic: Array

    def value(self, space: SearchSpace, architecture: Architecture) -> float:
        """Objective of one architecture."""
        z = _row(space, architecture)
        return float(self.constant + self.linear @ z + z @ self.quadratic @ z)

    def standard_error(self, space: SearchSpace, architecture: Architecture) -> float | None:
        """Not known for learned predictors."""
        return None


@dataclass(frozen=True, eq=False)
class CallableObjective:
    """Any function of an architecture; ``relaxed`` and ``gradient`` take (alpha, beta) for Frank-Wolfe."""

    kind: ClassVar[str] = "callable"
    function: Callable[[Architecture], float]
    relaxed: Callable[[Array, Array], float] | None = None
    gradient: Callable[[Array, Array], tuple[Array, Array]] | None = None

    def value(self, space: SearchSpace, architecture: Architecture) -> float:
        """Objective of one architecture."""
        return float(self.function(architecture))

    def standard_error(self, space: SearchSpace, architecture: Architecture) -> float | None:
        """Not known."""
        return None


Objective = BilinearObjective | StagewiseObjective | QuadraticObjective | CallableObjective


def objective_values(objective: Objective, space: SearchSpace, depths: Indices, configs: Indices) -> Array:
    """Objective of many architectures at once from index arrays (see ``SearchSpace.to_indices``), (n,).

    Vectorised where the objective allows it.
    """
    if isinstance(objective, BilinearObjective):
        return objective.base + objective.values.total(space.layout.positions(depths, configs))
    if isinstance(objective, QuadraticObjective):
        return _quadratic_values(objective, space.layout.positions(depths, configs))
    items = [space.from_indices(d, c) for d, c in zip(depths.tolist(), configs.tolist(), strict=True)]
    return np.array([objective.value(space, item) for item in items])


def _quadratic_values(objective: QuadraticObjective, positions: Indices) -> Array:
    """b + a'z + z'Qz by looking up the few entries that count: no matrix product, no threads."""
    padded = np.pad(objective.quadratic, (0, 1))
    total = objective.constant + np.append(objective.linear, 0.0)[positions].sum(axis=1)
    for column in range(positions.shape[1]):
        total = total + padded[positions[:, column, None], positions].sum(axis=1)
    return np.asarray(total)


def check_objective(objective: Objective, space: SearchSpace) -> None:
    """Refuse an objective whose shape does not fit the space or that holds NaN."""
    arrays: list[tuple[Any, tuple[int, ...]]] = []
    if isinstance(objective, BilinearObjective):
        shapes = Column.full(space, 0.0)
        arrays = [(a, b.shape) for a, b in zip(objective.values.arrays(), shapes.arrays(), strict=True)]
    elif isinstance(objective, QuadraticObjective):
        n = space.layout.size
        arrays = [(objective.linear, (n,)), (objective.quadratic, (n, n))]
    elif isinstance(objective, StagewiseObjective):
        arrays = [
            (table.get(depth, np.empty(0)), tuple(len(configs) for configs in stage.blocks[:depth]))
            for stage, table in zip(space.stages, objective.tables, strict=True)
            for depth in stage.depths
        ]
    base = getattr(objective, "base", getattr(objective, "constant", 0.0))
    for array, shape in [*arrays, (np.float64(base), ())]:
        if np.shape(array) != shape or not (np.abs(array) <= LARGEST).all():
            raise ProblemError(
                f"the objective does not fit the space {space.name!r}, or holds NaN or numbers too large to add up."
            )
