"""An estimator with a link is searched on the scale of the link, and everything told is in percent."""

from dataclasses import replace

import numpy as np
import pytest

from binas.base.errors import EstimatorError
from binas.estimators import AdditivePredictor, BilinearEstimator, WithinStageEstimator, marginal_means
from binas.estimators.within_stage import CorrectedEstimator
from binas.search import SearchProblem, best_architectures, evaluate, explain, frontier, solve
from binas.search.infeasible import explain_infeasible
from binas.search.problem import Limit
from binas.search.surroundings import prices
from binas.space import enumerate_all
from binas.tables import Column, Contributions, Sample, Samples
from binas.tables.entries import Provenance
from binas.testing import small_space
from binas.testing.cases import make_cost, random_column

SPACE = small_space([((0, 2, 3), (2, 3, 2)), ((1, 2), (3, 1)), ((2,), (2, 2))])
EVERY = enumerate_all(SPACE)
RNG = np.random.default_rng(3)
COST = make_cost(SPACE, "latency", random_column(SPACE, RNG, 0.5, 4.0, 0.0), 1.0, "ms")
PEAK = replace(make_cost(SPACE, "peak", random_column(SPACE, RNG, 0.5, 4.0, 0.0), 0.0, "1"), combine="max")
COSTS = {"latency": COST, "peak": PEAK}
TABLE = Contributions(
    SPACE, 88.0, random_column(SPACE, RNG, -2.0, 2.5, 1.0), 0.05, Column.full(SPACE, 0.1), None
)
LATENCY = np.array([SearchProblem.build(TABLE, COSTS).cost("latency", item) for item in EVERY])
LIMIT = float(np.quantile(LATENCY, 0.4))
MEASURED = Samples(
    SPACE,
    tuple(
        Sample(item, float(value))
        for item, value in zip(
            EVERY,
            BilinearEstimator(TABLE, "log").predict(EVERY) + RNG.normal(size=len(EVERY)) / 5,
            strict=True,
        )
    ),
)


def estimators():
    learned = MEASURED.split(60, 0)[0]
    return [
        BilinearEstimator(TABLE, "identity"),
        BilinearEstimator(TABLE, "log"),
        BilinearEstimator(TABLE, "logit"),
        AdditivePredictor(link="log").fit(learned),
        AdditivePredictor(link="identity").fit(learned),
        WithinStageEstimator(link="logit").fit(learned),
        CorrectedEstimator(TABLE, "log").fit(learned),
        CorrectedEstimator(TABLE, "logit", pairs=True).fit(learned),
    ]


each = pytest.mark.parametrize(
    "estimator", estimators(), ids=lambda item: f"{type(item).__name__}-{item.link}"
)


def problem_of(estimator, *limits: Limit) -> SearchProblem:
    return SearchProblem.build(estimator, COSTS, limits or [Limit("latency", LIMIT)])


@each
def test_results_are_predicted_accuracies(estimator):
    result = solve(problem_of(estimator))
    predicted = estimator.predict(EVERY)
    best = predicted[LATENCY <= LIMIT].max()
    assert result.accuracy == pytest.approx(best)
    assert (result.bound, result.gap) == (result.accuracy, 0.0)
    assert result.evaluation.accuracy_stderr == pytest.approx(
        estimator.standard_error([result.architecture])[0]
    )
    told = result.to_json()
    assert (told["accuracy"], told["bound"]) == (result.accuracy, result.accuracy)
    assert result.problem.objective.link == estimator.link


@each
def test_every_architecture_is_evaluated_in_percent(estimator):
    problem, errors = problem_of(estimator), estimator.standard_error(EVERY)
    judged = [evaluate(problem, item) for item in EVERY]
    np.testing.assert_allclose([item.accuracy for item in judged], estimator.predict(EVERY))
    np.testing.assert_allclose([item.accuracy_stderr for item in judged], errors)


@each
@pytest.mark.parametrize("solver", ["auto", "frontier", "evolution", "random"])
def test_every_solver_claims_on_its_own_scale(estimator, solver):
    result = solve(problem_of(estimator), solver, seed=1)
    assert result.accuracy == pytest.approx(estimator.predict([result.architecture])[0])


