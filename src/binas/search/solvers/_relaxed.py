"""What the Frank-Wolfe solvers share: relaxed points, their limits, start points, rounding and repair.

A relaxed point gives each decision a probability vector: alpha over the configs of a block, beta over the
depths of a stage (section 3.1). With one of the two held fixed every limit is linear in the other
(section 3.5), so the best alpha for a beta, or the reverse, is a relaxed multiple-choice knapsack.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Literal, Protocol

import numpy as np
from numpy.typing import NDArray

from binas.search.deadline import NEVER, Deadline
from binas.search.highs import DUAL_SIMPLEX, LinearProgram, solve_linear
from binas.search.knapsack import relaxed_knapsack_rows
from binas.search.matrices import bilinear_part, structure
from binas.search.objective import objective_values
from binas.search.problem import SearchProblem, evaluate
from binas.search.result import Answer, Status
from binas.search.solvers._base import Options, Solver
from binas.search.sparse import Sparse
from binas.search.terms import Row, limit_rows
from binas.space.architecture import Architecture
from binas.space.layout import Layout
from binas.space.space import SearchSpace

Array = NDArray[np.float64]
Ints = NDArray[np.int64]
Part = Literal["alpha", "beta"]

PULLS = 16
MAX_LISTED = 2**23  # numbers that name all changes of one config


@dataclass(frozen=True, eq=False)
class Point:
    """A relaxed point (alpha, beta); one-hot vectors are architectures."""

    alpha: Array
    beta: Array

    def part(self, part: Part) -> Array:
        """alpha or beta."""
        return self.alpha if part == "alpha" else self.beta

    def replaced(self, block: Block, values: Array) -> Point:
        """The same point with other entries in one coordinate block."""
        vector = self.part(block.part).copy()
        vector[block.where] = values
        return replace(self, **{block.part: vector})

    def towards(self, other: Point, share: float) -> Point:
        """(1 - share) * self + share * other."""
        keep = 1.0 - share
        return Point(keep * self.alpha + share * other.alpha, keep * self.beta + share * other.beta)


@dataclass(frozen=True, eq=False)
class Block:
    """A coordinate block: entries ``where`` of alpha or beta; ``groups`` labels each entry's decision."""

    part: Part
    where: slice
    groups: Ints


class Smooth(Protocol):
    """An objective on relaxed points, in points of accuracy."""

    def value(self, point: Point) -> float:
        """The objective at a relaxed point."""

    def gradient(self, point: Point, part: Part) -> Array:
        """Its partial derivatives with respect to alpha or beta."""


def stage_blocks(space: SearchSpace) -> list[Block]:
    """The 2S coordinate blocks alpha^s and beta^s of Algorithm 4 (a stage without blocks has no alpha^s)."""
    layout, blocks = space.layout, []
    for s, (alphas, betas) in enumerate(zip(layout.config_slices, layout.beta_slices, strict=True)):
        labels = [np.full(a.stop - a.start, a.start) for a in alphas]
        if labels:
            blocks.append(Block("alpha", slice(alphas[0].start, alphas[-1].stop), np.concatenate(labels)))
        blocks.append(Block("beta", betas, np.full(betas.stop - betas.start, s)))
    return blocks


def whole_blocks(space: SearchSpace) -> list[Block]:
    """The two coordinate blocks alpha and beta of Algorithm 1 (only beta if no stage has any block)."""
    blocks: list[Block] = []
    parts: tuple[Part, Part] = ("alpha", "beta")
    for part in parts:
        labels = [block.groups for block in stage_blocks(space) if block.part == part]
        if labels:
            groups = np.concatenate(labels)
            blocks.append(Block(part, slice(0, len(groups)), groups))
    return blocks


