"""Contributions as conditional means over measured architectures (section 3.2 on a table of samples).

For every depth E[g(Acc) | d^s = d] - E[g(Acc)], for every config E[g(Acc) | O^s_b = c] - E[g(Acc) | block b active]:
what a config adds is held against networks that have its block, so the worth of depth is not counted
twice. g is the link. On all architectures of a space whose stages have one depth this is the least-squares fit.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from binas.base.errors import EstimatorError, several
from binas.estimators.bilinear import contributions_on_link
from binas.estimators.links import LinkName, get_link
from binas.space.space import SearchSpace
from binas.tables.contributions import Contributions
from binas.tables.entries import Column, Provenance, today
from binas.tables.samples import Samples
from binas.version import __version__

Array = NDArray[np.float64]


def marginal_means(samples: Samples, link: LinkName = "identity") -> Contributions:
    """Contributions in points for :class:`BilinearEstimator` with the same ``link``; every choice must occur."""
    space, scale = samples.space, get_link(link)
    rows, values = space.layout.rows(samples.architectures), scale.forward(samples.accuracy)
    seen = rows.sum(axis=0)
    if not len(samples) or not seen.all():
        raise EstimatorError(_missing(space, seen))
    base = float(values.mean())
    means = rows.T @ values / seen - _reference(space, rows, values)
    provenance = Provenance(
        source=f"means over {len(samples)} samples", date=today(), tool=f"binas {__version__}", link=link
    )
    return contributions_on_link(space, base, means, scale, provenance, Column.from_flat(space, seen))


def _reference(space: SearchSpace, rows: Array, values: Array) -> Array:
    """What a choice is held against: the mean of all for a depth, of those with the block for a config."""
    result = np.full(rows.shape[1], values.mean())
    for blocks in space.layout.config_slices:
        for where in blocks:
            result[where] = values[rows[:, where].any(axis=1)].mean()
    return result


def _missing(space: SearchSpace, seen: Array) -> str:
    absent = [name for name, count in zip(space.layout.names, seen, strict=True) if not count]
    return several(
        "no sample has", absent, "Measure more architectures, or fit a predictor, which can do without."
    )
