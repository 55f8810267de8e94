"""The MBConv family: expand 1x1, depth-wise k x k, squeeze-excite, project 1x1 (paper appendix A, B); and fused ones.

Expansion and depth-wise filters act on each channel alone, so their BatchNorm statistics do not depend on the width: the
expansion has one BatchNorm, the depth-wise convolution one per kernel size.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from binas.space.codes import BlockCode
from binas.space.families import NetworkRules
from binas.supernet.families import ElasticBlock, Group, MixedBlock
from binas.supernet.folded import FoldedMBConv
from binas.supernet.fused import ElasticFused
from binas.supernet.inverted import Choice, ElasticInverted, Run, by_kernel
from binas.supernet.layers import ElasticConv, ElasticNorm


class ElasticMBConv(ElasticInverted):
    """Shared weights of all MBConv configs of one block."""

    def build_widening(self, stride: int, rules: NetworkRules) -> None:
        """Expansion and depth-wise filters."""
        kernels, widest = [choice.kernel for choice in self.choices], self.widest
        self.expand = ElasticConv(self.inputs, widest, rules=rules)
        self.depthwise = ElasticConv(
            widest, widest, kernels, [f"k{k}" for k in kernels], stride, depthwise=True, rules=rules
        )

    def run(self, x: Tensor, groups: Sequence[Group]) -> Tensor:
        """Each group of rows with its own config; expansion and depth-wise filters run once per shared choice."""
        recording = self.training or torch.is_grad_enabled()
        if recording or torch.is_autocast_enabled(x.device.type):
            return super().run(x, groups)
        runs = [(self.choices[config], rows) for config, rows in groups]
        return FoldedMBConv(self, [choice for choice, _ in runs]).run(x, runs)

    def widened(self, x: Tensor, runs: Sequence[Run], act: nn.Module) -> list[Tensor]:
        """One expansion for all runs, the depth-wise filter once per kernel."""

        def filtered(own: Tensor, kernel: int) -> Tensor:
            out: Tensor = act(self.depthwise(own, own.shape[1], kernel, f"k{kernel}"))
            return out

        return by_kernel(act(self.expand(x, runs[0][0].width)), runs, filtered)

    def widening(self, choice: Choice) -> list[nn.Module]:
        """Expansion and depth-wise filter of one config."""
        width, kernel, act = choice.width, choice.kernel, choice.activation
        expand = self.expand.static(self.inputs, width, activation=act)
        return [expand, self.depthwise.static(width, width, kernel, f"k{kernel}", act)]

    def absorb_widening(self, layers: Sequence[nn.Module], choice: Choice) -> None:
        """Take over a plain expansion and its filter."""
        expand, depthwise = layers
        self.expand.absorb(expand)
        self.depthwise.absorb(depthwise, f"k{choice.kernel}")

    def start_widening(self, choice: Choice) -> ElasticNorm:
        """Smaller filters are the centre of the choice's."""
        self.depthwise.start_from(choice.kernel, f"k{choice.kernel}")
        return self.depthwise.norm(f"k{choice.kernel}")

    def reorder_widening(self, order: Tensor) -> None:
        """Expansion and filters in another order."""
        self.expand.reorder(outputs=order)
        self.depthwise.reorder(outputs=order)


def elastic_mbconv(codes: Sequence[BlockCode], inputs: int, rules: NetworkRules) -> ElasticBlock:
    """The elastic block of these configs: of ``ir`` and of ``er`` blocks, or of both side by side."""
    kinds = {"ir": ElasticMBConv, "er": ElasticFused}
    channels, stride = codes[0].channels, codes[0].stride
    own = {kind: [i for i, code in enumerate(codes) if code.kind == kind] for kind in kinds}
    blocks = [
        (
            kinds[kind]([Choice.of(codes[i], inputs, rules) for i in which], inputs, channels, stride, rules),
            which,
        )
        for kind, which in own.items()
        if which
    ]
    return blocks[0][0] if len(blocks) == 1 else MixedBlock(blocks)
