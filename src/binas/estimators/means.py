"""Contributions as means over measured architectures (section 3.2 on a table of samples).

For every depth E[g(Acc) | d^s = d] - E[g(Acc)], for every config E[g(Acc) | O^s_b = c] - E[g(Acc) | block b active]. What a
config adds is held against networks that have its block, so the worth of depth is not counted twice. On all architectures
of a space whose stages have one depth this is the least-squares fit.

A mean over the samples that have a choice holds what their *other* choices bring as well. That averages out only where
decisions were drawn independently of each other; of samples spread evenly over a cost, those with one large block have
many, and means count each of them again in every block. Such samples are refused (:func:`check_independent`).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from binas.base.errors import EstimatorError, several
from binas.estimators.bilinear import contributions_on_link
from binas.estimators.links import LinkName, get_link
from binas.space.space import SearchSpace
from binas.tables.contributions import Contributions
from binas.tables.entries import Column, Provenance
from binas.tables.samples import Samples

Array = NDArray[np.float64]

SHUFFLES = 50
LOOKED_AT = 2000  # samples that the test of independence takes
CLEAR = 6.0  # standard deviations of the shuffled association above which decisions are not independent
ADVICE = (
    "Means over them would count the same effect several times. Learn instead: `binas predictors RUN --fit additive`, "
    "AdditivePredictor(link='log').fit(samples).contributions(), or measure with `binas sample RUN --strata uniform`."
)


def marginal_means(samples: Samples, link: LinkName = "identity") -> Contributions:
    """Contributions in points for ``BilinearEstimator`` with the same ``link``; every choice must occur, independently."""
    space, scale = samples.space, get_link(link)
    rows, values = space.layout.rows(samples.architectures), scale.forward(samples.accuracy)
    seen = rows.sum(axis=0)
    if not len(samples) or not seen.all():
        raise EstimatorError(_missing(space, seen))
    check_independent(samples, rows)
    base = float(values.mean())
    means = rows.T @ values / seen - _reference(space, rows, values)
    provenance = Provenance.made(f"means over {len(samples)} samples", link=link)
    return contributions_on_link(space, base, means, scale, provenance, Column.from_flat(space, seen))


def check_independent(samples: Samples, rows: Array, seed: int = 0) -> None:
    """Refuse samples whose decisions depend on each other, as their provenance says or their frequencies show.

    The association of decisions is sum |Z_d' Z_e|^2 over pairs of decisions, Z_d a decision's choices minus their shares
    among the samples that take it. It is held against what is left when each decision is shuffled among these samples.
    """
    strata = samples.provenance.to_data().get("strata", "uniform")
    if strata != "uniform":
        raise EstimatorError(f"these samples were drawn by strata of {strata}, not uniformly. {ADVICE}")
    rng, space = np.random.default_rng(seed), samples.space
    rows = rows[rng.permutation(len(rows))[:LOOKED_AT]]
    found = _association(space, rows)
    shuffled = [_association(space, _shuffled(space, rows, rng)) for _ in range(SHUFFLES)]
    if found > np.mean(shuffled) + CLEAR * np.std(shuffled) + 1e-9 * len(rows) ** 2:
        raise EstimatorError(
            f"the decisions of these {len(samples)} samples depend on each other ({found / np.mean(shuffled):.1f} times the "
            f"association of independent ones): they were not drawn uniformly. {ADVICE}"
        )


def _association(space: SearchSpace, rows: Array) -> float:
    centred = rows.copy()
    for where in space.layout.slices:
        part = centred[:, where]
        active = part.any(axis=1)
        part[active] -= part[active].mean(axis=0) if active.any() else 0.0
    products = centred.T @ centred
    within = sum(float((products[where, where] ** 2).sum()) for where in space.layout.slices)
    return float((products**2).sum()) - within


def _shuffled(space: SearchSpace, rows: Array, rng: np.random.Generator) -> Array:
    """The same rows with every decision shuffled among those that take it."""
    result = rows.copy()
    for where in space.layout.slices:
        active = np.flatnonzero(rows[:, where].any(axis=1))
        result[active, where] = rows[rng.permutation(active), where]
    return result


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
