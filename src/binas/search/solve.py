"""``solve``: run a solver, verify its claim, and report."""

from __future__ import annotations

import time
from dataclasses import replace
from typing import Any

from binas.search.deadline import Deadline, TimeLimit
from binas.search.problem import SearchProblem, evaluate
from binas.search.restrict import restricted
from binas.search.result import Answer, SearchResult, Status
from binas.search.solvers import Options, Solver, make_solver
from binas.search.variants import best_of_variants, by_variant
from binas.search.verify import verify
from binas.space.architecture import Architecture


def solve(
    problem: SearchProblem,
    solver: str | Solver = "auto",
    *,
    time_limit: TimeLimit = None,
    seed: int = 0,
    warm_start: Architecture | None = None,
    **settings: Any,
) -> SearchResult:
    """Find the best architecture within the limits.

    ``solver`` is a name (``binas solvers`` lists them, ``settings`` are its constructor arguments) or a
    :class:`Solver`. ``time_limit`` is in seconds: then it returns what it has, with a bound.
    The result is verified independently of the solver, on the scale on
    which it searched, and told in percent. Where the problem has variants it is the best over all of them, which share
    the time.
    """
    chosen = make_solver(solver, **settings) if isinstance(solver, str) else solver
    deadline = Deadline.after(time_limit)
    if not problem.variants:
        return solve_one(problem, chosen, Options(deadline, seed, warm_start))
    parts, results = by_variant(problem), dict[str, SearchResult]()
    for left, (name, single) in zip(range(len(parts), 0, -1), parts.items(), strict=True):
        results[name] = solve_one(single, chosen, Options(deadline.shared(left), seed, warm_start))
    return best_of_variants(problem, results)


def solve_one(problem: SearchProblem, chosen: Solver, options: Options) -> SearchResult:
    """The same for a problem without variants and a solver that is made already; ``gap`` of the options is in points."""
    scaled = problem.on_link_scale()
    smaller = restricted(scaled)
    chosen.check(scaled.with_limits(()) if smaller is None else smaller)
    if options.warm_start is not None:
        problem.space.check(options.warm_start)
    start = time.perf_counter()
    if smaller is None:
        answer = Answer(Status.INFEASIBLE)
    else:
        known = options.warm_start if options.warm_start in smaller.space else None
        gap = options.gap / problem.objective.steepest
        answer = chosen.solve(smaller, replace(options, warm_start=known, gap=gap))
    return in_percent(verify(scaled, answer, chosen.name, time.perf_counter() - start), problem)


def in_percent(result: SearchResult, problem: SearchProblem) -> SearchResult:
    """The verified result of ``problem.on_link_scale()`` as one of ``problem``: accuracy, bound and gap in percent."""
    if result.problem is problem:
        return result
    architecture, bound = result.architecture, result.bound
    return replace(
        result,
        problem=problem,
        evaluation=None if architecture is None else evaluate(problem, architecture),
        bound=None if bound is None else problem.objective.percent(bound),
    )
