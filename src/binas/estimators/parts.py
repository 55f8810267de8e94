"""The two parts of the bilinear estimator, depths (q_beta) and configs (Q), told apart (paper, section 4.1, table 2).

Adding a number to every config of a block and taking it from every depth that has the block changes no prediction, so
contributions alone do not say what belongs to which part. :func:`separated` says it: the configs of a block have
mean zero, and so have the depths of a stage. Then q_beta is what depth brings with average configs, Q what
configs change at given depths, and the base what the average architecture has.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from binas.estimators.bilinear import BilinearEstimator
from binas.space.architecture import Architecture
from binas.space.space import SearchSpace
from binas.tables.entries import Column

Array = NDArray[np.float64]


def separated(space: SearchSpace, base: float, values: Column) -> tuple[float, Column]:
    """The same estimator with configs of mean zero in every block and depths of mean zero in every stage."""
    depths, configs = [], []
    for stage, of_depths, blocks in zip(space.stages, values.depths, values.configs, strict=True):
        means = np.array([block.mean() for block in blocks])
        moved = of_depths + np.array([means[:depth].sum() for depth in stage.depths])
        base += float(moved.mean())
        depths.append(moved - moved.mean())
        configs.append(tuple(block - mean for block, mean in zip(blocks, means, strict=True)))
    return base, Column(tuple(depths), tuple(configs))


def ablation(estimator: BilinearEstimator, architectures: Sequence[Architecture]) -> dict[str, Array]:
    """Predicted accuracies in percent without one part: ``q_beta = 0`` and ``Q = 0``, after :func:`separated`.

    A part is left out of the answer where the space does not let it be told apart: q_beta where every stage has one
    depth, Q where every block has one config.
    """
    space = estimator.space
    base, values = separated(space, estimator.base, estimator.values)
    rows = space.layout.rows(architectures)
    weights = values.flat()
    found = {}
    if any(len(stage.depths) > 1 for stage in space.stages):
        found["q_beta = 0"] = rows[:, : space.alpha_size] @ weights[: space.alpha_size]
    if any(len(block) > 1 for stage in space.stages for block in stage.blocks):
        found["Q = 0"] = rows[:, space.alpha_size :] @ weights[space.alpha_size :]
    return {name: estimator.scale.inverse(base + total) for name, total in found.items()}
