"""Programs by HiGHS against scipy's, and what is said when there is no answer."""

import numpy as np
import pytest
from scipy.optimize import Bounds, LinearConstraint, linprog, milp

from binas.search.highs import DUAL_SIMPLEX, LinearProgram, Model, solve_linear
from binas.search.sparse import Sparse


def random_program(seed, integer=None, maximise=False):
    """Eight entries in [0, 3] under four rows that the point of ones keeps."""
    rng = np.random.default_rng(seed)
    rows = rng.integers(-2, 4, size=(4, 8)).astype(float)
    right = rows.sum(axis=1) + 1
    none, most = np.full(4, -np.inf), np.full(8, 3.0)
    matrix = Sparse.from_dense(rows)
    return LinearProgram(rng.normal(size=8), matrix, none, right, np.zeros(8), most, integer, maximise)


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("maximise", [False, True])
def test_linear_programs(seed, maximise):
    program = random_program(seed, maximise=maximise)
    sign = -1 if maximise else 1
    expected = linprog(sign * program.cost, program.matrix.to_dense(), program.upper, bounds=(0, 3))
    solution = solve_linear(program, **DUAL_SIMPLEX)
    assert (solution.status, solution.nodes) == ("optimal", 0)
    assert solution.bound == pytest.approx(sign * expected.fun)
    assert program.cost @ solution.x == pytest.approx(sign * expected.fun)
    assert sign * solution.prices == pytest.approx(expected.ineqlin.marginals)


@pytest.mark.parametrize("seed", range(5))
def test_whole_numbers(seed):
    program = random_program(seed, np.arange(8) < 6)
    limits = LinearConstraint(program.matrix.to_dense(), program.lower, program.upper)
    expected = milp(program.cost, integrality=program.integer, bounds=Bounds(0, 3), constraints=limits)
    solution = solve_linear(program, mip_rel_gap=0.0)
    assert solution.status == "optimal"
    assert solution.bound == pytest.approx(expected.fun)
    assert program.cost @ solution.x == pytest.approx(expected.fun)
    assert solution.x[:6] == pytest.approx(np.round(solution.x[:6]))


def test_no_point_at_all():
    one = Sparse.from_dense(np.ones((1, 2)))
    solution = solve_linear(
        LinearProgram(np.ones(2), one, np.array([3.0]), np.array([3.0]), np.zeros(2), np.ones(2))
    )
    assert (solution.status, solution.x, solution.bound) == ("infeasible", None, None)


def test_stopped_is_not_optimal():
    program = random_program(0, np.ones(8, dtype=bool))
    assert (
        solve_linear(program, mip_max_nodes=0, presolve="off", mip_heuristic_effort=0.0).status
        != "infeasible"
    )
    assert solve_linear(random_program(0), simplex_iteration_limit=0, presolve="off").status == "stopped"


def test_models_are_cut_and_solved_again():
    model = Model(random_program(1, np.ones(8, dtype=bool)), {"mip_rel_gap": 0.0})
    first = model.run()
    best = int(np.argmax(first.x))
    model.add_row(np.array([best]), np.ones(1), first.x[best] - 1)
    model.start_from(np.zeros(8))
    second = model.run()
    assert second.x[best] <= first.x[best] - 1 + 1e-9
    assert second.bound >= first.bound


def test_models_of_different_threads_do_not_get_in_each_others_way():
    program = random_program(2)
    bounds = [solve_linear(program, threads=threads).bound for threads in (1, 2, 1)]
    assert bounds == pytest.approx([bounds[0]] * 3)
