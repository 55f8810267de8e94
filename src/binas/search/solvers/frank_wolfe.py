"""``frank-wolfe``: block-coordinate Frank-Wolfe for any differentiable objective (Algorithm 3, section 3.5).

Iterates stay relaxed, so the end point is projected back to architectures by BCFW on the linear objective
alpha*' alpha + beta*' beta under the same limits, then argmax and repair.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from binas.base.errors import ProblemError
from binas.estimators.objective import CallableObjective, QuadraticObjective
from binas.search.deadline import Deadline
from binas.search.matrices import bilinear_part
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
from binas.search.solvers.bcfw import BlockSteps, bilinear_smooth, last_of
from binas.space.space import SearchSpace
from binas.tables.entries import Column

Array = NDArray[np.float64]
Step = Literal["line-search", "schedule"]

FLAT = 1e-9  # a block whose best gain is below this share of its largest derivative is at its best
GRID = 8
GOLDEN = (5**0.5 - 1) / 2
REFINEMENTS = 14  # leaves 3e-4 of the way


class FrankWolfe(RelaxedSolver):
    """Algorithm 3 on the blocks alpha and beta, n = 2, followed by the paper's projection step.

    ``step`` is ``"line-search"`` or ``"schedule"`` (gamma = 2n / (k + 2n) in iteration k). A block's
    direction is the solution of its linear subproblem given the other block, so iterates keep the limits.
    """

    name = "frank-wolfe"
    capabilities = Capabilities(
        exact=False,
        objectives=frozenset({"bilinear", "quadratic", "callable"}),
        summary="Frank-Wolfe for differentiable objectives, then projection (Algorithm 3)",
    )

    def __init__(
        self,
        iterations: int = 2000,
        projection_iterations: int = 1000,
        restarts: int = 5,
        step: Step = "line-search",
    ):
        if not (iterations >= 1 and projection_iterations >= 1 and restarts >= 1):
            raise ProblemError(
                "frank-wolfe needs iterations, projection_iterations and restarts of at least 1."
            )
        if step not in ("line-search", "schedule"):
            raise ProblemError(f"frank-wolfe knows the steps 'line-search' and 'schedule', not {step!r}.")
        self.iterations, self.projection_iterations = iterations, projection_iterations
        self.restarts, self.step = restarts, step

    def check(self, problem: SearchProblem) -> None:
        """Also refuse objectives without derivatives."""
        super().check(problem)
        relaxed_objective(problem)

    def climber(self, domain: Domain) -> FrankWolfeSteps:
        """Steps on alpha and beta, equally likely."""
        objective = relaxed_objective(domain.problem)
        return FrankWolfeSteps(domain, objective, self.iterations, self.projection_iterations, self.step)


def relaxed_objective(problem: SearchProblem) -> Smooth:
    """The objective of a problem on relaxed points, with derivatives; an error where there are none."""
    objective = problem.objective
    if isinstance(objective, QuadraticObjective):
        return QuadraticSmooth(problem.space, objective)
    if isinstance(objective, CallableObjective):
        return CallableSmooth.of(objective)
    return bilinear_smooth(problem)


@dataclass(frozen=True, eq=False)
class QuadraticSmooth:
    """b + a'z + z'Wz at z = (alpha * active(beta), beta) (section 5.2, the quadratic predictor).

    active[s,b,c] = sum_{d >= b} beta[s,d] is the probability that a block runs: linear in beta, and equal
    to the indicator at architectures. So z is linear in alpha and in beta, the objective quadratic in each.
    """

    space: SearchSpace
    objective: QuadraticObjective

    @cached_property
    def _runs(self) -> Array:
        """(A, B): whether the block of an alpha entry runs at a depth."""
        return bilinear_part(self.space, Column.full(self.space, 1.0), 0.0).matrix

    @cached_property
    def _symmetric(self) -> Array:
        return np.asarray(self.objective.quadratic + self.objective.quadratic.T)

    def value(self, point: Point) -> float:
        """The form at a relaxed point."""
        z, form = self._z(point), self.objective
        return float(form.constant + form.linear @ z + 0.5 * (z @ self._symmetric @ z))

    def gradient(self, point: Point, part: Part) -> Array:
        """With g = a + (W + W')z: active * g_alpha for alpha, g_beta + runs'(alpha * g_alpha) for beta."""
        slope = self.objective.linear + self._symmetric @ self._z(point)
        outer, inner = self.space.layout.split(slope)
        if part == "alpha":
            return np.asarray((self._runs @ point.beta) * outer)
        return np.asarray(inner + (point.alpha * outer) @ self._runs)

    def _z(self, point: Point) -> Array:
        return np.concatenate([point.alpha * (self._runs @ point.beta), point.beta])


@dataclass(frozen=True, eq=False)
class CallableSmooth:
    """A caller's own function of (alpha, beta) and its partial derivatives."""

    relaxed: Callable[[Array, Array], float]
    derivatives: Callable[[Array, Array], tuple[Array, Array]]

    @classmethod
    def of(cls, objective: CallableObjective) -> CallableSmooth:
        """From an objective that provides both functions."""
        if objective.relaxed is None or objective.gradient is None:
            raise ProblemError(
                "frank-wolfe needs an objective that can be differentiated: give CallableObjective the "
                "functions relaxed(alpha, beta) and gradient(alpha, beta), or use evolution."
            )
        return cls(objective.relaxed, objective.gradient)

    def value(self, point: Point) -> float:
        """The function at a relaxed point."""
        return float(self.relaxed(point.alpha, point.beta))

    def gradient(self, point: Point, part: Part) -> Array:
        """Its derivatives with respect to alpha or beta."""
        both = self.derivatives(point.alpha, point.beta)
        found = np.asarray(both[0] if part == "alpha" else both[1], dtype=np.float64)
        if found.shape != point.part(part).shape or not np.isfinite(found).all():
            raise ProblemError(
                f"the gradient with respect to {part} must be {len(point.part(part))} finite numbers; "
                f"the objective gave an array of shape {found.shape}."
            )
        return found


@dataclass(frozen=True, eq=False)
class LinearSmooth:
    """alpha*' alpha + beta*' beta: how much of a relaxed point an architecture keeps."""

    target: Point

    def value(self, point: Point) -> float:
        """The linear form at a point."""
        return float(self.target.alpha @ point.alpha + self.target.beta @ point.beta)

    def gradient(self, point: Point, part: Part) -> Array:
        """The target itself."""
        return self.target.part(part)


def projection(domain: Domain, point: Point, iterations: int) -> BlockSteps:
    """BCFW towards the architectures that keep most of a relaxed point, under the same limits (section 3.5)."""
    blocks = whole_blocks(domain.problem.space)
    return BlockSteps(domain, LinearSmooth(point), blocks, [1.0] * len(blocks), iterations)


@dataclass(frozen=True, eq=False)
class FrankWolfeSteps:
    """Algorithm 3 on alpha and beta, then the projection step.

    The paper pads the direction with zeros before mixing; read literally that would shrink the other
    block, so only the chosen block is mixed: x <- (1 - gamma) x + gamma s.
    """

    domain: Domain
    objective: Smooth
    iterations: int
    projection_iterations: int
    step: Step

    def climb(self, start: Point, rng: np.random.Generator, deadline: Deadline) -> Climb:
        """Frank-Wolfe from ``start``, then projection; ``value`` is the objective before the projection."""
        point, count, fixed = last_of(self.iterates(start, rng), start, self.iterations, deadline)
        projected = projection(self.domain, point, self.projection_iterations).climb(point, rng, deadline)
        return Climb(projected.point, self.objective.value(point), count + projected.iterations, fixed)

    def iterates(self, point: Point, rng: np.random.Generator) -> Iterator[Point]:
        """The points after each iteration; ends where no block offers an ascent direction any more."""
        blocks, settled, k = whole_blocks(self.domain.problem.space), set[int](), 0
        while len(settled) < len(blocks):
            pick = int(rng.integers(len(blocks)))
            if pick not in settled:
                moved = self._step(blocks[pick], point, 2 * len(blocks) / (k + 2 * len(blocks)))
                settled = settled | {pick} if moved is None else set()
                point = point if moved is None else moved
            k += 1
            yield point

    def _step(self, block: Block, point: Point, scheduled: float) -> Point | None:
        """The point after one step on a block, None if no direction there leads up."""
        slope = self.objective.gradient(point, block.part)
        now = point.part(block.part)[block.where]
        best = self.domain.best(block, point, slope)
        gain = -1.0 if best is None else float(slope[block.where] @ (best - now))
        if best is None or gain <= FLAT * float(np.abs(slope).max()):
            return None
        target = point.replaced(block, best)
        share = scheduled if self.step == "schedule" else line_search(self.objective, point, target, gain)
        return point.replaced(block, (1.0 - share) * now + share * best) if share > 0.0 else None


def line_search(objective: Smooth, start: Point, target: Point, gain: float) -> float:
    """argmax over gamma in [0, 1] of the objective at (1 - gamma) start + gamma target.

    ``gain`` is the slope at gamma = 0. Bilinear and quadratic objectives are parabolas along a block, so the
    answer is exact; other functions are sampled on a grid and refined by golden section around its best.
    """
    if isinstance(objective, CallableSmooth):
        return _sampled_search(lambda share: objective.value(start.towards(target, share)))
    curvature = objective.value(target) - objective.value(start) - gain
    return min(1.0, -gain / (2.0 * curvature)) if curvature < 0.0 else 1.0


def _sampled_search(function: Callable[[float], float]) -> float:
    """Best share in [0, 1] on a grid, then golden section in the two cells around it."""
    seen = {i / GRID: function(i / GRID) for i in range(GRID + 1)}
    best = max(seen, key=seen.__getitem__)
    low, high = max(0.0, best - 1 / GRID), min(1.0, best + 1 / GRID)
    left, right = high - GOLDEN * (high - low), low + GOLDEN * (high - low)
    seen |= {left: function(left), right: function(right)}
    for _ in range(REFINEMENTS):
        if seen[left] >= seen[right]:
            high, right = right, left
            left = high - GOLDEN * (high - low)
            seen[left] = function(left)
        else:
            low, left = left, right
            right = low + GOLDEN * (high - low)
            seen[right] = function(right)
    return max(seen, key=seen.__getitem__)
