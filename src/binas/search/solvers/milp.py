"""``milp``: HiGHS on the tight linear form. Any number of limits; proof, bound, gap, time limit, warm start."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from binas.search.deadline import NEVER, Deadline
from binas.search.highs import LinearProgram, Model, Setting
from binas.search.matrices import TightForm, tight_form
from binas.search.problem import Evaluation, SearchProblem, evaluate
from binas.search.reach import reachable
from binas.search.result import Answer, Status
from binas.search.solvers._base import Capabilities, Options, Solver
from binas.search.sparse import Sparse
from binas.space.architecture import Architecture

Array = NDArray[np.float64]

MAX_REPAIRS = 50


class Milp(Solver):
    """Mixed-integer linear program, solved to a proven optimum by HiGHS."""

    name = "milp"
    capabilities = Capabilities(
        exact=True,
        objectives=frozenset({"bilinear"}),
        summary="HiGHS on the tight linear form; any number of limits",
    )
    requires = ("highspy",)

    def __init__(self, threads: int = 1, max_nodes: int | None = None):
        self.threads = threads
        self.max_nodes = max_nodes  # of the search tree; None: until it is proven

    def solve(self, problem: SearchProblem, options: Options) -> Answer:
        """The proven optimum; solver tolerances are made harmless by cutting off points that break a limit."""
        smaller = reachable(problem)
        if smaller is None:
            return Answer(Status.INFEASIBLE)
        return self._next(problem, self._model(smaller, options), options.deadline)

    def in_order(self, problem: SearchProblem, deadline: Deadline = NEVER) -> Iterator[Evaluation]:
        """Architectures within the limits from the best downwards, each found by cutting off those before it.

        Ends early, without a word, past the deadline.
        """
        smaller = reachable(problem)
        if smaller is None:
            return
        model = self._model(smaller, Options(deadline, gap=0.0))
        while (
            found := self._next(problem, model, deadline)
        ).status is Status.OPTIMAL and found.architecture is not None:
            yield evaluate(problem, found.architecture)
            model.forbid(_point(model.form, found.architecture))

    def _model(self, problem: SearchProblem, options: Options) -> _Model:
        form = tight_form(problem)
        scale = max(float(np.abs(form.objective).max(initial=0.0)), 1e-300)
        start = options.warm_start if options.warm_start in problem.space else None
        return _Model(form, scale, self._settings(options, scale), start)

    def _settings(self, options: Options, scale: float) -> dict[str, Setting]:
        """The options of HiGHS for an objective divided by ``scale``."""
        settings: dict[str, Setting] = {
            "threads": self.threads,
            "random_seed": options.seed,
            "mip_rel_gap": 0.0,
            "mip_abs_gap": max(1e-9, options.gap / scale),
            "mip_feasibility_tolerance": 1e-9,
            "primal_feasibility_tolerance": 1e-9,
            "dual_feasibility_tolerance": 1e-9,
        }
        if self.max_nodes is not None:
            settings["mip_max_nodes"] = self.max_nodes
        return settings

    def _next(self, problem: SearchProblem, model: _Model, deadline: Deadline) -> Answer:
        for _ in range(MAX_REPAIRS):
            outcome = model.run(deadline)
            if outcome.x is None:
                return Answer(outcome.status, bound=outcome.bound)
            architecture = _architecture(model.form, outcome.x)
            judged = evaluate(problem, architecture)
            if judged.feasible:
                bound = judged.accuracy if outcome.status is Status.OPTIMAL else outcome.bound
                return Answer(outcome.status, architecture, judged.accuracy, bound, {"nodes": outcome.nodes})
            model.forbid(_point(model.form, architecture))
        return Answer(Status.STOPPED_WITHOUT_ANSWER, bound=outcome.bound)


@dataclass(frozen=True)
class _Outcome:
    status: Status
    x: Array | None
    bound: float | None
    nodes: int = 0


class _Model:
    """The tight form inside HiGHS, scaled so that tolerances are relative."""

    def __init__(
        self, form: TightForm, scale: float, settings: Mapping[str, Setting], start: Architecture | None
    ):
        self.form, self.scale = form, scale
        self.model = Model(_program(form, self.scale), settings)
        if start is not None:
            self.model.start_from(_point(form, start))

    def run(self, deadline: Deadline) -> _Outcome:
        """Solve (again) and translate HiGHS's answer."""
        solution = self.model.run(deadline.left)
        if solution.status == "infeasible":
            return _Outcome(Status.INFEASIBLE, None, None)
        bound = None if solution.bound is None else solution.bound * self.scale + self.form.constant
        if solution.x is None:
            return _Outcome(Status.STOPPED_WITHOUT_ANSWER, None, bound)
        status = Status.OPTIMAL if solution.status == "optimal" else Status.STOPPED_WITH_ANSWER
        return _Outcome(status, solution.x, bound, solution.nodes)

    def forbid(self, point: Array) -> None:
        """Cut off one integer point: sum of its ones <= their number - 1."""
        ones = np.flatnonzero(point > 0.5)
        self.model.add_row(ones, np.ones(len(ones)), float(len(ones) - 1))


def _program(form: TightForm, scale: float) -> LinearProgram:
    """Structure and cost rows in one matrix; the objective divided by ``scale``, each cost row to entries up to one."""
    scales = np.maximum(np.abs(form.rows).max(axis=1, initial=0.0), np.abs(form.bounds) * 1e-6 + 1e-300)
    size = len(form.objective)
    return LinearProgram(
        cost=form.objective / scale,
        matrix=Sparse.stack(form.equality, Sparse.from_dense(form.rows / scales[:, None])),
        lower=np.append(form.right, np.full(len(scales), -np.inf)),
        upper=np.append(form.right, form.bounds / scales),
        least=np.zeros(size),
        most=np.ones(size),
        integer=np.ones(size, dtype=bool),
        maximise=True,
    )


def _architecture(form: TightForm, x: Array) -> Architecture:
    return form.space.layout.round(*form.space.layout.split(x))


def _point(form: TightForm, architecture: Architecture) -> Array:
    return form.space.layout.rows([architecture]).ravel()
