"""The relaxed multiple-choice knapsack: hand-computed cases, and optimality by its own dual."""

import math

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from binas.base.errors import ProblemError
from binas.search.knapsack import relaxed_knapsack, relaxed_knapsack_rows


@st.composite
def knapsacks(draw):
    sizes = draw(st.lists(st.integers(1, 5), min_size=1, max_size=5))
    count = sum(sizes)
    number = st.integers(-6, 6) | st.floats(-6, 6, allow_nan=False).map(lambda x: round(x, 3))
    values = draw(st.lists(number, min_size=count, max_size=count))
    costs = draw(st.lists(number, min_size=count, max_size=count))
    groups = np.repeat(np.arange(len(sizes)), sizes)
    return np.array(values, float), np.array(costs, float), groups


def cheapest_total(costs, groups):
    return math.fsum(costs[groups == g].min() for g in np.unique(groups))


def dual_bound(values, costs, groups, budget):
    """min over prices m >= 0 of m * budget + sum over groups of max(value - m * cost).

    Piecewise linear and convex in m, so its minimum is at 0 or where two items of a group tie.
    """
    prices = [0.0]
    for g in np.unique(groups):
        v, c = values[groups == g], costs[groups == g]
        for i in range(len(v)):
            for j in range(len(v)):
                if c[i] > c[j] and v[i] > v[j]:
                    prices.append((v[i] - v[j]) / (c[i] - c[j]))
    return min(
        price * budget + sum((values - price * costs)[groups == g].max() for g in np.unique(groups))
        for price in prices
    )


@settings(max_examples=80, deadline=None)
@given(knapsacks(), st.floats(0, 1))
def test_the_greedy_value_equals_the_dual_bound(case, share):
    values, costs, groups = case
    low = cheapest_total(costs, groups)
    high = math.fsum(costs[groups == g].max() for g in np.unique(groups))
    budget = low + share * (high - low) + 1e-9
    solution = relaxed_knapsack(values, costs, groups, budget)
    assert solution is not None
    assert values @ solution == pytest.approx(dual_bound(values, costs, groups, budget), abs=1e-6)
    assert costs @ solution <= budget + 1e-9
    assert solution.min() >= 0.0


@given(knapsacks(), st.floats(0.01, 10))
@settings(deadline=None)
def test_a_budget_below_the_cheapest_choices_is_refused(case, missing):
    values, costs, groups = case
    assert relaxed_knapsack(values, costs, groups, cheapest_total(costs, groups) - missing) is None


@given(knapsacks())
@settings(deadline=None)
def test_without_a_limit_every_group_takes_its_best_item(case):
    values, costs, groups = case
    solution = relaxed_knapsack(values, costs, groups, math.inf)
    for g in np.unique(groups):
        inside = groups == g
        (chosen,) = np.flatnonzero(inside & (solution > 0))
        ties = np.flatnonzero(inside & (values == values[inside].max()))
        assert chosen in ties
        assert costs[chosen] == costs[ties].min()


@given(knapsacks(), st.randoms(use_true_random=False))
@settings(deadline=None)
def test_order_of_items_and_names_of_groups_do_not_matter(case, random):
    values, costs, groups = case
    order = list(range(len(values)))
    random.shuffle(order)
    budget = cheapest_total(costs, groups) + 1.0
    one = relaxed_knapsack(values, costs, groups, budget)
    two = relaxed_knapsack(values[order], costs[order], 7 - 3 * groups[order], budget)
    assert values @ one == pytest.approx(values[order] @ two, abs=1e-9)


def test_a_hand_computed_case():
    """Edges by value per cost: 3 (group 0), 2 (group 1), 1 (group 0); the last gets half of its 2 units."""
    values, costs, groups = [0, 3, 5, 0, 4], [0, 1, 3, 0, 2], [0, 0, 0, 1, 1]
    assert relaxed_knapsack(values, costs, groups, 4.0).tolist() == [0, 0.5, 0.5, 0, 1]
    assert relaxed_knapsack(values, costs, groups, 3.0).tolist() == [0, 1, 0, 0, 1]
    assert relaxed_knapsack(values, costs, groups, 0.0).tolist() == [1, 0, 0, 1, 0]
    assert relaxed_knapsack(values, costs, groups, 5.0).tolist() == [0, 0, 1, 0, 1]


