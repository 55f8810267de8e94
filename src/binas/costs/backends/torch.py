"""Eager PyTorch: eval mode, inference mode, BatchNorm folded into the convolution before it."""

from __future__ import annotations

import copy
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import pairwise
from typing import TYPE_CHECKING

from binas.base.cores import no_bf16
from binas.costs.backends._base import Backend, Runner, Shape
from binas.costs.settings import Settings

if TYPE_CHECKING:
    from torch import Tensor, nn


class TorchBackend(Backend):
    """PyTorch as it is, without compiling."""

    name = "torch"
    requires = "torch"
    devices = ("cpu", "cuda")
    dtypes = ("float32", "float16", "bfloat16")
    asynchronous = True

    @classmethod
    def unavailable(cls, settings: Settings) -> str | None:
        """Why the setting cannot run here, or None; bfloat16 on a CPU may be more than it keeps."""
        on_cpu = (settings.device, settings.dtype) == ("cpu", "bfloat16")
        return super().unavailable(settings) or (no_bf16() if on_cpu else None)

    @classmethod
    def _no_gpu(cls) -> str | None:
        import torch

        return None if torch.cuda.is_available() else "torch finds no CUDA device"

    @contextmanager
    def pinned(self) -> Iterator[None]:
        """Threads and oneDNN as the setting says."""
        import torch

        switch = torch.backends.mkldnn
        before = switch.enabled
        switch.enabled = self.settings.onednn  # type: ignore[assignment]
        try:
            with super().pinned():
                yield
        finally:
            switch.enabled = before

    def prepare(self, module: nn.Module, shapes: Sequence[Shape]) -> Runner:
        """A folded copy of the module on its device, with fixed random inputs."""
        import torch

        place = {"device": self.settings.device, "dtype": getattr(torch, self.settings.dtype)}
        formats = {"contiguous": torch.contiguous_format, "channels_last": torch.channels_last}
        layout = formats[self.settings.memory_format]
        model = fold_norms(module).to(**place)
        model.to(memory_format=layout)  # type: ignore[call-overload]
        inputs = [x.to(**place) for x in random_inputs(shapes, self.settings.batch)]
        inputs = [x.contiguous(memory_format=layout) if x.dim() == 4 else x for x in inputs]
        guard = torch.inference_mode

        def run() -> None:
            with guard():
                model(*inputs)

        return run


def random_inputs(shapes: Sequence[Shape], batch: int) -> list[Tensor]:
    """Normal inputs from a fixed seed: no denormals, no zeros that a kernel could skip."""
    import torch

    generator = torch.Generator().manual_seed(0)
    return [torch.randn(batch, *shape, generator=generator) for shape in shapes]


def fold_norms(module: nn.Module) -> nn.Module:
    """A copy in eval mode in which every BatchNorm that follows a convolution in a Sequential is folded into it.

    conv(x) * g / sqrt(v + eps) + ... is again a convolution, so every deployment does this.
    """
    from torch import nn
    from torch.nn.utils.fusion import fuse_conv_bn_eval

    model = copy.deepcopy(module).eval()
    for row in [layer for layer in model.modules() if isinstance(layer, nn.Sequential)]:
        for (name, layer), (next_name, norm) in pairwise(list(row.named_children())):
            if isinstance(layer, nn.Conv2d) and isinstance(norm, nn.BatchNorm2d):
                setattr(row, name, fuse_conv_bn_eval(layer, norm))
                delattr(row, next_name)
    return model
