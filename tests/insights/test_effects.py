"""Effects against sums written out by hand, on made-up tables."""

import itertools
import json
import math

import numpy as np
import pytest
from hypothesis import given, strategies as st

from binas.base.errors import TableError
from binas.insights import Effects, depth_steps, find_insights, option_steps, rank_rules, sentences
from binas.space import load_space
from binas.space.space import Config, SearchSpace, Stage
from binas.tables import Column, Contributions, Cost, parse_unit
from binas.testing.paper_example import paper_contributions, paper_costs


def space_of(*stages, depths=(1, 2)):
    """A space whose stages have the same configs in each of two blocks."""
    made = [Stage(f"s{i}", depths, (configs,) * max(depths)) for i, configs in enumerate(stages, 1)]
    return SearchSpace("made-up", tuple(made))


WIDTHS = tuple(Config(f"w{w}{a}", (("width", w), ("act", a))) for w in (1, 2) for a in ("re", "hs"))
SPACE = space_of(WIDTHS, WIDTHS, WIDTHS)


def table(space=SPACE, seed=0, stderr=None, covariance=None, value=None):
    rng = np.random.default_rng(seed)
    draw = value or (lambda *_: float(rng.normal()))
    errors = None if stderr is None else Column.full(space, stderr)
    return Contributions(
        space, 70.0, Column.build(space, draw, draw), 0.1, errors, None, covariance=covariance
    )


def cost_of(space=SPACE, combine="sum", per_config=lambda s, b, c: 1.0 + c):
    values = Column.build(space, lambda s, i: 0.25 * i, per_config)
    return Cost("latency", parse_unit("ms"), 3.0, values, combine=combine)


def test_depth_is_the_difference_of_neighbouring_depths_and_costs_the_added_block():
    contributions = table()
    steps = depth_steps(Effects(contributions, cost_of()))
    assert [(step.stage, step.shallow, step.deep) for step in steps] == [
        ("s1", 1, 2),
        ("s2", 1, 2),
        ("s3", 1, 2),
    ]
    for step, values in zip(steps, contributions.values.depths, strict=True):
        assert step.effect.value == pytest.approx(values[1] - values[0])
        assert step.effect.cost == pytest.approx(2.5 + 0.25)  # mean of 1, 2, 3, 4 and the depth's own part
        assert step.block_cost == pytest.approx(2.5)


def test_depths_that_skip_blocks_cost_all_blocks_between():
    space = space_of(WIDTHS, depths=(1, 3))
    step = depth_steps(Effects(table(space), cost_of(space)))[0]
    assert (step.shallow, step.deep) == (1, 3)
    assert step.effect.cost == pytest.approx(2 * 2.5 + 0.25)


def test_options_are_averaged_as_in_the_appendix():
    contributions = table()
    step = next(s for s in option_steps(Effects(contributions)) if s.option == "width")
    cells = np.array(
        [[block[2:].mean() - block[:2].mean() for block in row] for row in contributions.values.configs]
    )
    assert [e.value for e in step.per_stage.values()] == pytest.approx(cells.mean(axis=1))
    assert [e.value for e in step.per_block.values()] == pytest.approx(cells.mean(axis=0))
    assert step.overall.value == pytest.approx(cells.mean())
    assert step.overall.cost is None
    assert (step.low, step.high, step.name) == (1, 2, "width 1 to 2")


@given(st.integers(0, 1000))
def test_standard_errors_come_from_the_covariance(seed):
    rng = np.random.default_rng(seed)
    size = 1 + SPACE.alpha_size + SPACE.beta_size
    root = rng.normal(size=(size, size))
    effects = Effects(table(covariance=root @ root.T, stderr=9.9))
    for step in option_steps(effects):
        for effect in (step.overall, *step.per_stage.values(), *step.per_block.values()):
            assert effect.stderr == pytest.approx(float(np.linalg.norm(root.T @ effect.weights)))
    one, two = (step.effect for step in depth_steps(effects)[:2])
    assert effects.difference(one, two).stderr == pytest.approx(
        float(np.linalg.norm(root.T @ (one.weights - two.weights)))
    )


def test_without_covariance_errors_are_taken_as_independent():
    effects = Effects(table(stderr=0.3))
    assert depth_steps(effects)[0].effect.stderr == pytest.approx(0.3 * math.sqrt(2))
    assert option_steps(effects)[0].overall.stderr == pytest.approx(0.3 * math.sqrt(1 / 6))
    assert effects.errors_known


def test_errors_that_are_not_known_are_not_made_up():
    effects = Effects(table())
    assert depth_steps(effects)[0].effect.stderr is None
    assert not effects.errors_known