def test_items_under_the_hull_are_skipped():
    """The middle item lies below the line between the outer ones, so a mixture of those beats it."""
    assert relaxed_knapsack([0, 1, 4], [0, 1, 2], [0, 0, 0], 1.0).tolist() == [0.5, 0, 0.5]


def test_items_on_a_line_are_used_so_that_more_solutions_are_one_hot():
    assert relaxed_knapsack([0, 1, 2], [0, 1, 2], [0, 0, 0], 1.0).tolist() == [0, 1, 0]
    assert relaxed_knapsack([0, 1, 2, 0, 1], [0, 1, 2, 0, 1], [0, 0, 0, 1, 1], 2.0).tolist() == [
        0,
        0,
        1,
        1,
        0,
    ]


def test_negative_costs_earn_budget_for_others():
    values, costs, groups = [0, 1, 0, 5], [-2, 0, 0, 3], [0, 0, 1, 1]
    assert relaxed_knapsack(values, costs, groups, 1.0).tolist() == [1, 0, 0, 1]
    assert relaxed_knapsack(values, costs, groups, -2.0).tolist() == [1, 0, 1, 0]
    assert relaxed_knapsack(values, costs, groups, -2.1) is None


def test_equal_items_resolve_to_the_first():
    assert relaxed_knapsack([1, 1, 1], [2, 2, 2], [0, 0, 0], 2.0).tolist() == [1, 0, 0]


def test_extreme_slopes_keep_the_cheapest_item():
    solution = relaxed_knapsack([0.0, 1e200, 2e200], [0.0, 1e-200, 2e-200], [0, 0, 0], 1.5e-200)
    assert solution.sum() == pytest.approx(1.0)
    assert solution @ [0.0, 1.0, 2.0] == pytest.approx(1.5)


def test_no_items():
    assert relaxed_knapsack([], [], [], 0.0).shape == (0,)
    assert relaxed_knapsack([], [], [], -1.0) is None


@pytest.mark.parametrize(
    ("values", "costs", "groups"),
    [([1, 2], [1], [0, 0]), ([[1, 2]], [[1, 2]], [[0, 0]]), ([1, math.nan], [1, 2], [0, 0])],
)
def test_bad_input_is_named(values, costs, groups):
    with pytest.raises(ProblemError, match="knapsack"):
        relaxed_knapsack(values, costs, groups, 1.0)


@given(knapsacks(), st.integers(0, 2**32 - 1))
@settings(max_examples=30, deadline=None)
def test_several_limits_agree_with_a_linear_program(case, seed):
    from scipy.optimize import linprog

    values, first, groups = case
    second = np.random.default_rng(seed).integers(-3, 7, len(values)).astype(float)
    rows = np.array([first, second])
    budgets = np.array([cheapest_total(row, groups) + 2.0 for row in rows])
    member = (groups[None] == np.unique(groups)[:, None]).astype(float)
    reference = linprog(-values, A_ub=rows, b_ub=budgets, A_eq=member, b_eq=np.ones(len(member)))
    solution = relaxed_knapsack_rows(values, rows, groups, budgets)
    if solution is None:
        assert reference.status == 2
        return
    assert values @ solution == pytest.approx(-reference.fun, abs=1e-6)
    assert (rows @ solution <= budgets + 1e-6).all()
    assert np.allclose(member @ solution, 1.0)
    assert (solution > 1e-9).sum() <= len(member) + 2


def test_several_limits_that_exclude_each_other():
    values, groups = [1.0, 1.0], [0, 0]
    assert relaxed_knapsack_rows(values, [[0.0, 1.0], [1.0, 0.0]], groups, [0.2, 0.2]) is None
    assert relaxed_knapsack_rows(values, [[0.0, 1.0], [1.0, 0.0]], groups, [0.5, 0.5]) == pytest.approx(0.5)


def test_no_limit_at_all():
    assert relaxed_knapsack_rows([1.0, 2.0], np.zeros((0, 2)), [0, 0], []).tolist() == [0, 1]
