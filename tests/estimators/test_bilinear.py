"""The bilinear estimator: sum formula, matrix formula, links, errors, exact search."""

from __future__ import annotations

import itertools
import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, strategies as st
from made import UNEVEN, random_contributions, space_of

from binas.base.errors import EstimatorError
from binas.estimators import BilinearEstimator
from binas.estimators.bilinear import contributions_on_link
from binas.estimators.links import LINKS, LinkName, get_link
from binas.estimators.objective import BilinearObjective
from binas.search import SearchProblem, solve
from binas.search.matrices import paper_form
from binas.space import Architecture, SearchSpace, enumerate_all, sample
from binas.tables import Column, Contributions, Provenance
from strategies import plain_spaces

EVERY = enumerate_all(UNEVEN)
links = pytest.mark.parametrize("link", LINKS)


def sum_formula(table: Contributions, architecture: Architecture) -> float:
    """E[Acc] + sum_s sum_b beta Delta_b + sum_s sum_b sum_{b' >= b} sum_c alpha Delta_{b,c} beta, term by term."""
    space = table.space
    alpha, beta = space.layout.encode(architecture)
    blocks, depths = space.layout.config_slices, space.layout.beta_slices
    total = table.base
    for s, stage in enumerate(space.stages):
        own = beta[depths[s]]
        total += sum(own[i] * table.values.depths[s][i] for i in range(len(stage.depths)))
        for b, block in enumerate(stage.blocks):
            for c, (i, depth) in itertools.product(range(len(block)), enumerate(stage.depths)):
                if depth >= b + 1:
                    total += alpha[blocks[s][b]][c] * table.values.configs[s][b][c] * own[i]
    return float(total)


@given(space=plain_spaces(), seed=st.integers(0, 100))
def test_prediction_equals_sum_formula_equals_matrix_formula(space: SearchSpace, seed: int) -> None:
    table = random_contributions(space, seed)
    estimator = BilinearEstimator(table)
    architecture = sample(space, np.random.default_rng(seed))
    form = paper_form(SearchProblem(space, estimator.objective())).objective
    by_matrix = form.value(*space.layout.encode(architecture))
    assert estimator.predict([architecture])[0] == pytest.approx(sum_formula(table, architecture), abs=1e-9)
    assert by_matrix == pytest.approx(sum_formula(table, architecture), abs=1e-9)


@links
def test_contributions_mean_the_same_one_at_a_time(link: LinkName) -> None:
    """With any link, one choice alone takes the base to base + Delta, as the table says."""
    space = space_of(((1,), (3,)))
    table = Contributions(space, 80.0, Column((np.zeros(1),), ((np.array([-5.0, 0.0, 7.0]),),)))
    assert BilinearEstimator(table, link).predict(enumerate_all(space)) == pytest.approx([75.0, 80.0, 87.0])


@links
def test_links_are_monotone_so_the_optimum_is_the_sums(link: LinkName) -> None:
    estimator = BilinearEstimator(random_contributions(UNEVEN), link)
    predicted = estimator.predict(EVERY)
    found = solve(SearchProblem(UNEVEN, estimator.objective()))
    assert found.architecture is not None
    assert found.architecture == EVERY[int(np.argmax(predicted))]
    assert found.accuracy == pytest.approx(predicted.max())
    sums = estimator.scale.forward(predicted)
    np.testing.assert_array_equal(np.argsort(sums, kind="stable"), np.argsort(predicted, kind="stable"))


def test_bounded_links_stay_below_one_hundred() -> None:
    """Where points would add up to more than 100 %."""
    table = random_contributions(UNEVEN)
    table = replace(table, base=99.0, values=table.values.map(lambda x: np.abs(np.tanh(x)) * 0.9))
    assert BilinearEstimator(table).predict(EVERY).max() > 100.0
    for link in ("log", "logit"):
        predicted = BilinearEstimator(table, link).predict(EVERY)
        assert 99.0 < predicted.max() < 100.0


def test_the_log_link_is_nearly_the_identity_for_small_contributions() -> None:
    table = random_contributions(UNEVEN, scale=1e-4)
    np.testing.assert_allclose(
        BilinearEstimator(table, "log").predict(EVERY), BilinearEstimator(table).predict(EVERY), atol=1e-6
    )


