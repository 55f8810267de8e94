"""What was removed from a model that was trained before, where, and what that cost and saved."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from binas.space.architecture import Architecture
from binas.space.graph_blocks import GraphBlock, common_path
from binas.space.graph_space import OFF, network_of
from binas.space.graphs import Graph
from binas.space.space import SearchSpace
from binas.tables.contributions import Contributions
from binas.tables.costs import Cost
from binas.tables.entries import Column
from binas.tables.units import format_quantity
from binas.training.judgement import Accuracy

FEW = 3  # removed blocks that are named one by one


@dataclass(frozen=True)
class StageRemoval:
    """Of one stage: blocks left out and made smaller, of how many, and what contributions and costs say of it.

    ``path`` is where the stage is in a model of one's own, ``gone`` where the blocks left out were.
    """

    name: str
    path: str
    blocks: int
    removed: int
    smaller: int
    points: float
    saved: float
    word: str = "narrowed"
    gone: tuple[str, ...] = ()

    def sentence(self, unit: str) -> str:
        """``stage s4 (layers.3): 1 of 5 blocks removed (layers.3.2), 1 narrowed: -0.21 points, -1.9 ms``."""
        few = self.removed <= FEW and self.removed < self.blocks
        named = f" ({', '.join(self.gone)})" if few and self.gone else ""
        parts = [
            f"{self.removed} of {self.blocks} blocks removed{named}" if self.removed else "",
            f"{self.smaller} {'' if self.removed else f'of {self.blocks} blocks '}{self.word}"
            if self.smaller
            else "",
        ]
        what = ", ".join(part for part in parts if part) or "kept as it is"
        where = f" ({self.path})" if self.path else ""
        change = (
            f": {self.points:+.2f} points, {-self.saved:+.3g} {unit}" if self.removed or self.smaller else ""
        )
        return f"stage {self.name}{where}: {what}{change}"


def about_model(found: Accuracy, cost: Cost, space: SearchSpace) -> str:
    """``The model itself is right on 71.4 % of 10,000 test images and costs 3.2 ms``."""
    most = cost.range(space)[1]
    return (
        f"The model itself is right on {found.percent:.1f} % of {found.images:,} test images and costs "
        f"{format_quantity(float(f'{most:.3g}'), cost.unit)} by the table."
    )


def removals(
    space: SearchSpace, contributions: Contributions, cost: Cost, architecture: Architecture
) -> Iterator[StageRemoval]:
    """Stage by stage, against the heaviest network; points as contributions add up, costs by the table.

    A block is removed where it is off, or where its stage is less deep; it is smaller where its config is not the last.
    """
    for s, (names, whole) in enumerate(zip(architecture.stages, space.extreme().stages, strict=True)):
        off = sum(name == OFF for name in names)
        smaller = sum(name not in (OFF, full) for name, full in zip(names, whole, strict=False))
        points, saved = (
            _total(space, values, s, names) - _total(space, values, s, whole)
            for values in (contributions.values, cost.values)
        )
        removed = off + len(whole) - len(names)
        word, blocks = "made smaller" if space.network is None else "narrowed", _blocks(space, s)
        gone = [block for block, name in zip(blocks, names, strict=False) if name == OFF]
        yield StageRemoval(
            space.stages[s].name,
            _where(space, blocks),
            len(whole),
            removed,
            smaller,
            points,
            -saved,
            word,
            tuple(_where(space, [block]) or "one without layers" for block in gone),
        )


def _total(space: SearchSpace, values: Column, s: int, names: Sequence[str]) -> float:
    """What a stage with these configs adds: that of its depth and those of its blocks."""
    depth = float(values.depths[s][space.stages[s].depths.index(len(names))])
    blocks = enumerate(names)
    return depth + sum(float(values.configs[s][b][space.config_index(s, b, name)]) for b, name in blocks)


def _blocks(space: SearchSpace, s: int) -> list[GraphBlock]:
    """The blocks of a stage in a model of one's own."""
    if space.network is None:
        return []
    first, count = sum(len(stage.blocks) for stage in space.stages[:s]), len(space.stages[s].blocks)
    return network_of(space.network).blocks[first : first + count]


def _where(space: SearchSpace, blocks: Sequence[GraphBlock]) -> str:
    """Where blocks in a row are: the module that is theirs alone, or the first and the last of theirs."""
    if space.network is None:
        return ""
    graph = network_of(space.network).graph
    if theirs := _module(graph, blocks):
        return theirs
    ends = [(_module(graph, [block]) or path) for block in blocks for path in _ends(graph, block)]
    return "" if not ends else ends[0] if ends[0] == ends[-1] else f"{ends[0]} to {ends[-1]}"


def _module(graph: Graph, blocks: Sequence[GraphBlock]) -> str:
    """The outermost module that these blocks make up and nothing else is part of; empty where there is none."""
    own = {name for block in blocks for name in block.nodes}
    parts = common_path(node.path for node in graph.nodes if node.name in own and node.path).split(".")
    others = [f"{node.path}." for node in graph.nodes if node.name not in own]
    around = (".".join(parts[:length]) for length in range(1, len(parts) + 1))
    return next((path for path in around if not any(other.startswith(f"{path}.") for other in others)), "")


def _ends(graph: Graph, block: GraphBlock) -> list[str]:
    """The first and the last layer of a block; none where it has no layers."""
    paths = [path for name in block.nodes if (path := graph.by_name[name].path)]
    return [paths[0], paths[-1]] if paths else []
