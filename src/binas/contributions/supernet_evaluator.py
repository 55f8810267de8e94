"""The evaluator of a trained supernet: each image of a batch on its own path."""

from __future__ import annotations

from typing import cast

import numpy as np
import torch

from binas.base.errors import DataError
from binas.contributions.outcomes import Indices, Outcomes
from binas.data.dataset import ImageData
from binas.data.images import Images, IndexedImages
from binas.space.space import SearchSpace
from binas.supernet.network import Supernet, keep_memory
from binas.training.evaluation import device_of, normalised_batches


class OnImages:
    """A trained supernet and the set of images that may be asked about."""

    def __init__(self, supernet: Supernet, data: ImageData, images: IndexedImages) -> None:
        self._supernet, self._data, self._set = supernet.eval(), data, images
        keep_memory()

    @property
    def space(self) -> SearchSpace:
        """The space of the supernet."""
        return self._supernet.space

    @property
    def images(self) -> int:
        """Number of images in the set."""
        return len(self._set)

    def outcomes(self, images: Indices, depths: Indices, configs: Indices) -> Outcomes:
        """Outcomes of ``images`` (n,) on paths ``depths`` (n, S) and ``configs`` (n, S, D)."""
        correct = np.empty(len(images), dtype=np.float32)
        log_probability = np.empty(len(images), dtype=np.float32)
        start = 0
        with torch.inference_mode():
            for batch, labels in normalised_batches(
                self._data, self._set.take(images), device_of(self._supernet)
            ):
                rows = slice(start, start + len(labels))
                paths = torch.from_numpy(depths[rows]), torch.from_numpy(configs[rows])
                logits = self._supernet(batch, paths).float()
                correct[rows] = (logits.argmax(1) == labels).cpu().numpy()
                logs = logits.log_softmax(1).gather(1, labels[:, None])[:, 0]
                # one class whose logit is -inf would leave that of the true one finite
                log_probability[rows] = logs.where(logits.isfinite().all(1), torch.nan).cpu().numpy()
                start = rows.stop
        return Outcomes(correct, log_probability)


class SupernetEvaluator(OnImages):
    """Outcomes of a supernet on one set of images of ``data``; the validation images where none is given."""

    def __init__(
        self, supernet: Supernet, data: ImageData, images: IndexedImages | None = None, weights: str = ""
    ) -> None:
        """``weights`` names the trained weights, such as their digest, for the record of a measurement."""
        super().__init__(supernet, data, indexed(data.validation, data.name) if images is None else images)
        self.fingerprint = f"{weights}/{self._set.fingerprint}"


def indexed(images: Images, name: str) -> IndexedImages:
    """``images`` as a set from which any can be taken, or an error: a stream has no image to come back to."""
    if images.indexed and hasattr(images, "take"):
        return cast(IndexedImages, images)
    raise DataError(
        f"{name}: its validation images are a stream. Contributions are measured on the same images again and again; "
        "leave `streaming` out, so that the images are stored."
    )
