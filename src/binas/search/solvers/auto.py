"""``auto``: the exact solver that proves the answer fastest; the default.

One limit: the bounded fold. Several limits: if the optimum under one of them alone happens to keep the
others it is the optimum of all (a relaxation's optimum that is feasible). Otherwise, a band of limits on one cost is met in
the middle; limits on several costs get a fold of at most a million candidates, and HiGHS when that is exceeded. An
objective with pairs of choices of different stages is no sum over stages and goes to branch-bound.
"""

from __future__ import annotations

import math
from dataclasses import replace

from binas.estimators.objective import DepthsObjective, QuadraticObjective
from binas.search.band import band_rows, solve_band
from binas.search.depths import best_by_depths
from binas.search.lagrangian import MAX_CANDIDATES
from binas.search.problem import SearchProblem, evaluate
from binas.search.result import Answer, Status
from binas.search.solvers._base import SEPARABLE, Capabilities, Options, Solver
from binas.search.solvers.branch_bound import BranchBound
from binas.search.solvers.frontier import answer_of, fold_outcome
from binas.search.solvers.milp import Milp

SMALL = 1_000_000  # partial architectures beyond which HiGHS is faster, with several limits (benchmarks/results/search.md)


class Auto(Solver):
    """frontier, milp or branch-bound, whichever proves the answer fastest."""

    name = "auto"
    capabilities = Capabilities(
        exact=True,
        objectives=SEPARABLE | {"quadratic"},
        summary="frontier, milp or branch-bound, whichever proves the answer fastest (default)",
    )

    def __init__(self, max_nodes: int | None = None):
        self.max_nodes = max_nodes  # of HiGHS, where it comes to that; None: until it is proven

    def solve(self, problem: SearchProblem, options: Options) -> Answer:
        """The proven optimum, or the proof that there is none; past the deadline the best met, with its bound."""
        if isinstance(problem.objective, QuadraticObjective):
            return _named(BranchBound().solve(problem, options), BranchBound.name)
        if isinstance(problem.objective, DepthsObjective):
            own = replace(options, warm_start=None)
            return best_by_depths(problem, lambda part: self.solve(part, own), options)
        answer = _named(_by_fold(problem, options), "frontier")
        rows = band_rows(problem)
        if _open(answer) and rows is not None and not options.deadline.late:
            outcome = solve_band(problem, rows, deadline=options.deadline, enough=options.gap)
            answer = _best_of(answer, _named(answer_of(problem, outcome), "band"))
        if not _open(answer) or options.deadline.late or problem.objective.kind != "bilinear":
            return answer
        start = answer.architecture or options.warm_start
        program = Milp(max_nodes=self.max_nodes).solve(problem, replace(options, warm_start=start))
        return _best_of(answer, _named(program, "milp"))


def _named(answer: Answer, method: str) -> Answer:
    return replace(answer, details={**answer.details, "method": method})


def _open(answer: Answer) -> bool:
    return answer.status in (Status.STOPPED_WITH_ANSWER, Status.STOPPED_WITHOUT_ANSWER)


def _best_of(one: Answer, two: Answer) -> Answer:
    """Two answers to the same problem as one, the first of them open: what is proven, the better, the least bound."""
    if not _open(two):
        return two
    bounds = [answer.bound for answer in (one, two) if answer.bound is not None]
    best = max((two, one), key=lambda answer: -math.inf if answer.value is None else answer.value)
    return replace(best, bound=min(bounds) if bounds else None)


def _by_fold(problem: SearchProblem, options: Options) -> Answer:
    """The answer by folding; open where that takes too many candidates."""
    if len(problem.limits) <= 1:
        return answer_of(problem, fold_outcome(problem, MAX_CANDIDATES, options))
    single = _one_limit_enough(problem, options)
    if not _open(single) or band_rows(problem) is not None:
        return single
    most = SMALL if problem.objective.kind == "bilinear" else MAX_CANDIDATES
    return _best_of(single, answer_of(problem, fold_outcome(problem, most, options)))


def _one_limit_enough(problem: SearchProblem, options: Options) -> Answer:
    """The answer under one limit that settles the whole problem; if there is none, what is known without it."""
    bounds = list[float]()
    for left, limit in zip(range(len(problem.limits), 0, -1), problem.limits, strict=True):
        if bounds and options.deadline.late:
            break
        own = replace(options, deadline=options.deadline.shared(3 * left))  # the most is for all together
        part = problem.with_limits([limit])
        answer = answer_of(part, fold_outcome(part, MAX_CANDIDATES, own))
        if answer.status is Status.INFEASIBLE:
            return answer
        kept = answer.architecture is not None and evaluate(problem, answer.architecture).feasible
        if kept and not _open(answer):
            return answer
        bounds += [] if answer.bound is None else [answer.bound]
    return Answer(Status.STOPPED_WITHOUT_ANSWER, bound=min(bounds, default=None))