@dataclass(frozen=True, eq=False)
class Domain:
    """Relaxed points of a problem under its limits: sign * (fixed + p' beta + alpha' Theta beta) <= bound."""

    problem: SearchProblem

    @cached_property
    def rows(self) -> list[Row]:
        """The limits with sign and tolerance."""
        return limit_rows(self.problem)

    @cached_property
    def bounds(self) -> Array:
        """Bound of each row."""
        return np.array([row.bound for row in self.rows])

    @cached_property
    def scales(self) -> Array:
        """Largest magnitude of each row, to compare rows of different units."""
        return np.array([max(self.problem.scales[row.cost], 1e-300) for row in self.rows])

    @cached_property
    def _forms(self) -> tuple[Array, Array, Array]:
        """Constants (m,), beta parts (m, B) and matrices (m, A, B) of all rows."""
        space, costs = self.problem.space, [(self.problem.costs[row.cost], row.sign) for row in self.rows]
        forms = [bilinear_part(space, cost.values, cost.fixed, sign) for cost, sign in costs]
        size = (len(forms), space.alpha_size, space.beta_size)
        return (
            np.array([form.constant for form in forms]),
            np.array([form.beta for form in forms]).reshape(size[0], size[2]),
            np.array([form.matrix for form in forms]).reshape(size),
        )

    def use(self, point: Point) -> Array:
        """Every row at a relaxed point, in the unit of its cost."""
        constant, beta, matrix = self._forms
        return np.asarray(constant + (beta + point.alpha @ matrix) @ point.beta)

    def feasible(self, point: Point) -> bool:
        """Whether a relaxed point keeps every limit."""
        return bool((self.use(point) <= self.bounds).all())

    def slopes(self, point: Point, part: Part) -> Array:
        """Derivatives of every row with respect to alpha or beta, (m, A) or (m, B)."""
        _, beta, matrix = self._forms
        return np.asarray(matrix @ point.beta if part == "alpha" else beta + point.alpha @ matrix)

    def best(self, block: Block, point: Point, values: Array) -> Array | None:
        """argmax of values' x over one coordinate block, all else held fixed; None if nothing is feasible."""
        constant, beta, _ = self._forms
        rest = constant + beta @ point.beta if block.part == "alpha" else constant
        slopes = self.slopes(point, block.part)
        others = point.part(block.part).copy()
        others[block.where] = 0.0  # so that the answer does not depend on the block's present entries
        budgets = self.bounds - rest - slopes @ others
        return relaxed_knapsack_rows(values[block.where], slopes[:, block.where], block.groups, budgets)


@dataclass(frozen=True, eq=False)
class Choice:
    """The depth of every stage (S,) and one config index for every block (S, D), active or not."""

    depths: Ints
    configs: Ints

    @classmethod
    def of(cls, space: SearchSpace, architecture: Architecture) -> Choice:
        """An architecture with the first config in blocks that do not run."""
        depths, configs = space.to_indices([architecture])
        return cls(depths[0], np.maximum(configs[0], 0))

    def architecture(self, space: SearchSpace) -> Architecture:
        """The architecture; configs past a depth are dropped."""
        return space.from_indices(self.depths.tolist(), self.configs.tolist())


def cheapest(problem: SearchProblem, row: Row) -> Architecture:
    """The architecture with the smallest sign * cost."""
    cost = problem.costs[row.cost]
    return cost.cheapest(problem.space) if row.sign > 0 else cost.dearest(problem.space)


def impossible(problem: SearchProblem) -> str | None:
    """A limit that even the cheapest architecture breaks, in words: a proof that nothing is feasible."""
    for limit, row in zip(problem.limits, limit_rows(problem), strict=True):
        if limit in evaluate(problem, cheapest(problem, row)).broken:
            return problem.describe_limit(limit)
    return None


def anchor(domain: Domain) -> Point:
    """A relaxed point that keeps the limits if any does.

    The cheapest architecture; with several limits the relaxed point with the largest margin.
    """
    layout = domain.problem.space.layout
    if not domain.rows:
        return Point(*layout.uniform())
    widest = _widest(domain) if len(domain.rows) > 1 else None
    if widest is None:
        return Point(*layout.encode(cheapest(domain.problem, domain.rows[0])))
    return _from_tight(layout, widest)


def _widest(domain: Domain) -> Array | None:
    """x = (y, beta) of the tight form that maximises the smallest scaled slack of all limits, by HiGHS."""
    costs = [(row.sign, domain.problem.costs[row.cost]) for row in domain.rows]
    equality, right = structure(domain.problem.space)
    rows = np.array([sign * cost.values.flat() for sign, cost in costs]) / domain.scales[:, None]
    left = (domain.bounds - [sign * cost.fixed for sign, cost in costs]) / domain.scales
    matrix = Sparse.stack(Sparse.from_dense(rows), equality)
    program = LinearProgram(
        cost=np.append(np.zeros(matrix.width), -1.0),
        matrix=matrix.with_column(np.append(np.ones(len(left)), np.zeros(len(right)))),
        lower=np.append(np.full(len(left), -np.inf), right),
        upper=np.append(left, right),
        least=np.append(np.zeros(matrix.width), -np.inf),
        most=np.full(matrix.width + 1, np.inf),
    )
    x = solve_linear(program, **DUAL_SIMPLEX).x
    return None if x is None else np.maximum(x[:-1], 0.0)


