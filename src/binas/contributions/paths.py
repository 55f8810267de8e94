"""Paths of the protocols, as functions of (seed, image, pass): nothing to store, nothing to replay.

``balanced_paths`` is the factorial design. For a decision with K choices, image i takes in pass p the choice

    (r_i + t_p) mod K,

where r is a random permutation of 0..K-1 for every K consecutive images and t one for every K consecutive
passes, drawn anew for each decision and each K passes. So any K consecutive images share out all K choices in
every pass, and every image meets all K choices in K passes: a Latin square per decision, independent between
decisions. Each path by itself is uniform.

Where choices are not equally likely (:mod:`binas.space.odds`) K is the size of the decision's deck, and the number drawn
is a card of it. Several odds take turns from pass to pass.

``conditioned_paths`` draws independently, with some decisions held fixed (paper section 3.2).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from binas.contributions.outcomes import Indices
from binas.space.odds import DEPTH, Odds, uniform_odds
from binas.space.space import SearchSpace

Paths = tuple[Indices, Indices]


def decisions(space: SearchSpace) -> list[tuple[int, int, int]]:
    """All decisions as (stage, block or DEPTH, number of choices)."""
    found = []
    for s, stage in enumerate(space.stages):
        found.append((s, DEPTH, len(stage.depths)))
        found += [(s, b, len(configs)) for b, configs in enumerate(stage.blocks)]
    return found


def balanced_paths(
    space: SearchSpace, images: Indices, number: int, seed: int, odds: Sequence[Odds] = ()
) -> Paths:
    """Paths of ``images`` (n,) in pass ``number``: depths (n, S), configs (n, S, D); uniform without ``odds``."""
    turn, key = (number % len(odds), (seed, 3, number % len(odds))) if odds else (0, (seed, 0))
    own, place = (odds[turn], number // len(odds)) if odds else (uniform_odds(space), number)
    choices = {}
    for j, (s, b, _) in enumerate(decisions(space)):
        deck = own.decks[s, b]
        choices[s, b] = deck[_latin(images, place, len(deck), (*key, j))]
    return _assembled(space, len(images), choices)


def conditioned_paths(
    space: SearchSpace, images: Indices, number: int, seed: int, allowed: Mapping[tuple[int, int], Indices]
) -> Paths:
    """Independent uniform paths; ``allowed`` restricts decisions (stage, block or DEPTH) to some choices."""
    choices = {}
    for j, (s, b, count) in enumerate(decisions(space)):
        among = allowed.get((s, b), np.arange(count))
        drawn = _uniform(int(images.min()), int(images.max()) + 1, 1, (seed, 1, j, number))[:, 0]
        choices[s, b] = among[(drawn[images - images.min()] * len(among)).astype(np.int64)]
    return _assembled(space, len(images), choices)


def _assembled(space: SearchSpace, count: int, choices: Mapping[tuple[int, int], Indices]) -> Paths:
    depths = np.empty((count, len(space.stages)), dtype=np.int64)
    configs = np.full((count, len(space.stages), space.max_depth), -1, dtype=np.int64)
    for s, stage in enumerate(space.stages):
        depths[:, s] = np.asarray(stage.depths)[choices[s, DEPTH]]
        for b in range(len(stage.blocks)):
            configs[:, s, b] = np.where(depths[:, s] > b, choices[s, b], -1)
    return depths, configs


def _latin(images: Indices, number: int, count: int, key: tuple[int, ...]) -> Indices:
    """(r_i + t_p) mod ``count`` of ``images`` in pass ``number``."""
    cycle, place = divmod(number, count)
    first = int(images.min()) // count
    shares = _uniform(first, int(images.max()) // count + 1, count, (*key, cycle, 0))
    ranks = shares.argsort(axis=1).reshape(-1)
    shift = _uniform(0, 1, count, (*key, cycle, 1))[0].argsort()[place]
    return np.asarray((ranks[images - first * count] + shift) % count)


def _uniform(first: int, end: int, width: int, key: tuple[int, ...]) -> np.ndarray:
    """Rows ``first`` to ``end`` of an endless table of uniform numbers with ``width`` columns, named by a key."""
    source = np.random.PCG64(np.random.SeedSequence(key))
    source.advance(first * width)  # one number takes one step
    return np.random.Generator(source).random((end - first, width))
