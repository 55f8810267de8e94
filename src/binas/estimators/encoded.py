"""Architectures as rows z = (alpha * active, beta): alpha is zero for blocks past the depth.

On these rows the paper's estimator is linear: alpha' Q beta with Q[(s,b,c),(s,d)] = Delta^s_{b,c} 1[d >= b] equals
the sum of Delta^s_{b,c} over active blocks (section 3.3).
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from binas.space.architecture import Architecture
from binas.space.encoding import Encoding
from binas.space.space import SearchSpace
from binas.tables.entries import Column

Array = NDArray[np.float64]
Indices = NDArray[np.int64]


def one_hot_rows(space: SearchSpace, architectures: Iterable[Architecture]) -> Array:
    """z of every architecture, (n, alpha_size + beta_size)."""
    encoding = Encoding(space)
    rows = [np.concatenate(encoding.encode(item, inactive="zero")) for item in architectures]
    return np.array(rows).reshape(len(rows), space.alpha_size + space.beta_size)


def stage_columns(space: SearchSpace, stage: int) -> Indices:
    """Where the decisions of one stage stand in z: its configs block by block, then its depths."""
    encoding = Encoding(space)
    parts = [*encoding.alpha_blocks[stage], _depths(space, encoding, stage)]
    return np.concatenate([np.arange(part.start, part.stop) for part in parts])


def column_of(space: SearchSpace, vector: Array) -> Column:
    """A vector in the order of z as one number per decision: the reverse of ``Column.flat``."""
    encoding = Encoding(space)
    return Column(
        tuple(vector[_depths(space, encoding, s)] for s in range(len(space.stages))),
        tuple(tuple(vector[where] for where in blocks) for blocks in encoding.alpha_blocks),
    )


def decision_names(space: SearchSpace) -> list[str]:
    """What each entry of z stands for, for messages."""
    configs = [
        f"{config.name} in block {b} of stage {stage.name!r}"
        for stage in space.stages
        for b, block in enumerate(stage.blocks, 1)
        for config in block
    ]
    return configs + [
        f"depth {depth} of stage {stage.name!r}" for stage in space.stages for depth in stage.depths
    ]


def _depths(space: SearchSpace, encoding: Encoding, stage: int) -> slice:
    where = encoding.beta_stages[stage]
    return slice(space.alpha_size + where.start, space.alpha_size + where.stop)