def _from_tight(layout: Layout, x: Array) -> Point:
    """(alpha, beta) with y = alpha * active, so with the same costs; uniform for blocks that do not run."""
    alpha, _ = layout.uniform()
    for where in [block for stage in layout.config_slices for block in stage]:
        total = x[where].sum()
        if total > 1e-9:
            alpha[where] = x[where] / total
    return Point(alpha, x[len(alpha) :])


def start_point(domain: Domain, safe: Point, rng: np.random.Generator) -> Point:
    """A uniformly random relaxed point, pulled towards ``safe`` until it keeps the limits."""
    point = safe
    for block in whole_blocks(domain.problem.space):
        draws = rng.standard_exponential(len(block.groups))
        member = np.unique(block.groups, return_inverse=True)[1]
        point = point.replaced(block, draws / np.bincount(member, draws)[member])
    return pulled(domain, point, safe)


def pulled(domain: Domain, point: Point, safe: Point) -> Point:
    """The first of (1 - t) * point + t * safe, t = 0, 1/16, ..., 1, that keeps the limits."""
    tried = (point.towards(safe, step / PULLS) for step in range(PULLS))
    return next((candidate for candidate in tried if domain.feasible(candidate)), safe)


def repaired(domain: Domain, architecture: Architecture, deadline: Deadline = NEVER) -> Architecture | None:
    """Change one decision after another until every limit holds; None where no change helps any more.

    Each step takes, of all changes that lessen the excess over the limits, the one that loses the least
    objective per excess removed. The excess falls strictly, so this ends; with a single limit it ends
    with an answer whenever there is one, since any stage may also be replaced by its cheapest form. Past the deadline, and
    where they are too many to list, configs are not changed by themselves.
    """
    space, objective = domain.problem.space, domain.problem.objective
    choice = Choice.of(space, architecture)
    floors = [Choice.of(space, cheapest(domain.problem, row)) for row in domain.rows]
    excess = float(_excess(domain, choice.depths[None], choice.configs[None])[0])
    while excess > 0.0:
        depths, configs = _neighbours(space, choice, floors, _can_list(space) and not deadline.late)
        after = _excess(domain, depths, configs)
        useful = after < excess
        if not useful.any():
            return None
        depths, configs, after = depths[useful], configs[useful], after[useful]
        now = objective.value(space, choice.architecture(space))
        gain = objective_values(objective, space, depths, configs) - now
        best = int(np.argmax(gain / (excess - after)))
        choice, excess = Choice(depths[best], configs[best]), float(after[best])
    return choice.architecture(space)


def _excess(domain: Domain, depths: Ints, configs: Ints) -> Array:
    """Sum over the limits of what each choice costs too much, each row in units of its scale."""
    total, positions = np.zeros(len(depths)), domain.problem.space.layout.positions(depths, configs)
    for row, scale in zip(domain.rows, domain.scales.tolist(), strict=True):
        use = row.sign * domain.problem.costs[row.cost].total(positions)
        total += np.maximum(use - row.bound, 0.0) / scale
    return total


def _can_list(space: SearchSpace) -> bool:
    return space.alpha_size * len(space.layout.slices) <= MAX_LISTED


def _neighbours(
    space: SearchSpace, choice: Choice, floors: Sequence[Choice], single: bool
) -> tuple[Ints, Ints]:
    """All changes of one depth, of one stage to that of a floor, or, ``single``, of one active config."""
    made = list(_changes(space, choice, floors, single))
    depths, configs = np.tile(choice.depths, (len(made), 1)), np.tile(choice.configs, (len(made), 1, 1))
    for i, (stage, depth, row) in enumerate(made):
        depths[i, stage], configs[i, stage] = depth, row
    return depths, configs


def _changes(
    space: SearchSpace, choice: Choice, floors: Sequence[Choice], single: bool
) -> Iterator[tuple[int, int, Ints]]:
    """Each change as (stage, its new depth, its new configs)."""
    for s, stage in enumerate(space.stages):
        depth, row = int(choice.depths[s]), choice.configs[s]
        for b, block in enumerate(stage.blocks[:depth] if single else ()):
            for c in range(len(block)):
                yield s, depth, np.where(np.arange(len(row)) == b, c, row)
        yield from ((s, other, row) for other in stage.depths)
        yield from ((s, int(floor.depths[s]), floor.configs[s]) for floor in floors)


