"""Paths drawn from relaxed decisions, and gradients of an expected loss with respect to their probabilities.

L(alpha, beta) is the expected loss of a path of which every decision is drawn from its probabilities. A hard Gumbel-softmax
sample is the argmax of log p + Gumbel noise, which is a draw from p; straight-through, its backward pass takes what the
drawn choice does to the loss, to first order, for the derivative with respect to its probability. Let g_ib be the slope of
image i's loss in how much the output of block b counts (:meth:`binas.supernet.network.Supernet.forward`), and for a depth
the sum of the slopes of the blocks past the shallowest depth: what going on that far did. With g the mean of g_i over the
images on which a decision counts,

    d L / d p_c  ~  1 / (n p_c)  *  sum of (g_i - g) over the images that drew c.

This is exact, up to a constant for each decision, where the loss is linear in what blocks add. A real network's is not: the
estimate is *biased*, as every straight-through gradient is. What it gains is that one image informs all the decisions of
its path. (For a depth, the slope in the output of a whole stage would do as well in a linear world; in a real one it is
mostly the slope in the size of that output, and ranked the depths of a demo supernet the wrong way round.)
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from binas.space.space import SearchSpace

Array = NDArray[np.float64]
Indices = NDArray[np.int64]


def draw_paths(
    space: SearchSpace, alpha: Array, beta: Array, count: int, rng: np.random.Generator
) -> tuple[Indices, Indices]:
    """Paths of ``count`` images, every decision drawn from its probabilities: depths (n, S) and configs (n, S, D)."""
    layout = space.layout
    depths = np.empty((count, len(space.stages)), dtype=np.int64)
    configs = np.full((count, len(space.stages), space.max_depth), -1, dtype=np.int64)
    for s, stage in enumerate(space.stages):
        depths[:, s] = np.array(stage.depths)[_draws(beta[layout.beta_slices[s]], count, rng)]
        for b, where in enumerate(layout.config_slices[s]):
            configs[:, s, b] = _draws(alpha[where], count, rng)
    return depths, np.where(np.arange(space.max_depth) < depths[:, :, None], configs, -1)


def _draws(probabilities: Array, count: int, rng: np.random.Generator) -> Indices:
    """``count`` draws of an index; probabilities may miss a sum of one by rounding."""
    ends = np.cumsum(np.maximum(probabilities, 0.0))
    return np.searchsorted(ends / ends[-1], rng.random(count), side="right").astype(np.int64)


def straight_through(
    space: SearchSpace, alpha: Array, beta: Array, paths: tuple[Indices, Indices], slopes: Array
) -> tuple[Array, Array]:
    """d L / d alpha and d L / d beta from the slopes (n, S, D) of n images' losses in how much each block counts.

    ``paths`` are the depths (n, S) and configs (n, S, D) that were drawn from (alpha, beta). The formula is above.
    """
    stages, depths = list(enumerate(space.stages)), paths[0]
    running = np.where(np.arange(space.max_depth) < depths[:, :, None], slopes, 0.0)
    blocks = [running[:, s, b] for s, stage in stages for b in range(len(stage.blocks))]
    further = [running[:, s, min(stage.depths) :].sum(1) for s, stage in stages]
    return probability_gradient(space, alpha, beta, paths, np.column_stack([*blocks, *further]))


def probability_gradient(
    space: SearchSpace, alpha: Array, beta: Array, paths: tuple[Indices, Indices], values: Array
) -> tuple[Array, Array]:
    """1 / (n p_c) * sum of (g_i - g) over those that drew c, for every choice c of probability p_c in (alpha, beta).

    ``values`` (n, decisions) are the g_i, decisions in the order of ``space.layout.slices``; g is their mean over the paths
    on which a decision counts. With a path's loss for every decision it is the score-function gradient, which has no bias,
    and more noise.
    """
    layout, drawn = space.layout, space.layout.positions(*paths)
    counts = drawn < layout.size  # blocks past the depth do not
    centred = (values - (values * counts).sum(0) / np.maximum(counts.sum(0), 1)) * counts
    sums = np.bincount(drawn.ravel(), centred.ravel(), layout.size + 1)[: layout.size]
    expected = len(values) * np.concatenate([alpha, beta])
    return layout.split(np.divide(sums, expected, out=np.zeros_like(sums), where=expected > 0))
