"""An oracle without a network: what a method that searches the supernet itself can be tested with."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from binas.search.objective import objective_values
from binas.search.oracle import Array
from binas.search.problem import SearchProblem
from binas.space.architecture import Architecture
from binas.space.relaxed import gumbel_paths, score_gradient
from binas.space.space import SearchSpace


class ObjectiveOracle:
    """The objective of a problem as if a supernet had it: the loss of a path is 100 minus its value, on any image.

    Gradients are of so many drawn paths, by the score function: noisy as real ones.
    """

    def __init__(self, problem: SearchProblem, images: int = 1000) -> None:
        self.problem, self.images, self.images_per_network = problem, images, images
        self.evaluations = self.gradients = 0

    @property
    def space(self) -> SearchSpace:
        """The space of the problem."""
        return self.problem.space

    def loss_gradient(
        self, alpha: Array, beta: Array, count: int, rng: np.random.Generator
    ) -> tuple[float, Array, Array]:
        """The mean of 100 minus the objective over ``count`` paths of (alpha, beta), and its gradients."""
        paths = gumbel_paths(self.space, alpha, beta, count, rng).paths
        losses = 100.0 - objective_values(self.problem.objective, self.space, *paths)
        self.evaluations += count
        return float(losses.mean()), *score_gradient(self.space, alpha, beta, paths, losses, 1)

    def accuracies(self, architectures: Sequence[Architecture]) -> Array:
        """The objective of each architecture."""
        self.evaluations += len(architectures) * self.images
        return np.array([self.problem.objective.value(self.space, item) for item in architectures])
