"""The problem as matrices: exactly as the paper writes it (section 3.4), and the tight linear form.

Paper:   max r + q_beta' beta + alpha' Q beta
         s.t. fixed + p_beta' beta + alpha' Theta beta <= T,  A_alpha alpha <= b_alpha,  A_beta beta <= b_beta
Tight:   with y[s,b,c] = alpha[s,b,c] * 1[b <= d^s] the products disappear:
         max r + q_y' y + q_beta' beta
         s.t. fixed + t_y' y + t_beta' beta <= T,  sum_c y[s,b,c] = sum_{d >= b} beta[s,d],  sum_d beta[s,d] = 1
Both have the same integer points; the tight form needs no big-M and its relaxation is close to them.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from binas.base.errors import ProblemError
from binas.estimators.objective import BilinearObjective
from binas.search.problem import SearchProblem
from binas.search.sparse import Sparse
from binas.search.terms import Row, limit_rows
from binas.space.space import SearchSpace
from binas.tables.entries import Column

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Bilinear:
    """constant + beta_part' beta + alpha' matrix beta."""

    constant: float
    beta: Array
    matrix: Array

    def value(self, alpha: Array, beta: Array) -> float:
        """The bilinear form at a (relaxed) point."""
        return float(self.constant + self.beta @ beta + alpha @ (self.matrix @ beta))


@dataclass(frozen=True, eq=False)
class PaperForm:
    """Objective (r, q_beta, Q), one bilinear row per limit with its bound, and the simplex constraints."""

    space: SearchSpace
    objective: Bilinear
    rows: tuple[Bilinear, ...]
    bounds: Array

    @cached_property
    def alpha_constraints(self) -> tuple[Sparse, Array]:
        """A_alpha, b_alpha: sum_c alpha[s,b,.] <= 1 and >= 1, alpha >= 0, as one system A alpha <= b."""
        blocks = itertools.chain.from_iterable(self.space.layout.config_slices)
        return _simplex_system(list(blocks), self.space.alpha_size)

    @cached_property
    def beta_constraints(self) -> tuple[Sparse, Array]:
        """A_beta, b_beta: sum_d beta[s,.] <= 1 and >= 1, beta >= 0, as one system A beta <= b."""
        return _simplex_system(self.space.layout.beta_slices, self.space.beta_size)

    def holds(self, alpha: Array, beta: Array, tolerance: float = 1e-9) -> bool:
        """Whether (alpha, beta) satisfies every constraint."""
        systems = [(self.alpha_constraints, alpha), (self.beta_constraints, beta)]
        inside = all(bool((matrix @ x <= right + tolerance).all()) for (matrix, right), x in systems)
        return inside and all(
            row.value(alpha, beta) <= bound + tolerance
            for row, bound in zip(self.rows, self.bounds, strict=True)
        )


def _simplex_system(groups: list[slice], size: int) -> tuple[Sparse, Array]:
    members = np.repeat(np.arange(len(groups)), [group.stop - group.start for group in groups])
    entries = np.arange(size)
    parts = [(members, np.ones(size)), (members, -np.ones(size)), (entries, -np.ones(size))]
    heights = (len(groups), len(groups), size)
    blocks = [
        Sparse.from_entries(rows, entries, values, (height, size))
        for (rows, values), height in zip(parts, heights, strict=True)
    ]
    right = np.concatenate([np.ones(len(groups)), -np.ones(len(groups)), np.zeros(size)])
    return Sparse.stack(*blocks), right


def bilinear_part(space: SearchSpace, column: Column, constant: float, sign: float = 1.0) -> Bilinear:
    """A column of a table as a bilinear form: matrix[(s,b,c), (s,d)] = value[s,b,c] where d >= b."""
    layout = space.layout
    matrix = np.zeros((space.alpha_size, space.beta_size))
    for s, stage in enumerate(space.stages):
        start = layout.beta_slices[s].start
        for b, where in enumerate(layout.config_slices[s]):
            for i, depth in enumerate(stage.depths):
                if depth > b:
                    matrix[where, start + i] = sign * column.configs[s][b]
    beta = sign * np.concatenate(column.depths) if column.depths else np.zeros(0)
    return Bilinear(sign * constant, beta, matrix)


def paper_form(problem: SearchProblem) -> PaperForm:
    """The matrices of the paper for a problem with a bilinear objective."""
    objective = require_bilinear(problem)
    rows = limit_rows(problem)
    return PaperForm(
        problem.space,
        bilinear_part(problem.space, objective.values, objective.base),
        tuple(_row_form(problem, row) for row in rows),
        np.array([row.bound for row in rows]),
    )


def _row_form(problem: SearchProblem, row: Row) -> Bilinear:
    cost = problem.costs[row.cost]
    return bilinear_part(problem.space, cost.values, cost.fixed, row.sign)


def require_bilinear(problem: SearchProblem) -> BilinearObjective:
    """The bilinear objective of a problem, or an error."""
    if not isinstance(problem.objective, BilinearObjective):
        raise ProblemError(
            f"this needs a bilinear objective, the problem has a {problem.objective.kind} one."
        )
    return problem.objective


@dataclass(frozen=True, eq=False)
class TightForm:
    """max constant + objective' x over binary x = (y, beta) with equality @ x = right and rows @ x <= bounds."""

    space: SearchSpace
    constant: float
    objective: Array
    equality: Sparse
    right: Array
    rows: Array
    bounds: Array

    def feasible(self, x: Array, tolerance: float = 1e-9) -> bool:
        """Whether a point satisfies every constraint."""
        equal = np.abs(self.equality @ x - self.right).max(initial=0.0) <= tolerance
        return bool(equal and (self.rows @ x <= self.bounds + tolerance).all() and (x >= -tolerance).all())


def tight_form(problem: SearchProblem) -> TightForm:
    """The tight linear form of a problem with a bilinear objective."""
    objective = require_bilinear(problem)
    rows = limit_rows(problem)
    costs = [problem.costs[row.cost] for row in rows]
    vectors = [row.sign * cost.values.flat() for row, cost in zip(rows, costs, strict=True)]
    fixed = np.array([row.sign * cost.fixed for row, cost in zip(rows, costs, strict=True)])
    equality, right = structure(problem.space)
    return TightForm(
        problem.space,
        objective.base,
        objective.values.flat(),
        equality,
        right,
        np.array(vectors).reshape(len(rows), problem.space.layout.size),
        np.array([row.bound for row in rows]) - fixed,
    )


def structure(space: SearchSpace) -> tuple[Sparse, Array]:
    """sum_c y[s,b,c] - sum_{d >= b} beta[s,d] = 0 for every block, sum_d beta[s,d] = 1 for every stage."""
    layout = space.layout
    columns: list[int] = []
    rows: list[int] = []
    values: list[float] = []
    right: list[float] = []
    for s, stage in enumerate(space.stages):
        first = layout.depth_slices[s].start
        for b, where in enumerate(layout.config_slices[s]):
            deep = [first + i for i, depth in enumerate(stage.depths) if depth > b]
            columns += [*range(where.start, where.stop), *deep]
            rows += [len(right)] * (where.stop - where.start + len(deep))
            values += [1.0] * (where.stop - where.start) + [-1.0] * len(deep)
            right.append(0.0)
        columns += range(first, first + len(stage.depths))
        rows += [len(right)] * len(stage.depths)
        values += [1.0] * len(stage.depths)
        right.append(1.0)
    return Sparse.from_entries(rows, columns, values, (len(right), layout.size)), np.array(right)
