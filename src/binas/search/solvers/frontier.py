"""``frontier``: exact search by folding, bounded by the relaxed knapsack (see binas.search.lagrangian and fold)."""

from __future__ import annotations

from binas.estimators.objective import DepthsObjective
from binas.search.depths import best_by_depths
from binas.search.lagrangian import MAX_CANDIDATES, Outcome, solve_exact
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
        """The proven optimum, or the proof that there is none; else the best met, and a bound."""
        if isinstance(problem.objective, DepthsObjective):
            return best_by_depths(problem, lambda part: self.solve(part, options), options)
        return answer_of(problem, fold_outcome(problem, self.max_candidates, options))


def fold_outcome(problem: SearchProblem, max_candidates: int, options: Options) -> Outcome:
    """Solve by folding; not proven where that would take too much."""
    terms = build_terms(problem, limit_rows(problem))
    return solve_exact(terms, max_candidates, options.deadline, options.gap)


def answer_of(problem: SearchProblem, outcome: Outcome) -> Answer:
    """What a search met and proved, as a claim."""
    best = outcome.best
    if best is None:
        if outcome.proven:
            return Answer(Status.INFEASIBLE)
        return Answer(Status.STOPPED_WITHOUT_ANSWER, bound=outcome.bound)
    architecture = problem.space.from_indices(best.depths.tolist(), best.configs.tolist())
    status = Status.OPTIMAL if outcome.proven else Status.STOPPED_WITH_ANSWER
    bound = max(outcome.bound, best.value)
    return Answer(status, architecture, best.value, bound, {"candidates": best.candidates})
