"""The one grammar of limits: units, percent, conditions, several at once, names of files."""

import contextlib
from dataclasses import replace

import pytest
from hypothesis import given, strategies as st

from binas.base.errors import BinasError, ProblemError, TableError, UnitError
from binas.search.limits import Limit, check_form, parse_limits, parts_of, question_name
from binas.search.problem import SearchProblem
from binas.search.solve import solve
from binas.space import enumerate_all
from binas.tables.entries import Provenance
from binas.tables.units import parse_unit
from binas.testing import make_problem, make_space

SPACE = make_space(2, 3, 3)
MEASURED = Provenance(device="Intel Xeon Gold 6130", batch=1)


def measured_problem():
    plain = make_problem(SPACE, 0)
    return replace(plain, costs={"latency": replace(plain.costs["latency"], provenance=MEASURED)})


PROBLEM = measured_problem()


@pytest.fixture
def problem():
    return PROBLEM


@pytest.mark.parametrize(
    ("text", "limit"),
    [
        ("latency=45ms", Limit("latency", 45.0)),
        ("latency <= 0.045 s", Limit("latency", 45.0)),
        ("latency>=30000us", Limit("latency", 30.0, lower=True)),
        ("latency = 45 ms @ batch = 1, device=xeon gold", Limit("latency", 45.0)),
    ],
)
def test_limits_are_read_in_any_unit_of_their_kind(problem, text, limit):
    (parsed,) = parse_limits(text, problem.space, problem.costs)
    assert (parsed.cost, parsed.lower) == (limit.cost, limit.lower)
    assert parsed.value == pytest.approx(limit.value)


@pytest.mark.parametrize(
    ("text", "error", "words"),
    [
        ("latency=45", UnitError, "no unit"),
        ("latency=45MiB", UnitError, "bytes"),
        ("latency=fast", UnitError, "cannot read"),
        ("energy=3mJ", ProblemError, "no cost 'energy'"),
        ("latency", ProblemError, "COST=QUANTITY"),
        ("latency<45ms", ProblemError, "<= are at most, >= at least"),
        ("latency=1e999ms", UnitError, "not finite"),
        ("latency=101%", ProblemError, "above 100 %, the most"),
        ("latency=-1%", ProblemError, "below 0 %, the least"),
        ("energy=10%", ProblemError, "no cost 'energy'"),
        ("latency=1e2%", UnitError, "plain"),
        ("latency=20% and", ProblemError, "COST=QUANTITY"),
        ("latency=20% and energy=3mJ", ProblemError, "no cost 'energy'"),
        ("latency=25%@batch=64", TableError, "of batch 1"),
        ("latency=45ms@batch=64", TableError, "latency is wanted for batch 64, but the table is of batch 1"),
        ("latency=45ms@batch=10", TableError, "of batch 1"),
        (
            "latency=45ms@device=titan",
            TableError,
            "wanted for device titan, .* of device Intel Xeon Gold 6130",
        ),
        (
            "latency=45ms@threads=1",
            TableError,
            "wanted for threads 1, but the table does not say its threads",
        ),
        ("latency=45ms@", TableError, "cannot read the condition ''"),
        ("latency=45ms@batch", TableError, "cannot read the condition 'batch'; write KEY=VALUE"),
        ("latency=45ms@speed=9", TableError, "a KEY of device, runtime, threads, batch, dtype"),
    ],
)
def test_bad_limits_say_what_to_write(problem, text, error, words):
    with pytest.raises(error, match=words):
        parse_limits(text, problem.space, problem.costs)


def parse(text):
    return parse_limits(text, SPACE, PROBLEM.costs)


def test_percent_of_the_way_from_the_lightest_to_the_heaviest_network():
    every = [PROBLEM.cost("latency", item) for item in enumerate_all(SPACE)]
    least, most = min(every), max(every)
    for percent in (0, 12.5, 50, 100):
        (limit,) = parse(f"latency={percent}%")
        assert limit.cost == "latency"
        assert limit.value == pytest.approx(least + percent / 100 * (most - least))


@given(st.floats(0, 100))
def test_a_limit_in_percent_always_has_an_answer(percent):
    assert solve(PROBLEM.with_limits(parse(f"latency<={percent:.4f}%"))).architecture is not None


@given(
    st.lists(
        st.tuples(
            st.sampled_from(["=", "<=", ">=", " = ", " <= "]),
            st.sampled_from(["45ms", "0.045 s", "25%", "7.5 %", "45ms@batch=1", "25% @ device=xeon gold"]),
        ),
        min_size=1,
        max_size=4,
    ),
    st.sampled_from([" and ", "  and\t"]),
)
def test_joined_limits_are_the_same_as_single_ones(written, joint):
    parts = [f"latency{sign}{amount}" for sign, amount in written]
    question = joint.join(parts)
    check_form(question)
    assert parts_of(question) == parts
    assert parse(question) == parse(parts) == tuple(limit for part in parts for limit in parse(part))
    problem = SearchProblem.build(PROBLEM.objective, PROBLEM.costs, question, SPACE)
    assert problem.limits == parse(question)


def _has_form(text):
    try:
        check_form(text)
    except ProblemError:
        return False
    return True


@given(st.text(max_size=40))
def test_any_text_is_read_or_explained(text):
    with contextlib.suppress(BinasError):  # anything else fails
        parse(text)
        assert _has_form(text)


def test_what_has_the_form_is_known_without_tables():
    for text in ("energy=3mJ", "latency=25% and params<=300k", "x>=1 @ device=Black and Decker"):
        check_form(text)
    for text in (
        "",
        "latency",
        "latency=",
        "=45ms",
        "latency==45ms",
        "latency=45ms and",
        "latency=1ms and params",
    ):
        with pytest.raises(ProblemError, match="is no limit"):
            check_form(text)


def test_a_device_may_have_an_and_in_its_name():
    costs = {"latency": replace(PROBLEM.costs["latency"], provenance=Provenance(device="Rock and Roll"))}
    (limit,) = parse_limits("latency=4ms@device=rock and roll", SPACE, costs)
    assert limit == Limit("latency", 4.0)


def test_limits_that_are_limits_already_stay():
    limit = Limit("latency", 3.0)
    assert parse(limit) == parse([limit]) == (limit,)


def test_percent_of_a_cost_in_percent_is_its_value():
    share = replace(PROBLEM.costs["latency"], name="share", unit=parse_unit("%"))
    assert parse_limits("share=25%", SPACE, {"share": share}) == (Limit("share", 25.0),)


def test_described_limits_can_be_read_again():
    problem = PROBLEM.with_limits([Limit("latency", 14.5), Limit("latency", 3.25, lower=True)])
    assert parse(problem.describe_limits()) == problem.limits


def test_names_of_files():
    assert question_name("latency=40%") == "latency-40pct"
    assert question_name("latency <= 0.2 ms") == "latency-0.2-ms"
    assert question_name("latency=1ms and params>=3M") == "latency-1ms-and-params-at-least-3M"
