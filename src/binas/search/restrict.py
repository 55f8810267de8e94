"""Limits on costs that are a maximum, such as peak activation memory: a filter on entries.

max(fixed, entries of the active choices) <= T holds exactly when no active entry exceeds T. So such a limit
takes choices out of the space, and what is left is an ordinary problem: any solver takes it, and exactness
and proofs carry over. A block whose configs are all out ends the depths that reach it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from binas.estimators.objective import (
    BilinearObjective,
    CallableObjective,
    DepthsObjective,
    Objective,
    QuadraticObjective,
    StagewiseObjective,
)
from binas.search.limits import Limit
from binas.search.problem import SearchProblem
from binas.space.space import SearchSpace, Stage
from binas.tables.costs import Cost
from binas.tables.entries import Column

Array = NDArray[np.float64]
Indices = NDArray[np.int64]
Mask = NDArray[np.bool_]


def restricted(problem: SearchProblem) -> SearchProblem | None:
    """The same problem with its limits on maxima turned into a smaller space; None if nothing keeps them.

    Architectures of the smaller space are architectures of the whole one, with the same value and costs.
    """
    if not problem.limits_on_maxima:
        return problem
    kept = _kept(problem)
    limits = tuple(limit for limit in problem.limits if problem.costs[limit.cost].combine == "sum")
    return None if kept is None else smaller_problem(problem, kept, limits)


def widened(space: SearchSpace, smaller: SearchSpace, configs: Indices) -> Indices:
    """Config indices (n, S, D) of the restricted space ``smaller`` as indices of the whole ``space``."""
    if smaller is space:
        return configs
    result = np.full((len(configs), len(space.stages), space.max_depth), -1, dtype=np.int64)
    for s, stage in enumerate(smaller.stages):
        for b, block in enumerate(stage.blocks):
            whole = [space.config_index(s, b, config.name) for config in block]
            result[:, s, b] = np.append(whole, -1)[configs[:, s, b]]  # index -1, not active, takes the last
    return result


def levels(cost: Cost) -> Array:
    """The numbers a maximum can be, rising: the fixed part and every larger entry."""
    entries = np.unique(np.concatenate(list(cost.values.arrays())))
    return np.append(cost.fixed, entries[entries > cost.fixed])


@dataclass(frozen=True, eq=False)
class Kept:
    """Indices of what stays of a space: of each stage's allowed depths, and of the configs of each block.

    ``configs[s]`` has one array per block up to the largest depth that stays.
    """

    space: SearchSpace
    depths: tuple[Indices, ...]
    configs: tuple[tuple[Indices, ...], ...]

    def column(self, column: Column) -> Column:
        """The numbers that stay."""
        rows = zip(column.configs, self.configs, strict=True)
        return Column(
            tuple(values[kept] for values, kept in zip(column.depths, self.depths, strict=True)),
            tuple(tuple(b[kept] for b, kept in zip(blocks, row, strict=False)) for blocks, row in rows),
        )

    def smaller_space(self) -> SearchSpace:
        """The space of what stays."""
        return replace(self.space, stages=tuple(map(self._stage, range(len(self.depths)), self.space.stages)))

    def _stage(self, s: int, stage: Stage) -> Stage:
        pairs = zip(stage.blocks, self.configs[s], strict=False)
        blocks = tuple(tuple(block[c] for c in kept) for block, kept in pairs)
        return replace(stage, depths=tuple(stage.depths[i] for i in self.depths[s]), blocks=blocks)

    @cached_property
    def alpha(self) -> Indices:
        """Where the configs that stay stand in the alpha of the whole space."""
        entries = [
            where.start + kept
            for row, blocks in zip(self.space.layout.config_slices, self.configs, strict=True)
            for where, kept in zip(row, blocks, strict=False)
        ]
        return np.concatenate([np.zeros(0, dtype=np.int64), *entries])

    @cached_property
    def beta(self) -> Indices:
        """Where the depths that stay stand in the beta of the whole space."""
        places = self.space.layout.beta_slices
        return np.concatenate([where.start + kept for where, kept in zip(places, self.depths, strict=True)])

    @cached_property
    def entries(self) -> Indices:
        """Where what stays stands in z of the whole space."""
        return np.concatenate([self.alpha, self.space.alpha_size + self.beta])

    def spread(self, alpha: Array, beta: Array) -> tuple[Array, Array]:
        """Vectors of the smaller space as vectors of the whole: zero for what is out.

        A block that no depth reaches has its first config, as in :meth:`Layout.encode`.
        """
        whole, depths = np.zeros(self.space.alpha_size), np.zeros(self.space.beta_size)
        for row, kept in zip(self.space.layout.config_slices, self.configs, strict=True):
            whole[[where.start for where in row[len(kept) :]]] = 1.0
        whole[self.alpha], depths[self.beta] = alpha, beta
        return whole, depths


def _kept(problem: SearchProblem) -> Kept | None:
    """What keeps the limits on maxima; None where a stage, or the fixed part, cannot."""
    costs = [(limit, problem.costs[limit.cost]) for limit in problem.limits_on_maxima]
    if not all(problem.keeps(limit, cost.fixed) for limit, cost in costs):
        return None
    whole = Column.full(problem.space, 0.0)
    configs = tuple(
        tuple(_holding(problem, ((x, c.values.configs[s][b]) for x, c in costs)) for b in range(len(blocks)))
        for s, blocks in enumerate(whole.configs)
    )
    depths = tuple(
        _holding(problem, ((x, c.values.depths[s]) for x, c in costs)) for s in range(len(configs))
    )
    return kept_of(problem.space, depths, configs)


def kept_of(space: SearchSpace, depths: Sequence[Mask], configs: Sequence[Sequence[Mask]]) -> Kept | None:
    """What stays where some depths and configs are out; None where that leaves a stage without a depth.

    A block whose configs are all out ends the depths that reach it.
    """
    kept_depths, kept_configs = [], []
    for stage, allowed, masks in zip(space.stages, depths, configs, strict=True):
        reach = next((b for b, mask in enumerate(masks) if not mask.any()), len(masks))
        kept = np.flatnonzero(allowed & (np.array(stage.depths) <= reach))
        if not len(kept):
            return None
        kept_depths.append(kept)
        kept_configs.append(tuple(np.flatnonzero(mask) for mask in masks[: stage.depths[kept[-1]]]))
    return Kept(space, tuple(kept_depths), tuple(kept_configs))


def _holding(problem: SearchProblem, limited: Iterable[tuple[Limit, Array]]) -> NDArray[np.bool_]:
    """Which entries of a decision keep every limit on its own."""
    within = [values <= x.value + problem.tolerance(x) for x, values in limited]
    return np.asarray(np.all(within, axis=0))


def smaller_problem(problem: SearchProblem, kept: Kept, limits: tuple[Limit, ...]) -> SearchProblem:
    """The problem of what stays of a space, under ``limits``."""
    costs = {name: _restricted_cost(cost, kept) for name, cost in problem.costs.items()}
    objective = _restricted_objective(problem.objective, kept)
    return SearchProblem(kept.smaller_space(), objective, costs, limits, scales=problem.scales)


def _restricted_cost(cost: Cost, kept: Kept) -> Cost:
    return replace(cost, values=kept.column(cost.values), stderr=cost.stderr and kept.column(cost.stderr))


def _restricted_objective(objective: Objective, kept: Kept) -> Objective:
    if isinstance(objective, BilinearObjective):
        return _restricted_bilinear(objective, kept)
    if isinstance(objective, StagewiseObjective):
        tables = (_restricted_table(table, kept, s) for s, table in enumerate(objective.tables))
        return replace(objective, tables=tuple(tables))
    if isinstance(objective, DepthsObjective):
        inner = _restricted_objective(objective.inner, kept)
        assert isinstance(inner, BilinearObjective | StagewiseObjective)
        return replace(objective, inner=inner, joint=objective.joint[np.ix_(*kept.depths)])
    if isinstance(objective, QuadraticObjective):
        z = kept.entries
        return replace(objective, linear=objective.linear[z], quadratic=objective.quadratic[np.ix_(z, z)])
    return _restricted_callable(objective, kept)


def _restricted_bilinear(objective: BilinearObjective, kept: Kept) -> BilinearObjective:
    stderr, covariance = objective.stderr, objective.covariance
    rows = np.append(0, 1 + kept.entries)
    return replace(
        objective,
        values=kept.column(objective.values),
        stderr=stderr and kept.column(stderr),
        covariance=None if covariance is None else covariance[np.ix_(rows, rows)],
    )


def _restricted_table(table: Mapping[int, Array], kept: Kept, s: int) -> dict[int, Array]:
    """The variants of a stage that stay."""
    depths = [kept.space.stages[s].depths[i] for i in kept.depths[s]]
    return {d: np.asarray(table[d])[np.ix_(*kept.configs[s][:d])] if d else table[d] for d in depths}


def _restricted_callable(objective: CallableObjective, kept: Kept) -> CallableObjective:
    """A function of architectures stays as it is; functions of (alpha, beta) see the vectors of the whole space."""
    relaxed, gradient = objective.relaxed, objective.gradient

    def smaller_relaxed(alpha: Array, beta: Array) -> float:
        assert relaxed is not None
        return relaxed(*kept.spread(alpha, beta))

    def smaller_gradient(alpha: Array, beta: Array) -> tuple[Array, Array]:
        assert gradient is not None
        by_alpha, by_beta = gradient(*kept.spread(alpha, beta))
        return by_alpha[kept.alpha], by_beta[kept.beta]

    return replace(objective, relaxed=relaxed and smaller_relaxed, gradient=gradient and smaller_gradient)
