"""``auto``: the exact solver that proves the answer fastest; the default.

One limit: the bounded fold. Several limits: if the optimum under one of them alone happens to keep the
others it is the optimum of all (a relaxation's optimum that is feasible); otherwise a fold with a small
budget of candidates, and HiGHS when that is exceeded.
"""

from __future__ import annotations

from binas.base.errors import ProblemError
from binas.search.lagrangian import MAX_CANDIDATES, TooManyError
from binas.search.problem import SearchProblem, evaluate
from binas.search.result import Answer, Status
from binas.search.solvers._base import SEPARABLE, Capabilities, Options, Solver
from binas.search.solvers.frontier import fold_answer
from binas.search.solvers.milp import Milp

SMALL = 30_000


class Auto(Solver):
    """frontier or milp, whichever proves the answer fastest."""

    name = "auto"
    capabilities = Capabilities(
        exact=True,
        objectives=SEPARABLE,
        summary="frontier or milp, whichever proves the answer fastest (default)",
    )

    def solve(self, problem: SearchProblem, options: Options) -> Answer:
        """The proven optimum, or the proof that there is none."""
        linear = problem.objective.kind == "bilinear"
        try:
            if len(problem.limits) <= 1:
                return _named(fold_answer(problem, MAX_CANDIDATES), "frontier")
            single = _one_limit_enough(problem)
            if single is not None:
                return _named(single, "frontier")
            return _named(fold_answer(problem, SMALL if linear else MAX_CANDIDATES), "frontier")
        except TooManyError:
            if not linear:
                raise ProblemError(
                    "these limits leave too many partial architectures to compare, and milp takes only bilinear "
                    "objectives; relax a limit or use evolution."
                ) from None
            return _named(Milp().solve(problem, options), "milp")


def _named(answer: Answer, method: str) -> Answer:
    return Answer(
        answer.status, answer.architecture, answer.value, answer.bound, {**answer.details, "method": method}
    )


def _one_limit_enough(problem: SearchProblem) -> Answer | None:
    """An answer under one limit that settles the whole problem, if there is one."""
    for limit in problem.limits:
        answer = fold_answer(problem.with_limits([limit]), MAX_CANDIDATES)
        if answer.status is Status.INFEASIBLE:
            return answer
        if answer.architecture is not None and evaluate(problem, answer.architecture).feasible:
            return answer
    return None
