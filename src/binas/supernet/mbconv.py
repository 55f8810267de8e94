"""The MBConv family: expand 1x1, depth-wise k x k, squeeze-excite, project 1x1 (paper appendix A, B).

One elastic block shares its weights over all configs. The expanded channels of a config are the first
``round(inputs * expansion)`` of the widest. Expansion and depth-wise filters act on each channel alone, so their
BatchNorm statistics do not depend on the width: the expansion has one BatchNorm, the depth-wise convolution one
per kernel size. What the projection sums does depend on it: it has one BatchNorm per (expansion, squeeze-excite).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import TypeVar

import torch
from torch import Tensor, nn

from binas.space.codes import BlockCode
from binas.space.families import NetworkRules, SqueezeShape
from binas.space.families.mbconv import expanded_width
from binas.supernet.families import ElasticBlock, Group, body_of
from binas.supernet.folded import FoldedMBConv, Run
from binas.supernet.layers import ElasticConv, ElasticSqueezeExcite
from binas.supernet.plain import PlainBlock, activation_layer
from binas.supernet.rows import joined, parts

T = TypeVar("T", int, str)


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

    def __init__(
        self, choices: Sequence[Choice], inputs: int, outputs: int, stride: int, rules: NetworkRules
    ) -> None:
        super().__init__()
        self.choices, self.inputs, self.outputs = tuple(choices), inputs, outputs
        self.configs = len(choices)
        self.skip = stride == 1 and inputs == outputs
        widest = max(choice.width for choice in choices)
        kernels = [choice.kernel for choice in choices]
        self.expand = ElasticConv(inputs, widest, rules=rules)
        self.depthwise = ElasticConv(
            widest, widest, kernels, [f"k{k}" for k in kernels], stride, depthwise=True, rules=rules
        )
        reduced = max(choice.reduced for choice in choices)
        squeezed = max((choice.width for choice in choices if choice.reduced), default=0)
        self.squeeze: ElasticSqueezeExcite | None = None
        if reduced:
            self.squeeze = ElasticSqueezeExcite(SqueezeShape(squeezed, reduced, rules.squeeze))
        self.project = ElasticConv(widest, outputs, norms=[c.norm for c in choices], rules=rules)
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
        runs = [(self.choices[config], rows) for config, rows in groups]
        recording = self.training or torch.is_grad_enabled()
        if not recording and not torch.is_autocast_enabled(x.device.type):
            return FoldedMBConv(self, [choice for choice, _ in runs]).run(x, runs)
        widths = [list(alike) for _, alike in groupby(runs, lambda run: (run[0].width, run[0].activation))]
        rows = parts(x, [sum(map(_count, alike)) for alike in widths])
        out = joined(
            [part for alike, own in zip(widths, rows, strict=True) for part in self._one_width(own, alike)]
        )
        return out + x if self.skip else out

    def _one_width(self, x: Tensor, runs: Sequence[Run]) -> list[Tensor]:
        """Outputs of neighbouring runs with the same expansion, one tensor per run."""
        choices = [choice for choice, _ in runs]
        act = self.activations[choices[0].activation]
        expanded = act(self.expand(x, choices[0].width))
        inner = self._squeezed(self._filtered(expanded, runs, act), choices)
        return self._projected(inner, choices)

    def _filtered(self, expanded: Tensor, runs: Sequence[Run], act: nn.Module) -> list[Tensor]:
        """The depth-wise filter once per kernel; then one tensor per run."""
        kernels = [(kernel, list(alike)) for kernel, alike in groupby(runs, lambda run: run[0].kernel)]
        rows = parts(expanded, [sum(map(_count, alike)) for _, alike in kernels])
        inner: list[Tensor] = []
        for (kernel, alike), own in zip(kernels, rows, strict=True):
            filtered = act(self.depthwise(own, own.shape[1], kernel, f"k{kernel}"))
            inner += parts(filtered, [_count(run) for run in alike])
        return inner

    def _squeezed(self, inner: Sequence[Tensor], choices: Sequence[Choice]) -> list[Tensor]:
        """Squeeze-excite where a choice has it; the two small layers run once per reduced width."""
        out = list(inner)
        for reduced, where in _places(choice.reduced for choice in choices).items():
            if self.squeeze is not None and reduced:
                pooled = joined([inner[i].mean((2, 3)) for i in where])
                gates = parts(self.squeeze.gates(pooled, reduced), [len(inner[i]) for i in where])
                for i, gate in zip(where, gates, strict=True):
                    out[i] = inner[i] * gate
        return out

    def _projected(self, inner: Sequence[Tensor], choices: Sequence[Choice]) -> list[Tensor]:
        """The projection; each private BatchNorm sees all its rows at once, whatever their kernel."""
        out = [self.project.convolve(part, self.outputs) for part in inner]
        for name, where in _places(choice.norm for choice in choices).items():
            rows = joined([out[i] for i in where])
            normalised = parts(self.project.norms[name](rows), [len(out[i]) for i in where])
            for i, part in zip(where, normalised, strict=True):
                out[i] = part
        return out

    def start_from(self, config: int) -> None:
        """Sort the expanded channels by their size and the weight the projection gives them; copy kernels and norms.

        Where squeeze-excite is narrower than the widest config its channels would have to stay among themselves;
        then nothing is sorted.
        """
        choice = self.choices[config]
        self.depthwise.start_from(choice.kernel, f"k{choice.kernel}")
        self.project.start_from(norm=choice.norm)
        widest = max(choice.width for choice in self.choices)
        if self.squeeze is not None and self.squeeze.full.excite.out_features < widest:
            return
        order = self.project.importance_order(choice.width, self.depthwise.norm(f"k{choice.kernel}"))
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

    def absorb(self, plain: nn.Module, config: int) -> None:
        """Take over a plain MBConv block."""
        choice = self.choices[config]
        expand, depthwise, *squeeze, project = body_of(plain, self.static(config))
        self.expand.absorb(expand)
        self.depthwise.absorb(depthwise, f"k{choice.kernel}")
        for layer in squeeze:
            assert self.squeeze is not None
            self.squeeze.absorb(layer)
        self.project.absorb(project, choice.norm)


def _count(run: Run) -> int:
    """Rows of a run."""
    count: int = run[1].stop - run[1].start
    return count


def _places(keys: Iterable[T]) -> dict[T, list[int]]:
    """Where each key stands."""
    places: dict[T, list[int]] = {}
    for i, key in enumerate(keys):
        places.setdefault(key, []).append(i)
    return places


def elastic_mbconv(codes: Sequence[BlockCode], inputs: int, rules: NetworkRules) -> ElasticMBConv:
    """The elastic block of these configs."""
    choices = [_choice(code, inputs, rules) for code in codes]
    return ElasticMBConv(choices, inputs, codes[0].channels, codes[0].stride, rules)


def _choice(code: BlockCode, inputs: int, rules: NetworkRules) -> Choice:
    width = expanded_width(code, inputs)
    return Choice(width, code.kernel, rules.squeeze.reduced(code.se, width, inputs), code.activation)
