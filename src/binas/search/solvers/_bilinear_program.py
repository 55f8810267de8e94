"""What the solvers of the paper's integer program share: the program as numbers, the loop around a solver.

For a bilinear objective the program is the one of section 3.4, nothing linearised: x = (alpha, beta) binary,

    max r + q_beta' beta + alpha' Q beta
    s.t. fixed + p_beta' beta + alpha' Theta beta <= T,  sum_c alpha[s,b,c] = 1,  sum_d beta[s,d] = 1.

A quadratic objective (section 5.2) is defined on z = (y, beta) with y = alpha masked by the depth. Its
program has the variables z themselves, sum_c y[s,b,c] = sum_{d >= b} beta[s,d] for every block, limits that
are linear in z, and the objective b + a'z + z'Qz.

Objective and limits are divided by their largest coefficient, so that a solver's tolerances are relative.
"""

from __future__ import annotations

import contextlib
import math
from abc import ABC, abstractmethod
from dataclasses import dataclass, replace
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from binas.base.errors import SolverClaimError
from binas.estimators.objective import BilinearObjective, QuadraticObjective
from binas.search.deadline import Deadline
from binas.search.matrices import Bilinear, TightForm, paper_form, structure, tight_form
from binas.search.problem import Evaluation, SearchProblem, evaluate
from binas.search.reach import reachable
from binas.search.result import Answer, Status
from binas.search.solvers._base import Options, Solver
from binas.search.sparse import Sparse
from binas.search.verify import TOLERANCE
from binas.space.architecture import Architecture
from binas.space.layout import Inactive
from binas.space.space import SearchSpace
from binas.tables.entries import Column

Array = NDArray[np.float64]
Ints = NDArray[np.int64]

PROGRAM_OBJECTIVES = frozenset({"bilinear", "quadratic"})
PAPER_SECONDS = 100.0  # what the paper gives its solver (appendix on the experimental setting)
MAX_REPAIRS = 50
ROUNDING = 1e-9  # relative: a bound that much above the value is the value
PRODUCTS_A_SECOND = 50_000  # that SCIP is told of, and forgets again, at least


@dataclass(frozen=True, eq=False)
class Form:
    """constant + linear' x + sum_k weights[k] * x[left[k]] * x[right[k]]."""

    constant: float
    linear: Array
    left: Ints
    right: Ints
    weights: Array

    @property
    def largest(self) -> float:
        """Largest magnitude of a coefficient (the constant left out)."""
        return float(max(np.abs(self.linear).max(initial=0.0), np.abs(self.weights).max(initial=0.0)))

    @property
    def reach(self) -> float:
        """Sum of all magnitudes: no binary point has a larger |value - constant|."""
        return float(np.abs(self.linear).sum() + np.abs(self.weights).sum())

    def divided(self, by: float) -> Form:
        """The form divided by a positive number."""
        return replace(self, constant=self.constant / by, linear=self.linear / by, weights=self.weights / by)

    def value(self, x: Array) -> float:
        """The form at a point."""
        return float(self.constant + self.linear @ x + self.weights @ (x[self.left] * x[self.right]))


@dataclass(frozen=True, eq=False)
class Program:
    """max unit * objective(x) over binary x with equality @ x = right and every limit(x) <= its bound.

    The objective is in units of ``unit`` (percent times ``unit`` where the problem is in percent); each limit
    is divided by its own largest coefficient and has no constant.
    """

    space: SearchSpace
    inactive: Inactive
    unit: float
    objective: Form
    limits: tuple[tuple[Form, float], ...]
    equality: Sparse
    right: Array

    @property
    def size(self) -> int:
        """Number of binary variables."""
        return self.space.layout.size

    def point(self, architecture: Architecture) -> Array:
        """The variables of an architecture."""
        return np.concatenate(self.space.layout.encode(architecture, inactive=self.inactive))

    def in_percent(self, scaled: float) -> float | None:
        """A solver's objective value or bound in the objective's own unit; None if it is not finite."""
        return self.unit * scaled if math.isfinite(scaled) and abs(scaled) < 1e19 else None


def count_products(problem: SearchProblem) -> int:
    """How many products of two variables the program of a problem has."""
    if isinstance(problem.objective, QuadraticObjective):
        return int(np.count_nonzero(problem.objective.quadratic))
    stages = problem.space.stages
    each = sum(
        len(block) * sum(d > b for d in stage.depths)
        for stage in stages
        for b, block in enumerate(stage.blocks)
    )
    return (1 + len(problem.limits)) * each


