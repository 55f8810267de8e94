"""What a method sees that searches the supernet itself instead of tables (HardCoRe-NAS and others).

The one with networks is :class:`binas.contributions.relaxed_loss.SupernetOracle`; nothing here knows of torch.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from binas.space.architecture import Architecture
from binas.space.space import SearchSpace

Array = NDArray[np.float64]


class Oracle(Protocol):
    """Losses and accuracies of a supernet on the images that a search may see, and a count of what was asked.

    ``evaluations`` are images that went through a network so far, ``gradients`` those of them that a loss was
    differentiated on, which costs about as much again.
    """

    evaluations: int
    gradients: int

    @property
    def space(self) -> SearchSpace:
        """The space of the supernet."""

    @property
    def images(self) -> int:
        """How many images a search may see."""

    @property
    def images_per_network(self) -> int:
        """Evaluations that :meth:`accuracies` spends on one architecture."""

    def loss_gradient(
        self, alpha: Array, beta: Array, count: int, rng: np.random.Generator
    ) -> tuple[float, Array, Array]:
        """A stochastic gradient of the relaxed loss: loss, d loss / d alpha and d loss / d beta, on ``count`` images.

        The loss of (alpha, beta) is the mean over images of the cross-entropy, in nats, on a path drawn from them.
        Derivatives are up to a constant for each decision; a choice of probability 0 is never drawn and gets 0.
        """

    def accuracies(self, architectures: Sequence[Architecture]) -> Array:
        """One-shot accuracy of each architecture in percent, on all the images."""
