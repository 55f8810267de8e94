"""Paths are functions of (seed, image, pass), balanced over images and over passes."""

import numpy as np
import pytest
from hypothesis import given, strategies as st

from binas.contributions import balanced_paths, conditioned_paths
from binas.contributions.paths import DEPTH, decisions
from binas.space import Config, SearchSpace, Stage, load_space
from binas.testing import make_space

DEMO = load_space("small-28")
GAPS = SearchSpace(
    "gaps",
    (
        Stage("a", (0, 2), (tuple(map(Config, "xyz")), tuple(map(Config, "xy")))),
        Stage("b", (1,), ((Config("only"),),)),
    ),
)


def choices(space, images, number, seed=0):
    """Depths and, of blocks that any image uses, all drawn configs, by decision."""
    depths, configs = balanced_paths(space, images, number, seed)
    found = {}
    for s, b, _ in decisions(space):
        if b == DEPTH:
            found[s, b] = np.searchsorted(space.stages[s].depths, depths[:, s])
        elif (depths[:, s] > b).all():
            found[s, b] = configs[:, s, b]
    return found


@pytest.mark.parametrize("space", [DEMO, GAPS, make_space(2, 2, 5, 2)], ids=lambda space: space.name)
def test_every_choice_comes_equally_often_in_a_pass_and_for_an_image(space):
    images, passes = np.arange(60), 60
    drawn = [choices(space, images, number) for number in range(passes)]
    for s, b, count in decisions(space):
        if (s, b) not in drawn[0]:
            continue
        table = np.stack([found[s, b] for found in drawn])
        for line in (*table, *table.T):
            assert (np.bincount(line, minlength=count) == 60 // count).all()


@given(seed=st.integers(0, 100), number=st.integers(0, 50), data=st.data())
def test_a_path_depends_only_on_seed_image_and_pass(seed, number, data):
    images = np.array(data.draw(st.lists(st.integers(0, 200), min_size=1, max_size=20)))
    whole = balanced_paths(DEMO, np.arange(201), number, seed)
    some = balanced_paths(DEMO, images, number, seed)
    assert all((part[images] == found).all() for part, found in zip(whole, some, strict=True))
    fixed = {(0, DEPTH): np.array([2]), (0, 1): np.array([3, 7])}
    whole = conditioned_paths(DEMO, np.arange(201), number, seed, fixed)
    some = conditioned_paths(DEMO, images, number, seed, fixed)
    assert all((part[images] == found).all() for part, found in zip(whole, some, strict=True))


def test_other_seeds_passes_and_decisions_give_other_paths():
    images = np.arange(200)
    depths, configs = balanced_paths(DEMO, images, 0, 0)
    for number, seed in ((1, 0), (0, 1), (12, 0)):
        other = balanced_paths(DEMO, images, number, seed)
        assert (depths != other[0]).mean() > 0.3
        assert (configs != other[1]).mean() > 0.3
    first, second = depths[:, 0], depths[:, 1]
    assert abs(np.corrcoef(first, second)[0, 1]) < 0.2


@pytest.mark.parametrize("draw", [balanced_paths, lambda *a: conditioned_paths(*a, {})])
def test_pairs_of_choices_are_uniform(draw):
    """Decisions are independent of each other: each pair of choices of two blocks comes about equally often."""
    space, counts = make_space(1, 2, 4, 2), np.zeros((4, 4))
    for number in range(40):
        _, configs = draw(space, np.arange(400), number, 3)
        np.add.at(counts, (configs[:, 0, 0], configs[:, 0, 1]), 1)
    expected = counts.sum() / 16
    assert ((counts - expected) ** 2 / expected).sum() < 40  # chi-squared with 9 to 15 degrees of freedom


def test_a_condition_fixes_its_decisions_and_leaves_the_others_uniform():
    fixed = {(1, DEPTH): np.array([1, 2]), (1, 1): np.array([5])}
    depths, configs = conditioned_paths(DEMO, np.arange(3000), 4, 0, fixed)
    assert set(depths[:, 1]) == {2, 3}
    assert set(configs[:, 1, 1]) == {5}
    assert np.bincount(depths[:, 0])[1:].min() > 850
    active = depths[:, 1] == 3
    assert np.bincount(configs[active, 1, 2], minlength=12).min() > 70
    assert (configs[~active, 1, 2] == -1).all()
