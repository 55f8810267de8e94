"""Networks chosen without the search, at the same cost, and how the one it chose compares with them."""

from dataclasses import replace

import numpy as np
import pytest

from binas.costs import analytic_costs
from binas.search import BilinearObjective, SearchProblem
from binas.search.problem import evaluate
from binas.search.rivals import (
    CANDIDATES,
    NEAR,
    Comparison,
    Leads,
    Outcome,
    Rival,
    difference,
    hand_scaled,
    hand_scaled_rivals,
    is_clear,
    random_rivals,
)
from binas.space import load_space
from binas.tables import Column

DEMO = load_space("small-28")


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
    assert len(costs) == CANDIDATES
    assert all(evaluate(asked, item).feasible for item in able)


def test_differences_are_paired():
    one, two = np.array([True, True, False, True]), np.array([True, False, False, False])
    points, error = difference(one, two)
    assert points == pytest.approx(50.0)
    assert error == pytest.approx(100 * np.std([0, 1, 0, 1], ddof=1) / 2)
    assert difference(one, one) == (0.0, 0.0)


def outcome(validation, correct):
    return Outcome(validation, np.array(correct, dtype=bool))


def compared(outcomes, random="abc", hand="h", found="f"):
    """A comparison of networks called by single letters."""
    rivals = {
        name: Rival(architecture=name, cost=1.0, one_shot=item.percents) for name, item in outcomes.items()
    }
    drawn, hand = tuple(rivals[name] for name in random), rivals.get(hand)
    known = {"question": "q", "identity": "i", "cost": "macs", "limit": 1.0, "unit": "MACs", "images": 4}
    leads = Leads.of(rivals[found], drawn, hand, outcomes, len(drawn))
    return Comparison(**known, found=rivals[found], random=drawn, hand_scaled=hand, one_shot=leads)


ONE_SHOT = {
    "f": outcome(60, [1, 1, 1, 0]),
    "a": outcome(50, [1, 1, 0, 0]),
    "b": outcome(55, [1, 0, 0, 0]),
    "c": outcome(40, [1, 1, 1, 1]),
    "h": outcome(52, [0, 1, 1, 0]),
}


def test_validation_images_choose_the_best_and_test_images_do_not():
    """c is right on all test images and b on one of them; b is the best by validation images."""
    verdict = compared(ONE_SHOT).verdict
    assert (verdict.leads.best, verdict.best_random, verdict.tuned) == ("b", 25.0, False)
    assert verdict.random == (50.0, 25.0, 100.0)
    assert (verdict.beaten, verdict.drawn) == (2, 3)
    assert verdict.leads.over_best == difference(ONE_SHOT["f"].correct, ONE_SHOT["b"].correct)
    assert verdict.leads.over_random[0] == pytest.approx(75 - np.mean([50, 25, 100]))
    assert verdict.leads.over_hand_scaled[0] == pytest.approx(25.0)


def test_the_first_random_ones_the_best_and_the_hand_scaled_one_are_tuned():
    before = compared(ONE_SHOT)
    assert before.to_tune(1) == ["f", "a", "h", "b"]
    assert before.to_tune(2) == ["f", "a", "b", "h"]
    tuned = {
        "f": outcome(80, [1, 1, 1, 1]),
        "a": outcome(77, [1, 1, 1, 0]),
        "b": outcome(76, [0, 1, 1, 0]),
        "h": outcome(70, [1, 1, 0, 1]),
    }
    after = before.with_tuned(tuned, 1)
    verdict = after.verdict
    assert verdict.tuned
    assert (verdict.found, verdict.hand_scaled) == (100.0, 75.0)
    assert verdict.random == (75.0,)  # the first one drawn: the mean is not that of chosen ones
    assert (verdict.leads.best, verdict.best_random) == (
        "a",
        75.0,
    )  # the best validation accuracy after tuning
    assert verdict.leads.over_random == difference(tuned["f"].correct, tuned["a"].correct)
    assert "after the same fine-tuning" in verdict.sentence()
    assert after.random[2].tuned is None
    assert after.one_shot == before.one_shot
    assert Comparison.model_validate_json(after.model_dump_json()) == after
    assert after.with_tuned({}, 0) == before


@pytest.mark.parametrize(
    ("lead", "said"),
    [
        ((3.0, 1.0), "3.00 ± 1.00 points above the mean of 3 random networks"),
        ((-3.0, 1.0), "3.00 ± 1.00 points below the mean"),
        ((1.0, 1.0), "no clear difference (+1.00 ± 1.00 points) to the mean"),
    ],
)
def test_no_more_is_said_than_the_numbers_support(lead, said):
    verdict = compared(ONE_SHOT).verdict
    leads = verdict.leads.model_copy(update={"over_random": lead})
    assert said in replace(verdict, leads=leads).sentence()
    assert is_clear(lead) == ("above" in said)


def test_without_rivals_nothing_is_compared():
    verdict = compared(ONE_SHOT, random="", hand="").verdict
    assert (verdict.random, verdict.best_random, verdict.hand_scaled) == ((), None, None)
    assert "no network to compare with" in verdict.sentence()


def test_limits_that_leave_no_rival_end_the_drawing():
    """Few parameters and many MACs: nothing fits, and that is found out."""
    asked = problem(DEMO, "macs=6M", "params=15k")
    assert random_rivals(asked, asked.limits[0], 3) == []
