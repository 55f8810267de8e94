"""Choices that no architecture within the limits can have, taken out before a program is posed.

A choice is out when even the cheapest architecture with it breaks a limit. What is left has no entry larger than the limit
leaves room for, so that the numbers of a row are of a size: solvers take twelve decades in one row for nothing, or for
infeasible.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from binas.estimators.objective import BilinearObjective
from binas.search.dual import Padded, Reduced, cheapest
from binas.search.problem import SearchProblem
from binas.search.restrict import kept_of, smaller_problem
from binas.search.terms import build_terms, limit_rows
from binas.tables.entries import Column


def reachable(problem: SearchProblem) -> SearchProblem | None:
    """The same problem without choices that no limit leaves room for; None where that leaves nothing.

    Its architectures are architectures of the whole space, with the same value and costs, and the same ones keep the limits.
    """
    space, nothing = problem.space, BilinearObjective(0.0, Column.full(problem.space, 0.0))
    padded = Padded(build_terms(replace(problem, objective=nothing), limit_rows(problem)))
    depths = [np.ones(len(stage.depths), dtype=bool) for stage in space.stages]
    configs = [[np.ones(len(block), dtype=bool) for block in stage.blocks] for stage in space.stages]
    for row, unit in enumerate(np.eye(padded.terms.rows)):
        room = padded.budget[row] - cheapest(padded, row).totals[1 + row]
        more = Reduced.at(padded, unit, value_weight=0.0)
        for s, stage in enumerate(space.stages):
            depths[s] &= more.depths[s, : len(stage.depths)] <= room
            for b, mask in enumerate(configs[s]):
                mask &= more.configs[s, b, : len(mask)] <= room
    kept = kept_of(space, depths, configs)
    return None if kept is None else smaller_problem(problem, kept, problem.limits)