@each
def test_the_frontier_is_in_percent(estimator):
    traced = frontier(problem_of(estimator, Limit("peak", 3.9)), "latency")
    np.testing.assert_allclose(
        traced.accuracies, estimator.predict(traced.architecture(i) for i in range(len(traced)))
    )
    assert traced.exact
    by_peak = frontier(problem_of(estimator), "peak")
    np.testing.assert_allclose(
        by_peak.accuracies, estimator.predict(by_peak.architecture(i) for i in range(len(by_peak)))
    )


@pytest.mark.parametrize("link", ["identity", "log", "logit"])
def test_a_rounded_frontier_certifies_points(link):
    problem = problem_of(BilinearEstimator(TABLE, link), Limit("latency", 1e3))
    exact, rough = frontier(problem, "latency"), frontier(problem, "latency", tolerance=0.5)
    assert 0.0 < rough.error <= 0.5
    for cost, accuracy in zip(exact.costs, exact.accuracies, strict=True):
        assert rough.at(float(cost)).accuracy >= accuracy - rough.error - 1e-9


@each
@pytest.mark.parametrize("within", [0.3, 2.0])
def test_all_within_points_of_the_best(estimator, within):
    predicted = np.where(LATENCY <= LIMIT, estimator.predict(EVERY), -np.inf)
    near = best_architectures(problem_of(estimator), within=within)
    expected = {EVERY[i] for i in np.flatnonzero(predicted >= predicted.max() - within)}
    assert near.complete
    assert {item.architecture for item in near.items} == expected
    assert [item.accuracy for item in near.items] == pytest.approx(
        sorted(predicted[predicted >= predicted.max() - within], reverse=True)
    )


@each
def test_the_best_few_are_in_percent(estimator):
    predicted = np.sort(estimator.predict(EVERY)[LATENCY <= LIMIT])[::-1]
    few = best_architectures(problem_of(estimator), 5)
    assert [item.accuracy for item in few.items] == pytest.approx(predicted[:5])


@each
def test_prices_and_explanations_are_in_points(estimator):
    problem = problem_of(estimator)
    result = solve(problem)
    (price,) = prices(result)
    more = estimator.predict(EVERY)[LIMIT + price.more + 1e-9 >= LATENCY].max()
    assert price.gain == pytest.approx(more - result.accuracy)
    for decision in explain(problem, result.architecture).decisions:
        if decision.best is not None:
            assert abs(decision.best.accuracy) < 30.0  # points, not units of a link
    assert (
        "no architecture keeps" in explain_infeasible(problem_of(estimator, Limit("latency", 0.1))).sentence()
    )


def test_explained_contributions_are_those_of_the_table():
    problem = problem_of(BilinearEstimator(TABLE, "log"))
    first = EVERY[0]
    explained = [item.contribution for item in explain(problem, first).decisions]
    assert explained == pytest.approx(
        [
            item.contribution
            for item in explain(problem_of(BilinearEstimator(TABLE, "identity")), first).decisions
        ]
    )


def test_the_link_of_a_table_is_applied():
    contributions = marginal_means(MEASURED, "log")
    result = solve(SearchProblem.build(contributions, COSTS, [Limit("latency", LIMIT)]))
    estimator = BilinearEstimator(contributions, "log")
    assert result.accuracy == pytest.approx(estimator.predict(EVERY)[LATENCY <= LIMIT].max())
    plain = BilinearEstimator(contributions, "identity").predict([result.architecture])[0]
    assert abs(result.accuracy - plain) > 0.01


def test_a_link_that_is_not_known_is_refused():
    table = replace(TABLE, provenance=Provenance(source="elsewhere", link="probit"))
    with pytest.raises(EstimatorError, match="there is no link 'probit'"):
        SearchProblem.build(table, COSTS)


class ThirdParty:
    """An estimator of somebody else: knows no class of binas."""

    link, space = "log", SPACE

    def fit(self, samples):
        return self

    def predict(self, architectures):
        return BilinearEstimator(TABLE, "log").predict(architectures)

    def standard_error(self, architectures):
        return np.full(len(list(architectures)), 0.25)

    def objective(self):
        return replace(BilinearEstimator(TABLE, "log").objective(), errors=self.standard_error)


def test_estimators_of_others_join_in():
    result = solve(SearchProblem.build(ThirdParty(), COSTS, [Limit("latency", LIMIT)]))
    assert result.accuracy == pytest.approx(ThirdParty().predict(EVERY)[LATENCY <= LIMIT].max())
    assert result.evaluation.accuracy_stderr == 0.25
