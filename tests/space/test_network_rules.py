"""What all networks of a space share is part of its declaration, and of its fingerprint only where it is said."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, strategies as st

from binas.base.errors import SpaceError
from binas.space import (
    NetworkRules,
    SqueezeRule,
    load_space,
    space_from_data,
    space_from_yaml,
    space_to_data,
    space_to_yaml,
)

DEMO = load_space("demo")
RULES = NetworkRules(
    padding="same",
    norm_epsilon=1e-3,
    squeeze=SqueezeRule(of="input", divisor=1, gate="sigmoid"),
    mean=(0.5,),
    std=(0.25,),
)


def test_a_space_with_rules_is_read_back() -> None:
    space = replace(DEMO, rules=RULES)
    assert space_from_yaml(space_to_yaml(space)) == space
    assert space_from_data(space_to_data(space)).rules == RULES
    assert space_to_data(space)["rules"]["squeeze"] == {"of": "input", "divisor": 1, "gate": "sigmoid"}


def test_rules_change_the_fingerprint_only_where_they_are_said() -> None:
    # As it was before spaces had rules: tables refer to it.
    assert load_space("small-28").fingerprint == "2fc2366eb7f20cf7"
    assert replace(DEMO, rules=NetworkRules(padding="torch")).fingerprint == DEMO.fingerprint
    assert replace(DEMO, rules=NetworkRules(padding="same")).fingerprint != DEMO.fingerprint


@pytest.mark.parametrize(
    ("rules", "says"),
    [
        ({"padding": "valid"}, "rules.padding"),
        ({"norm_epsilon": 0}, "rules.norm_epsilon"),
        ({"norm_epsilon": float("nan")}, "rules.norm_epsilon"),
        ({"eps": 0.1}, "rules.eps"),
        ({"squeeze": {"gate": "soft"}}, "rules.squeeze.gate"),
        ({"features_activation": "tanh"}, "rules.features_activation"),
        ({"mean": [0.5]}, "give mean and std, or neither"),
        ({"mean": [0.5], "std": [0.0]}, "every std must be above 0"),
        ({"mean": [0.5], "std": [0.5, 0.5]}, "mean and std have 1 and 2 values"),
        ({"mean": [0.5] * 3, "std": [0.5] * 3}, "have 3 values, but images have 1 channels"),
    ],
)
def test_bad_rules(rules: dict[str, Any], says: str) -> None:
    with pytest.raises(SpaceError, match=says):
        space_from_data({**space_to_data(DEMO), "rules": rules})


@pytest.mark.parametrize(
    ("size", "kernel", "stride", "margins"),
    [
        (224, 3, 2, (0, 1)),
        (225, 3, 2, (1, 1)),
        (56, 5, 2, (1, 2)),
        (15, 5, 2, (2, 2)),
        (14, 3, 1, (1, 1)),
        (8, 1, 2, (0, 0)),
        (1, 3, 2, (1, 1)),
    ],
)
def test_margins_of_tensorflow(size: int, kernel: int, stride: int, margins: tuple[int, int]) -> None:
    assert NetworkRules(padding="same").margins(size, kernel, stride) == margins
    assert NetworkRules().margins(size, kernel, stride) == (kernel // 2, kernel // 2)


@given(size=st.integers(1, 300), half=st.integers(0, 4), stride=st.integers(1, 4))
def test_either_padding_lets_as_many_pixels_through(size: int, half: int, stride: int) -> None:
    kernel = 2 * half + 1
    for padding in ("torch", "same"):
        before, after = NetworkRules(padding=padding).margins(size, kernel, stride)
        padded = max(size + before + after, kernel)
        assert (padded - kernel) // stride + 1 == -(-size // stride)
