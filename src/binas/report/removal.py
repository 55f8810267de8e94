"""What was removed from a model that was trained before, where, and what that cost and saved."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from binas.space.architecture import Architecture
from binas.space.graph_blocks import common_path
from binas.space.graph_space import OFF, network_of
from binas.space.space import SearchSpace
from binas.tables.contributions import Contributions
from binas.tables.costs import Cost
from binas.tables.entries import Column
from binas.tables.units import format_quantity
from binas.training.judgement import Accuracy


@dataclass(frozen=True)
class StageRemoval:
    """Of one stage: blocks left out and made smaller, of how many, and what contributions and costs say of it."""

    name: str
    path: str
    blocks: int
    removed: int
    smaller: int
    points: float
    saved: float
    word: str = "narrowed"

    def sentence(self, unit: str) -> str:
        """``stage s4 (layers.3): 2 of 5 blocks removed, 1 narrowed: -0.21 points, -1.9 ms``."""
        parts = [
            f"{self.removed} of {self.blocks} blocks removed" if self.removed else "",
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
        stage, word = space.stages[s], "made smaller" if space.network is None else "narrowed"
        yield StageRemoval(stage.name, _path(space, s), len(whole), removed, smaller, points, -saved, word)


def _total(space: SearchSpace, values: Column, s: int, names: Sequence[str]) -> float:
    """What a stage with these configs adds: that of its depth and those of its blocks."""
    depth = float(values.depths[s][space.stages[s].depths.index(len(names))])
    blocks = enumerate(names)
    return depth + sum(float(values.configs[s][b][space.config_index(s, b, name)]) for b, name in blocks)


def _path(space: SearchSpace, s: int) -> str:
    """Where the blocks of a stage are in a model of one's own."""
    if space.network is None:
        return ""
    first, count = sum(len(stage.blocks) for stage in space.stages[:s]), len(space.stages[s].blocks)
    blocks = network_of(space.network).blocks[first : first + count]
    paths = [block.path for block in blocks if block.path]
    return paths[0] if len(paths) == 1 else common_path(paths)
