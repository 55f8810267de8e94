"""A band of limits on one cost, met in the middle: equal to brute force, and exact on spaces beyond enumeration."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, strategies as st
from problems import problems

from binas.search.band import band_rows, solve_band, window_maxima
from binas.search.limits import Limit
from binas.search.objective import BilinearObjective
from binas.search.problem import evaluate
from binas.search.result import Status
from binas.search.solve import solve
from binas.testing import brute_force, make_problem, make_space
from binas.testing.brute_force import all_values


@st.composite
def bands(draw, stagewise=False):
    """A problem whose limits are a narrow band, often around the cost of one architecture."""
    problem = draw(problems(limits=0, stagewise=stagewise))
    costs = np.unique(all_values(problem)[2]["latency"])
    low = float(costs[draw(st.integers(0, len(costs) - 1))]) + draw(st.sampled_from([0.0, -1e-6, 1e-6, 0.3]))
    high = low + draw(st.sampled_from([0.0, 1e-7, 1e-3, 0.5]))
    sides = draw(st.sampled_from(["both", "both", "lower", "upper", "twice"]))
    limits = {
        "both": [Limit("latency", high), Limit("latency", low, True)],
        "lower": [Limit("latency", low, True)],
        "upper": [Limit("latency", high)],
        "twice": [Limit("latency", high + 1), Limit("latency", high), Limit("latency", low, True)],
    }
    return problem.with_limits(limits[sides])


def check(problem, most):
    banded = solve_band(problem, band_rows(problem), most)
    truth = brute_force(problem)
    if banded.best is not None:
        architecture = problem.space.from_indices(banded.best.depths.tolist(), banded.best.configs.tolist())
        judged = evaluate(problem, architecture)
        assert judged.feasible
        assert judged.accuracy == pytest.approx(banded.best.value)
        assert banded.bound >= truth - 1e-9
    if banded.proven:
        best = None if banded.best is None else banded.best.value
        assert best == (None if truth is None else pytest.approx(truth))
    return banded


@given(problem=bands())
def test_the_best_inside_a_band_is_that_of_brute_force(problem):
    assert check(problem, 100_000).proven


@given(problem=bands(stagewise=True))
def test_with_interactions_inside_a_stage(problem):
    assert check(problem, 100_000).proven


@given(problem=bands())
def test_lists_that_are_too_small_prove_nothing_wrong(problem):
    check(problem, 4)


@given(problem=bands())
def test_the_search_answers_bands_with_a_proof(problem):
    result, truth = solve(problem), brute_force(problem)
    assert result.status is (Status.INFEASIBLE if truth is None else Status.OPTIMAL)
    assert result.accuracy == (None if truth is None else pytest.approx(truth))


@given(problem=problems(limits=2))
def test_only_limits_on_one_cost_are_a_band(problem):
    names = {limit.cost for limit in problem.limits}
    assert (band_rows(problem) is None) == (len(names) > 1)


@given(
    values=st.lists(st.floats(-5, 5), min_size=1, max_size=40),
    windows=st.lists(st.tuples(st.integers(0, 40), st.integers(0, 40)), min_size=1, max_size=20),
)
def test_maxima_of_windows(values, windows):
    places = [(min(i, len(values)), min(j, len(values))) for i, j in windows]
    start, stop = (np.array(side) for side in zip(*places, strict=True))
    truth = [max(values[i:j], default=-np.inf) for i, j in places]
    assert window_maxima(np.array(values), start, stop).tolist() == truth


@pytest.mark.parametrize("width", [1e-2, 1e-5, 1e-7])
def test_narrow_bands_on_a_space_beyond_enumeration(width):
    problem = make_problem(make_space(5, 4, 12), 1)
    assert problem.space.count > 1e20
    middle = 0.5 * problem.scales["latency"]
    low, high = middle * (1 - width), middle * (1 + width)
    result = solve(problem.with_limits([Limit("latency", high), Limit("latency", low, True)]))
    assert result.status is Status.OPTIMAL
    assert result.details["method"] in ("band", "frontier")
    free = solve(problem.with_limits([Limit("latency", high)]))
    assert free.accuracy - 0.1 < result.accuracy <= free.accuracy


def test_the_least_cost_above_a_number_is_found_without_a_solver():
    """A subset sum: every architecture has the same bound, so nothing can be dropped."""
    problem = make_problem(make_space(5, 4, 12), 1)
    cheapest = replace(problem, objective=BilinearObjective.negative_cost(problem.costs["latency"]))
    value = 0.5 * problem.scales["latency"]
    result = solve(cheapest.with_limits([Limit("latency", value, lower=True)]))
    assert result.status is Status.OPTIMAL
    assert -result.accuracy == pytest.approx(value, rel=1e-8)
