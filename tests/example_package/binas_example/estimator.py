"""An estimator: every network is as good as the mean of the measured ones."""

from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from binas.estimators import Candidate
from binas.estimators.objective import BilinearObjective
from binas.space import Architecture, SearchSpace
from binas.tables import Column, Samples


class Constant:
    """accuracy(x) = mean of the samples, in percent."""

    link = "identity"

    def fit(self, samples: Samples) -> "Constant":
        self.space: SearchSpace = samples.space
        self.mean_ = float(np.mean(samples.accuracy))
        return self

    def predict(self, architectures: Iterable[Architecture]) -> NDArray[np.float64]:
        return np.array([self.mean_ for _ in architectures])

    def standard_error(self, architectures: Iterable[Architecture]) -> NDArray[np.float64]:
        return np.array([np.nan for _ in architectures])

    def objective(self) -> BilinearObjective:
        return BilinearObjective(self.mean_, Column.full(self.space, 0.0))


CONSTANT = Candidate("constant", 0, "the mean of the samples", lambda contributions: Constant(), learns=True)
