"""Whether an exported file computes what PyTorch computes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from binas.base.errors import ModelError
from binas.export.graph import Graph

BATCHES = (1, 7)  # neither is the batch a file is traced with
TOLERANCE = 1e-4  # largest difference of logits, relative to the largest absolute logit


@dataclass(frozen=True, slots=True)
class Parity:
    """Largest absolute difference from PyTorch's logits for a batch, and the largest absolute logit of PyTorch."""

    batch: int
    difference: float
    largest: float

    @property
    def holds(self) -> bool:
        """Whether the difference is within the tolerance."""
        return self.difference <= TOLERANCE * self.largest


def check_parity(graph: Graph, run: Callable[[Tensor], Tensor], file: str) -> tuple[Parity, ...]:
    """Compare ``run`` with the graph on random images of several batch sizes; an error where they differ."""
    found = tuple(_compare(graph, run, batch) for batch in BATCHES)
    for item in found:
        if not item.holds:
            raise ModelError(
                f"{file} does not compute what PyTorch computes: logits of {item.batch} images differ by up to "
                f"{item.difference:.3g} where the largest is {item.largest:.3g} (allowed: {TOLERANCE:g} of it). "
                "Nothing was written; try another version of torch or of the runtime."
            )
    return found


def _compare(graph: Graph, run: Callable[[Tensor], Tensor], batch: int) -> Parity:
    images = graph.example(batch, seed=batch)
    with torch.inference_mode():
        wanted = graph.module(images)
        difference = (run(images) - wanted).abs().max()
    return Parity(batch, float(difference), float(wanted.abs().max()))
