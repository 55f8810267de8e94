"""What is minimised: cross entropy with label smoothing, and distillation from the heaviest network, the teacher."""

from __future__ import annotations

from functools import cached_property
from pathlib import Path

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from binas.data.dataset import ImageData
from binas.training.checkpoint import has_checkpoint, load_checkpoint, save_checkpoint, weights_digest
from binas.training.config import Distillation
from binas.training.evaluation import device_of, shared_batches
from binas.training.loop import Step
from binas.training.team import ALONE, Team

LOGITS = "logits"  # name of the checkpoint that keeps them
CACHE_VALUES = 20_000_000  # logits kept in memory by "auto": 80 MB


def targets(
    labels: Tensor, classes: int, smoothing: float, other: Tensor | None = None, weight: float | Tensor = 1.0
) -> Tensor:
    """Probabilities (n, classes): one-hot, mixed with those of image ``other[i]`` (mixup), then smoothed.

    weight * onehot(labels) + (1 - weight) * onehot(labels[other]), times (1 - smoothing), plus smoothing / classes.
    """
    chance = F.one_hot(labels, classes).float()
    if other is not None:
        chance = weight * chance + (1 - weight) * chance[other]
    return chance * (1 - smoothing) + smoothing / classes


def soft_cross_entropy(logits: Tensor, target: Tensor) -> Tensor:
    """-mean_i sum_c target[i, c] * log softmax(logits[i])[c]."""
    return -(target * logits.float().log_softmax(1)).sum(1).mean()


def distillation_loss(logits: Tensor, teacher: Tensor, temperature: float) -> Tensor:
    """T^2 * mean_i KL(softmax(teacher[i] / T) || softmax(logits[i] / T)) (paper appendix, after Hinton)."""
    student = (logits.float() / temperature).log_softmax(1)
    target = (teacher.float() / temperature).log_softmax(1)
    return temperature**2 * F.kl_div(student, target, reduction="batchmean", log_target=True)


def mixed_logits(teacher: Tensor, other: Tensor | None, weight: float | Tensor) -> Tensor:
    """Teacher logits of a mixed image: log of the mixed probabilities of its two parts."""
    if other is None:
        return teacher
    chance = weight * teacher.softmax(1) + (1 - weight) * teacher[other].softmax(1)
    return torch.log(chance.clamp_min(1e-12))


class Teacher:
    """Logits of a finished network for the images of a step.

    Cached logits are those of the plain images, whatever augmentation did to what the student sees; mixup mixes
    them. Without the cache the network runs on the augmented images in every step. The cache is computed by all of
    ``team`` when first asked for, and kept in ``folder`` where one is given, for whoever learns from the same later.
    """

    def __init__(
        self,
        network: nn.Module,
        data: ImageData,
        settings: Distillation,
        folder: Path | None = None,
        team: Team = ALONE,
    ) -> None:
        self.settings, self.data, self.folder, self.team = settings, data, folder, team
        self.network = network.eval().requires_grad_(False)

    @cached_property
    def cached(self) -> Tensor | None:
        """Logits of all training images; None where they are not kept."""
        settings, data = self.settings, self.data
        small = len(data.train) * len(data.classes) <= CACHE_VALUES
        keep = settings.cache == "yes" or (settings.cache == "auto" and small)
        if not (keep and data.train.indexed and settings.share):
            return None
        return self._all_logits(data) if self.folder is None else self._kept_logits(self.folder)

    def _kept_logits(self, folder: Path) -> Tensor:
        identity = {"weights": weights_digest(self.network), "data": self.data.fingerprint()}
        found = load_checkpoint(folder, LOGITS) if has_checkpoint(folder, LOGITS) else None
        usable = found is not None and found.values.get("identity") == identity
        if (
            self.team.gather(torch.tensor([int(usable)], device=device_of(self.network))).all()
            and found is not None
        ):
            return found.tensors["logits"]
        logits = self._all_logits(self.data)
        if self.team.first:
            save_checkpoint(folder, LOGITS, {"logits": logits}, {"identity": identity})
        return logits

    def __call__(self, step: Step) -> Tensor:
        """Logits (n, classes)."""
        if self.cached is not None:
            return mixed_logits(self.cached[step.indices].to(step.images.device), step.other, step.weight)
        with torch.no_grad():
            logits: Tensor = self.network(step.images)
            return logits

    @torch.no_grad()
    def _all_logits(self, data: ImageData) -> Tensor:
        """Each process of the team computes every n-th batch, and has zeros for the others."""
        device = device_of(self.network)
        logits = torch.zeros(len(data.train), len(data.classes), device=device)
        for rows, images, _ in shared_batches(data, data.train, device, self.team):
            logits[rows] = self.network(images)
        return self.team.add_up(logits).cpu()
