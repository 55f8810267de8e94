"""An independent check of whatever a solver claims, straight from the tables.

An independent proof on purpose: value and costs of an answer are recomputed name by name and summed exactly rounded
(:func:`binas.search.problem.evaluate`, :mod:`binas.search.objective`), not by the fast vectors of ``space.layout``,
``Cost.total`` and ``Contributions.predict`` that solvers, estimators and reports share. Keep it so.
"""

from __future__ import annotations

import math
from typing import Any

from binas.base.errors import SolverClaimError
from binas.search.problem import Evaluation, SearchProblem, evaluate
from binas.search.result import Answer, SearchResult, Status

TOLERANCE = 1e-6
LENIENCE = 2.0  # tolerances of a limit: rounding in a solver's sums must not make its answer look wrong


def verify(problem: SearchProblem, answer: Answer, solver: str, seconds: float) -> SearchResult:
    """Recompute objective, costs and limits of the answer; raise if any claim does not hold."""
    _check_form(answer, solver)
    evaluation = None if answer.architecture is None else evaluate(problem, answer.architecture)
    if evaluation is not None:
        _check_answer(problem, answer, evaluation, solver)
    bound = answer.bound
    if answer.status is Status.OPTIMAL and evaluation is not None:
        bound = evaluation.accuracy + _proven_gap(answer)
    details: dict[str, Any] = dict(answer.details)
    return SearchResult(problem, answer.status, solver, seconds, evaluation, bound, details=details)


def _proven_gap(answer: Answer) -> float:
    """What an optimal answer may still be short of, zero where it is exact: in the solver's own sums, which round alike."""
    return 0.0 if answer.bound is None or answer.value is None else max(0.0, answer.bound - answer.value)


def _scale(problem: SearchProblem) -> float:
    """Largest entry of the objective: solvers add up numbers rounded relative to it."""
    values = getattr(problem.objective, "values", None)
    return 0.0 if values is None else 100.0 * float(abs(values.flat()).max(initial=0.0))


def _check_form(answer: Answer, solver: str) -> None:
    if answer.status.has_answer != (answer.architecture is not None):
        raise SolverClaimError(
            f"{solver} says {answer.status} but gives {answer.architecture or 'no architecture'}."
        )


def _check_answer(problem: SearchProblem, answer: Answer, evaluation: Evaluation, solver: str) -> None:
    slack = max(TOLERANCE * max(1.0, abs(evaluation.accuracy)), 1e-12 * _scale(problem))
    broken = [
        f"{problem.describe_limit(limit)} (it is {evaluation.costs[limit.cost]:.9g})"
        for limit in evaluation.broken
        if not limit.holds(evaluation.costs[limit.cost], LENIENCE * problem.tolerance(limit))
    ]
    if broken:
        raise SolverClaimError(f"{solver} returned {answer.architecture}, which breaks {', '.join(broken)}.")
    if answer.value is not None and not math.isclose(
        answer.value, evaluation.accuracy, rel_tol=0, abs_tol=slack
    ):
        raise SolverClaimError(
            f"{solver} claims the value {answer.value:.9g} for {answer.architecture}; it is {evaluation.accuracy:.9g}."
        )
    if answer.bound is not None and answer.bound < evaluation.accuracy - slack:
        raise SolverClaimError(
            f"{solver} claims that nothing is better than {answer.bound:.9g}, but its own answer has "
            f"{evaluation.accuracy:.9g}."
        )
    if (
        answer.status is Status.OPTIMAL
        and answer.bound is not None
        and answer.bound > evaluation.accuracy + slack
    ):
        raise SolverClaimError(
            f"{solver} says optimal with a gap of {answer.bound - evaluation.accuracy:.3g}."
        )
