"""On the paper's reconstructed tables the insights are the numbers of the paper's figure 8."""

import pytest

from binas.insights import find_insights
from binas.space import load_space
from binas.testing.paper_example import paper_contributions, paper_costs

# As printed: left (depth and latency of a block), middle (per stage), right (per block).
THIRD_BLOCK = [0.327805, 0.253799, 0.319214, 0.691796, 0.987206]
FOURTH_BLOCK = [0.077003, 0.116189, 0.113785, 0.312606, 0.363792]
LATENCY_MS = [6.5, 2.4, 1.9, 3.0, 1.9]
PER_STAGE = {
    "expansion 3 to 4": [0.0417003632, 0.0299992561, 0.0292248726, 0.0724625587, 0.1118006706],
    "expansion 4 to 6": [0.0600481033, 0.0602111816, 0.0832767487, 0.1412005424, 0.2086467743],
    "kernel 3 to 5": [0.0088011424, 0.0252752304, 0.0385665894, 0.0424502691, 0.0012760162],
    "adding se": [0.0244331360, 0.0358069738, 0.0521004995, 0.1646337509, 0.2027079264],
}
PER_BLOCK = {
    "expansion 3 to 4": [0.0805816650, 0.0904979706, 0.0437000275, 0.0133705139],
    "expansion 4 to 6": [0.1633499146, 0.1725605011, 0.0789077759, 0.0278884888],
    "kernel 3 to 5": [0.0278142293, 0.0435188293, 0.0037096659, 0.0180526733],
    "adding se": [0.0900797526, 0.2050000509, 0.0879992167, 0.0006668091],
}


@pytest.fixture(scope="module")
def insights():
    space = load_space("imagenet-mbconv")
    return find_insights(paper_contributions(space), paper_costs(space)["latency"])


def test_depth_and_the_latency_of_a_block(insights):
    third = [step for step in insights.depths if (step.shallow, step.deep) == (2, 3)]
    fourth = [step for step in insights.depths if (step.shallow, step.deep) == (3, 4)]
    assert [step.stage for step in third] == ["s1", "s2", "s3", "s4", "s5"]
    assert [step.effect.value for step in third] == pytest.approx(THIRD_BLOCK, abs=1e-9)
    assert [step.effect.value for step in fourth] == pytest.approx(FOURTH_BLOCK, abs=1e-9)
    assert [step.block_cost for step in third] == pytest.approx(LATENCY_MS, abs=1e-9)


def test_options_per_stage_and_per_block(insights):
    assert [step.name for step in insights.options] == list(PER_STAGE)
    for step in insights.options:
        assert step.balanced
        assert [e.value for e in step.per_stage.values()] == pytest.approx(PER_STAGE[step.name], abs=1e-9)
        assert [e.value for e in step.per_block.values()] == pytest.approx(PER_BLOCK[step.name], abs=1e-9)
        assert list(step.per_block) == [1, 2, 3, 4]


def test_the_paper_s_conclusions_are_spoken(insights):
    text = "\n".join(insights.sentences)
    for said in (
        "Later stages gain more from depth 2 to 3: s5 +0.987 against s1 +0.328 points.",
        "Later stages gain more from expansion 4 to 6",
        "Earlier blocks gain more from expansion 4 to 6",
        "Later stages gain more from adding se",
        "Intermediate stages gain most from kernel 3 to 5",
        "Of the options expansion matters most and kernel least",
        "Per ms, depth 2 to 3 pays best in s5",
    ):
        assert said in text
    assert not insights.errors_known


def test_rules_are_ranked_by_points_per_millisecond(insights):
    paid = [rule.per_cost for rule in insights.rules]
    assert paid == sorted(paid, reverse=True)
    depth = [rule for rule in insights.rules if rule.kind == "depth"]
    assert (depth[0].name, depth[0].stage) == ("depth 2 to 3", "s5")
    assert depth[0].per_cost == pytest.approx(0.987206 / depth[0].effect.cost)
    assert len(insights.rules) == 5 * (2 + 4)
