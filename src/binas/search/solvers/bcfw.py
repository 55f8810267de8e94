"""``bcfw``: block-coordinate Frank-Wolfe with line search on the relaxed bilinear problem (Algorithm 1)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from binas.base.errors import ProblemError
from binas.search.deadline import Deadline
from binas.search.matrices import Bilinear, bilinear_part, require_bilinear
from binas.search.problem import SearchProblem
from binas.search.solvers._base import Capabilities
from binas.search.solvers._relaxed import (
    Block,
    Climb,
    Domain,
    Part,
    Point,
    RelaxedSolver,
    Smooth,
    whole_blocks,
)

Array = NDArray[np.float64]

SAME = 1e-9  # probabilities that differ by less have not changed


class Bcfw(RelaxedSolver):
    """Algorithm 1: alternate at random between the best alpha for beta and the best beta for alpha.

    ``p`` is the probability of an alpha step, ``iterations`` the number K of steps per restart (fewer at a
    fixed point). The relaxed problem is not concave and a limit couples alpha and beta, so a restart
    ends in a block-wise optimum, not always the best one; see tests/search/test_theorems.py.
    """

    name = "bcfw"
    capabilities = Capabilities(
        exact=False,
        objectives=frozenset({"bilinear"}),
        summary="block-coordinate Frank-Wolfe, alpha against beta (Algorithm 1)",
    )

    def __init__(self, iterations: int = 2000, restarts: int = 10, p: float = 0.5):
        if not (iterations >= 1 and restarts >= 1 and 0.0 < p < 1.0):
            raise ProblemError("bcfw needs iterations >= 1, restarts >= 1 and 0 < p < 1.")
        self.iterations, self.restarts, self.p = iterations, restarts, p

    def climber(self, domain: Domain) -> BlockSteps:
        """Steps on alpha with probability p, else on beta."""
        blocks = whole_blocks(domain.problem.space)
        weights = [self.p if block.part == "alpha" else 1.0 - self.p for block in blocks]
        return BlockSteps(domain, bilinear_smooth(domain.problem), blocks, weights, self.iterations)


@dataclass(frozen=True, eq=False)
class BilinearSmooth:
    """r + q_beta' beta + alpha' Q beta on relaxed points (section 3.3), in points of accuracy."""

    form: Bilinear

    def value(self, point: Point) -> float:
        """The form at a relaxed point."""
        return self.form.value(point.alpha, point.beta)

    def gradient(self, point: Point, part: Part) -> Array:
        """Q beta for alpha, q_beta + Q' alpha for beta."""
        matrix = self.form.matrix
        return np.asarray(matrix @ point.beta if part == "alpha" else self.form.beta + point.alpha @ matrix)


def bilinear_smooth(problem: SearchProblem) -> BilinearSmooth:
    """The bilinear objective of a problem on relaxed points."""
    objective = require_bilinear(problem)
    return BilinearSmooth(bilinear_part(problem.space, objective.values, objective.base))


@dataclass(frozen=True, eq=False)
class BlockSteps:
    """Steps of size gamma = 1 on randomly chosen coordinate blocks (Algorithm 4; Algorithm 1 for two blocks).

    For an objective that is linear in every block, line search always gives gamma = 1 (appendix on the
    analytic line search): the block is replaced by the solution of its relaxed knapsack.
    """

    domain: Domain
    objective: Smooth
    blocks: Sequence[Block]
    weights: Sequence[float]  # how likely each block is, up to a factor
    iterations: int

    def climb(self, start: Point, rng: np.random.Generator, deadline: Deadline) -> Climb:
        """At most ``iterations`` steps, fewer at a fixed point or past the deadline."""
        point, count, fixed = last_of(self.iterates(start, rng), start, self.iterations, deadline)
        return Climb(point, self.objective.value(point), count, fixed)

    def iterates(self, point: Point, rng: np.random.Generator) -> Iterator[Point]:
        """The points after each iteration; ends at a fixed point, where no block would change any more."""
        ends = np.cumsum(self.weights) / np.sum(self.weights)
        settled: set[int] = set()
        while len(settled) < len(self.blocks):
            pick = min(int(np.searchsorted(ends, rng.random(), side="right")), len(ends) - 1)
            if pick not in settled:
                moved = self._step(self.blocks[pick], point)
                settled = settled | {pick} if moved is None else {pick}
                point = point if moved is None else moved
            yield point

    def _step(self, block: Block, point: Point) -> Point | None:
        """The point with this block at its best, None if it is there already or cannot be feasible."""
        best = self.domain.best(block, point, self.objective.gradient(point, block.part))
        if best is None or np.abs(best - point.part(block.part)[block.where]).max() <= SAME:
            return None
        return point.replaced(block, best)


def last_of(
    points: Iterator[Point], start: Point, iterations: int, deadline: Deadline
) -> tuple[Point, int, bool]:
    """The last point within so many iterations, their number, and whether the points ended by themselves."""
    last, count = start, 0
    for count, last in enumerate(points, 1):
        if count >= iterations or deadline.late:
            return last, count, False
    return last, count, True
