"""Search methods of others on one problem and one budget, with an oracle that knows the truth."""

from itertools import product

import numpy as np
import pytest

from binas.base.errors import ProblemError
from binas.search import solve
from binas.search.limits import Limit
from binas.search.methods import (
    METHODS,
    Contest,
    MethodRecord,
    MethodSummary,
    limit_uses,
    schedule,
    summarise,
)
from binas.search.penalised import _through_softmax, descend, penalised, softmax
from binas.search.problem import evaluate
from binas.search.solvers._relaxed import Domain, Point
from binas.space import sample_many
from binas.testing import ObjectiveOracle, make_problem, make_space

SPACE = make_space(3, 3, 4)


def limited(share=0.4, lower=False, number=0):
    problem = make_problem(SPACE, number)
    low, high = problem.costs["latency"].range(SPACE)
    return problem.with_limits([Limit("latency", low + share * (high - low), lower)])


def contest(problem, budget=40_000, seed=0):
    return Contest(problem, ObjectiveOracle(problem), budget, seed)


@pytest.mark.parametrize("name", METHODS)
def test_every_method_spends_its_budget_and_no_more(name):
    if name == "once-for-all":
        pytest.importorskip("torch", reason="torch is not installed")
    asked = contest(limited())
    found = METHODS[name](asked)
    judged = evaluate(asked.problem, found)
    assert judged.feasible or name in ("soft-penalty", "darts")
    assert judged.accuracy <= solve(asked.problem.with_limits(())).accuracy + 1e-9
    assert 0.95 * asked.budget <= asked.oracle.evaluations <= asked.budget
    if name != "once-for-all":  # takes long; its parts are tested for it
        assert METHODS[name](contest(limited())) == found  # the same seed


def test_hardcore_learns_what_is_good():
    """Far above what networks within the limit have on average; above the best of many is no promise."""
    for number, share in product((0, 1), (0.2, 0.5, 0.8)):
        problem = limited(share, number=number)
        kept = [item for item in sample_many(SPACE, 400, 0) if evaluate(problem, item).feasible]
        values = [problem.objective.value(SPACE, item) for item in kept]
        found = problem.objective.value(SPACE, METHODS["hardcore"](contest(problem)))
        assert found > np.mean(values) + np.std(values)


def test_random_takes_the_best_of_those_it_measured():
    asked = contest(limited(), 20_000)
    seen = []
    measure = asked.oracle.accuracies
    asked.oracle.accuracies = lambda drawn: seen.extend(drawn) or measure(drawn)
    found = METHODS["random"](asked)
    assert len(seen) == 20
    assert max(seen, key=lambda x: asked.problem.objective.value(SPACE, x)) == found


def test_darts_does_not_look_at_the_limit_and_a_penalty_does():
    """The price of latency moves the same descent to cheaper networks."""
    tight = limited(0.05)
    settings = {"steps": 300, "batch_size": 256}
    free = descend(tight, ObjectiveOracle(tight), **settings, weight=0.0)
    assert free == descend(limited(0.9), ObjectiveOracle(tight), **settings, weight=0.0)
    costs = [
        tight.cost("latency", descend(tight, ObjectiveOracle(tight), **settings, weight=weight))
        for weight in (0.0, 10.0)
    ]
    assert costs[0] > costs[1]
    assert limit_uses(tight, free)[0].violation > 0


@pytest.mark.parametrize("lower", [False, True])
def test_the_penalty_is_differentiated_rightly(lower):
    """Against finite differences in the logits of a loss that is linear in (alpha, beta)."""
    problem, layout = limited(0.3, lower), SPACE.layout
    rng, domain, weight = np.random.default_rng(1), Domain(problem), 0.6
    slopes, logits = (
        [rng.normal(size=SPACE.alpha_size), rng.normal(size=SPACE.beta_size)],
        rng.normal(size=layout.size),
    )
    limit, sign = problem.limits[0].value, -1 if lower else 1

    def point(values):
        return Point(*layout.split(softmax(layout, values)))

    def loss(values):
        at = point(values)
        return 9.0 + float(slopes[0] @ at.alpha + slopes[1] @ at.beta)

    def total(values):
        return loss(values) * (sign * domain.use(point(values))[0] / limit) ** (sign * weight)

    at = point(logits)
    found = _through_softmax(layout, at, penalised(domain, at, loss(logits), slopes, weight))
    steps = 1e-6 * np.eye(layout.size)
    differences = [(total(logits + step) - total(logits - step)) / 2e-6 for step in steps]
    np.testing.assert_allclose(found, differences, atol=1e-6)


def test_a_penalty_cannot_divide_by_nothing():
    problem = limited().with_limits([Limit("latency", 0.0)])
    with pytest.raises(ProblemError, match="divides by the limit"):
        descend(problem, ObjectiveOracle(problem), 1, 1)


@pytest.mark.parametrize("name", ["random", "once-for-all"])
def test_a_budget_that_measures_no_network_is_an_error(name):
    with pytest.raises(ProblemError, match="larger --budget"):
        METHODS[name](contest(limited(), budget=500))


def test_steps_spend_the_budget():
    assert schedule(10_000, 5_000) == {"steps": 39, "batch_size": 256}
    assert schedule(1_000, 100) == {"steps": 10, "batch_size": 100}
    assert schedule(1, 100)["steps"] == 1


def test_violations_are_told_in_the_unit_of_the_limit_and_in_percent():
    problem = limited()
    limit = problem.limits[0]
    heavy, light = SPACE.extreme(), SPACE.extreme(heaviest=False)
    (broken,), (kept,) = limit_uses(problem, heavy), limit_uses(problem, light)
    assert broken.violation == pytest.approx(problem.cost("latency", heavy) - limit.value)
    assert broken.percent == pytest.approx(100 * broken.violation / limit.value)
    assert (kept.violation, kept.percent, kept.used) == (0.0, 0.0, problem.cost("latency", light))
    (above,) = limit_uses(problem.with_limits([Limit("latency", limit.value, lower=True)]), light)
    assert above.violation == pytest.approx(limit.value - problem.cost("latency", light))
    assert limit_uses(problem, None) == ()


def record(method="darts", seed=0, accuracy=80.0, architecture=None):
    architecture = architecture or SPACE.extreme(heaviest=False)
    return MethodRecord(
        method=method,
        question="latency=40%",
        seed=seed,
        budget=100,
        identity="x",
        architecture=None if accuracy is None else str(architecture),
        limits=limit_uses(limited(), None if accuracy is None else architecture),
        accuracy=accuracy,
        error=0.5,
        images=100,
        evaluations=100 + seed,
        gradients=0,
        shared=False,
        seconds=2.0,
    )


def test_a_summary_counts_what_was_kept_and_found():
    records = [
        record(seed=0),
        record(seed=1, accuracy=82.0, architecture=SPACE.extreme()),
        record(seed=2, accuracy=None),
    ]
    (row,) = summarise(records)
    assert (row.seeds, row.found, row.kept) == (3, 2, 1)
    assert (row.accuracy, row.spread) == (81.0, pytest.approx(2**0.5))
    assert row.violation == pytest.approx(records[1].violation) != 0
    assert row.evaluations == 101
    assert MethodSummary.of([record()]).spread is None
    assert MethodRecord.model_validate_json(records[1].model_dump_json()) == records[1]
    assert [row.method for row in summarise([record("b"), record("a")])] == ["b", "a"]
