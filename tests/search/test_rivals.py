"""Networks chosen without the search, at the same cost, and how the one it chose compares with them."""

import numpy as np
import pytest

from binas.costs import analytic_costs
from binas.search import BilinearObjective, SearchProblem
from binas.search.problem import evaluate
from binas.search.rivals import (
    NEAR,
    Comparison,
    Rival,
    difference,
    hand_scaled,
    hand_scaled_rivals,
    random_rivals,
)
from binas.space import load_space
from binas.tables import Column

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


def test_only_the_first_rivals_and_the_hand_scaled_one_are_tuned():
    random = tuple(Rival(architecture=name, cost=1.0, accuracy=50.0) for name in "abc")
    hand = Rival(architecture="h", cost=1.0, accuracy=60.0)
    known = {"question": "q", "identity": "i", "cost": "macs", "limit": 1.0, "unit": "MACs", "images": 4}
    compared = Comparison(
        **known, found=hand, random=random, hand_scaled=hand, over_random=(10.0, 1.0), over_hand_scaled=None
    )
    assert [item.architecture for item in compared.to_tune(2)] == ["a", "b", "h"]
    tuned = compared.with_tuned({"a": 70.0, "b": 71.0, "h": 72.0}, 2)
    assert [item.tuned for item in tuned.random] == [70.0, 71.0, None]
    assert tuned.hand_scaled.tuned == 72.0
    assert compared.random[0].tuned is None


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
