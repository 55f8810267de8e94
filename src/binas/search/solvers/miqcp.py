"""``miqcp``: the paper's bilinear program exactly as posed (section 3.4), solved by SCIP."""

from __future__ import annotations

import signal
from typing import Any

import numpy as np

from binas.search.result import Status
from binas.search.solvers._base import Capabilities, Options
from binas.search.solvers._bilinear_program import (
    PROGRAM_OBJECTIVES,
    Form,
    Model,
    Outcome,
    Program,
    ProgramSolver,
    start_point,
)

# Of a row's largest coefficient. Below this SCIP's LP solver prints complaints that cannot be turned off.
FEASIBILITY = 1e-7
LISTEN_SECONDS = 2.0


class Scip(ProgramSolver):
    """Mixed-integer quadratically constrained program by SCIP's spatial branch and cut (section 3.5).

    The paper uses CPLEX for this; SCIP is free and takes products of binaries in objective and limits. With a
    bilinear objective a proof needs one or two seconds on the paper's space. A quadratic objective with all
    interactions of that space is too much for it: expect an answer and a bound. 100 seconds unless a time
    limit is given.
    """

    name = "miqcp"
    capabilities = Capabilities(
        exact=True,
        objectives=PROGRAM_OBJECTIVES,
        summary="SCIP on the paper's bilinear program as posed; also quadratic objectives",
    )
    requires = ("pyscipopt",)

    def _model(self, program: Program, options: Options) -> Model:
        return _ScipModel(program, options)


class _ScipModel:
    """max t with t <= objective(x): SCIP wants a linear objective."""

    def __init__(self, program: Program, options: Options):
        import pyscipopt

        self.program, self.scip = program, pyscipopt
        self.model = pyscipopt.Model()
        self.model.hideOutput()
        self.model.setParams(_settings(options))
        self.x = [self.model.addVar(f"x{i}", vtype="B") for i in range(program.size)]
        reach = program.objective.reach + abs(program.objective.constant)
        self.top = self.model.addVar("objective", lb=-reach, ub=reach)
        self._constrain()
        self.model.setObjective(self.top, "maximize")
        self._start(start_point(program, options))

    def _constrain(self) -> None:
        model, equality = self.model, self.program.equality
        for row, right in zip(equality.rows(), self.program.right.tolist(), strict=True):
            pairs = zip(*row, strict=True)
            model.addCons(self.scip.quicksum(value * self.x[i] for i, value in pairs) == right)
        for form, bound in self.program.limits:
            model.addCons(self._expression(form) <= bound)
        model.addCons(self.top <= self._expression(self.program.objective))

    def _expression(self, form: Form) -> Any:
        """The form in SCIP's variables."""
        x, linear = self.x, form.linear
        products = zip(form.left.tolist(), form.right.tolist(), form.weights.tolist(), strict=True)
        terms = [weight * x[i] * x[j] for i, j, weight in products]
        terms += [float(linear[i]) * x[i] for i in np.flatnonzero(linear).tolist()]
        return self.scip.quicksum(terms) + form.constant

    def _start(self, point: Any) -> None:
        if point is None:
            return
        solution = self.model.createSol()
        for variable, value in zip(self.x, point.tolist(), strict=True):
            self.model.setSolVal(solution, variable, value)
        self.model.setSolVal(solution, self.top, self.program.objective.value(point))
        self.model.addSol(solution)

    def run(self, seconds: float) -> Outcome:
        """Solve (again) and translate SCIP's answer."""
        state = self._optimize(seconds)
        if state in ("infeasible", "inforunbd"):
            return Outcome(Status.INFEASIBLE)
        bound, nodes = self.program.in_percent(self.model.getDualbound()), int(self.model.getNTotalNodes())
        if self.model.getNSols() == 0:
            return Outcome(Status.STOPPED_WITHOUT_ANSWER, None, bound, nodes)
        solution = self.model.getBestSol()
        x = np.array([self.model.getSolVal(solution, variable) for variable in self.x])
        status = Status.OPTIMAL if state == "optimal" else Status.STOPPED_WITH_ANSWER
        return Outcome(status, x, bound, nodes)

    def _optimize(self, seconds: float) -> str:
        """Let SCIP work, a few seconds at a time, so that signals are heard in between; its word for how it ended."""
        end = self.model.getSolvingTime() + seconds
        while True:
            until = min(end, self.model.getSolvingTime() + LISTEN_SECONDS)
            self.model.setParam("limits/time", until)
            self.model.optimize()
            state = str(self.model.getStatus())
            if state == "userinterrupt":  # SCIP catches Ctrl-C itself, so Python has not heard of it
                signal.raise_signal(signal.SIGINT)
            if state != "timelimit" or until == end:
                return state

    def forbid(self, ones: list[int]) -> None:
        """Cut off one architecture."""
        self.model.freeTransform()
        self.model.addCons(self.scip.quicksum(self.x[i] for i in ones) <= len(ones) - 1)

    def close(self) -> None:
        """Free the problem's memory."""
        self.model.freeProb()


def _settings(options: Options) -> dict[str, Any]:
    return {
        "limits/gap": 0.0,
        "limits/absgap": 0.0,
        "numerics/feastol": FEASIBILITY,
        "randomization/randomseedshift": options.seed,
    }
