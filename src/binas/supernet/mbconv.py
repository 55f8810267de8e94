"""The MBConv family: expand 1x1, depth-wise k x k, squeeze-excite, project 1x1 (paper appendix A, B).

One elastic block shares its weights over all configs. The expanded channels of a config are the first
``round(inputs * expansion)`` of the widest. Expansion and depth-wise filters act on each channel alone, so their
BatchNorm statistics do not depend on the width: the expansion has one BatchNorm, the depth-wise convolution one
per kernel size. What the projection sums does depend on it: it has one BatchNorm per (expansion, squeeze-excite).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby

import torch
from torch import Tensor, nn

from binas.errors import SpaceError
from binas.space.blockstrings import BlockCode, block_code
from binas.space.rounding import round_channels
from binas.space.space import Config, Stage
from binas.supernet.families import ElasticBlock, Family, Group, check_shape, register
from binas.supernet.layers import ElasticConv, ElasticSqueezeExcite
from binas.supernet.plain import (
    MOBILENET_V3,
    ConvNorm,
    PlainBlock,
    SqueezeExcite,
    SqueezeRule,
    activation_layer,
)


@dataclass(frozen=True, slots=True)
class Choice:
    """One config in the terms of the layers: widths in channels; ``reduced`` is 0 without squeeze-excite."""

    width: int
    kernel: int
    reduced: int
    activation: str

    @property
    def norm(self) -> str:
        """Name of the private output BatchNorm."""
        return f"w{self.width}se{self.reduced}"


class ElasticMBConv(ElasticBlock):
    """Shared weights of all MBConv configs of one block."""

    def __init__(self, choices: Sequence[Choice], inputs: int, outputs: int, stride: int) -> None:
        super().__init__()
        self.choices, self.inputs, self.outputs = tuple(choices), inputs, outputs
        self.configs = len(choices)
        self.skip = stride == 1 and inputs == outputs
        widest = max(choice.width for choice in choices)
        kernels = [choice.kernel for choice in choices]
        self.expand = ElasticConv(inputs, widest)
        self.depthwise = ElasticConv(
            widest, widest, kernels, [f"k{k}" for k in kernels], stride, depthwise=True
        )
        reduced = max(choice.reduced for choice in choices)
        squeezed = max((choice.width for choice in choices if choice.reduced), default=0)
        self.squeeze = ElasticSqueezeExcite(squeezed, reduced, MOBILENET_V3) if reduced else None
        self.project = ElasticConv(widest, outputs, norms=[choice.norm for choice in choices])
        self.activations = nn.ModuleDict({c.activation: activation_layer(c.activation) for c in choices})

    def forward(self, x: Tensor, config: int) -> Tensor:
        """One config for all rows."""
        return self.run(x, [(config, slice(0, len(x)))])

    def rank(self) -> tuple[int, ...]:
        """Configs that share the expansion stand together, and among them those that share the kernel."""
        keys = [(c.width, c.activation, c.kernel, c.reduced, i) for i, c in enumerate(self.choices)]
        places = {key[-1]: place for place, key in enumerate(sorted(keys))}
        return tuple(places[i] for i in range(self.configs))

    def run(self, x: Tensor, groups: Sequence[Group]) -> Tensor:
        """Each group of rows with its own config; expansion and depth-wise filters run once per shared choice."""
        parts: list[Tensor] = []
        for (width, act), wide in groupby(groups, lambda g: self._key(g)[:2]):
            parts += self._one_width(x, list(wide), width, self.activations[act])
        out = parts[0] if len(parts) == 1 else torch.cat(parts)
        return out + x if self.skip else out

    def _key(self, group: Group) -> tuple[int, str, int]:
        choice = self.choices[group[0]]
        return choice.width, choice.activation, choice.kernel

    def _one_width(self, x: Tensor, groups: list[Group], width: int, act: nn.Module) -> list[Tensor]:
        """Outputs of neighbouring groups with the same expansion."""
        choices = [self.choices[config] for config, _ in groups]
        inner = self._squeezed(self._filtered(x, groups, width, act), choices)
        project = {
            norm: self.project.chosen(width, self.outputs, norm=norm)
            for norm in dict.fromkeys(choice.norm for choice in choices)
        }
        return [project[choice.norm](rows) for choice, rows in zip(choices, inner, strict=True)]

    def _filtered(self, x: Tensor, groups: list[Group], width: int, act: nn.Module) -> list[Tensor]:
        """Expansion once for all groups, the depth-wise filter once per kernel; then one tensor per group."""
        start = groups[0][1].start
        parts: list[Tensor] = []
        expanded: Tensor = act(self.expand(x[start : groups[-1][1].stop], width))
        for (_, _, kernel), alike in groupby(groups, self._key):
            sizes = [rows.stop - rows.start for _, rows in alike]
            stop = start + sum(sizes)
            rows = expanded[: stop - start]
            expanded, start = expanded[stop - start :], stop
            filtered: Tensor = act(self.depthwise(rows, width, kernel, f"k{kernel}"))
            parts += torch.split(filtered, sizes)
        return parts

    def _squeezed(self, inner: list[Tensor], choices: list[Choice]) -> list[Tensor]:
        """Squeeze-excite where a choice has it; the two small layers run once for groups of one reduced width."""
        if self.squeeze is None:
            return inner
        out = list(inner)
        for reduced in {choice.reduced for choice in choices} - {0}:
            where = [i for i, choice in enumerate(choices) if choice.reduced == reduced]
            pooled = torch.cat([inner[i].mean((2, 3)) for i in where])
            gates = torch.split(self.squeeze.gates(pooled, reduced), [len(inner[i]) for i in where])
            for i, gate in zip(where, gates, strict=True):
                out[i] = inner[i] * gate if torch.is_grad_enabled() else inner[i].mul_(gate)
        return out

    def start_from(self, config: int) -> None:
        """Sort the expanded channels by the weight the projection gives them; copy kernels and norms."""
        choice = self.choices[config]
        self.depthwise.start_from(choice.kernel, f"k{choice.kernel}")
        self.project.start_from(norm=choice.norm)
        order = self._importance_order(choice.width)
        self.expand.reorder(outputs=order)
        self.depthwise.reorder(outputs=order)
        self.project.reorder(inputs=order)
        if self.squeeze is not None and len(self.squeeze.full.excite.bias) == len(order):
            self.squeeze.reorder(order)

    def _importance_order(self, width: int) -> Tensor:
        """Channels of the trained config by falling importance; channels beyond it stay where they are.

        Where squeeze-excite is narrower than the widest config its channels stay among themselves, which one
        order of all channels cannot promise; then nothing is sorted.
        """
        widest = len(self.project.importance())
        squeezed = max((c.width for c in self.choices if c.reduced), default=widest)
        order = torch.arange(widest, device=self.project.importance().device)
        if squeezed == widest:
            order[:width] = self.project.importance()[:width].argsort(descending=True, stable=True)
        return order

    def static(self, config: int) -> nn.Module:
        """The plain MBConv block of one config."""
        choice = self.choices[config]
        layers: list[nn.Module] = [
            self.expand.static(self.inputs, choice.width, activation=choice.activation),
            self.depthwise.static(
                choice.width, choice.width, choice.kernel, f"k{choice.kernel}", choice.activation
            ),
        ]
        if self.squeeze is not None and choice.reduced:
            layers.append(self.squeeze.static(choice.width, choice.reduced))
        layers.append(self.project.static(choice.width, self.outputs, norm=choice.norm))
        return PlainBlock(nn.Sequential(*layers), nn.Identity() if self.skip else None)


def elastic_mbconv(stage: Stage, block: int, inputs: int) -> ElasticMBConv:
    """The elastic block of all configs of one block of a stage."""
    choices = []
    for config in stage.blocks[block]:
        outputs, stride = check_shape(stage, block, config)
        choices.append(_choice(block_code(stage, block, config), inputs))
    return ElasticMBConv(choices, inputs, outputs, stride)


def _choice(code: BlockCode, inputs: int) -> Choice:
    width = round_channels(inputs * code.expansion)
    return Choice(width, code.kernel, MOBILENET_V3.reduced(code.se, width, inputs), code.activation)


def plain_mbconv(stage: Stage, block: int, config: Config, inputs: int) -> nn.Module:
    """The plain block of one config with fresh weights."""
    return plain_block(block_code(stage, block, config), inputs)


def plain_block(code: BlockCode, inputs: int, rule: SqueezeRule = MOBILENET_V3) -> nn.Module:
    """The block of a block string: ``ir``, ``ds``, ``dsa``, ``er`` or ``cn``, with fresh weights.

    ``ds`` ends without an activation, ``dsa`` with one; ``er`` expands by a k x k convolution instead of a
    depth-wise one. A residual connection needs stride 1 and equal channels, and no ``noskip``; ``cn`` has none.
    """
    if code.kind == "cn":
        return ConvNorm(inputs, code.channels, code.kernel, code.stride, activation=code.activation)
    width = inputs if code.kind in ("ds", "dsa") else round_channels(inputs * code.expansion)
    layers = _middle(code, inputs, width)
    if code.se:
        layers.append(SqueezeExcite(width, rule.reduced(code.se, width, inputs), rule))
    layers.append(ConvNorm(width, code.channels, activation=code.activation if code.kind == "dsa" else ""))
    skip = code.skip and code.stride == 1 and inputs == code.channels
    return PlainBlock(nn.Sequential(*layers), nn.Identity() if skip else None)


def _middle(code: BlockCode, inputs: int, width: int) -> list[nn.Module]:
    """The layers up to squeeze-excite."""
    if code.kind == "er":
        return [ConvNorm(inputs, width, code.kernel, code.stride, activation=code.activation)]
    depthwise = ConvNorm(width, width, code.kernel, code.stride, width, code.activation)
    if code.kind == "ir":
        return [ConvNorm(inputs, width, activation=code.activation), depthwise]
    if code.kind in ("ds", "dsa"):
        return [depthwise]
    raise SpaceError(f"a block of kind {code.kind!r} cannot be built ({code}).")


register(Family("mbconv", elastic_mbconv, plain_mbconv, block_code))
