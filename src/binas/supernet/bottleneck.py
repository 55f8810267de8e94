"""The elastic block of the residual bottleneck family (:mod:`binas.space.families.bottleneck`).

Unlike a depth-wise filter the inner convolution sums over channels, so its BatchNorm is private to
(width, kernel), as is the last one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from torch import Tensor, nn

from binas.space.codes import BlockCode
from binas.space.families import NetworkRules
from binas.space.families.bottleneck import inner_width
from binas.supernet.families import ElasticBlock, body_of
from binas.supernet.layers import SHARED, ElasticConv
from binas.supernet.plain import PlainBlock, activation_layer


@dataclass(frozen=True, slots=True)
class Choice:
    """One config: inner width in channels, kernel and activation."""

    width: int
    kernel: int
    activation: str

    @property
    def norm(self) -> str:
        """Name of the private BatchNorms."""
        return f"w{self.width}k{self.kernel}"


class ElasticBottleneck(ElasticBlock):
    """Shared weights of all bottleneck configs of one block."""

    def __init__(
        self, choices: Sequence[Choice], inputs: int, outputs: int, stride: int, rules: NetworkRules
    ) -> None:
        super().__init__()
        self.choices, self.inputs, self.outputs = tuple(choices), inputs, outputs
        self.configs = len(choices)
        widest, names = max(choice.width for choice in choices), [choice.norm for choice in choices]
        self.reduce = ElasticConv(inputs, widest, rules=rules)
        self.middle = ElasticConv(widest, widest, [c.kernel for c in choices], names, stride, rules=rules)
        self.restore = ElasticConv(widest, outputs, norms=names, rules=rules)
        changes = stride != 1 or inputs != outputs
        self.shortcut = ElasticConv(inputs, outputs, stride=stride, rules=rules) if changes else None
        self.activations = nn.ModuleDict({c.activation: activation_layer(c.activation) for c in choices})

    def forward(self, x: Tensor, config: int) -> Tensor:
        """One config for all rows."""
        choice = self.choices[config]
        act = self.activations[choice.activation]
        inner = act(self.reduce(x, choice.width))
        inner = act(self.middle(inner, choice.width, choice.kernel, choice.norm))
        out: Tensor = self.restore(inner, self.outputs, norm=choice.norm)
        out = act(out + (x if self.shortcut is None else self.shortcut(x, self.outputs)))
        return out

    def start_from(self, config: int) -> None:
        """Sort the inner channels, before and after the convolution, by size and the weight the next layer gives them."""
        choice = self.choices[config]
        self.middle.start_from(choice.kernel, choice.norm)
        self.restore.start_from(norm=choice.norm)
        before = self.middle.importance_order(choice.width, self.reduce.norm(SHARED))
        after = self.restore.importance_order(choice.width, self.middle.norm(choice.norm))
        self.reduce.reorder(outputs=before)
        self.middle.reorder(inputs=before)
        self.middle.reorder(outputs=after)
        self.restore.reorder(inputs=after)

    def static(self, config: int) -> nn.Module:
        """The plain bottleneck of one config."""
        choice = self.choices[config]
        body = nn.Sequential(
            self.reduce.static(self.inputs, choice.width, activation=choice.activation),
            self.middle.static(choice.width, choice.width, choice.kernel, choice.norm, choice.activation),
            self.restore.static(choice.width, self.outputs, norm=choice.norm),
        )
        shortcut = nn.Identity() if self.shortcut is None else self.shortcut.static(self.inputs, self.outputs)
        return PlainBlock(body, shortcut, choice.activation)

    def absorb(self, plain: nn.Module, config: int) -> None:
        """Take over a plain bottleneck."""
        norm = self.choices[config].norm
        reduce, middle, restore = body_of(plain, self.static(config))
        self.reduce.absorb(reduce)
        self.middle.absorb(middle, norm)
        self.restore.absorb(restore, norm)
        if self.shortcut is not None:
            self.shortcut.absorb(plain.shortcut)  # type: ignore[arg-type]


def elastic_bottleneck(codes: Sequence[BlockCode], inputs: int, rules: NetworkRules) -> ElasticBottleneck:
    """The elastic block of these configs."""
    choices = [Choice(inner_width(code), code.kernel, code.activation) for code in codes]
    return ElasticBottleneck(choices, inputs, codes[0].channels, codes[0].stride, rules)