class TestErrors:
    def test_independent_errors_are_those_of_the_objective(self) -> None:
        table = random_contributions(UNEVEN)
        objective = BilinearObjective.from_contributions(table)
        expected = [objective.standard_error(UNEVEN, item) for item in EVERY]
        np.testing.assert_allclose(BilinearEstimator(table).standard_error(EVERY), expected)

    def test_a_covariance_gives_the_errors_of_the_objective_too(self) -> None:
        table = random_contributions(UNEVEN)
        size = 1 + UNEVEN.alpha_size + UNEVEN.beta_size
        root = np.random.default_rng(2).normal(size=(size, size))
        table = replace(table, covariance=root @ root.T)
        objective = BilinearObjective.from_contributions(table)
        expected = [objective.standard_error(UNEVEN, item) for item in EVERY]
        np.testing.assert_allclose(BilinearEstimator(table).standard_error(EVERY), expected)

    @links
    def test_against_simulation(self, link: LinkName) -> None:
        """Contributions drawn from their covariance scatter the prediction by its standard error."""
        table = random_contributions(UNEVEN)
        rng = np.random.default_rng(0)
        size = 1 + UNEVEN.alpha_size + UNEVEN.beta_size
        root = 0.03 * rng.normal(size=(size, size))
        one, two = EVERY[0], EVERY[-1]
        accuracies = []
        for _ in range(400):
            shift = root @ rng.normal(size=size)
            moved = from_vector(np.append(table.base, table.values.flat()) + shift)
            accuracies.append(BilinearEstimator(moved, link).predict([one, two]))
        estimator = BilinearEstimator(replace(table, covariance=root @ root.T), link)
        scatter = np.std(accuracies, axis=0)
        np.testing.assert_allclose(estimator.standard_error([one, two]), scatter, rtol=0.12)
        difference, error = estimator.compare(one, two)
        assert difference == pytest.approx(float(np.subtract(*estimator.predict([one, two]))))
        assert error == pytest.approx(float(np.std(np.subtract(*np.transpose(accuracies)))), rel=0.12)

    def test_what_two_architectures_share_cancels(self) -> None:
        table = random_contributions(UNEVEN)
        estimator = BilinearEstimator(table)
        one = UNEVEN.parse("0_c0_c0-c0")
        two = UNEVEN.parse("0_c1_c0-c0")
        assert table.stderr is not None
        parts = table.stderr.configs[1][0]
        assert estimator.compare(one, two)[1] == pytest.approx(math.hypot(parts[0], parts[1]))
        assert estimator.compare(one, one) == (0.0, 0.0)

    def test_unknown_errors(self) -> None:
        table = random_contributions(UNEVEN)
        assert np.isnan(BilinearEstimator(replace(table, stderr=None)).standard_error(EVERY)).all()
        assert table.stderr is not None
        table.stderr.configs[1][0][2] = math.nan
        some = BilinearEstimator(replace(table, base_stderr=math.nan)).standard_error(EVERY)
        unknown = [item.stages[1][0] == "c2" for item in EVERY]
        np.testing.assert_array_equal(np.isnan(some), unknown)


def from_vector(vector: np.ndarray) -> Contributions:
    """Contributions of the uneven space from (base, values in the order of Column.flat)."""
    identity = get_link("identity")
    return contributions_on_link(UNEVEN, float(vector[0]), vector[1:], identity, Provenance())


@links
def test_link_scale_round_trip(link: LinkName) -> None:
    """What is fitted on the scale of a link becomes a table in points and is read back exactly."""
    rng = np.random.default_rng(1)
    values = 0.05 * rng.normal(size=UNEVEN.alpha_size + UNEVEN.beta_size)
    base = float(get_link(link).forward(88.0))
    table = contributions_on_link(UNEVEN, base, values, get_link(link), Provenance())
    estimator = BilinearEstimator(table, link)
    assert table.base == pytest.approx(88.0)
    assert estimator.base == pytest.approx(base)
    np.testing.assert_allclose(estimator.values.flat(), values, atol=1e-12)


def test_bad_input() -> None:
    table = random_contributions(UNEVEN)
    table.values.configs[1][0][2] = 45.0
    with pytest.raises(EstimatorError, match="c2 in block 1 of stage 's2' stands at 115 %; the link log"):
        BilinearEstimator(table, "log")
    with pytest.raises(EstimatorError, match="the base accuracy stands at 0 %"):
        BilinearEstimator(replace(table, base=0.0), "logit")
    with pytest.raises(EstimatorError, match="no link"):
        BilinearEstimator(table, "probit")  # type: ignore[arg-type]