def test_the_covariance_makes_a_shared_error_vanish_from_differences():
    size = 1 + SPACE.alpha_size + SPACE.beta_size
    effects = Effects(table(covariance=np.ones((size, size))))
    assert depth_steps(effects)[0].effect.stderr == pytest.approx(0.0, abs=1e-9)


def test_options_that_move_together_are_marked_and_passed_over():
    space = load_space("nas-bench-macro")
    found = find_insights(table(space, value=lambda s, *rest: float(s + sum(rest))))
    kinds = {step.name: step.balanced for step in found.options}
    assert kinds["expansion 3 to 6"] is False
    assert kinds["kernel 3 to 5"] is False
    assert not any("expansion" in text or "kernel" in text for text in found.sentences)


def test_a_space_of_names_only_compares_names_with_the_first():
    space = space_of((Config("a"), Config("b"), Config("c")))
    assert [step.name for step in option_steps(Effects(table(space)))] == ["config a to b", "config a to c"]


def test_numbers_switches_and_words_of_one_option_are_kept_apart():
    configs = tuple(
        Config(f"c{i}", (("x", value),)) for i, value in enumerate((True, 1, 2.5, "old", "new", False))
    )
    pairs = {(repr(step.low), repr(step.high)) for step in option_steps(Effects(table(space_of(configs))))}
    assert ("1", "2.5") in pairs
    assert ("'old'", "'new'") in pairs


def test_a_stage_without_the_option_is_left_out():
    space = space_of(WIDTHS, (Config("plain"),))
    step = next(s for s in option_steps(Effects(table(space))) if s.option == "width")
    assert list(step.per_stage) == ["s1"]


def test_a_cost_that_is_a_maximum_is_refused():
    with pytest.raises(TableError, match="maximum over blocks"):
        find_insights(table(), cost_of(combine="max"))


def test_free_gains_come_first_and_free_losses_last():
    def gain(s, b, c=None):
        return 0.0 if c is None else (c // 2) * (1.0 if s < 2 else -1.0)

    effects = Effects(table(value=gain), cost_of(per_config=lambda s, b, c: 1.0 + (s == 1) * c))
    rules = rank_rules([], [step for step in option_steps(effects) if step.option == "width"])
    assert [(rule.stage, rule.per_cost is None) for rule in rules] == [
        ("s1", True),
        ("s2", False),
        ("s3", True),
    ]
    assert rules[0].per_cost_stderr is None


def spoken(noise):
    """Sentences of a table in which later stages gain more, with a given standard error everywhere."""

    def value(s, b, c=None):
        return 0.5 * s * b if c is None else (c // 2) * 0.1 * (3 - s)

    contributions = table(value=value, stderr=noise)
    effects = Effects(contributions, cost_of())
    depths, options = depth_steps(effects), option_steps(effects)
    return sentences(effects, depths, options, rank_rules(depths, options))


def test_sentences_speak_where_differences_are_clear():
    text = "\n".join(spoken(0.01))
    assert (
        "Later stages gain more from depth 1 to 2: s3 +1.000 ± 0.014 against s1 +0.000 ± 0.014 points."
        in text
    )
    assert "Earlier stages gain more from width 1 to 2" in text
    assert "from act" not in text


def test_sentences_are_silent_where_noise_could_explain_them():
    assert spoken(5.0) == ()


def test_pure_noise_hardly_ever_speaks():
    """Values drawn with the standard error they claim: what is said about them is said by chance."""
    spoke = 0
    for seed in range(100):
        rng = np.random.default_rng(seed)
        noise = table(value=lambda *_, rng=rng: float(rng.normal(scale=0.1)), stderr=0.1)
        spoke += bool(find_insights(noise, cost_of()).sentences)
    assert spoke <= 3


def test_a_loss_is_called_a_loss():
    found = find_insights(table(value=lambda s, b, c=None: 0.0 if c is None else -1.0 * (c // 2)))
    assert any(text.startswith("Width 1 to 2 loses accuracy: -1.000") for text in found.sentences)


def test_json_is_plain_and_complete():
    space = load_space("imagenet-mbconv")
    data = find_insights(paper_contributions(space), paper_costs(space)["latency"]).to_json()
    again = json.loads(json.dumps(data, allow_nan=False))
    assert again["unit"] == "ms"
    assert set(again) == {"cost", "unit", "per", "errors_known", "depths", "options", "rules", "sentences"}
    assert again["options"][0]["per_block"]["1"]["value"] == pytest.approx(0.0805816650)
    keys = list(itertools.chain.from_iterable(rule for rule in again["rules"]))
    assert "per_cost_stderr" in keys