@dataclass(frozen=True, eq=False)
class Climb:
    """Where one restart ended: relaxed point, objective there before any projection, iterations."""

    point: Point
    value: float
    iterations: int
    fixed: bool  # ended because nothing would change any more


class Climber(Protocol):
    """A way to improve relaxed points of one problem."""

    def climb(self, start: Point, rng: np.random.Generator, deadline: Deadline) -> Climb:
        """Improve a point; stop where nothing changes, or past the deadline."""


@dataclass(frozen=True, eq=False)
class Found:
    """An architecture that keeps the limits, its value, and how it came about."""

    architecture: Architecture
    value: float
    climb: Climb
    deviation: dict[str, float]


class RelaxedSolver(Solver):
    """Restarts from random relaxed points: climb, round by argmax, repair, keep the best."""

    restarts: int

    @abstractmethod
    def climber(self, domain: Domain) -> Climber:
        """The climbing method on one problem."""

    def solve(self, problem: SearchProblem, options: Options) -> Answer:
        """The best repaired architecture of all restarts (and of the warm start)."""
        blocked = impossible(problem)
        if blocked is not None:
            return Answer(Status.INFEASIBLE, details={"impossible": blocked})
        domain, climbs = Domain(problem), []
        climber, stopped = self.climber(domain), False
        for start, rng in _starts(domain, options, self.restarts):
            climbs.append(climber.climb(start, rng, options.deadline))
            stopped = options.deadline.late
            if stopped:
                break
        warm = [] if options.warm_start is None else [_standing(problem, options.warm_start)]
        found = [
            item
            for item in (finish(domain, climb, options.deadline) for climb in [*climbs, *warm])
            if item is not None
        ]
        return _answer(climbs, found, stopped)


def _starts(domain: Domain, options: Options, restarts: int) -> Iterator[tuple[Point, np.random.Generator]]:
    """The warm start first if there is one, then random points; each restart has a seed of its own."""
    safe, warm = anchor(domain), options.warm_start
    for i, seed in enumerate(np.random.SeedSequence(options.seed).spawn(restarts)):
        rng = np.random.default_rng(seed)
        if i == 0 and warm is not None:
            yield pulled(domain, _standing(domain.problem, warm).point, safe), rng
        else:
            yield start_point(domain, safe, rng), rng


def _standing(problem: SearchProblem, architecture: Architecture) -> Climb:
    """An architecture as a climb that has not moved."""
    point = Point(*problem.space.layout.encode(architecture))
    return Climb(point, problem.objective.value(problem.space, architecture), 0, False)


def finish(domain: Domain, climb: Climb, deadline: Deadline = NEVER) -> Found | None:
    """Take the argmax of every decision (after Theorem 3.3) and repair.

    ``deviation`` is by how much the architecture oversteps each limit before the repair, in the limit's unit.
    """
    problem = domain.problem
    architecture = problem.space.layout.round(climb.point.alpha, climb.point.beta)
    costs = evaluate(problem, architecture).costs
    deviation = {
        problem.describe_limit(limit): limit.sign * (costs[limit.cost] - limit.value)
        for limit in problem.limits
    }
    kept = repaired(domain, architecture, deadline)
    judged = None if kept is None else evaluate(problem, kept)
    if judged is None or not judged.feasible:
        return None
    return Found(judged.architecture, judged.accuracy, climb, deviation)


def _answer(climbs: list[Climb], found: list[Found], stopped: bool) -> Answer:
    details: dict[str, Any] = {
        "restarts": len(climbs),
        "iterations": sum(climb.iterations for climb in climbs),
        "fixed_points": sum(climb.fixed for climb in climbs),
        "relaxed_value": max(climb.value for climb in climbs),
    }
    if not found:
        return Answer(Status.STOPPED_WITHOUT_ANSWER, details=details)
    best = max(found, key=lambda item: item.value)
    details |= {"relaxed_value": best.climb.value, "deviation_before_repair": best.deviation}
    status = Status.STOPPED_WITH_ANSWER if stopped else Status.FEASIBLE
    return Answer(status, best.architecture, best.value, details=details)
