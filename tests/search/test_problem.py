"""Problems: limits with units, evaluation, batches."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from problems import problems

from binas.base.errors import ArchitectureError, ProblemError, TableError, UnitError
from binas.estimators.objective import BilinearObjective, CallableObjective, QuadraticObjective
from binas.search.objective import BatchValues
from binas.search.problem import Limit, SearchProblem, evaluate, parse_limit
from binas.space import Architecture, sample_many
from binas.tables.entries import Column, Provenance
from binas.testing import make_problem, make_space


@pytest.fixture
def problem():
    made = make_problem(make_space(2, 3, 3), 0)
    measured = Provenance(device="Intel Xeon Gold 6130", batch=1)
    return replace(made, costs={"latency": replace(made.costs["latency"], provenance=measured)})


@pytest.mark.parametrize(
    ("text", "limit"),
    [
        ("latency=45ms", Limit("latency", 45.0)),
        ("latency <= 0.045 s", Limit("latency", 45.0)),
        ("latency>=30000us", Limit("latency", 30.0, lower=True)),
        ("latency = 45 ms @ batch = 1, device=xeon gold", Limit("latency", 45.0)),
    ],
)
def test_limits_are_read_in_any_unit_of_their_kind(problem, text, limit):
    found = parse_limit(text, problem.costs)
    assert (found.cost, found.lower) == (limit.cost, limit.lower)
    assert found.value == pytest.approx(limit.value)


@pytest.mark.parametrize(
    ("text", "error", "words"),
    [
        ("latency=45", UnitError, "no unit"),
        ("latency=45MiB", UnitError, "bytes"),
        ("latency=fast", UnitError, "cannot read"),
        ("energy=3mJ", ProblemError, "no cost 'energy'"),
        ("latency", ProblemError, "COST=QUANTITY"),
        ("latency=1e999ms", UnitError, "not finite"),
        ("latency=45ms@batch=64", TableError, "latency is wanted for batch 64, but the table is of batch 1"),
        ("latency=45ms@batch=10", TableError, "of batch 1"),
        (
            "latency=45ms@device=titan",
            TableError,
            "wanted for device titan, .* of device Intel Xeon Gold 6130",
        ),
        (
            "latency=45ms@threads=1",
            TableError,
            "wanted for threads 1, but the table does not say its threads",
        ),
        ("latency=45ms@", TableError, "cannot read the condition ''"),
        ("latency=45ms@batch", TableError, "cannot read the condition 'batch'; write KEY=VALUE"),
        ("latency=45ms@speed=9", TableError, "a KEY of device, runtime, threads, batch, dtype"),
    ],
)
def test_bad_limits_say_what_to_write(problem, text, error, words):
    with pytest.raises(error, match=words):
        parse_limit(text, problem.costs)


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
    batch = BatchValues(problem.space)
    wanted = [evaluate(problem, a) for a in drawn]
    np.testing.assert_allclose(
        batch.objective(problem.objective, depths, configs), [x.accuracy for x in wanted], atol=1e-9
    )
    cost = problem.costs["energy"]
    np.testing.assert_allclose(
        cost.fixed + batch.column(cost.values, depths, configs), [x.costs["energy"] for x in wanted]
    )


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
        np.testing.assert_allclose(BatchValues(space).objective(objective, depths, configs), single)
        assert objective.standard_error(space, drawn[0]) is None
