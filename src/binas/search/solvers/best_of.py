"""``best-of``: what the paper does in practice (section 4.4): run several solvers, take the best answer."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from binas.base.errors import MissingPackageError, ProblemError, SolverClaimError
from binas.search.problem import SearchProblem
from binas.search.result import Answer, SearchResult, Status
from binas.search.solvers import SOLVERS, make_solver
from binas.search.solvers._base import ANYTHING, Capabilities, Options, Solver
from binas.search.verify import verify

PAPER_MEMBERS = ("bcfw", "evolution", "miqcp")


class BestOf(Solver):
    """The best answer of bcfw, evolution and miqcp (section 4.4), or of other ``members``.

    Members run one after the other, each without knowing the others' answers; a time limit is for all
    together. Those that are not installed or cannot take the problem are skipped, which ``details`` says. If
    one proves the optimum, or that there is no answer, so does this.
    """

    name = "best-of"
    capabilities = Capabilities(
        exact=False, objectives=ANYTHING, summary="best answer of bcfw, evolution and miqcp, as in the paper"
    )

    def __init__(self, members: Sequence[str] = PAPER_MEMBERS):
        if isinstance(members, str) or not members or self.name in members:
            raise ProblemError(f"{self.name} needs a list of other solvers, e.g. {list(PAPER_MEMBERS)}.")
        unknown = [name for name in members if name not in SOLVERS]
        if unknown:
            raise ProblemError(f"there is no solver {unknown[0]!r}; choose among {', '.join(SOLVERS)}.")
        self.members = tuple(members)

    def solve(self, problem: SearchProblem, options: Options) -> Answer:
        """The best verified answer of all members."""
        runs = [_run(name, problem, options) for name in self.members]
        results = [run.result for run in runs if run.result is not None]
        if not results:
            reasons = "; ".join(f"{run.name}: {run.skipped}" for run in runs)
            raise ProblemError(f"no member of {self.name} can take this problem. {reasons}")
        return _combined(results, {"members": [run.to_json() for run in runs]})


@dataclass(frozen=True)
class _Run:
    """One member: its verified result, or why it was skipped."""

    name: str
    result: SearchResult | None = None
    skipped: str | None = None

    def to_json(self) -> dict[str, Any]:
        """Value in the objective's unit, time in seconds."""
        if self.result is None:
            return {"solver": self.name, "skipped": self.skipped}
        found = self.result
        return {
            "solver": self.name,
            "status": str(found.status),
            "accuracy": found.accuracy,
            "bound": found.bound,
            "seconds": found.seconds,
        }


def _run(name: str, problem: SearchProblem, options: Options) -> _Run:
    try:
        solver = make_solver(name)
        solver.check(problem)
        start = time.perf_counter()
        answer = solver.solve(problem, options)
    except (ProblemError, MissingPackageError) as error:
        return _Run(name, skipped=str(error))
    return _Run(name, verify(problem, answer, name, time.perf_counter() - start))


def _combined(results: list[SearchResult], details: dict[str, Any]) -> Answer:
    """The largest value, the smallest bound, and the strongest thing any member proves."""
    found = [(result.evaluation, result.solver) for result in results if result.evaluation is not None]
    denying = [result.solver for result in results if result.status is Status.INFEASIBLE]
    if denying and found:
        raise SolverClaimError(
            f"{denying[0]} says infeasible, but the answer of {found[0][1]} keeps the limits."
        )
    if denying:
        return Answer(Status.INFEASIBLE, details=details)
    bound = min((result.bound for result in results if result.bound is not None), default=None)
    if not found:
        return Answer(Status.STOPPED_WITHOUT_ANSWER, bound=bound, details=details)
    best, solver = max(found, key=lambda pair: pair[0].accuracy)
    status = _strongest({result.status for result in results})
    return Answer(status, best.architecture, best.accuracy, bound, {**details, "taken_from": solver})


def _strongest(statuses: set[Status]) -> Status:
    order = (Status.OPTIMAL, Status.FEASIBLE, Status.STOPPED_WITH_ANSWER)
    return next(status for status in order if status in statuses)
