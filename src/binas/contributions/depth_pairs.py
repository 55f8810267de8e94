"""What two depths of different stages bring together, beyond what each brings alone: from the same recorded passes.

Near the top a deeper stage brings less where the others are deep already, and may even cost. In the residuals of the fit of
:mod:`binas.contributions.shrinkage`, e = y - z'theta within images, every pair of stages (s, t) has effects of their depths,

    e = sum_{s < t} u_st[d_s, d_t] + noise,    sum over d_s of u_st = sum over d_t of u_st = 0,

independent normal with a common variance, which is the one with the most evidence. Decisions are drawn independently, so
these effects are orthogonal to those of single choices and to each other up to chance, and change none of them. They are
told only where the evidence for them is clear. The outcome is the soft one where there is one, brought to accuracy by the
slope of the fit.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator

import numpy as np
from scipy.linalg import block_diag, helmert

from binas.contributions.normal import Recorded, Stretch
from binas.contributions.outcomes import Array
from binas.contributions.shrinkage import CLEAR, SCALES, turned
from binas.space.space import SearchSpace
from binas.tables.contributions import DepthPairs


def stage_pairs(space: SearchSpace) -> list[tuple[int, int]]:
    """Pairs of stages that both have a choice of depths."""
    several = [s for s, stage in enumerate(space.stages) if len(stage.depths) > 1]
    return list(itertools.combinations(several, 2))


def depth_pairs(recorded: Recorded, soft: Array, slope: float) -> DepthPairs | None:
    """u_st in points by pair of stages, (depths of s, depths of t); None where the evidence for any is not clear.

    ``soft`` (q,) are the coefficients of the kind of outcome that is fitted, the last of ``recorded.kinds``, and ``slope``
    what one unit of it is worth in accuracy.
    """
    pairs = stage_pairs(recorded.design.space)
    if not pairs:
        return None
    contrasts = _contrasts(recorded.design.space, pairs)
    gram, moment, spread = np.zeros((contrasts.shape[1],) * 2), np.zeros(contrasts.shape[1]), 0.0
    for products, residuals in _residuals(recorded, pairs, contrasts, soft):
        gram += products.T @ products
        moment += products.T @ residuals
        spread += float(residuals @ residuals)
    if not gram.any():  # too few passes to tell anything
        return None
    at = turned(gram, moment, np.eye(len(gram)) / np.diag(gram).mean())
    evidence = at.log_evidence(SCALES, spread, recorded.journal.images * (recorded.passes - 1))
    best = int(np.argmax(evidence))
    if evidence[best] < evidence[0] + CLEAR:
        return None
    effects = 100 * slope * (contrasts @ at.coefficients(SCALES[best : best + 1])[0])
    return _by_pair(recorded.design.space, pairs, effects)


def _contrasts(space: SearchSpace, pairs: list[tuple[int, int]]) -> Array:
    """Orthonormal (products of depths, effects): those that average to zero over the depths of either stage."""
    sizes = [len(stage.depths) for stage in space.stages]
    return np.asarray(block_diag(*(np.kron(helmert(sizes[s]).T, helmert(sizes[t]).T) for s, t in pairs)))


def _residuals(
    recorded: Recorded, pairs: list[tuple[int, int]], contrasts: Array, soft: Array
) -> Iterator[tuple[Array, Array]]:
    """Effects of pairs (n, q) and residuals (n,) of all evaluations, without their image's means, a stretch at a time."""
    theta = recorded.design.contrasts @ soft
    for stretch in recorded.stretches():
        fitted = stretch.within(stretch.rows.dot(theta)[None])[0]
        products = _products(recorded.design.space, stretch, pairs) @ contrasts
        yield stretch.within(products.T).T, stretch.centred[-1] - fitted


def _products(space: SearchSpace, stretch: Stretch, pairs: list[tuple[int, int]]) -> Array:
    """1[d_s = i] 1[d_t = j] of every evaluation, for all pairs of stages."""
    depths = stretch.rows[:, space.alpha_size :].toarray()
    parts = [depths[:, where] for where in space.layout.beta_slices]
    columns = [(parts[s][:, :, None] * parts[t][:, None, :]).reshape(len(depths), -1) for s, t in pairs]
    return np.hstack(columns)


def _by_pair(space: SearchSpace, pairs: list[tuple[int, int]], effects: Array) -> DepthPairs:
    shapes = [tuple(len(space.stages[k].depths) for k in pair) for pair in pairs]
    ends = np.cumsum([int(np.prod(shape)) for shape in shapes])[:-1]
    parts = zip(pairs, shapes, np.split(effects, ends), strict=True)
    return {pair: part.reshape(shape) for pair, shape, part in parts}
