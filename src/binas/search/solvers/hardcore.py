"""``hardcore``: HardCoRe-NAS (Nayman et al. 2021), which searches the supernet itself under a hard limit.

Block-coordinate stochastic Frank-Wolfe on L(alpha, beta), the validation loss of paths drawn from (alpha, beta): what the
paper compares its solvers with (figure 7, middle). No table of contributions is used; every limit is searched anew.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from binas.base.errors import ProblemError
from binas.estimators.objective import BilinearObjective
from binas.search.deadline import NEVER, Deadline
from binas.search.oracle import Oracle
from binas.search.problem import SearchProblem, evaluate
from binas.search.result import Answer, Status
from binas.search.solvers._base import ANYTHING, Capabilities, Options, Solver
from binas.search.solvers._relaxed import (
    Climb,
    Domain,
    Point,
    anchor,
    finish,
    impossible,
    pulled,
    whole_blocks,
)
from binas.search.solvers.frank_wolfe import projection
from binas.tables.entries import Column

Array = NDArray[np.float64]


class HardCore(Solver):
    """Block-coordinate stochastic Frank-Wolfe on the relaxed loss of a supernet, then the projection to an architecture.

    Iteration k = 0, 1, ... of ``steps``, on alpha and beta in turns, n = 2 of them:

        d <- (1 - rho) d + rho * (gradient of L on ``batch_size`` images),      rho = 4 / (k + 8)^(2/3)
        x_hat = argmin d'x  under the limits, the other one of alpha and beta held fixed (a relaxed knapsack, exact)
        x <- (1 - gamma) x + gamma x_hat,                                       gamma = 2n / (k + 2n)

    so every iterate keeps the limits. It starts at the uniform point, pulled into the limits. The average d of the
    stochastic gradients (Mokhtari, Hassani and Karbasi 2020) is what makes Frank-Wolfe converge with them. Paths are drawn
    from the point with a share ``exploration`` of the uniform one: what is never drawn could never come back.
    The end point is projected as that of ``frank-wolfe`` is: to an architecture that keeps most of it, and the limits.

    ``oracle`` is the supernet (:mod:`binas.search.oracle`). The value of the answer is what the tables predict for it; the
    search does not use it. Deterministic for a seed, as far as the oracle is. Nothing is proven.
    """

    name = "hardcore"
    capabilities = Capabilities(
        exact=False,
        objectives=ANYTHING,
        supernet=True,
        summary="HardCoRe-NAS: stochastic Frank-Wolfe on the supernet's own loss; needs a run with weights",
    )

    def __init__(
        self,
        oracle: Oracle | None = None,
        steps: int = 200,
        batch_size: int = 256,
        exploration: float = 0.1,
        projection_iterations: int = 1000,
    ):
        if not (steps >= 1 and batch_size >= 1 and projection_iterations >= 1 and 0.0 < exploration <= 1.0):
            raise ProblemError(
                "hardcore needs steps, batch_size and projection_iterations of at least 1, and 0 < exploration <= 1."
            )
        self.oracle, self.steps, self.batch_size = oracle, steps, batch_size
        self.exploration, self.projection_iterations = exploration, projection_iterations

    def check(self, problem: SearchProblem) -> None:
        """Also refuse to search without a supernet, or in another space than its own."""
        super().check(problem)
        if self.oracle is None:
            raise ProblemError(
                "the solver 'hardcore' searches a trained supernet itself, and here are only tables. Give it the folder of "
                "a run whose supernet is trained (`binas train RUN`), or choose another solver."
            )
        if self.oracle.space != problem.space:
            raise ProblemError(
                "the solver 'hardcore' searches all choices of the supernet, and this problem has others: it takes no "
                "limits on a maximum such as peak_memory, which leave choices out. Choose another solver."
            )

    def solve(self, problem: SearchProblem, options: Options) -> Answer:
        """The projection of where the descent ended."""
        blocked = impossible(problem)
        if blocked is not None:
            return Answer(Status.INFEASIBLE, details={"impossible": blocked})
        assert self.oracle is not None  # checked
        before = self.oracle.evaluations, self.oracle.gradients
        domain, rng = Domain(problem), np.random.default_rng(options.seed)
        last, stopped = _last(self._descent(domain, rng), options.deadline)
        details: dict[str, Any] = {
            "steps": last.number,
            "loss": last.loss,
            "image_evaluations": self.oracle.evaluations - before[0],
            "image_gradients": self.oracle.gradients - before[1],
        }
        ends = projection(domain, last.point, self.projection_iterations).climb(last.point, rng, NEVER)
        found = finish(keeping(domain, last.point), Climb(ends.point, -last.loss, last.number, False))
        if found is None:
            return Answer(Status.STOPPED_WITHOUT_ANSWER, details=details)
        judged = evaluate(problem, found.architecture)
        details |= {"deviation_before_repair": found.deviation}
        status = Status.STOPPED_WITH_ANSWER if stopped else Status.FEASIBLE
        return Answer(status, judged.architecture, judged.accuracy, details=details)

    def _descent(self, domain: Domain, rng: np.random.Generator) -> Iterator[Iterate]:
        """The point after each step; the loss is that of the batch before it, smoothed as the gradients are."""
        assert self.oracle is not None
        space, average, loss = domain.problem.space, None, 0.0
        uniform, blocks = Point(*space.layout.uniform()), whole_blocks(space)
        point = pulled(domain, uniform, anchor(domain))
        for k in range(self.steps):
            drawn = point.towards(uniform, self.exploration)
            now, *slopes = self.oracle.loss_gradient(drawn.alpha, drawn.beta, self.batch_size, rng)
            rho, fresh = min(1.0, 4 / (k + 8) ** (2 / 3)), Point(*slopes)
            average = fresh if average is None else average.towards(fresh, rho)
            loss = now if k == 0 else (1 - rho) * loss + rho * now
            block = blocks[k % len(blocks)]
            best = domain.best(block, point, -average.part(block.part))
            if best is not None:
                target, gamma = point.replaced(block, best), 2 * len(blocks) / (k + 2 * len(blocks))
                point = point.towards(target, gamma)
            yield Iterate(point, loss, k + 1)


@dataclass(frozen=True, eq=False)
class Iterate:
    """The relaxed point after ``number`` steps, and the loss in nats on the way there."""

    point: Point
    loss: float
    number: int


def keeping(domain: Domain, point: Point) -> Domain:
    """The same limits with an objective that rounding and repair keep most of a relaxed point by.

    A choice is worth its probability; a config less that of its block's likeliest, so that depth itself is worth nothing.
    """
    space = domain.problem.space
    values = np.concatenate([point.alpha, point.beta])
    for blocks in space.layout.config_slices:
        for where in blocks:
            values[where] -= values[where].max()
    return Domain(replace(domain.problem, objective=BilinearObjective(0.0, Column.from_flat(space, values))))


def _last(iterates: Iterator[Iterate], deadline: Deadline) -> tuple[Iterate, bool]:
    """The last iterate, and whether the time was up before all were made; at least one is."""
    for item in iterates:
        if deadline.late:
            return item, True
    return item, False
