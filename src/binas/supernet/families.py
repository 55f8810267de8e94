"""The elastic block: what the torch half of a block family must offer.

A stage names its family (``family: mbconv`` when it does not). To add one, write an :class:`ElasticBlock` and
register a :class:`binas.space.families.Family`; spaces, costs, strings, sampling, grouping, extraction and export
then work with it.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from itertools import groupby

from torch import Tensor, nn

from binas.base.errors import ModelError, SpaceError
from binas.supernet.rows import joined, parts

Group = tuple[int, slice]


class ElasticBlock(nn.Module, ABC):
    """Shared weights of all configs of one block; the config index is an argument of every call."""

    configs: int

    @abstractmethod
    def forward(self, x: Tensor, config: int) -> Tensor:
        """Run all rows of ``x`` with one config."""

    def rank(self) -> tuple[int, ...]:
        """Where each config stands when rows are sorted; neighbours can share work in :meth:`run`."""
        return tuple(range(self.configs))

    @abstractmethod
    def static(self, config: int) -> nn.Module:
        """The plain block of one config with copied weights."""

    def absorb(self, plain: nn.Module, config: int) -> None:
        """Take over the weights of a plain block: afterwards ``static(config)`` is equal to it.

        The inverse of :meth:`static`; other configs share what they share with this one. A family that does not
        offer it cannot start from a network trained elsewhere.
        """
        raise SpaceError(f"{type(self).__name__} cannot take over the weights of a plain block.")

    def start_from(self, config: int) -> None:
        """Before all configs are trained: let them start from the trained weights of one, the largest.

        A family that shares channel prefixes sorts channels by importance here. The output of ``config`` itself
        must not change. By default nothing is done.
        """

    def run(self, x: Tensor, groups: Sequence[Group]) -> Tensor:
        """Run rows sorted by rank of config, each group with its own; groups are (config, rows) in order."""
        rows = parts(x, [own.stop - own.start for _, own in groups])
        return joined([self(own, config) for (config, _), own in zip(groups, rows, strict=True)])


class MixedBlock(ElasticBlock):
    """Elastic blocks side by side, each for some of the configs: choices that share no weights."""

    def __init__(self, blocks: Sequence[tuple[ElasticBlock, Sequence[int]]]) -> None:
        """``blocks`` with the numbers of their configs here, each in the block's own order."""
        super().__init__()
        self.blocks = nn.ModuleList(block for block, _ in blocks)
        where = {number: (i, own) for i, (_, mine) in enumerate(blocks) for own, number in enumerate(mine)}
        self.configs = len(where)
        self.places = tuple(where[number] for number in range(self.configs))

    def _at(self, config: int) -> tuple[ElasticBlock, int]:
        """The block of a config, and its number there."""
        place, own = self.places[config]
        block = self.blocks[place]
        assert isinstance(block, ElasticBlock)
        return block, own

    def forward(self, x: Tensor, config: int) -> Tensor:
        """One config for all rows."""
        block, own = self._at(config)
        out: Tensor = block(x, own)
        return out

    def rank(self) -> tuple[int, ...]:
        """Block after block, each as it ranks its own."""
        keys = [(self.places[i][0], self._at(i)[0].rank()[self.places[i][1]]) for i in range(self.configs)]
        return tuple(sorted(keys).index(key) for key in keys)

    def run(self, x: Tensor, groups: Sequence[Group]) -> Tensor:
        """Every block with the groups that are its own."""
        outputs = []
        for place, alike in groupby(groups, lambda group: self.places[group[0]][0]):
            mine = list(alike)
            first, last = mine[0][1].start, mine[-1][1].stop
            own = [(self.places[c][1], slice(r.start - first, r.stop - first)) for c, r in mine]
            outputs.append(self.blocks[place].run(x[first:last], own))  # type: ignore[operator]
        return joined(outputs)

    def static(self, config: int) -> nn.Module:
        """The plain block of one config."""
        block, own = self._at(config)
        return block.static(own)

    def absorb(self, plain: nn.Module, config: int) -> None:
        """Give a plain block to the one whose config it is."""
        block, own = self._at(config)
        block.absorb(plain, own)

    def start_from(self, config: int) -> None:
        """The block of this config starts from it; the others have no weights in common with it."""
        block, own = self._at(config)
        block.start_from(own)


def body_of(plain: nn.Module, wanted: nn.Module) -> list[nn.Module]:
    """The layers of a plain block, once it is sure to be made as the block ``wanted`` is."""
    if repr(plain) != repr(wanted):
        raise ModelError(
            f"the block does not fit the config that shall take over its weights: it is {plain}, not {wanted}."
        )
    return list(plain.body.children())  # type: ignore[union-attr]
