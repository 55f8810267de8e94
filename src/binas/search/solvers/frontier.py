"""``frontier``: exact search by folding, bounded by the relaxed knapsack (see binas.search.lagrangian and fold)."""

from __future__ import annotations

from binas.base.errors import ProblemError
from binas.estimators.objective import DepthsObjective
from binas.search.depths import best_by_depths
from binas.search.lagrangian import MAX_CANDIDATES, TooManyError, solve_exact, to_architecture
from binas.search.problem import SearchProblem
from binas.search.result import Answer, Status
from binas.search.solvers._base import SEPARABLE, Capabilities, Options, Solver
from binas.search.terms import build_terms, limit_rows


class FrontierSolver(Solver):
    """One proven answer for one set of limits; ``binas.frontier`` gives all of them at once."""

    name = "frontier"
    capabilities = Capabilities(
        exact=True, objectives=SEPARABLE, summary="exact fold with Lagrangian bounds; fastest with one limit"
    )

    def __init__(self, max_candidates: int = MAX_CANDIDATES):
        self.max_candidates = max_candidates

    def solve(self, problem: SearchProblem, options: Options) -> Answer:
        """The proven optimum, or the proof that there is none."""
        if isinstance(problem.objective, DepthsObjective):
            return best_by_depths(problem, lambda part: self.solve(part, options))
        try:
            answer = fold_answer(problem, self.max_candidates)
        except TooManyError:
            raise ProblemError(
                f"these limits leave more than {self.max_candidates} partial architectures to compare; use milp."
            ) from None
        return answer


def fold_answer(problem: SearchProblem, max_candidates: int) -> Answer:
    """Solve exactly by folding; raises TooManyError when that would take too much."""
    terms = build_terms(problem, limit_rows(problem))
    found = solve_exact(terms, max_candidates)
    if found is None:
        return Answer(Status.INFEASIBLE)
    architecture = to_architecture(terms, found.depths, found.configs)
    return Answer(Status.OPTIMAL, architecture, found.value, found.value, {"candidates": found.candidates})
