"""A backend: torch as it is, without folding anything."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from binas.costs.backends import Backend, Runner, Shape

if TYPE_CHECKING:
    from torch import nn


class Stopwatch(Backend):
    """Runs a module in eval mode on zeros."""

    name = "stopwatch"
    requires = "torch"

    def prepare(self, module: nn.Module, shapes: Sequence[Shape]) -> Runner:
        import torch

        inputs = [torch.zeros(self.settings.batch, *shape) for shape in shapes]
        model = module.eval()

        def run() -> None:
            with torch.inference_mode():
                model(*inputs)

        return run
