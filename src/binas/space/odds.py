"""How likely each choice is where networks are drawn: decks of choices, one for every decision.

A deck holds each choice as often as its probability says, and at least once; a card is drawn uniformly. So balanced designs
work with any odds as they do with uniform choices (:func:`uniform_odds`, paper section 3.2).
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from binas.space.space import SearchSpace

Array = NDArray[np.float64]
Indices = NDArray[np.int64]

CARDS = 16  # of a deck; every choice has at least one
DEPTH = -1  # "block" of a stage's depth decision
Place = tuple[int, int]


@dataclass(frozen=True)
class Odds:
    """A deck for every decision (stage, block or DEPTH): indices of choices, drawn uniformly among them."""

    decks: Mapping[Place, Indices]

    def share(self, place: Place, choice: int) -> float:
        """How likely a choice is."""
        return float(np.mean(self.decks[place] == choice))

    def expected_row(self, space: SearchSpace) -> Array:
        """The mean of rows z (:mod:`binas.space.layout`) over drawn networks."""
        parts, depths = [], []
        for s, stage in enumerate(space.stages):
            deep = np.asarray(stage.depths)[self.decks[s, DEPTH]]
            for b, configs in enumerate(stage.blocks):
                active = float(np.mean(deep > b))
                parts.append(
                    active * np.bincount(self.decks[s, b], minlength=len(configs)) / len(self.decks[s, b])
                )
            deck = self.decks[s, DEPTH]
            depths.append(np.bincount(deck, minlength=len(stage.depths)) / len(deck))
        return np.concatenate([*parts, *depths])


def uniform_odds(space: SearchSpace) -> Odds:
    """Every choice of every decision equally likely (paper section 3.2)."""
    decks = {}
    for s, stage in enumerate(space.stages):
        decks[s, DEPTH] = np.arange(len(stage.depths))
        decks |= {(s, b): np.arange(len(configs)) for b, configs in enumerate(stage.blocks)}
    return Odds(decks)


def network_odds(space: SearchSpace) -> Odds:
    """Every network about equally likely: a depth as likely as the share of networks that have it, configs uniform.

    Of 16 cards every depth has at least one, so shallow networks come more often than their share.
    """
    decks = dict(uniform_odds(space).decks)
    for s, stage in enumerate(space.stages):
        logs = np.array(
            [sum(math.log(len(block)) for block in stage.blocks[:depth]) for depth in stage.depths]
        )
        weights = np.exp(logs - logs.max())
        decks[s, DEPTH] = deck_of(weights / weights.sum())
    return Odds(decks)


def deck_of(probabilities: Array) -> Indices:
    """Choices, each at least once, and as often as its probability says otherwise."""
    count = len(probabilities)
    if count == 1:
        return np.zeros(1, dtype=np.int64)
    spare = max(0, CARDS - count)
    exact = probabilities * spare
    cards = np.floor(exact).astype(np.int64)
    missing = spare - int(cards.sum())
    cards[np.argsort(cards - exact, kind="stable")[:missing]] += 1
    return np.repeat(np.arange(count), cards + 1)
