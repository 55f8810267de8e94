"""Problems: what is refused, evaluation, batches."""

import numpy as np
import pytest
from hypothesis import given, settings
from problems import problems

from binas.base.errors import ArchitectureError, ProblemError
from binas.estimators.objective import BilinearObjective, CallableObjective, QuadraticObjective
from binas.search.limits import Limit
from binas.search.objective import objective_values
from binas.search.problem import SearchProblem, evaluate
from binas.space import Architecture, sample_many
from binas.tables.entries import Column
from binas.testing import make_problem, make_space


@pytest.fixture
def problem():
    return make_problem(make_space(2, 3, 3), 0)


def test_a_problem_refuses_what_cannot_be_right(problem):
    with pytest.raises(ProblemError, match="no cost"):
        problem.with_limits([Limit("energy", 1.0)])
    with pytest.raises(ProblemError, match="finite"):
        problem.with_limits([Limit("latency", float("nan"))])
    broken = problem.objective.values.map(lambda x: x * float("nan"))
    with pytest.raises(ProblemError, match="NaN"):
        SearchProblem(problem.space, BilinearObjective(0.0, broken), problem.costs)
    with pytest.raises(ProblemError, match="does not fit"):
        SearchProblem(problem.space, QuadraticObjective(0.0, np.zeros(3), np.zeros((3, 3))), problem.costs)


def test_evaluation_by_hand():
    space = make_space(1, 2, 2)
    values = Column((np.array([0.5, 1.0]),), ((np.array([0.1, 0.2]), np.array([0.3, 0.4])),))
    stderr = values.map(lambda x: x / 10)
    made = make_problem(space, 0)
    problem = SearchProblem(
        space, BilinearObjective(70.0, values, 0.2, stderr), made.costs, (Limit("latency", 1.0),)
    )
    judged = evaluate(problem, Architecture((("c1", "c0"),)))
    assert judged.accuracy == pytest.approx(70.0 + 1.0 + 0.2 + 0.3)
    assert judged.accuracy_stderr == pytest.approx(np.sqrt(0.2**2 + 0.1**2 + 0.02**2 + 0.03**2))
    cost = made.costs["latency"]
    assert judged.costs["latency"] == pytest.approx(
        5.0 + cost.values.configs[0][0][1] + cost.values.configs[0][1][0]
    )
    assert judged.broken == problem.limits
    with pytest.raises(ArchitectureError):
        evaluate(problem, Architecture((("c1", "c9"),)))


@given(problem=problems())
@settings(max_examples=30, deadline=None)
def test_batches_equal_single_evaluations(problem):
    drawn = sample_many(problem.space, 20, 0)
    depths, configs = problem.space.to_indices(drawn)
    single = [evaluate(problem, a) for a in drawn]
    values = objective_values(problem.objective, problem.space, depths, configs)
    np.testing.assert_allclose(values, [x.accuracy for x in single], atol=1e-9)
    energy = problem.costs["energy"].of(problem.space, drawn)
    np.testing.assert_allclose(energy, [x.costs["energy"] for x in single])


def test_general_objectives_in_batches():
    problem = make_problem(make_space(2, 3, 3), 0)
    space, rng = problem.space, np.random.default_rng(0)
    n = space.alpha_size + space.beta_size
    quadratic = QuadraticObjective(1.0, rng.normal(size=n), rng.normal(size=(n, n)))
    counting = CallableObjective(lambda a: float(sum(a.depths)))
    drawn = sample_many(space, 10, 1)
    depths, configs = space.to_indices(drawn)
    for objective in (quadratic, counting):
        single = [objective.value(space, a) for a in drawn]
        np.testing.assert_allclose(objective_values(objective, space, depths, configs), single)
        assert objective.standard_error(space, drawn[0]) is None
