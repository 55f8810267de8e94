"""``miqcp-cplex``: the paper's bilinear program (section 3.4) solved by CPLEX, as the paper does."""

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

SIZE_LIMIT = 1016  # CPLEX's number for "problem too large for the Community Edition"
NO_SOLUTION = 1217  # CPLEX's number for "no solution exists"


class Cplex(ProgramSolver):
    """Mixed-integer quadratically constrained program by CPLEX's branch and cut (section 3.5).

    CPLEX takes non-convex quadratic limits when every product in them is one of binaries, which its presolve
    makes convex by itself, so the program goes in as the paper writes it and no product is written out. How
    it searches is left at CPLEX's defaults, as in the paper's appendix; only the gap at which it ends (0.01%)
    and the integrality tolerance (1e-5) are set to zero, because with those "optimal" is not. 100 seconds
    unless a time limit is given. On the paper's space that is not enough for a proof; milp proves the same
    optimum in 0.1 s.
    """

    name = "miqcp-cplex"
    capabilities = Capabilities(
        exact=True,
        objectives=PROGRAM_OBJECTIVES,
        summary="CPLEX on the paper's bilinear program, as the paper runs it; also quadratic objectives",
    )
    requires = ("cplex",)

    def _model(self, program: Program, options: Options) -> Model:
        return _CplexModel(program, options)


class _CplexModel:
    """A CPLEX problem with quadratic objective and quadratic constraints."""

    def __init__(self, program: Program, options: Options):
        import cplex

        self.program, self.errors = program, cplex.exceptions
        self.model = cplex.Cplex()
        _silence(self.model)
        _tighten(self.model.parameters, options)
        self.model.variables.add(types="B" * program.size)
        self._constrain()
        self._set_objective()
        point = start_point(program, options)
        if point is not None:
            level = self.model.MIP_starts.effort_level.check_feasibility
            self.model.MIP_starts.add([list(range(program.size)), point.tolist()], level)

    def _constrain(self) -> None:
        rows, right = list(map(list, self.program.equality.rows())), self.program.right.tolist()
        self.model.linear_constraints.add(lin_expr=rows, senses="E" * len(rows), rhs=right)
        for form, bound in self.program.limits:
            linear = _linear(form)
            if len(form.weights):
                products = [form.left.tolist(), form.right.tolist(), form.weights.tolist()]
                self.model.quadratic_constraints.add(
                    lin_expr=linear, quad_expr=products, sense="L", rhs=bound
                )
            else:
                self.model.linear_constraints.add(lin_expr=[linear], senses="L", rhs=[bound])

    def _set_objective(self) -> None:
        form, objective = self.program.objective, self.model.objective
        objective.set_sense(objective.sense.maximize)
        objective.set_linear(list(zip(*_linear(form), strict=True)))
        objective.set_offset(form.constant)
        products = zip(form.left.tolist(), form.right.tolist(), form.weights.tolist(), strict=True)
        if len(form.weights):
            # CPLEX reads x'Qx / 2 with Q symmetric: the entry of a pair is the weight of its product.
            objective.set_quadratic_coefficients(list(products))

    def run(self, seconds: float) -> Outcome:
        """Solve (again) and translate CPLEX's answer."""
        self.model.parameters.timelimit.set(seconds)
        self._solve()
        solution, states = self.model.solution, self.model.solution.status
        if solution.get_status() in (states.MIP_infeasible, states.MIP_infeasible_or_unbounded):
            return Outcome(Status.INFEASIBLE)
        bound = self.program.in_percent(float(solution.MIP.get_best_objective()))
        nodes = int(solution.progress.get_num_nodes_processed())
        if not solution.is_primal_feasible():
            return Outcome(Status.STOPPED_WITHOUT_ANSWER, None, bound, nodes)
        # "optimal with unscaled infeasibilities" is a complete search whose point is judged from the tables.
        optimal = solution.get_status() in (states.MIP_optimal, states.MIP_optimal_infeasible)
        status = Status.OPTIMAL if optimal else Status.STOPPED_WITH_ANSWER
        return Outcome(status, np.array(solution.get_values()), bound, nodes)

    def _solve(self) -> None:
        """Run CPLEX; an error that is about the size of the problem says what to do."""
        try:
            self.model.solve()
        except self.errors.CplexSolverError as error:
            if error.args[-1] == SIZE_LIMIT:
                raise self._too_large() from error
            if error.args[-1] != NO_SOLUTION:
                raise
            # Seen with 22.2 on infeasible problems: linearised node relaxations end in this error instead of
            # a proof. Quadratic relaxations give the proof.
            self.model.parameters.mip.strategy.miqcpstrat.set(1)
            self.model.solve()

    def _too_large(self) -> ProblemError:
        return ProblemError(
            "the installed CPLEX is the Community Edition; it stops at 1000 variables or constraints, and "
            f"this problem has {self.program.size} variables. Install a licensed CPLEX, or use miqcp or milp."
        )

    def forbid(self, ones: list[int]) -> None:
        """Cut off one architecture."""
        row = [ones, [1.0] * len(ones)]
        self.model.linear_constraints.add(lin_expr=[row], senses="L", rhs=[float(len(ones) - 1)])

    def close(self) -> None:
        """Free CPLEX's memory."""
        self.model.end()


def _linear(form: Form) -> list[list[Any]]:
    index = np.flatnonzero(form.linear)
    return [index.tolist(), form.linear[index].tolist()]


def _silence(model: Any) -> None:
    for stream in ("log", "results", "warning", "error"):
        getattr(model, f"set_{stream}_stream")(None)


def _tighten(parameters: Any, options: Options) -> None:
    tolerances = parameters.mip.tolerances
    tolerances.mipgap.set(0.0)
    tolerances.absmipgap.set(0.0)
    tolerances.integrality.set(0.0)
    if options.seed:
        parameters.randomseed.set(options.seed)
