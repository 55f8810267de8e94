"""``auto``: the exact solver that proves the answer fastest; the default.

One limit: the bounded fold. Several limits: if the optimum under one of them alone happens to keep the
others it is the optimum of all (a relaxation's optimum that is feasible). Otherwise, a band of limits on one cost is met in
the middle; limits on several costs get a fold with a small budget of candidates, and HiGHS when that is exceeded. An
objective with pairs of choices of different stages is no sum over stages and goes to branch-bound.
"""

from __future__ import annotations

from dataclasses import replace

from binas.base.errors import ProblemError
from binas.estimators.objective import DepthsObjective, QuadraticObjective
from binas.search.band import band_rows, solve_band
from binas.search.depths import best_by_depths
from binas.search.lagrangian import MAX_CANDIDATES, TooManyError
from binas.search.problem import SearchProblem, evaluate
from binas.search.result import Answer, Status
from binas.search.solvers._base import SEPARABLE, Capabilities, Options, Solver
from binas.search.solvers.branch_bound import BranchBound
from binas.search.solvers.frontier import fold_answer
from binas.search.solvers.milp import Milp
from binas.search.terms import Row

SMALL = 30_000


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
        """The proven optimum, or the proof that there is none."""
        if isinstance(problem.objective, QuadraticObjective):
            return _named(BranchBound().solve(problem, options), BranchBound.name)
        if isinstance(problem.objective, DepthsObjective):
            return best_by_depths(problem, lambda part: self.solve(part, replace(options, warm_start=None)))
        answer = _by_fold(problem)
        if answer is not None:
            return _named(answer, "frontier")
        rows = band_rows(problem)
        banded = None if rows is None else _by_band(problem, rows)
        if banded is not None and banded.status is not Status.STOPPED_WITHOUT_ANSWER:
            if banded.status is not Status.STOPPED_WITH_ANSWER or problem.objective.kind != "bilinear":
                return _named(banded, "band")
            options = replace(options, warm_start=banded.architecture)
        if problem.objective.kind != "bilinear":
            raise ProblemError(
                "these limits leave too many partial architectures to compare, and milp takes only bilinear "
                "objectives; relax a limit or use evolution."
            )
        return _named(Milp(max_nodes=self.max_nodes).solve(problem, options), "milp")


def _named(answer: Answer, method: str) -> Answer:
    return Answer(
        answer.status, answer.architecture, answer.value, answer.bound, {**answer.details, "method": method}
    )


def _by_fold(problem: SearchProblem) -> Answer | None:
    """The answer by folding; None where that takes too many candidates."""
    try:
        if len(problem.limits) <= 1:
            return fold_answer(problem, MAX_CANDIDATES)
        single = _one_limit_enough(problem)
        if single is not None or band_rows(problem) is not None:
            return single
        return fold_answer(problem, SMALL if problem.objective.kind == "bilinear" else MAX_CANDIDATES)
    except TooManyError:
        return None


def _by_band(problem: SearchProblem, rows: list[Row]) -> Answer:
    """What a band on one cost holds; stopped where that is not proven."""
    banded = solve_band(problem, rows)
    best = banded.best
    if best is None:
        return Answer(Status.INFEASIBLE if banded.proven else Status.STOPPED_WITHOUT_ANSWER)
    architecture = problem.space.from_indices(best.depths.tolist(), best.configs.tolist())
    status = Status.OPTIMAL if banded.proven else Status.STOPPED_WITH_ANSWER
    bound = best.value if banded.proven else banded.bound
    return Answer(status, architecture, best.value, bound, {"candidates": best.candidates})


def _one_limit_enough(problem: SearchProblem) -> Answer | None:
    """An answer under one limit that settles the whole problem, if there is one."""
    for limit in problem.limits:
        answer = fold_answer(problem.with_limits([limit]), MAX_CANDIDATES)
        if answer.status is Status.INFEASIBLE:
            return answer
        if answer.architecture is not None and evaluate(problem, answer.architecture).feasible:
            return answer
    return None
