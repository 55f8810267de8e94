"""``milp``: HiGHS on the tight linear form. Any number of limits; proof, bound, gap, time limit, warm start."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from binas.search.matrices import TightForm, tight_form
from binas.search.problem import Evaluation, SearchProblem, evaluate
from binas.search.result import Answer, Status
from binas.search.solvers._base import Capabilities, Options, Solver
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
        return self._next(problem, _Model(tight_form(problem), self._settings(options), options.warm_start))

    def in_order(self, problem: SearchProblem) -> Iterator[Evaluation]:
        """Architectures within the limits from the best downwards, each found by cutting off those before it."""
        model = _Model(tight_form(problem), self._settings(Options()), None)
        while (
            found := self._next(problem, model)
        ).status is Status.OPTIMAL and found.architecture is not None:
            yield evaluate(problem, found.architecture)
            model.forbid(_point(model.form, found.architecture))

    def _settings(self, options: Options) -> dict[str, Any]:
        """The options of HiGHS."""
        settings: dict[str, Any] = {
            "output_flag": False,
            "threads": self.threads,
            "random_seed": options.seed,
            "mip_rel_gap": 0.0,
            "mip_abs_gap": 1e-9,
            "mip_feasibility_tolerance": 1e-9,
            "primal_feasibility_tolerance": 1e-9,
            "dual_feasibility_tolerance": 1e-9,
        }
        if options.time_limit is not None:
            settings["time_limit"] = float(options.time_limit)
        if self.max_nodes is not None:
            settings["mip_max_nodes"] = self.max_nodes
        return settings

    def _next(self, problem: SearchProblem, model: _Model) -> Answer:
        for _ in range(MAX_REPAIRS):
            outcome = model.run()
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
    """A HiGHS model of the tight form, scaled so that tolerances are relative."""

    def __init__(self, form: TightForm, settings: Mapping[str, Any], start: Architecture | None):
        import highspy

        self.form, self.highspy = form, highspy
        self.highs = highspy.Highs()
        for key, value in settings.items():
            self.highs.setOptionValue(key, value)
        self.scale = max(float(np.abs(form.objective).max(initial=0.0)), 1e-300)
        self.highs.passModel(self._lp())
        if start is not None:
            solution = highspy.HighsSolution()
            solution.col_value = _point(form, start).tolist()
            self.highs.setSolution(solution)

    def _lp(self) -> Any:
        form, highspy = self.form, self.highspy
        count, infinity = len(form.objective), highspy.kHighsInf
        matrix, lower, upper = _all_rows(form, infinity)
        lp = highspy.HighsLp()
        lp.num_col_, lp.num_row_ = count, len(lower)
        lp.col_cost_ = form.objective / self.scale
        lp.col_lower_, lp.col_upper_ = np.zeros(count), np.ones(count)
        lp.row_lower_, lp.row_upper_ = lower, upper
        lp.a_matrix_.format_ = highspy.MatrixFormat.kRowwise
        lp.a_matrix_.start_, lp.a_matrix_.index_, lp.a_matrix_.value_ = (
            matrix.indptr,
            matrix.indices,
            matrix.data,
        )
        lp.integrality_ = [highspy.HighsVarType.kInteger] * count
        lp.sense_ = highspy.ObjSense.kMaximize
        return lp

    def run(self) -> _Outcome:
        """Solve (again) and translate HiGHS's answer."""
        self.highs.run()
        info, status = self.highs.getInfo(), self.highs.getModelStatus()
        states = self.highspy.HighsModelStatus
        bound = info.mip_dual_bound * self.scale + self.form.constant
        if status in (states.kInfeasible, states.kUnboundedOrInfeasible):
            return _Outcome(Status.INFEASIBLE, None, None)
        found = info.primal_solution_status == self.highspy.SolutionStatus.kSolutionStatusFeasible
        bound_or_none = float(bound) if np.isfinite(bound) else None
        if not found:
            return _Outcome(Status.STOPPED_WITHOUT_ANSWER, None, bound_or_none)
        x = np.array(self.highs.getSolution().col_value)
        optimal = status == states.kOptimal
        ending = Status.OPTIMAL if optimal else Status.STOPPED_WITH_ANSWER
        return _Outcome(ending, x, bound_or_none, int(info.mip_node_count))

    def forbid(self, point: Array) -> None:
        """Cut off one integer point: sum of its ones <= their number - 1."""
        index = np.flatnonzero(point > 0.5).astype(np.int32)
        self.highs.addRow(
            -self.highspy.kHighsInf, float(len(index) - 1), len(index), index, np.ones(len(index))
        )


def _all_rows(form: TightForm, infinity: float) -> tuple[Any, Array, Array]:
    """Structure and cost rows in one matrix; each cost row scaled to entries of at most one."""
    from scipy.sparse import csr_array, vstack

    scales = np.maximum(np.abs(form.rows).max(axis=1, initial=0.0), np.abs(form.bounds) * 1e-6 + 1e-300)
    costs = csr_array(form.rows / scales[:, None])
    matrix = vstack([form.equality, costs], format="csr") if len(form.rows) else form.equality
    lower = np.concatenate([form.right, np.full(len(scales), -infinity)])
    upper = np.concatenate([form.right, form.bounds / scales])
    return matrix, lower, upper


def _architecture(form: TightForm, x: Array) -> Architecture:
    return form.space.layout.round(*form.space.layout.split(x))


def _point(form: TightForm, architecture: Architecture) -> Array:
    return form.space.layout.rows([architecture]).ravel()
