"""Objectives in which the depths of different stages depend on each other: one problem for each choice of all depths.

With the depths of all stages given, such an objective (:class:`binas.estimators.objective.DepthsObjective`) is a sum over
stages again, in a space whose stages have one depth each. What is exact for each of these problems is exact for the whole:
the best answer is the best of all, the frontier their upper envelope. There are as many as combinations of depths (27 with
three stages of three depths, 243 with five); those that cannot reach the best answer so far are not solved.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from binas.base.errors import ProblemError
from binas.estimators.objective import (
    MOST_COMBINATIONS,
    BilinearObjective,
    DepthsObjective,
    StagewiseObjective,
)
from binas.search.problem import SearchProblem
from binas.search.restrict import Kept, smaller_problem
from binas.search.result import Answer, Status
from binas.search.solvers._base import Options


def by_depths(problem: SearchProblem) -> list[SearchProblem]:
    """A problem for each choice of all depths, that with the highest value without limits first."""
    objective = problem.objective
    assert isinstance(objective, DepthsObjective)
    if objective.joint.size > MOST_COMBINATIONS:
        raise ProblemError(
            f"the space {problem.space.name!r} has {objective.joint.size} combinations of depths, more than the "
            f"{MOST_COMBINATIONS} that are searched one by one. Use an estimator without effects of several depths "
            "together, such as additive."
        )
    parts = [_at_depths(problem, objective, index) for index in np.ndindex(*objective.joint.shape)]
    return sorted(parts, key=highest_value, reverse=True)


def _at_depths(problem: SearchProblem, objective: DepthsObjective, index: tuple[int, ...]) -> SearchProblem:
    """The problem with depth number ``index[s]`` in every stage s."""
    pairs = list(zip(problem.space.stages, index, strict=True))
    configs = (tuple(np.arange(len(block)) for block in s.blocks[: s.depths[i]]) for s, i in pairs)
    kept = Kept(problem.space, tuple(np.array([i]) for i in index), tuple(configs))
    inner = replace(objective.inner, base=objective.inner.base + float(objective.joint[index]))
    return smaller_problem(replace(problem, objective=inner), kept, problem.limits)


def best_by_depths(
    problem: SearchProblem, solve: Callable[[SearchProblem], Answer], options: Options
) -> Answer:
    """The best of the answers to all parts; proven where none can be better by more than the gap of the options.

    Past the deadline nothing is better than the highest value of the next part, for the others are lower.
    """
    best, bounds, solved = Answer(Status.INFEASIBLE), list[float](), 0
    for part in by_depths(problem):
        if best.value is not None and highest_value(part) <= best.value:
            break
        if options.deadline.late and solved:
            bounds.append(highest_value(part))
            break
        answer, solved = solve(part), solved + 1
        if answer.status is Status.INFEASIBLE:
            continue
        bounds.append(np.inf if answer.bound is None else answer.bound)
        if best.value is None or (answer.value is not None and answer.value > best.value):
            best = answer
    if best.value is None:
        return replace(_stopped(bounds), details=best.details) if bounds else best
    proven = max(bounds) <= best.value + options.gap + 1e-9 * max(1.0, abs(best.value))
    return Answer(
        Status.OPTIMAL if proven else Status.STOPPED_WITH_ANSWER,
        best.architecture,
        best.value,
        max(bounds) if np.isfinite(max(bounds)) else None,
        {**best.details, "combinations of depths": solved},
    )


def _stopped(bounds: list[float]) -> Answer:
    finite = max(bounds) if np.isfinite(max(bounds)) else None
    return Answer(Status.STOPPED_WITHOUT_ANSWER, bound=finite)


def highest_value(part: SearchProblem) -> float:
    """The most that the objective of a part can be without limits."""
    objective = part.objective
    if isinstance(objective, StagewiseObjective):
        return objective.base + sum(float(t.max()) for table in objective.tables for t in table.values())
    assert isinstance(objective, BilinearObjective)
    return objective.base + sum(float(array.max()) for array in objective.values.arrays())
