"""Linear and mixed-integer linear programs by HiGHS: one way to pose them, one kind of answer."""

from __future__ import annotations

import math
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor, wait
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from binas.search.sparse import Sparse

Array = NDArray[np.float64]
Setting = bool | int | float | str

QUIET: dict[str, Setting] = {"output_flag": False, "threads": 1}
DUAL_SIMPLEX: dict[str, Setting] = {"solver": "simplex", "simplex_strategy": 1}  # ends in a vertex


@dataclass(frozen=True, eq=False)
class LinearProgram:
    """min (or max) cost' x  s.t.  lower <= matrix @ x <= upper,  least <= x <= most,  x whole where ``integer``.

    Bounds may be infinite; ``integer`` is None where no entry has to be whole.
    """

    cost: Array
    matrix: Sparse
    lower: Array
    upper: Array
    least: Array
    most: Array
    integer: NDArray[np.bool_] | None = None
    maximise: bool = False


@dataclass(frozen=True, eq=False)
class Solution:
    """How a run ended: ``x`` is None where no point was found, ``bound`` what no point can be better than.

    ``prices`` are the dual values of the rows (of a linear program), ``nodes`` those of the search tree.
    """

    status: Literal["optimal", "infeasible", "stopped"]
    x: Array | None
    bound: float | None
    prices: Array
    nodes: int


def solve_linear(program: LinearProgram, **settings: Setting) -> Solution:
    """Solve a program once; ``settings`` are options of HiGHS."""
    return Model(program, settings).run()


class Model:
    """A program inside HiGHS, which can be started from a point, cut and solved again."""

    def __init__(self, program: LinearProgram, settings: Mapping[str, Setting]):
        import highspy

        self.program, self.highspy = program, highspy
        self.highs = highspy.Highs()
        for key, value in {**QUIET, **settings}.items():
            self.highs.setOptionValue(key, value)
        self._pass()

    def _pass(self) -> None:
        program, matrix, highspy = self.program, self.program.matrix, self.highspy
        height, width = matrix.shape
        whole = np.zeros(width) if program.integer is None else program.integer
        sense = highspy.ObjSense.kMaximize if program.maximise else highspy.ObjSense.kMinimize
        self.highs.passModel(
            width, height, len(matrix.values), int(highspy.MatrixFormat.kRowwise), int(sense), 0.0,
            program.cost, program.least, program.most, program.lower, program.upper,
            matrix.starts, matrix.columns, matrix.values, whole.astype(np.int32),
        )  # fmt: skip

    def start_from(self, x: Array) -> None:
        """Give a point to begin with; HiGHS drops one that is not feasible."""
        solution = self.highspy.HighsSolution()
        solution.col_value = x.tolist()
        self.highs.setSolution(solution)

    def add_row(self, columns: NDArray[np.int64], values: Array, upper: float) -> None:
        """One more row: values' x[columns] <= upper."""
        self.highs.addRow(-self.highspy.kHighsInf, upper, len(columns), columns.astype(np.int32), values)

    def run(self, seconds: float = math.inf) -> Solution:
        """Solve (again), for at most so long."""
        self.highs.setOptionValue("time_limit", seconds)
        if self._run() == self.highspy.HighsStatus.kError:  # its threads are those of another model
            self.highs.resetGlobalScheduler(True)
            self._run()
        info, point = self.highs.getInfo(), self.highs.getSolution()
        feasible = info.primal_solution_status == self.highspy.SolutionStatus.kSolutionStatusFeasible
        status, linear = self._status(), self.program.integer is None
        bound = float(info.objective_function_value if linear else info.mip_dual_bound)
        known = np.isfinite(bound) and (status == "optimal" or not linear)
        return Solution(
            status,
            np.array(point.col_value) if feasible else None,
            bound if known else None,
            np.array(point.row_dual),
            0 if linear else int(info.mip_node_count),
        )

    def _run(self) -> Any:
        """Let HiGHS work; a program with integers, which may take long, beside this thread, which hears signals."""
        if self.program.integer is None:
            return self.highs.run()
        self.highs.HandleUserInterrupt = True
        with ThreadPoolExecutor(1) as pool:
            running = pool.submit(self.highs.run)
            try:
                return running.result()
            except BaseException:  # Ctrl-C
                self.highs.cancelSolve()
                raise
            finally:
                wait([running])
                self.highs.HandleUserInterrupt = False

    def _status(self) -> Literal["optimal", "infeasible", "stopped"]:
        states, status = self.highspy.HighsModelStatus, self.highs.getModelStatus()
        if status in (states.kInfeasible, states.kUnboundedOrInfeasible):
            return "infeasible"
        return "optimal" if status == states.kOptimal else "stopped"
