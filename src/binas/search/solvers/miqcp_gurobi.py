"""``miqcp-gurobi``: the paper's bilinear program exactly as posed (section 3.4), solved by Gurobi."""

from __future__ import annotations

from typing import Any

import numpy as np

from binas.base.errors import ProblemError
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

TIGHT = 1e-9  # of a row's largest coefficient: the least Gurobi takes


class Gurobi(ProgramSolver):
    """Mixed-integer quadratically constrained program by Gurobi's non-convex branch and bound (section 3.5).

    The licence that comes with the package stops at 200 variables in products, which is less than the
    paper's space has. 100 seconds unless a time limit is given.
    """

    name = "miqcp-gurobi"
    capabilities = Capabilities(
        exact=True,
        objectives=PROGRAM_OBJECTIVES,
        summary="Gurobi on the paper's bilinear program as posed; also quadratic objectives",
    )
    requires = ("gurobipy",)

    def _model(self, program: Program, options: Options) -> Model:
        return _GurobiModel(program, options)


class _GurobiModel:
    """A Gurobi model with quadratic objective and quadratic constraints."""

    def __init__(self, program: Program, options: Options):
        import gurobipy

        self.program = program
        self.gurobi: Any = gurobipy
        self.environment = self.gurobi.Env(empty=True)
        self.environment.setParam("OutputFlag", 0)
        try:
            self.environment.start()
        except self.gurobi.GurobiError as error:
            raise self._explained(error) from error
        self.model = self.gurobi.Model(env=self.environment)
        for name, value in _settings(options).items():
            self.model.setParam(name, value)
        self.x = self.model.addMVar(program.size, vtype="B")
        self._constrain()
        self._set_objective()
        point = start_point(program, options)
        if point is not None:
            self.x.Start = point

    def _constrain(self) -> None:
        x, model = self.x, self.model
        model.addMConstr(self.program.equality.to_dense(), x, "=", self.program.right)
        for form, bound in self.program.limits:
            if len(form.weights):
                model.addMQConstr(_products(form), form.linear, "<", bound, x, x, x)
            else:
                model.addConstr(form.linear @ x <= bound)

    def _set_objective(self) -> None:
        form, sense = self.program.objective, self.gurobi.GRB.MAXIMIZE
        products = _products(form) if len(form.weights) else None
        self.model.setMObjective(products, form.linear, form.constant, self.x, self.x, self.x, sense)

    def run(self, seconds: float) -> Outcome:
        """Solve (again) and translate Gurobi's answer."""
        self.model.setParam("TimeLimit", seconds)
        try:
            self.model.optimize()
        except self.gurobi.GurobiError as error:
            raise self._explained(error) from error
        model, codes = self.model, self.gurobi.GRB
        if model.Status in (codes.INFEASIBLE, codes.INF_OR_UNBD):
            return Outcome(Status.INFEASIBLE)
        bound, nodes = self.program.in_percent(model.ObjBound), int(model.NodeCount)
        if model.SolCount == 0:
            return Outcome(Status.STOPPED_WITHOUT_ANSWER, None, bound, nodes)
        status = Status.OPTIMAL if model.Status == codes.OPTIMAL else Status.STOPPED_WITH_ANSWER
        return Outcome(status, np.array(self.x.X), bound, nodes)

    def _explained(self, error: Any) -> Exception:
        """What a user can do about a missing or size-limited licence; other errors stay as they are."""
        codes = self.gurobi.GRB.Error
        if error.errno == codes.SIZE_LIMIT_EXCEEDED:
            return ProblemError(
                "the installed Gurobi licence is the size-limited one; it stops at 200 variables in products "
                f"and this problem has {self.program.size} variables. Install a full licence, or use "
                "miqcp or milp."
            )
        if error.errno == codes.NO_LICENSE:
            return ProblemError(
                f"Gurobi finds no valid licence ({error}). Install one, or use miqcp or milp."
            )
        found: Exception = error
        return found

    def forbid(self, ones: list[int]) -> None:
        """Cut off one architecture."""
        self.model.addConstr(self.x[ones].sum() <= len(ones) - 1)

    def close(self) -> None:
        """Free memory and licence."""
        self.model.dispose()
        self.environment.dispose()


def _products(form: Form) -> Any:
    """The weights as a dense matrix: a sparse one would have to be scipy's."""
    matrix = np.zeros((len(form.linear), len(form.linear)))
    matrix[form.left, form.right] = form.weights
    return matrix


def _settings(options: Options) -> dict[str, Any]:
    return {
        "NonConvex": 2,
        "MIPGap": 0.0,
        "MIPGapAbs": 0.0,
        "FeasibilityTol": TIGHT,
        "OptimalityTol": TIGHT,
        "IntFeasTol": TIGHT,
        "Seed": options.seed,
    }
