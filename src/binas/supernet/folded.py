"""An MBConv block on groups of rows without gradients: the same numbers from as few operations as possible.

At small batches a mixed batch costs not its arithmetic but its many small operations. So BatchNorm of the whole
block is folded at once, projections are added straight onto the residual, and depth-wise filters run on row counts
from a short list. Nothing is kept between calls, so nothing can be stale.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby
from typing import TYPE_CHECKING

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from binas.supernet.layers import SHARED, affine
from binas.supernet.plain import padded
from binas.supernet.rows import as_images, as_rows

if TYPE_CHECKING:
    from binas.supernet.inverted import Choice, Run
    from binas.supernet.mbconv import ElasticMBConv

ROW_STEP = 4


class FoldedMBConv:
    """The weights of a block with BatchNorm folded in, for the choices of one call."""

    def __init__(self, block: ElasticMBConv, choices: Sequence[Choice]) -> None:
        self.block = block
        self.stride, self.outputs = block.depthwise.stride, block.outputs
        kernels = sorted({choice.kernel for choice in choices})
        names = sorted({choice.norm for choice in choices})
        inner = [block.expand.norm(SHARED), *(block.depthwise.norm(f"k{kernel}") for kernel in kernels)]
        scales, self.inner_shifts = affine(inner)
        self.expand = block.expand.weights["k1"].flatten(1) * scales[0, :, None]
        self.depthwise = {
            kernel: (
                block.depthwise.weights[f"k{kernel}"] * scales[i].view(-1, 1, 1, 1),
                self.inner_shifts[i],
            )
            for i, kernel in enumerate(kernels, 1)
        }
        scales, self.shifts = affine([block.project.norm(name) for name in names])
        self.project = block.project.weights["k1"].flatten(1).t() * scales[:, None]
        self.norm_index = {name: i for i, name in enumerate(names)}

    def run(self, x: Tensor, runs: Sequence[Run]) -> Tensor:
        """Each run of rows with its own choice."""
        n, _, height, width = x.shape
        rows, out = as_rows(x), self._residual(x, runs)
        flat = out.view(-1, self.outputs)
        for _, own in groupby(runs, lambda run: (run[0].width, run[0].activation)):
            alike = list(own)
            channels, first, last = alike[0][0].width, alike[0][1].start, alike[-1][1].stop
            act = self.block.activations[alike[0][0].activation]
            span = rows[first * height * width : last * height * width]
            inner = act(torch.addmm(self.inner_shifts[0, :channels], span, self.expand[:channels].t()))
            parts = self._filtered(as_images(inner, last - first, height, width), alike, act)
            self._squeeze(parts, alike)
            self._project(parts, alike, flat)
        return as_images(out, n, -(-height // self.stride), -(-width // self.stride))

    def _residual(self, x: Tensor, runs: Sequence[Run]) -> Tensor:
        """What projections are added to, (n, h * w, outputs): their shift, and the input where there is a skip."""
        n, _, height, width = x.shape
        norms = [self.norm_index[choice.norm] for choice, _ in runs]
        which = np.repeat(norms, [rows.stop - rows.start for _, rows in runs])
        shifts = self.shifts[torch.from_numpy(which).to(x.device), None]
        if self.block.skip:
            return as_rows(x).view(n, height * width, self.outputs) + shifts
        area = -(-height // self.stride) * -(-width // self.stride)
        return shifts.expand(n, area, self.outputs).contiguous()

    def _filtered(self, inner: Tensor, runs: Sequence[Run], act: nn.Module) -> list[Tensor]:
        """The depth-wise filter once per kernel; then one tensor per run.

        A few rows of the neighbours are filtered too, so that row counts are multiples of ROW_STEP:
        convolution libraries prepare code per shape, which costs more than these rows.
        """
        first, total, channels = runs[0][1].start, len(inner), inner.shape[1]
        parts: list[Tensor] = []
        for kernel, own in groupby(runs, lambda run: run[0].kernel):
            alike = [rows for _, rows in own]
            start, stop = alike[0].start - first, alike[-1].stop - first
            count = min(-(-(stop - start) // ROW_STEP) * ROW_STEP, total)
            begin = min(start, total - count)
            weight, shift = (whole[:channels] for whole in self.depthwise[kernel])
            rows, padding = padded(
                inner[begin : begin + count], kernel, self.stride, self.block.depthwise.rules
            )
            filtered = act(F.conv2d(rows, weight, shift, self.stride, padding, 1, channels))
            begin += first
            parts += [filtered[rows.start - begin : rows.stop - begin] for rows in alike]
        return parts

    def _squeeze(self, parts: Sequence[Tensor], runs: Sequence[Run]) -> None:
        """Squeeze-excite in place where a choice has it."""
        if self.block.squeeze is None:
            return
        for reduced in {choice.reduced for choice, _ in runs} - {0}:
            own = [part for part, (choice, _) in zip(parts, runs, strict=True) if choice.reduced == reduced]
            pooled = torch.cat([part.mean((2, 3)) for part in own])
            gates = torch.split(self.block.squeeze.gates(pooled, reduced), [len(part) for part in own])
            for part, gate in zip(own, gates, strict=True):
                part.mul_(gate)

    def _project(self, parts: Sequence[Tensor], runs: Sequence[Run], out: Tensor) -> None:
        """Add each projection onto its rows of ``out``, (n * h * w, outputs)."""
        area = parts[0].shape[2] * parts[0].shape[3]
        for part, (choice, rows) in zip(parts, runs, strict=True):
            weight = self.project[self.norm_index[choice.norm], : choice.width]
            out[rows.start * area : rows.stop * area].addmm_(as_rows(part), weight)
