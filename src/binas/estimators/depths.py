"""Contributions and what depths of different stages bring together, each as far as samples confirm it."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import replace
from functools import cached_property
from typing import Self

import numpy as np
from numpy.typing import NDArray

from binas.base.errors import EstimatorError
from binas.estimators.bilinear import BilinearEstimator
from binas.estimators.links import LinkName
from binas.estimators.objective import MOST_COMBINATIONS, DepthsObjective
from binas.space.architecture import Architecture
from binas.space.space import SearchSpace
from binas.tables.contributions import Contributions, DepthPairs
from binas.tables.samples import Samples

Array = NDArray[np.float64]


class DepthsEstimator:
    """accuracy = c + a (base + sum of Delta_j) + b sum_{s < t} u_st[d_s, d_t], in percent.

    Delta are the contributions and u the pairs of depths of a table (``Contributions.depth_pairs``), both from the same
    passes through the supernet. Samples tell how far they hold for networks by themselves: c, a and b, a and b not negative,
    are the least-squares fit to them (c = 0 and a = b = 1 before). They need it: in measurements of two
    supernets a came to anything from 0.6 to 1.1 and b from 0.1 to 1.1. With all depths given it is a sum over choices, so a
    search is exact.
    """

    link: LinkName = "identity"

    def __init__(self, contributions: Contributions) -> None:
        self.additive, space = BilinearEstimator(contributions, self.link), contributions.space
        if contributions.depth_pairs is None:
            raise EstimatorError(
                "these contributions hold no pairs of depths: they were not measured by the factorial protocol, or the "
                "measurement has no clear evidence for any."
            )
        if math.prod(len(stage.depths) for stage in space.stages) > MOST_COMBINATIONS:
            raise EstimatorError(f"{space.name!r} has more than {MOST_COMBINATIONS} combinations of depths.")
        self.pairs: DepthPairs = contributions.depth_pairs
        self.constant_, self.slopes_ = 0.0, np.ones(2)

    @property
    def space(self) -> SearchSpace:
        """The space of the contributions."""
        return self.additive.space

    @cached_property
    def joint(self) -> Array:
        """sum_{s < t} u_st of all combinations of depths, in points; an axis for every stage."""
        stages = self.space.stages
        total = np.zeros([len(stage.depths) for stage in stages])
        for (s, t), values in self.pairs.items():
            total += values.reshape([len(x.depths) if k in (s, t) else 1 for k, x in enumerate(stages)])
        return total

    def fit(self, samples: Samples) -> Self:
        """Learn from measured architectures how far contributions and pairs hold."""
        parts, target = self._parts(samples.architectures), samples.accuracy
        means, slopes = parts.mean(axis=0), np.zeros(2)
        free = np.arange(2)
        while len(free):  # an effect that samples contradict is left out
            slopes = np.zeros(2)
            centred = parts[:, free] - means[free]
            slopes[free] = np.linalg.lstsq(centred, target - target.mean(), rcond=None)[0]
            if (slopes >= 0).all():
                break
            free = np.delete(free, np.argmin(slopes[free]))
            slopes = np.maximum(slopes, 0.0)
        self.slopes_, self.constant_ = slopes, float(target.mean() - means @ slopes)
        return self

    def predict(self, architectures: Iterable[Architecture]) -> Array:
        """Accuracies in percent, (n,)."""
        return np.asarray(self.constant_ + self._parts(architectures) @ self.slopes_)

    def standard_error(self, architectures: Iterable[Architecture]) -> Array:
        """Standard errors of the contributions' part in points, (n,); NaN where not known."""
        return self.errors(self.gradients(architectures))

    def gradients(self, architectures: Iterable[Architecture]) -> Array:
        """d accuracy / d (base, contributions), (n, 1 + choices)."""
        return np.asarray(self.slopes_[0] * self.additive.gradients(architectures))

    def errors(self, weights: Array) -> Array:
        """Standard errors in points of sums of (base, contributions), one per row of ``weights``, (n,)."""
        return self.additive.errors(weights)

    def joint_errors(self, weights: Array) -> Array:
        """Covariance of these sums, in points^2, (n, n)."""
        return self.additive.joint_errors(weights)

    def objective(self) -> DepthsObjective:
        """The same, for a search."""
        own, pairs = self.slopes_.tolist()
        inner = self.additive.objective()
        scaled = replace(
            inner, base=self.constant_ + own * inner.base, values=inner.values.map(lambda x: own * x)
        )
        return DepthsObjective(scaled, pairs * self.joint, errors=self.standard_error)

    def _parts(self, architectures: Iterable[Architecture]) -> Array:
        """What contributions and pairs of depths say of architectures, (n, 2)."""
        items = list(architectures)
        depths, _ = self.space.to_indices(items)
        index = [np.searchsorted(stage.depths, depths[:, s]) for s, stage in enumerate(self.space.stages)]
        return np.column_stack([self.additive.predict(items), self.joint[tuple(index)]])
