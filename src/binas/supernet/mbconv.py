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

from binas.space.codes import BlockCode
from binas.space.families import MOBILENET_V3, SqueezeShape
from binas.space.families.mbconv import expanded_width
from binas.supernet.families import ElasticBlock, Group
from binas.supernet.layers import ElasticConv, ElasticSqueezeExcite
from binas.supernet.plain import PlainBlock, activation_layer


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
        self.squeeze = ElasticSqueezeExcite(SqueezeShape(squeezed, reduced)) if reduced else None
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
        """Sort the expanded channels by the weight the projection gives them; copy kernels and norms.

        Where squeeze-excite is narrower than the widest config its channels would have to stay among themselves;
        then nothing is sorted.
        """
        choice = self.choices[config]
        self.depthwise.start_from(choice.kernel, f"k{choice.kernel}")
        self.project.start_from(norm=choice.norm)
        widest = max(choice.width for choice in self.choices)
        if self.squeeze is not None and self.squeeze.full.excite.out_features < widest:
            return
        order = self.project.importance_order(choice.width)
        self.expand.reorder(outputs=order)
        self.depthwise.reorder(outputs=order)
        self.project.reorder(inputs=order)
        if self.squeeze is not None:
            self.squeeze.reorder(order)

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


def elastic_mbconv(codes: Sequence[BlockCode], inputs: int) -> ElasticMBConv:
    """The elastic block of these configs."""
    choices = [_choice(code, inputs) for code in codes]
    return ElasticMBConv(choices, inputs, codes[0].channels, codes[0].stride)


def _choice(code: BlockCode, inputs: int) -> Choice:
    width = expanded_width(code, inputs)
    return Choice(width, code.kernel, MOBILENET_V3.reduced(code.se, width, inputs), code.activation)
