"""What blocks that widen and narrow again share: squeeze-excite and the 1x1 projection on the widened channels.

The inner channels of a config are the first ``round(inputs * expansion)`` of the widest. Each is computed from all inputs,
whatever the width, so norms before the projection do not depend on it. What the projection sums does: it has one BatchNorm
per (expansion, squeeze-excite).
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import TypeVar

from torch import Tensor, nn

from binas.space.codes import BlockCode
from binas.space.families import NetworkRules, SqueezeShape
from binas.space.families.mbconv import expanded_width
from binas.supernet.families import ElasticBlock, Group, body_of
from binas.supernet.layers import ElasticConv, ElasticNorm, ElasticSqueezeExcite
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

    @classmethod
    def of(cls, code: BlockCode, inputs: int, rules: NetworkRules) -> Choice:
        """The choice that a block string describes."""
        width = expanded_width(code, inputs)
        return cls(width, code.kernel, rules.squeeze.reduced(code.se, width, inputs), code.activation)

    @property
    def norm(self) -> str:
        """Name of the private output BatchNorm."""
        return f"w{self.width}se{self.reduced}"


Run = tuple[Choice, slice]


class ElasticInverted(ElasticBlock):
    """Shared weights of all configs of one block; how it widens is up to the class below."""

    def __init__(
        self, choices: Sequence[Choice], inputs: int, outputs: int, stride: int, rules: NetworkRules
    ) -> None:
        super().__init__()
        self.choices, self.inputs, self.outputs = tuple(choices), inputs, outputs
        self.configs = len(choices)
        self.skip = stride == 1 and inputs == outputs
        self.widest = max(choice.width for choice in choices)
        self.build_widening(stride, rules)
        reduced = max(choice.reduced for choice in choices)
        squeezed = max((choice.width for choice in choices if choice.reduced), default=0)
        self.squeeze: ElasticSqueezeExcite | None = None
        if reduced:
            self.squeeze = ElasticSqueezeExcite(SqueezeShape(squeezed, reduced, rules.squeeze))
        self.project = ElasticConv(self.widest, outputs, norms=[c.norm for c in choices], rules=rules)
        self.activations = nn.ModuleDict({c.activation: activation_layer(c.activation) for c in choices})

    @abstractmethod
    def build_widening(self, stride: int, rules: NetworkRules) -> None:
        """Make the layers up to squeeze-excite, for the widest config and all kernels."""

    @abstractmethod
    def widened(self, x: Tensor, runs: Sequence[Run], act: nn.Module) -> list[Tensor]:
        """The inner channels of neighbouring runs of one width, one tensor per run."""

    @abstractmethod
    def widening(self, choice: Choice) -> list[nn.Module]:
        """The plain layers of a config up to squeeze-excite, with copied weights."""

    @abstractmethod
    def absorb_widening(self, layers: Sequence[nn.Module], choice: Choice) -> None:
        """Take over such layers."""

    @abstractmethod
    def start_widening(self, choice: Choice) -> ElasticNorm:
        """Let other kernels start from those of a choice; the norm of its inner channels."""

    @abstractmethod
    def reorder_widening(self, order: Tensor) -> None:
        """Put the inner channels into another order."""

    def forward(self, x: Tensor, config: int) -> Tensor:
        """One config for all rows."""
        return self.run(x, [(config, slice(0, len(x)))])

    def rank(self) -> tuple[int, ...]:
        """Configs that share the width stand together, and among them those that share the kernel."""
        keys = [(c.width, c.activation, c.kernel, c.reduced, i) for i, c in enumerate(self.choices)]
        places = {key[-1]: place for place, key in enumerate(sorted(keys))}
        return tuple(places[i] for i in range(self.configs))

    def run(self, x: Tensor, groups: Sequence[Group]) -> Tensor:
        """Each group of rows with its own config; what several share runs once."""
        runs = [(self.choices[config], rows) for config, rows in groups]
        widths = [list(alike) for _, alike in groupby(runs, lambda run: (run[0].width, run[0].activation))]
        rows = parts(x, [sum(map(count, alike)) for alike in widths])
        out = joined(
            [part for alike, own in zip(widths, rows, strict=True) for part in self._one_width(own, alike)]
        )
        return out + x if self.skip else out

    def _one_width(self, x: Tensor, runs: Sequence[Run]) -> list[Tensor]:
        """Outputs of neighbouring runs with the same expansion, one tensor per run."""
        choices = [choice for choice, _ in runs]
        inner = self.widened(x, runs, self.activations[choices[0].activation])
        return self._projected(self._squeezed(inner, choices), choices)

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
        """Sort the inner channels by their size and the weight the projection gives them; copy kernels and norms.

        Where squeeze-excite is narrower than the widest config its channels would have to stay among themselves;
        then nothing is sorted.
        """
        choice = self.choices[config]
        read = self.start_widening(choice)
        self.project.start_from(norm=choice.norm)
        if self.squeeze is not None and self.squeeze.full.excite.out_features < self.widest:
            return
        order = self.project.importance_order(choice.width, read)
        self.reorder_widening(order)
        self.project.reorder(inputs=order)
        if self.squeeze is not None:
            self.squeeze.reorder(order)

    def static(self, config: int) -> nn.Module:
        """The plain block of one config."""
        choice = self.choices[config]
        layers = self.widening(choice)
        if self.squeeze is not None and choice.reduced:
            layers.append(self.squeeze.static(choice.width, choice.reduced))
        layers.append(self.project.static(choice.width, self.outputs, norm=choice.norm))
        return PlainBlock(nn.Sequential(*layers), nn.Identity() if self.skip else None)

    def absorb(self, plain: nn.Module, config: int) -> None:
        """Take over a plain block."""
        choice = self.choices[config]
        *layers, project = body_of(plain, self.static(config))
        if choice.reduced:
            assert self.squeeze is not None
            self.squeeze.absorb(layers.pop())
        self.absorb_widening(layers, choice)
        self.project.absorb(project, choice.norm)


def by_kernel(x: Tensor, runs: Sequence[Run], filtered: Callable[[Tensor, int], Tensor]) -> list[Tensor]:
    """``filtered(rows, kernel)`` once per kernel; then one tensor per run."""
    kernels = [(kernel, list(alike)) for kernel, alike in groupby(runs, lambda run: run[0].kernel)]
    rows = parts(x, [sum(map(count, alike)) for _, alike in kernels])
    inner: list[Tensor] = []
    for (kernel, alike), own in zip(kernels, rows, strict=True):
        inner += parts(filtered(own, kernel), [count(run) for run in alike])
    return inner


def count(run: Run) -> int:
    """Rows of a run."""
    number: int = run[1].stop - run[1].start
    return number


def _places(keys: Iterable[T]) -> dict[T, list[int]]:
    """Where each key stands."""
    places: dict[T, list[int]] = {}
    for i, key in enumerate(keys):
        places.setdefault(key, []).append(i)
    return places
