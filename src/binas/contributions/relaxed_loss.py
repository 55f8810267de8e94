"""The loss of a supernet at relaxed decisions, and its gradient (HardCoRe-NAS; paper sections 2 and 5.4).

HardCoRe-NAS (Nayman et al. 2021) searches the supernet itself: every image draws its own path from the probabilities
(alpha, beta), as multi-path training draws it from uniform ones, and

    L(alpha, beta) = E over images i and paths ~ (alpha, beta) of the cross-entropy of image i on its path

is lowered, along a gradient of :mod:`binas.space.relaxed`: that of the score function, which has no bias, or the
straight-through one of Gumbel-softmax samples.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import cross_entropy

from binas.contributions.outcomes import Array, Indices
from binas.contributions.sampling import correct_images
from binas.contributions.supernet_evaluator import OnImages
from binas.data.dataset import ImageData
from binas.data.images import IndexedImages
from binas.space.architecture import Architecture
from binas.space.relaxed import Gradient, gumbel_paths, score_gradient, straight_through
from binas.supernet.network import Supernet
from binas.training.evaluation import Correct, device_of, normalised_batches

PATHS = 4  # of each image for the score function's gradient
Outcomes = Callable[[Sequence[Architecture]], Iterable[Correct]]


class SupernetOracle(OnImages):
    """A trained supernet on the images that a search may see: the :class:`binas.search.oracle.Oracle` of networks.

    ``recalibration`` is on how many training images the BatchNorm of an architecture is re-estimated before its accuracy is
    measured; these images count as evaluations too. ``outcomes`` says which images architectures classify rightly, in other
    processes perhaps. ``gradient`` is that of the score function, of ``PATHS`` paths of each image, or straight-through.
    Gradients use the supernet's own BatchNorm, as all multi-path passes do.
    """

    def __init__(
        self,
        supernet: Supernet,
        data: ImageData,
        images: IndexedImages,
        recalibration: int = 0,
        outcomes: Outcomes | None = None,
        gradient: Gradient = "score",
    ) -> None:
        super().__init__(supernet, data, images)
        self._recalibration = min(recalibration, len(data.train))
        self._outcomes, self._gradient = outcomes or self._correct, gradient
        self.evaluations = self.gradients = 0

    @property
    def images_per_network(self) -> int:
        """Images that one architecture is measured on, and those its BatchNorm is re-estimated on."""
        return len(self._set) + self._recalibration

    def loss_gradient(
        self, alpha: Array, beta: Array, count: int, rng: np.random.Generator
    ) -> tuple[float, Array, Array]:
        """The mean cross-entropy in nats of about ``count`` random images on paths of (alpha, beta), and its gradients."""
        each = min(PATHS, self.images) if self._gradient == "score" else 1
        chosen = rng.choice(self.images, max(1, min(count // each, self.images)), replace=False)
        images = np.repeat(chosen, each)
        drawn = gumbel_paths(self.space, alpha, beta, len(images), rng)
        self.evaluations += len(images)
        if self._gradient == "score":
            losses = -self.outcomes(images, *drawn.paths).log_probability.astype(np.float64)
            return float(losses.mean()), *score_gradient(self.space, alpha, beta, drawn.paths, losses, each)
        self.gradients += len(images)
        losses, slopes = self._slopes(images, *drawn.paths)
        return float(losses.mean()), *straight_through(self.space, alpha, beta, drawn, slopes)

    def accuracies(self, architectures: Sequence[Architecture]) -> Array:
        """One-shot accuracy of each architecture in percent: BatchNorm re-estimated, on all the images."""
        right = [float(item.mean()) for item in self._outcomes(architectures)]
        self.evaluations += len(right) * self.images_per_network
        return 100 * np.array(right)

    def _correct(self, architectures: Sequence[Architecture]) -> Iterable[Correct]:
        for item in architectures:
            yield correct_images(self._supernet, item, self._data, [self._set], self._recalibration)[0]

    def _slopes(self, images: Indices, depths: Indices, configs: Indices) -> tuple[Array, Array]:
        """The loss (n,) of each image on its path, and its slopes (n, S, D) in how much each block's output counts."""
        losses, slopes = list[Tensor](), list[Tensor]()
        first, device = 0, device_of(self._supernet)
        for batch, labels in normalised_batches(self._data, self._set.take(images), device):
            rows = slice(first, first + len(labels))
            paths = torch.from_numpy(depths[rows]), torch.from_numpy(configs[rows])
            scores = torch.ones(configs[rows].shape, device=device, requires_grad=True)
            found = cross_entropy(self._supernet(batch, paths, scores).float(), labels, reduction="none")
            slopes += torch.autograd.grad(found.sum(), scores)
            losses.append(found.detach())
            first = rows.stop
        return _array(torch.cat(losses)), _array(torch.cat(slopes))


def _array(values: Tensor) -> Array:
    return values.double().cpu().numpy()
