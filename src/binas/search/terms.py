"""A separable problem as padded arrays: the form the exact solvers work on.

The objective and every limit are sums over stages of (depth part + config parts of the active blocks):
the tight form of the problem, in which no product of alpha and beta is left (docs/explanation/search.md). An
objective with interactions inside a stage is brought to the same form with one pseudo-block per stage
whose configs are all variants of that stage.

Numbers are snapped to a power-of-two grid fine enough (2^-50 of the largest possible total) that every
sum of them is exact in double precision: dominance, ties and feasibility do not depend on the order of
summation.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from binas.base.errors import ProblemError
from binas.estimators.objective import BilinearObjective, DepthsObjective, StagewiseObjective
from binas.search.problem import SearchProblem
from binas.space.space import SearchSpace

Array = NDArray[np.float64]
Indices = NDArray[np.int64]

MAX_VARIANTS = 3_000_000


@dataclass(frozen=True, eq=False)
class StageTerms:
    """One stage: ``blocks[b]`` has shape (1 + m, |C|) and ``depth`` (1 + m, number of depths).

    Row 0 is the objective, rows 1..m are the limited (or traced) costs with sign, ``<= bound``.
    ``variants`` maps the configs of a pseudo-block back to (depth, configs); None for real blocks.
    """

    depths: tuple[int, ...]
    depth: Array
    blocks: tuple[Array, ...]
    variants: tuple[Indices, Indices] | None = None


@dataclass(frozen=True, eq=False)
class Terms:
    """All stages, the constant part of every row, and the bound of rows 1..m (inf where traced only)."""

    space: SearchSpace
    stages: tuple[StageTerms, ...]
    constant: Array
    bounds: Array

    @property
    def rows(self) -> int:
        """Number of cost rows m."""
        return len(self.bounds)


@dataclass(frozen=True)
class Row:
    """One cost row: sign * cost <= bound."""

    cost: str
    sign: float
    bound: float


def limit_rows(problem: SearchProblem) -> list[Row]:
    """The limits of a problem as rows; the tolerance of each limit is inside its bound.

    A limit on a maximum is no row: it is taken out by :func:`binas.search.restrict.restricted` before.
    """
    if problem.limits_on_maxima:
        raise ProblemError(
            f"the limit on {problem.limits_on_maxima[0].cost} is one on a maximum, not a sum: pass the problem through "
            "binas.search.restricted first, which turns it into a smaller space."
        )
    return [
        Row(limit.cost, limit.sign, limit.sign * limit.value + problem.tolerance(limit))
        for limit in problem.limits
    ]


def cost_row(name: str) -> Row:
    """A row that only traces a cost."""
    return Row(name, 1.0, math.inf)


def is_separable(problem: SearchProblem) -> bool:
    """Whether the objective is a sum of per-stage functions, at least with all depths given: then folding is exact."""
    return isinstance(problem.objective, BilinearObjective | StagewiseObjective | DepthsObjective)


def build_terms(problem: SearchProblem, rows: list[Row]) -> Terms:
    """The problem in padded form with the given cost rows."""
    objective = problem.objective
    if not isinstance(objective, BilinearObjective | StagewiseObjective):
        raise ProblemError(
            f"a {objective.kind} objective is not a sum over stages; use branch-bound or evolution."
        )
    constant = np.array([objective.base, *(row.sign * problem.costs[row.cost].fixed for row in rows)])
    bounds = np.array([row.bound for row in rows])
    make = _plain_stages if isinstance(objective, BilinearObjective) else _listed_stages
    fixed, stages = make(problem, rows, constant[:, None])
    return Terms(problem.space, stages, fixed, bounds)


def _plain_stages(
    problem: SearchProblem, rows: list[Row], constant: Array
) -> tuple[Array, tuple[StageTerms, ...]]:
    """Stages without interactions: every number is that of one choice."""
    assert isinstance(problem.objective, BilinearObjective)
    columns = [
        problem.objective.values.flat(),
        *(row.sign * problem.costs[row.cost].values.flat() for row in rows),
    ]
    layout = problem.space.layout
    starts = [0, *(1 + where.start for where in layout.slices)]
    table = _snapped(np.concatenate([constant, np.stack(columns)], axis=1), starts)
    fixed, table = table[:, 0], table[:, 1:]
    stages = zip(problem.space.stages, layout.depth_slices, layout.config_slices, strict=True)
    return fixed, tuple(
        StageTerms(stage.depths, table[:, depths], tuple(table[:, block] for block in blocks))
        for stage, depths, blocks in stages
    )


def _listed_stages(
    problem: SearchProblem, rows: list[Row], constant: Array
) -> tuple[Array, tuple[StageTerms, ...]]:
    """Stages with interactions: every variant becomes one config of a single pseudo-block."""
    assert isinstance(problem.objective, StagewiseObjective)
    listed = [_variants(problem, s, rows, problem.objective) for s in range(len(problem.space.stages))]
    starts = np.cumsum([0, 1, *(block.shape[1] for block, _ in listed)]).tolist()
    table = _snapped(np.concatenate([constant, *(block for block, _ in listed)], axis=1), starts[:-1])
    return table[:, 0], tuple(
        StageTerms((1,), np.zeros((len(table), 1)), (table[:, start:end],), variants)
        for start, end, (_, variants) in zip(starts[1:-1], starts[2:], listed, strict=True)
    )


def _variants(
    problem: SearchProblem, s: int, limited: list[Row], objective: StagewiseObjective
) -> tuple[Array, tuple[Indices, Indices]]:
    """Value and costs of every variant of a stage with interactions, and its depth and configs."""
    stage = problem.space.stages[s]
    if stage.count > MAX_VARIANTS:
        raise ProblemError(
            f"stage {stage.name!r} has {stage.count} variants, too many to list for interactions."
        )
    values, depths, configs = [], [], []
    for i, depth in enumerate(stage.depths):
        shape = tuple(len(block) for block in stage.blocks[:depth])
        index = np.indices(shape).reshape(depth, -1) if depth else np.zeros((0, 1), dtype=np.int64)
        rows = [np.asarray(objective.tables[s][depth], dtype=np.float64).reshape(-1)]
        for row in limited:
            cost = problem.costs[row.cost].values
            parts = [cost.configs[s][b][index[b]] for b in range(depth)]
            rows.append(row.sign * (cost.depths[s][i] + sum(parts, np.zeros(index.shape[1]))))
        values.append(np.stack(rows))
        depths.append(np.full(index.shape[1], depth))
        configs.append(np.pad(index, ((0, len(stage.blocks) - depth), (0, 0)), constant_values=-1).T)
    block = np.concatenate(values, axis=1)
    return block, (np.concatenate(depths), np.concatenate(configs))


def _snapped(numbers: Array, starts: list[int]) -> Array:
    """Every number rounded to the grid of its row, so that all sums are exact; of each part only one number is added."""
    totals = np.maximum.reduceat(np.abs(numbers), starts, axis=1).sum(axis=1, keepdims=True)
    step = np.exp2(np.ceil(np.log2(np.maximum(totals, 1e-290))) - 50)
    snapped: Array = np.rint(numbers * (1.0 / step)) * step  # powers of two: multiplying by them is exact
    return snapped
