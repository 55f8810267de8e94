"""The residual bottleneck family (ResNet-like): reduce 1x1, convolve k x k, expand 1x1, add, activate.

Options: ``ratio``, the inner width as a part of the stage's channels (rounded to multiples of 8), and ``kernel``.
Unlike a depth-wise filter the inner convolution sums over channels, so its BatchNorm is private to
(width, kernel), as is the last one. The shortcut is a 1x1 convolution where the shape changes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from binas.errors import SpaceError
from binas.space.rounding import round_channels
from binas.space.space import Config, Stage
from binas.supernet.families import ElasticBlock, Family, check_shape, register
from binas.supernet.layers import ElasticConv
from binas.supernet.plain import ConvNorm, PlainBlock


@dataclass(frozen=True, slots=True)
class Choice:
    """One config: inner width in channels, and kernel."""

    width: int
    kernel: int

    @property
    def norm(self) -> str:
        """Name of the private BatchNorms."""
        return f"w{self.width}k{self.kernel}"


class ElasticBottleneck(ElasticBlock):
    """Shared weights of all bottleneck configs of one block."""

    def __init__(self, choices: Sequence[Choice], inputs: int, outputs: int, stride: int) -> None:
        super().__init__()
        self.choices, self.inputs, self.outputs = tuple(choices), inputs, outputs
        self.configs = len(choices)
        widest, names = max(choice.width for choice in choices), [choice.norm for choice in choices]
        self.reduce = ElasticConv(inputs, widest)
        self.middle = ElasticConv(widest, widest, [c.kernel for c in choices], names, stride)
        self.restore = ElasticConv(widest, outputs, norms=names)
        changes = stride != 1 or inputs != outputs
        self.shortcut = ElasticConv(inputs, outputs, stride=stride) if changes else None

    def forward(self, x: Tensor, config: int) -> Tensor:
        """One config for all rows."""
        choice = self.choices[config]
        inner = F.relu(self.reduce(x, choice.width))
        inner = F.relu(self.middle(inner, choice.width, choice.kernel, choice.norm))
        out: Tensor = self.restore(inner, self.outputs, norm=choice.norm)
        return F.relu(out + (x if self.shortcut is None else self.shortcut(x, self.outputs)))

    def start_from(self, config: int) -> None:
        """Sort the inner channels, both before and after the convolution, by the weight the next layer gives them."""
        choice = self.choices[config]
        self.middle.start_from(choice.kernel, choice.norm)
        self.restore.start_from(norm=choice.norm)
        before, after = (_sorted(conv.importance(), choice.width) for conv in (self.middle, self.restore))
        self.reduce.reorder(outputs=before)
        self.middle.reorder(inputs=before)
        self.middle.reorder(outputs=after)
        self.restore.reorder(inputs=after)

    def static(self, config: int) -> nn.Module:
        """The plain bottleneck of one config."""
        choice = self.choices[config]
        body = nn.Sequential(
            self.reduce.static(self.inputs, choice.width, activation="re"),
            self.middle.static(choice.width, choice.width, choice.kernel, choice.norm, "re"),
            self.restore.static(choice.width, self.outputs, norm=choice.norm),
        )
        shortcut = nn.Identity() if self.shortcut is None else self.shortcut.static(self.inputs, self.outputs)
        return PlainBlock(body, shortcut, "re")


def _sorted(importance: Tensor, width: int) -> Tensor:
    order = torch.arange(len(importance), device=importance.device)
    order[:width] = importance[:width].argsort(descending=True, stable=True)
    return order


def elastic_bottleneck(stage: Stage, block: int, inputs: int) -> ElasticBottleneck:
    """The elastic block of all configs of one block of a stage."""
    outputs, stride = check_shape(stage, block, stage.blocks[block][0])
    choices = [_choice(stage, block, config) for config in stage.blocks[block]]
    return ElasticBottleneck(choices, inputs, outputs, stride)


def plain_bottleneck(stage: Stage, block: int, config: Config, inputs: int) -> nn.Module:
    """The plain block of one config with fresh weights."""
    choice, (outputs, stride) = _choice(stage, block, config), check_shape(stage, block, config)
    body = nn.Sequential(
        ConvNorm(inputs, choice.width, activation="re"),
        ConvNorm(choice.width, choice.width, choice.kernel, stride, activation="re"),
        ConvNorm(choice.width, outputs),
    )
    changes = stride != 1 or inputs != outputs
    return PlainBlock(body, ConvNorm(inputs, outputs, 1, stride) if changes else nn.Identity(), "re")


def _choice(stage: Stage, block: int, config: Config) -> Choice:
    options = stage.block_options(block, config)
    outputs, _ = check_shape(stage, block, config)
    ratio, kernel = options.get("ratio", 0.25), options.get("kernel", 3)
    if type(ratio) not in (int, float) or not 0 < float(ratio) <= 16 or type(kernel) is not int or kernel < 1:
        raise SpaceError(
            f"config {config.name!r} of stage {stage.name!r} needs a ratio above 0 and at most 16 and a whole "
            f"kernel from 1, got {ratio!r} and {kernel!r}."
        )
    return Choice(round_channels(outputs * float(ratio)), kernel)


register(Family("bottleneck", elastic_bottleneck, plain_bottleneck))
