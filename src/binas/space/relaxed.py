"""Paths drawn from relaxed decisions, and gradients of an expected loss with respect to their probabilities.

L(alpha, beta) is the expected loss of a path of which every decision is drawn from its probabilities p. A hard
Gumbel-softmax sample is the argmax of log p + Gumbel noise, which is a draw from p (:func:`gumbel_paths`). Two gradients:

``score`` (:func:`score_gradient`). d L / d p_c is the mean loss of paths that drew c, up to a constant for each decision:
whatever the network computes, this has no bias. It is noisy because images differ in difficulty far more than paths do. So
every image takes several paths, and each one's loss is held against the mean of the image's others (a control variate that
does not depend on what the path drew, so the mean stays right). It needs no backward pass.

``straight-through`` (:func:`straight_through`). The forward pass takes the hard choice, the backward pass the soft weights
s = softmax((log p + noise) / T), T the temperature: a gate hard - constant(s) + s multiplies the output of the drawn one.
Let g_i be the slope of image i's loss in that gate (:meth:`binas.supernet.network.Supernet.forward`), for a depth the sum of
the slopes of the blocks past the shallowest depth, and g its mean over images on which the decision counts. Through the
softmax, c being what image i drew,

    d L / d p_k  ~  1 / (n T p_k)  *  sum over i of (g_i - g) s_ic (1[k = c] - s_ik).

The loss is not linear in what a block adds, and soft weights are not probabilities, so this is *biased*: a block that runs
is judged by what a little more of it would do, not by what the network would do without it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from binas.space.space import SearchSpace

Array = NDArray[np.float64]
Indices = NDArray[np.int64]
Paths = tuple[Indices, Indices]
Gradient = Literal["score", "straight-through"]

TEMPERATURE = 1.0


@dataclass(frozen=True, eq=False)
class Drawn:
    """Hard paths, depths (n, S) and configs (n, S, D), and the soft weights (n, size) of all choices of every decision."""

    paths: Paths
    soft: Array


def gumbel_paths(
    space: SearchSpace,
    alpha: Array,
    beta: Array,
    count: int,
    rng: np.random.Generator,
    temperature: float = TEMPERATURE,
) -> Drawn:
    """Gumbel-softmax samples of ``count`` paths: every decision the argmax of log p + noise, and its softmax.

    Probabilities may miss a sum of one, and of zero from below, by rounding; a choice without any is never drawn.
    """
    layout, z = space.layout, np.maximum(np.concatenate([alpha, beta]), 0.0)
    with np.errstate(divide="ignore"):
        noisy = np.log(z) + rng.gumbel(size=(count, layout.size))
    hard, soft = np.empty((count, len(layout.slices)), dtype=np.int64), np.empty_like(noisy)
    for d, where in enumerate(layout.slices):
        hard[:, d] = noisy[:, where].argmax(axis=1)
        weights = np.exp((noisy[:, where] - noisy[:, where].max(axis=1, keepdims=True)) / temperature)
        soft[:, where] = weights / weights.sum(axis=1, keepdims=True)
    return Drawn(_paths(space, hard), soft)


def _paths(space: SearchSpace, hard: Indices) -> Paths:
    """Depths and configs of the choices (n, decisions), decisions in the order of ``space.layout.slices``."""
    configs = np.full((len(hard), len(space.stages), space.max_depth), -1, dtype=np.int64)
    first = len(hard[0]) - len(space.stages) if len(hard) else 0
    depths = np.column_stack([np.array(s.depths)[hard[:, first + i]] for i, s in enumerate(space.stages)])
    decision = 0
    for s, stage in enumerate(space.stages):
        configs[:, s, : len(stage.blocks)] = hard[:, decision : decision + len(stage.blocks)]
        decision += len(stage.blocks)
    return depths, np.where(np.arange(space.max_depth) < depths[:, :, None], configs, -1)


def straight_through(
    space: SearchSpace,
    alpha: Array,
    beta: Array,
    drawn: Drawn,
    slopes: Array,
    temperature: float = TEMPERATURE,
) -> tuple[Array, Array]:
    """d L / d alpha and d L / d beta from the slopes (n, S, D) of n images' losses in how much each block counts.

    ``drawn`` are the samples of (alpha, beta) with this temperature. The formula is above.
    """
    stages, (depths, _) = list(enumerate(space.stages)), drawn.paths
    running = np.where(np.arange(space.max_depth) < depths[:, :, None], slopes, 0.0)
    blocks = [running[:, s, b] for s, stage in stages for b in range(len(stage.blocks))]
    further = [running[:, s, min(stage.depths) :].sum(1) for s, stage in stages]
    values, taken = _centred(space, drawn.paths, np.column_stack([*blocks, *further]))
    layout, z = space.layout, np.concatenate([alpha, beta])
    sums = np.zeros(layout.size)
    for d, where in enumerate(layout.slices):
        soft = drawn.soft[:, where]
        hard = np.arange(where.start, where.stop) == taken[:, d, None]
        own = (soft * hard).sum(axis=1) * values[:, d]
        sums[where] = (own[:, None] * (hard - soft)).sum(axis=0)
    return _per_probability(space, sums, len(values) * temperature * z)


def score_gradient(
    space: SearchSpace, alpha: Array, beta: Array, paths: Paths, losses: Array, each: int
) -> tuple[Array, Array]:
    """1 / (n p_c) * sum of (loss_i - loss of i's image on its other paths) over the paths that drew c.

    ``losses`` (n,) are those of ``each`` paths of every image, one image after the other; with one path the mean of all
    images' losses is what a loss is held against.
    """
    by_image = losses.reshape(-1, each)
    if each > 1:
        losses = (by_image - by_image.mean(axis=1, keepdims=True)).ravel() * each / (each - 1)
    decisions = len(space.layout.slices)
    values, taken = _centred(space, paths, np.repeat(losses[:, None], decisions, axis=1))
    totals = np.bincount(taken.ravel(), values.ravel(), space.layout.size + 1)
    sums = np.asarray(totals[: space.layout.size], dtype=np.float64)
    return _per_probability(space, sums, len(losses) * np.concatenate([alpha, beta]))


def _centred(space: SearchSpace, paths: Paths, values: Array) -> tuple[Array, Indices]:
    """``values`` (n, decisions) less their mean over the paths on which a decision counts, and the choices taken."""
    taken = space.layout.positions(*paths)
    counts = taken < space.layout.size  # blocks past the depth do not
    return (values - (values * counts).sum(0) / np.maximum(counts.sum(0), 1)) * counts, taken


def _per_probability(space: SearchSpace, sums: Array, expected: Array) -> tuple[Array, Array]:
    """sums / expected, 0 for a choice that is never drawn, in the parts of alpha and beta."""
    return space.layout.split(np.divide(sums, expected, out=np.zeros_like(sums), where=expected > 0))
