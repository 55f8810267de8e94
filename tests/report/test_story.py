"""Three sentences for those who do not read tables."""

import numpy as np
import pytest

from binas.report.story import tell
from binas.search.answers import AnswerRecord
from binas.search.rivals import Comparison, Leads, Outcome, Rival
from binas.training.judgement import Accuracy, HeldOut, Judgement, NetworkRecord

READING = {"unit": "ms", "predicted": 0.1, "low": 0.09, "limit": 0.12, "kept": True, "cost": "latency"}


def answer(question, limit, measured=None, unit="ms", cost="latency", batch=1):
    readings = []
    if measured is not None:
        values = {"asked": limit, "measured": measured, "high": measured, "architecture": question}
        readings = [{**READING, **values}]
    return AnswerRecord(
        question=question,
        limits=({"cost": cost, "value": limit, "unit": unit, "lower": False},),
        status="optimal",
        architecture=question,
        accuracy=80.0,
        accuracy_stderr=1.0,
        costs={cost: {"value": limit, "unit": unit, "conditions": {"batch": batch}}},
        bound=None,
        gap=None,
        seconds=0.0,
        solver="auto",
        on_device=tuple(readings),
    )


def network(question, percent, images=4000):
    held = HeldOut(Accuracy(percent, images), Accuracy(percent, images))
    return NetworkRecord(
        name=question,
        architecture=question,
        from_scratch=False,
        settings={},
        weights="",
        judgement=Judgement(held, held, 1),
        parameters=1,
        macs=1,
        seconds=1.0,
    )


def share(percent, images=4000):
    return Outcome(percent, np.arange(images) < percent / 100 * images)


def comparison(question, found, best, hand, tuned=True):
    """One in which networks that are right on fewer images are right on some of the same."""
    outcomes = {"f": share(found), "r": share(best), "h": share(hand)}
    rivals = {
        name: Rival(architecture=name, cost=1.0, one_shot=item.percents) for name, item in outcomes.items()
    }
    random = (rivals["r"],)
    made = Comparison(
        question=question,
        identity="",
        cost="latency",
        limit=1.0,
        unit="ms",
        images=4000,
        found=rivals["f"],
        random=random,
        hand_scaled=rivals["h"],
        one_shot=Leads.of(rivals["f"], random, rivals["h"], outcomes, 1),
    )
    return made.with_tuned(outcomes, 1) if tuned else made


def test_three_sentences_with_the_figures_of_the_run():
    answers = [answer("one", 0.12, 0.118), answer("two", 0.25, 0.24)]
    networks = {"one": network("one", 85.0), "two": network("two", 88.0)}
    reached, bought, kept = tell(
        answers, networks, [comparison("one", 85.0, 84.0, 83.5), comparison("two", 88.0, 87.99, 87.0)]
    )
    assert reached == (
        "Within 0.12 and 0.25 ms per image the networks that were found are right on 85.0 and 88.0 % of 4,000 images "
        "nobody had seen; from the first limit to the last 3.0 points are gained."
    )
    assert bought == (
        "After the same fine-tuning the best of 1 random networks is right on 84.0 and 88.0 %, the best one scaled by hand "
        "on 83.5 and 87.0 % under the same limits: the search is clearly ahead of the best random one at 1 and "
        "the hand-scaled one at 2 of 2 limits."
    )
    assert kept == "Every limit was kept when measured: 0.118 of 0.12 ms and 0.24 of 0.25 ms."


def test_no_more_is_claimed_than_two_standard_errors_carry():
    answers = [answer("one", 0.12), answer("two", 0.25)]
    networks = {"one": network("one", 85.0), "two": network("two", 85.5)}
    reached, bought, kept = tell(
        answers, networks, [comparison("one", 85.0, 85.0, 85.01), comparison("two", 85.5, 88.0, 85.0)]
    )
    assert reached.endswith("between the first limit and the last there is no clear difference.")
    assert bought.endswith(
        "the search is clearly ahead of the best random one at none and the hand-scaled one at 1 of 2 limits, and clearly "
        "behind the best random one at 1 of 2 limits."
    )
    assert kept == "By the table every limit is kept; none was measured."


def test_nothing_ahead_is_called_so():
    bought = tell(
        [answer("one", 0.12)], {"one": network("one", 85.0)}, [comparison("one", 85.0, 85.0, 85.0)]
    )[1]
    assert bought.endswith("under the same limit: the search is not clearly ahead.")


def test_the_average_of_several_random_networks_is_told():
    one = comparison("one", 85.0, 84.9, 80.0, tuned=False)
    several = one.model_copy(
        update={
            "random": one.random * 3,
            "one_shot": one.one_shot.model_copy(update={"count": 3, "over_random": (2.0, 0.5)}),
        }
    )
    bought = tell([answer("one", 0.12)], {"one": network("one", 90.0)}, [several])[1]
    assert "the average of 3 random networks on 84.9 %, the best of 3 random networks on 84.9 %" in bought
    assert bought.endswith(
        "under the same limit: the search is clearly ahead of the average and the hand-scaled one."
    )


def test_figures_before_fine_tuning_are_called_so():
    (_, bought, _) = tell(
        [answer("one", 0.12)],
        {"one": network("one", 90.0)},
        [comparison("one", 85.0, 80.0, 80.0, tuned=False)],
    )
    assert bought.startswith(
        "Before any fine-tuning what was found is right on 85.0 %, the best of 1 random networks on"
    )


@pytest.mark.parametrize(
    ("known", "said"),
    [
        (
            {"limit": 3e6, "unit": "MACs", "cost": "macs"},
            "Within 3 MMACs the network that was found is right",
        ),
        ({"limit": 12.3456, "batch": 64}, "Within 12.3 ms the network"),
    ],
)
def test_limits_in_their_own_units(known, said):
    assert said in tell([answer("one", **known)], {"one": network("one", 85.0)}, [])[0]


def test_a_run_without_networks_has_no_story():
    assert tell([answer("one", 0.12)], {}, []) == []


def test_limits_without_an_answer_and_those_not_confirmed_are_named():
    broken = answer("latency=5%", 0.1, 0.12)
    reading = broken.on_device[0].model_copy(update={"kept": False, "disturbance": 0.5})
    broken = broken.model_copy(update={"on_device": (reading,)})
    none = answer("latency=1%", 0.05).model_copy(update={"architecture": None})
    kept = answer("latency=15%", 0.2, 0.19)
    networks = {item.question: network(item.question, 80.0) for item in (broken, kept)}
    text = tell([none, broken, kept], networks, [])[-1]
    assert "Every limit" not in text
    assert text.startswith("1 of 3 limits were kept when measured: 0.19 of 0.2 ms.")
    assert "latency=5% could not be confirmed" in text
    assert text.endswith("No network was found for latency=1%.")
    assert tell([broken], networks, [])[-1].startswith("No limit was seen to be kept when measured.")
    assert "Every limit was kept" in tell([kept], networks, [])[-1]
