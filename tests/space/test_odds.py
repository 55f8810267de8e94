"""Odds of choices: decks that make networks about equally likely."""

import numpy as np

from binas.space import Config, SearchSpace, Stage
from binas.space.odds import CARDS, DEPTH, network_odds

BLOCK = tuple(Config(name) for name in "abc")


def test_a_depth_is_as_likely_as_the_networks_that_have_it():
    """3, 9 and 27 networks: 1, 3 and 9 of 13 parts of the cards that are not given to every depth once."""
    space = SearchSpace("one", (Stage("s1", (1, 2, 3), (BLOCK,) * 3),))
    odds = network_odds(space)
    cards = np.bincount(odds.decks[0, DEPTH])
    assert cards.tolist() == [2, 4, 10]
    assert cards.sum() == CARDS
    assert [odds.share((0, b), c) for b in range(3) for c in range(3)] == [1 / 3] * 9


def test_deep_stages_do_not_overflow():
    space = SearchSpace("deep", (Stage("s1", (0, 900), (BLOCK,) * 900),))
    assert np.bincount(network_odds(space).decks[0, DEPTH]).tolist() == [1, CARDS - 1]
