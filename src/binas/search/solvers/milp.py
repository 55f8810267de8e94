"""``milp``: HiGHS on the tight linear form. Any number of limits; proof, bound, gap, time limit, warm start."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

import numpy as np

from binas.search.deadline import Deadline
from binas.search.highs import LinearProgram, Model, Setting
from binas.search.matrices import TightForm, tight_form
from binas.search.problem import SearchProblem
from binas.search.reach import reachable
from binas.search.result import Answer, Status
from binas.search.solvers._base import Capabilities, Options, Solver
from binas.search.solvers._bilinear_program import Outcome, ones_of, run_until_kept
from binas.search.sparse import Sparse
from binas.space.architecture import Architecture


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

    def in_order(
        self, problem: SearchProblem, options: Options, without: Iterable[Architecture] = ()
    ) -> Iterator[Answer]:
        """The best architecture within the limits, the best after it, and so on, ``without`` some that are known.

        Each is found by cutting off those before it, and its bound is that of all that are left. The last answer says why
        no other follows: infeasible, nothing is left; stopped, time, nodes or repairs ran out.
        """
        smaller = reachable(problem)
        if smaller is None:
            yield Answer(Status.INFEASIBLE)
            return
        model, known = self._model(smaller, options), list(without)
        while True:
            for architecture in known:
                model.forbid(ones_of(model.form.space, architecture))
            found = self._next(problem, model, options.deadline)
            yield found
            if found.status is not Status.OPTIMAL or found.architecture is None:
                return
            known = [found.architecture]

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
        outcome, judged, _ = run_until_kept(problem, model.form.space, model, deadline)
        if judged is None:
            status = outcome.status if outcome.x is None else Status.STOPPED_WITHOUT_ANSWER
            return Answer(status, bound=outcome.bound)
        bound = outcome.bound
        if outcome.status is Status.OPTIMAL:
            bound = judged.accuracy if bound is None else max(bound, judged.accuracy)
        details = {"nodes": outcome.nodes}
        return Answer(outcome.status, judged.architecture, judged.accuracy, bound, details)


class _Model:
    """The tight form inside HiGHS, scaled so that tolerances are relative."""

    def __init__(
        self, form: TightForm, scale: float, settings: Mapping[str, Setting], start: Architecture | None
    ):
        self.form, self.scale = form, scale
        self.model = Model(_program(form, self.scale), settings)
        if start is not None:
            self.model.start_from(form.space.layout.rows([start]).ravel())

    def run(self, seconds: float) -> Outcome:
        """Solve (again) and translate HiGHS's answer."""
        solution = self.model.run(seconds)
        if solution.status == "infeasible":
            return Outcome(Status.INFEASIBLE)
        bound = None if solution.bound is None else solution.bound * self.scale + self.form.constant
        if solution.x is None:
            return Outcome(Status.STOPPED_WITHOUT_ANSWER, None, bound)
        status = Status.OPTIMAL if solution.status == "optimal" else Status.STOPPED_WITH_ANSWER
        return Outcome(status, solution.x, bound, solution.nodes)

    def forbid(self, ones: list[int]) -> None:
        """Cut off one architecture: the sum of its ones <= their number - 1."""
        self.model.add_row(np.array(ones), np.ones(len(ones)), float(len(ones) - 1))


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