def pose(problem: SearchProblem) -> Program:
    """The program of a problem: the paper's for a bilinear objective, over z for a quadratic one."""
    if isinstance(problem.objective, QuadraticObjective):
        return _quadratic_program(problem, problem.objective)
    form = paper_form(problem)
    rows = [_of_bilinear(row) for row in form.rows]
    equality, right = _simplexes(problem.space)
    limits = _scaled_limits(rows, form.bounds)
    return _program(problem.space, "first", _of_bilinear(form.objective), limits, equality, right)


def _quadratic_program(problem: SearchProblem, objective: QuadraticObjective) -> Program:
    """Structure and limits of the tight form with the quadratic objective in place of the linear one."""
    nothing = BilinearObjective(0.0, Column.full(problem.space, 0.0))
    tight = tight_form(replace(problem, objective=nothing))
    limits = _scaled_limits([_of_linear(row) for row in tight.rows], tight.bounds)
    return _program(problem.space, "zero", _of_quadratic(tight, objective), limits, *structure(problem.space))


def _program(
    space: SearchSpace,
    inactive: Inactive,
    objective: Form,
    limits: tuple[tuple[Form, float], ...],
    equality: Sparse,
    right: Array,
) -> Program:
    unit = objective.largest or 1.0
    return Program(space, inactive, unit, objective.divided(unit), limits, equality, right)


def _scaled_limits(rows: list[Form], bounds: Array) -> tuple[tuple[Form, float], ...]:
    """Each row without its constant, divided so that its largest coefficient is one."""
    result = []
    for row, bound in zip(rows, bounds.tolist(), strict=True):
        room = bound - row.constant
        scale = max(row.largest, 1e-6 * abs(room), 1e-300)
        result.append((replace(row, constant=0.0).divided(scale), room / scale))
    return tuple(result)


def _of_bilinear(form: Bilinear) -> Form:
    alphas = form.matrix.shape[0]
    left, right = np.nonzero(form.matrix)
    linear = np.concatenate([np.zeros(alphas), form.beta])
    return Form(form.constant, linear, left, right + alphas, form.matrix[left, right])


def _of_linear(row: Array) -> Form:
    none = np.zeros(0, dtype=np.int64)
    return Form(0.0, row, none, none, np.zeros(0))


def _of_quadratic(tight: TightForm, objective: QuadraticObjective) -> Form:
    """b + a'z + z'Qz with each pair of variables once.

    z_i^2 = z_i goes into the linear part; products of two choices of the same decision are zero.
    """
    both = objective.quadratic + objective.quadratic.T
    upper = np.triu(both, 1)
    for where in tight.space.layout.slices:
        upper[where, where] = 0.0
    left, right = np.nonzero(upper)
    linear = objective.linear + np.diag(objective.quadratic)
    return Form(objective.constant, linear, left, right, upper[left, right])


def _simplexes(space: SearchSpace) -> tuple[Sparse, Array]:
    """sum_c alpha[s,b,c] = 1 for every block, sum_d beta[s,d] = 1 for every stage."""
    sizes = [len(block) for stage in space.stages for block in stage.blocks]
    sizes += [len(stage.depths) for stage in space.stages]
    rows = np.repeat(np.arange(len(sizes)), sizes)
    shape = (len(sizes), len(rows))
    return Sparse.from_entries(rows, np.arange(len(rows)), np.ones(len(rows)), shape), np.ones(len(sizes))


@dataclass(frozen=True)
class Outcome:
    """How one run of a solver ended: a point, and an upper bound in the objective's own unit."""

    status: Status
    x: Array | None = None
    bound: float | None = None
    nodes: int = 0


class Solvable(Protocol):
    """A program inside a solver, over the variables of a space."""

    def run(self, seconds: float) -> Outcome:
        """Solve (again) for at most ``seconds``."""

    def forbid(self, ones: list[int]) -> None:
        """Cut off one architecture: the sum of its ones <= their number - 1."""


class Model(Solvable, Protocol):
    """The same where memory and licence must be given back."""

    def close(self) -> None:
        """Give back memory and licence."""


