"""Fused MBConv: one k x k convolution that widens, squeeze-excite, project 1x1 (``er``, as in EfficientNetV2).

It does more arithmetic than a depth-wise filter and far less waiting for memory: on many devices it is faster for the same
accuracy, the more so where images are large and channels few.
"""

from __future__ import annotations

from collections.abc import Sequence

from torch import Tensor, nn

from binas.space.families import NetworkRules
from binas.supernet.inverted import Choice, ElasticInverted, Run, by_kernel
from binas.supernet.layers import ElasticConv, ElasticNorm


class ElasticFused(ElasticInverted):
    """Shared weights of all fused configs of one block; the convolution has a BatchNorm per kernel size."""

    def build_widening(self, stride: int, rules: NetworkRules) -> None:
        """The convolution, with one weight per kernel."""
        kernels = [choice.kernel for choice in self.choices]
        names = [f"k{kernel}" for kernel in kernels]
        self.expand = ElasticConv(self.inputs, self.widest, kernels, names, stride, rules=rules)

    def widened(self, x: Tensor, runs: Sequence[Run], act: nn.Module) -> list[Tensor]:
        """The convolution once per kernel."""
        width = runs[0][0].width

        def convolved(own: Tensor, kernel: int) -> Tensor:
            out: Tensor = act(self.expand(own, width, kernel, f"k{kernel}"))
            return out

        return by_kernel(x, runs, convolved)

    def widening(self, choice: Choice) -> list[nn.Module]:
        """The convolution of one config."""
        norm = f"k{choice.kernel}"
        return [self.expand.static(self.inputs, choice.width, choice.kernel, norm, choice.activation)]

    def absorb_widening(self, layers: Sequence[nn.Module], choice: Choice) -> None:
        """Take over a plain convolution."""
        self.expand.absorb(layers[0], f"k{choice.kernel}")

    def start_widening(self, choice: Choice) -> ElasticNorm:
        """Smaller kernels are the centre of the choice's."""
        self.expand.start_from(choice.kernel, f"k{choice.kernel}")
        return self.expand.norm(f"k{choice.kernel}")

    def reorder_widening(self, order: Tensor) -> None:
        """Channels in another order."""
        self.expand.reorder(outputs=order)
