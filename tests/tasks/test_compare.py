"""Networks chosen without the search, at the same cost, measured on the same images."""

import numpy as np
import pytest
import torch
from binas.run.rivals import (
    NEAR,
    compare_with_rivals,
    difference,
    hand_scaled,
    hand_scaled_rivals,
    random_rivals,
)
from small_data import bar_data
from small_networks import MBCONV

from binas.costs import analytic_costs
from binas.search import BilinearObjective, SearchProblem
from binas.search.limits import Limit
from binas.search.problem import evaluate
from binas.space import load_space
from binas.supernet import Supernet
from binas.tables import Column
from binas.training import evaluate_architecture

DEMO = load_space("demo")


def problem(space, *limits):
    objective = BilinearObjective(50.0, Column.full(space, 0.0))
    return SearchProblem.build(objective, analytic_costs(space), limits, space)


def test_hand_scaled_networks_have_one_config_and_one_depth():
    found = list(hand_scaled(DEMO))
    assert len(found) == 36
    for item in found:
        DEMO.check(item)
        assert len(set(item.depths)) == 1
        assert len({name for names in item.stages for name in names}) == 1


def test_rivals_keep_every_limit_and_come_near_the_one_compared():
    asked = problem(DEMO, "macs=3M", "params=60k")
    macs, _ = asked.limits
    for item in random_rivals(asked, macs, 20):
        assert evaluate(asked, item).feasible
        assert asked.cost("macs", item) >= (1 - NEAR) * macs.value
    able = hand_scaled_rivals(asked, macs)
    costs = [asked.cost("macs", item) for item in able]
    assert costs == sorted(costs, reverse=True)
    assert all(evaluate(asked, item).feasible for item in able)


def test_differences_are_paired():
    one, two = np.array([True, True, False, True]), np.array([True, False, False, False])
    points, error = difference(one, two)
    assert points == pytest.approx(50.0)
    assert error == pytest.approx(100 * np.std([0, 1, 0, 1], ddof=1) / 2)
    assert difference(one, one) == (0.0, 0.0)


def test_all_are_measured_in_the_same_way():
    torch.manual_seed(0)
    supernet, data = Supernet(MBCONV).eval(), bar_data()
    asked = problem(MBCONV)
    found = MBCONV.extreme()
    asked = asked.with_limits([Limit("macs", asked.cost("macs", found))])
    compared = compare_with_rivals(supernet, data, asked, asked.limits[0], found, 3, 64)
    again = evaluate_architecture(supernet, found, data, data.test, 64)
    assert compared.found.percent == pytest.approx(again.percent)
    assert len(compared.random) <= 3
    assert compared.hand_scaled is not None
    told = compared.to_json()
    assert told["images"] == len(data.test)
    assert told["over_hand_scaled"] == compared.over_hand_scaled
    assert 0 <= compared.beaten <= len(compared.random)


def test_limits_that_leave_no_rival_end_the_drawing():
    """Few parameters and many MACs: nothing fits, and that is found out."""
    asked = problem(DEMO, "macs=6M", "params=15k")
    assert random_rivals(asked, asked.limits[0], 3) == []