class ProgramSolver(Solver, ABC):
    """A solver of the program: subclasses translate it, this class runs it and judges what comes back."""

    @abstractmethod
    def _model(self, program: Program, options: Options) -> Model:
        """The program inside the solver."""

    def solve(self, problem: SearchProblem, options: Options) -> Answer:
        """The optimum, or the best found in the time (100 s unless given) with the solver's bound.

        A point that keeps a limit only within the solver's tolerance is forbidden and the program run again. A program
        that could not even be written down in the time is not posed.
        """
        smaller = reachable(problem)
        if smaller is None:
            return Answer(Status.INFEASIBLE)
        deadline, start = options.deadline, _usable_start(problem, options)
        if deadline.seconds is None:
            deadline = Deadline.after(PAPER_SECONDS)
        products = count_products(smaller)
        if products > PRODUCTS_A_SECOND * deadline.left:
            stopped = Outcome(Status.STOPPED_WITHOUT_ANSWER)
            return self._answer(stopped, None, start, options.gap, {"products": products, "posed": False})
        program = pose(smaller)
        known = options.warm_start if options.warm_start in smaller.space else None
        with contextlib.closing(self._model(program, replace(options, warm_start=known))) as model:
            outcome, judged, repairs = run_until_kept(problem, program.space, model, deadline)
        details = {"nodes": outcome.nodes, "repairs": repairs}
        return self._answer(outcome, judged, start, options.gap, details)

    def _answer(
        self,
        outcome: Outcome,
        judged: Evaluation | None,
        start: Evaluation | None,
        gap: float,
        details: dict[str, Any],
    ) -> Answer:
        """The claim: the better of the solver's point and the start, with what is proven about it.

        At most ``gap`` below the solver's bound it is optimal; the bound stays what it is.
        """
        if outcome.status is Status.INFEASIBLE:
            if start is not None:
                raise SolverClaimError(
                    f"{self.name} says infeasible, but {start.architecture} keeps the limits."
                )
            return Answer(Status.INFEASIBLE, details=details)
        known = [item for item in (judged, start) if item is not None]
        if not known:
            return Answer(Status.STOPPED_WITHOUT_ANSWER, bound=outcome.bound, details=details)
        best = max(known, key=lambda item: item.accuracy)
        proven = outcome.status is Status.OPTIMAL and judged is not None
        proven = proven and _agrees(outcome.bound, best.accuracy, gap)
        status = Status.OPTIMAL if proven else Status.STOPPED_WITH_ANSWER
        bound = None if outcome.bound is None else max(outcome.bound, best.accuracy)
        return Answer(status, best.architecture, best.accuracy, bound, details)


def _agrees(bound: float | None, value: float, gap: float) -> bool:
    """Whether a bound is at most ``gap`` above the value by the tables, and below it only by what the verifier lets pass."""
    size = max(1.0, abs(value))
    return bound is not None and -TOLERANCE * size <= bound - value <= max(gap, ROUNDING * size)


def ones_of(space: SearchSpace, architecture: Architecture) -> list[int]:
    """The variables that are one at every point of this architecture and at no point of another."""
    return np.flatnonzero(space.layout.rows([architecture])).tolist()


def architecture_at(space: SearchSpace, x: Array) -> Architecture:
    """The architecture of a point that is binary up to a tolerance."""
    return space.layout.round(*space.layout.split(x))


def run_until_kept(
    problem: SearchProblem, space: SearchSpace, model: Solvable, deadline: Deadline
) -> tuple[Outcome, Evaluation | None, int]:
    """The last run, its architecture if that keeps every limit, and how many were forbidden before it."""
    for repairs in range(MAX_REPAIRS):
        outcome = model.run(deadline.left)
        if outcome.x is None:
            return outcome, None, repairs
        judged = evaluate(problem, architecture_at(space, outcome.x))
        if judged.feasible:
            return outcome, judged, repairs
        model.forbid(ones_of(space, judged.architecture))
    return outcome, None, MAX_REPAIRS


def _usable_start(problem: SearchProblem, options: Options) -> Evaluation | None:
    """The warm start judged, if it keeps every limit."""
    judged = None if options.warm_start is None else evaluate(problem, options.warm_start)
    return judged if judged is not None and judged.feasible else None


def start_point(program: Program, options: Options) -> Array | None:
    """The variables of the warm start, or None; a solver rejects a start that breaks a limit by itself."""
    return None if options.warm_start is None else program.point(options.warm_start)
