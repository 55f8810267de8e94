"""The teacher: logits of the heaviest network, computed once per image where the data is small."""

from __future__ import annotations

from functools import cached_property

import torch
from torch import Tensor, nn

from binas.data.dataset import ImageData
from binas.training.config import Distillation
from binas.training.evaluation import device_of, normalised
from binas.training.loop import Step
from binas.training.losses import mixed_logits

CACHE_VALUES = 20_000_000  # logits kept in memory by "auto": 80 MB


class Teacher:
    """Logits of a finished network for the images of a step.

    Cached logits are those of the plain images, whatever augmentation did to what the student sees; mixup mixes
    them. Without the cache the network runs on the augmented images in every step.
    """

    def __init__(self, network: nn.Module, data: ImageData, settings: Distillation) -> None:
        self.settings, self.data = settings, data
        self.network = network.eval().requires_grad_(False)

    @cached_property
    def cached(self) -> Tensor | None:
        """Logits of all training images, computed when first asked for; None where they are not kept."""
        settings, data = self.settings, self.data
        small = len(data.train) * len(data.classes) <= CACHE_VALUES
        wanted = settings.cache == "yes" or (settings.cache == "auto" and small)
        return self._all_logits(data) if wanted and data.train.indexed and settings.share else None

    def __call__(self, step: Step) -> Tensor:
        """Logits (n, classes)."""
        if self.cached is not None:
            return mixed_logits(self.cached[step.indices].to(step.images.device), step.other, step.weight)
        with torch.no_grad():
            logits: Tensor = self.network(step.images)
            return logits

    @torch.no_grad()
    def _all_logits(self, data: ImageData) -> Tensor:
        parts = [
            self.network(images).cpu() for images, _ in normalised(data, data.train, device_of(self.network))
        ]
        return torch.cat(parts)
