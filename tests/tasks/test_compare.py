"""Networks chosen without the search, at the same cost, measured on the same images."""

import numpy as np
import pytest
import torch
from small_data import bar_data
from small_networks import MBCONV

from binas.costs import analytic_costs
from binas.search import BilinearObjective, SearchProblem
from binas.search.limits import Limit
from binas.search.problem import evaluate
from binas.search.rivals import NEAR, Comparison, Rival, hand_scaled, hand_scaled_rivals, random_rivals
from binas.space import load_space
from binas.supernet import Supernet
from binas.tables import Column
from binas.tasks.compare import Bench, compare_with_rivals, difference
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
    compared = compare_with_rivals(Bench(supernet, data, asked, asked.limits[0], 64), found, 3)
    again = evaluate_architecture(supernet, found, data, data.test, 64)
    assert compared.found.accuracy == pytest.approx(again.percent)
    assert len(compared.random) <= 3
    assert compared.hand_scaled is not None
    assert (compared.images, compared.cost, compared.unit) == (len(data.test), "macs", "MACs")
    assert compared.limit == compared.found.cost == asked.cost("macs", found)
    one, two = compared.found.accuracy, compared.hand_scaled.accuracy
    assert compared.over_hand_scaled[0] == pytest.approx(one - two)
    assert 0 <= compared.beaten <= len(compared.random)
    assert Comparison.model_validate_json(compared.model_dump_json()) == compared


@pytest.mark.parametrize(
    ("over_random", "said"),
    [
        ((3.0, 1.0), "3.00 ± 1.00 points above the mean of 2 random networks"),
        ((-3.0, 1.0), "3.00 ± 1.00 points below the mean"),
        ((1.0, 1.0), "no clear difference (+1.00 ± 1.00 points) to the mean"),
        (None, "no network to compare with"),
    ],
)
def test_no_more_is_said_than_the_numbers_support(over_random, said):
    rivals = tuple(Rival(architecture="x", cost=1.0, accuracy=value) for value in (60.0, 80.0))
    compared = Comparison(
        question="macs=1",
        identity="",
        cost="macs",
        limit=1.0,
        unit="MACs",
        images=100,
        found=Rival(architecture="y", cost=1.0, accuracy=73.0),
        random=rivals if over_random else (),
        hand_scaled=None,
        over_random=over_random,
        over_hand_scaled=None,
    )
    assert said in compared.sentence()
    assert compared.beaten == (1 if over_random else 0)


def test_limits_that_leave_no_rival_end_the_drawing():
    """Few parameters and many MACs: nothing fits, and that is found out."""
    asked = problem(DEMO, "macs=6M", "params=15k")
    assert random_rivals(asked, asked.limits[0], 3) == []
