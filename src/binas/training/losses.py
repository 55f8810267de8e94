"""What is minimised: cross entropy with label smoothing, and distillation from the heaviest network."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor


def targets(
    labels: Tensor, classes: int, smoothing: float, other: Tensor | None = None, weight: float = 1.0
) -> Tensor:
    """Probabilities (n, classes): one-hot, mixed with those of image ``other[i]`` (mixup), then smoothed.

    weight * onehot(labels) + (1 - weight) * onehot(labels[other]), times (1 - smoothing), plus smoothing / classes.
    """
    wanted = F.one_hot(labels, classes).float()
    if other is not None:
        wanted = weight * wanted + (1 - weight) * wanted[other]
    return wanted * (1 - smoothing) + smoothing / classes


def soft_cross_entropy(logits: Tensor, wanted: Tensor) -> Tensor:
    """-mean_i sum_c wanted[i, c] * log softmax(logits[i])[c]."""
    return -(wanted * logits.float().log_softmax(1)).sum(1).mean()


def distillation_loss(logits: Tensor, teacher: Tensor, temperature: float) -> Tensor:
    """T^2 * mean_i KL(softmax(teacher[i] / T) || softmax(logits[i] / T)) (paper appendix, after Hinton)."""
    student = (logits.float() / temperature).log_softmax(1)
    wanted = (teacher.float() / temperature).log_softmax(1)
    return temperature**2 * F.kl_div(student, wanted, reduction="batchmean", log_target=True)


def mixed_logits(teacher: Tensor, other: Tensor | None, weight: float) -> Tensor:
    """Teacher logits of a mixed image: log of the mixed probabilities of its two parts."""
    if other is None:
        return teacher
    chance = weight * teacher.softmax(1) + (1 - weight) * teacher[other].softmax(1)
    return torch.log(chance.clamp_min(1e-12))
