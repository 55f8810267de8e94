"""EMA: an exponential moving average of the weights, evaluated instead of the last ones (paper appendix)."""

from __future__ import annotations

import copy
from collections.abc import Mapping

import torch
from torch import Tensor, nn


class Average:
    """average <- d * average + (1 - d) * weights after each step, with d = min(decay, (1 + t) / (10 + t)).

    The growing d keeps the first, random weights from staying in the average of short trainings. BatchNorm
    statistics are averaged the same way; whole numbers are copied.
    """

    def __init__(self, module: nn.Module, decay: float) -> None:
        self.decay, self.steps = decay, 0
        self.module = copy.deepcopy(module).eval().requires_grad_(False)

    @torch.no_grad()
    def update(self, module: nn.Module) -> None:
        """Take in the weights of ``module`` after a step."""
        decay = min(self.decay, (1 + self.steps) / (10 + self.steps))
        self.steps += 1
        mine = self.module.state_dict()
        for name, value in module.state_dict().items():
            if value.is_floating_point():
                mine[name].lerp_(value.to(mine[name].dtype), 1 - decay)
            else:
                mine[name].copy_(value)

    def state(self) -> dict[str, Tensor]:
        """Tensors for a checkpoint."""
        return dict(self.module.state_dict())

    def load(self, tensors: Mapping[str, Tensor], steps: int) -> None:
        """Continue from a checkpoint."""
        self.module.load_state_dict(dict(tensors))
        self.steps = steps
