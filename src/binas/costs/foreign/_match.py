"""What all foreign tables need: the blocks of a space as other tools see them, and a table of what was found."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

from binas.base.errors import SpaceError, TableError, several
from binas.costs.analytic import shapes
from binas.space import BlockCode
from binas.space.blockstrings import block_code
from binas.space.codes import round_channels
from binas.space.space import SearchSpace
from binas.tables.costs import Cost
from binas.tables.entries import LARGEST, Column, Provenance
from binas.tables.units import parse_unit
from binas.version import TOOL

KINDS = ("ir", "ds")


@dataclass(frozen=True, slots=True)
class Block:
    """An MBConv block by its shapes: ``size`` x ``size`` x ``inputs`` in, ``width`` channels inside."""

    size: int
    inputs: int
    outputs: int
    expansion: float
    kernel: int
    stride: int
    se: bool
    activation: str

    @classmethod
    def of(cls, code: BlockCode, inputs: int, size: int) -> Block:
        """The block of a block string on ``size`` x ``size`` x ``inputs``."""
        if code.kind not in KINDS:
            raise SpaceError(f"tables of other tools know MBConv blocks, not {code}.")
        expansion = code.expansion if code.kind == "ir" else 1.0
        return cls(
            size, inputs, code.channels, expansion, code.kernel, code.stride, bool(code.se), code.activation
        )

    @property
    def width(self) -> int:
        """Channels of the depth-wise convolution."""
        return round_channels(self.inputs * self.expansion)

    @property
    def size_out(self) -> int:
        """Height and width of the output."""
        return -(-self.size // self.stride)

    @property
    def skip(self) -> bool:
        """Whether there is a residual connection."""
        return self.stride == 1 and self.inputs == self.outputs


def searched_blocks(space: SearchSpace) -> list[list[list[Block]]]:
    """The block of every stage, block and config."""
    result = []
    for stage, (inputs, size) in zip(space.stages, shapes(space).stages, strict=True):
        rows = []
        for b, configs in enumerate(stage.blocks):
            rows.append([Block.of(block_code(stage, b, config), inputs, size) for config in configs])
            inputs, size = rows[0][0].outputs, rows[0][0].size_out
        result.append(rows)
    return result


def leaving(space: SearchSpace) -> tuple[int, int]:
    """Channels and size of what the last stage hands over."""
    _, size = shapes(space).stages[-1]
    channels, stride = space.stages[-1].get("channels"), space.stages[-1].get("stride", 1)
    assert isinstance(channels, int)  # checked by shapes
    assert isinstance(stride, int)
    return channels, -(-size // stride)


@dataclass(frozen=True, slots=True)
class Found:
    """What a foreign table says about one thing: how it is called there, and its cost; None if it is missing."""

    name: str
    value: float | None


class ForeignTable(Protocol):
    """A look-up table of another tool."""

    def block(self, block: Block) -> Found:
        """The cost of one block."""
        ...

    def fixed(self, space: SearchSpace) -> list[Found]:
        """The costs of everything that is not searched."""
        ...

    def hint(self) -> str:
        """What the table is of, for the message that something is missing."""
        ...


def to_cost(
    table: ForeignTable, space: SearchSpace, name: str, unit: str, provenance: Provenance, where: str
) -> Cost:
    """A foreign table as a cost of ``space``; everything it lacks is named in one error."""
    blocks = [[[table.block(block) for block in row] for row in stage] for stage in searched_blocks(space)]
    fixed = table.fixed(space)
    everything = [item for stage in blocks for row in stage for item in row] + fixed
    missing = list(dict.fromkeys(item.name for item in everything if item.value is None))
    if missing:
        count = len(dict.fromkeys(item.name for item in everything))
        headline = f"{where} lacks {len(missing)} of the {count} entries that the space {space.name!r} needs"
        raise TableError(several(headline, missing, table.hint(), most=6))
    values = Column.build(space, lambda s, i: 0.0, lambda s, b, c: blocks[s][b][c].value or 0.0)
    total = sum(item.value or 0.0 for item in fixed)
    return Cost(name, parse_unit(unit), total, values, provenance=provenance)


def stated(provenance: Provenance | None, source: str) -> Provenance:
    """What the caller says about a table, and where it comes from."""
    known = provenance or Provenance()
    return known.model_copy(update={"source": known.source or source, "tool": TOOL})


def number(value: Any, where: str) -> float:
    """A cost in a foreign table: a number from zero up that any table may hold."""
    if type(value) not in (int, float) or not 0 <= value <= LARGEST:  # not for NaN either
        raise TableError(f"{where} is {str(value)[:40]!r}, not a cost from zero to {LARGEST:g}.")
    return float(value)
