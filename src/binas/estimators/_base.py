"""What every estimator is: the seam between what is known about accuracy and the search."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Protocol, Self, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from binas.estimators.links import LinkName
from binas.estimators.objective import Objective
from binas.space.architecture import Architecture
from binas.space.space import SearchSpace
from binas.tables.samples import Samples

Array = NDArray[np.float64]


@runtime_checkable
class Estimator(Protocol):
    """Says how accurate an architecture will be: g(accuracy) = total, g the ``link``.

    What people see is in percent; ``objective`` is on the scale of the link, and carries it. Any class with these
    members is an estimator: ``SearchProblem.build(estimator, costs, limits)`` takes it.
    """

    @property
    def link(self) -> LinkName:
        """The scale on which effects add up."""

    @property
    def space(self) -> SearchSpace:
        """The space whose architectures it knows."""

    def fit(self, samples: Samples) -> Self:
        """Learn from measured architectures; one that was measured otherwise has nothing to learn and stays as it is."""

    def predict(self, architectures: Iterable[Architecture]) -> Array:
        """Accuracies in percent, (n,)."""

    def standard_error(self, architectures: Iterable[Architecture]) -> Array:
        """Standard errors of the predictions in points, (n,); NaN where not known."""

    def objective(self) -> Objective:
        """What a search maximises when it trusts this estimator."""
