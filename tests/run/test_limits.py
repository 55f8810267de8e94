"""Limits in percent, made absolute by the table."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from binas.base.errors import ConfigError, ProblemError, UnitError
from binas.estimators.objective import BilinearObjective
from binas.run.config import load_config
from binas.run.limits import check_questions, file_name, resolve
from binas.search import Limit, SearchProblem, solve
from binas.space import enumerate_all
from tiny_run import SPACE, made_table

COSTS = made_table(1e-4).costs
LATENCY = COSTS["latency"]


def problem(limits=()):
    return SearchProblem(SPACE, BilinearObjective.negative_cost(LATENCY), COSTS, tuple(limits))


def test_percent_of_the_way_from_the_lightest_to_the_heaviest_network():
    all_costs = [problem().cost("latency", item) for item in enumerate_all(SPACE)]
    least, most = min(all_costs), max(all_costs)
    for percent in (0, 12.5, 50, 100):
        (limit,) = resolve(f"latency={percent}%", SPACE, COSTS)
        assert limit.cost == "latency"
        assert limit.value == pytest.approx(least + percent / 100 * (most - least))


@given(st.floats(0, 100))
def test_a_limit_in_percent_always_has_an_answer(percent):
    found = solve(problem(resolve(f"latency<={percent:.4f}%", SPACE, COSTS)))
    assert found.architecture is not None


def test_several_limits_and_lower_ones():
    upper, lower = resolve("latency=1ms and latency>=10 %", SPACE, COSTS)
    assert upper == Limit("latency", 1.0)
    assert lower.lower


@pytest.mark.parametrize(
    ("text", "error"),
    [("energy=10%", ProblemError), ("latency=101%", ProblemError), ("latency=5", UnitError)],
)
def test_what_cannot_be_meant(text, error):
    with pytest.raises(error):
        resolve(text, SPACE, COSTS)


def test_limits_are_checked_before_there_is_a_table():
    check_questions(
        load_config(None, ["search.limits=[latency=45ms@batch=1, params=40% and macs=3M]"]), SPACE
    )
    counted = ["measuring.backend=none", "search.limits=[latency=45ms]"]
    with pytest.raises(ProblemError, match="no cost 'latency'"):
        check_questions(load_config(None, counted), SPACE)
    with pytest.raises(ConfigError, match="say the same"):
        check_questions(load_config(None, ["search.limits=[latency=5ms, latency = 5ms]"]), SPACE)


def test_names_of_files():
    assert file_name("latency=40%") == "latency-40pct"
    assert file_name("latency <= 0.2 ms") == "latency-0.2-ms"
    assert file_name("latency=1ms and params>=3M") == "latency-1ms-and-params-at-least-3M"
