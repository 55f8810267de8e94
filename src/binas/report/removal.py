"""What was removed from a model of one's own, where, and what that cost and saved."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from binas.space.architecture import Architecture
from binas.space.graph_blocks import common_path
from binas.space.graph_space import OFF, network_of
from binas.space.space import SearchSpace
from binas.tables.contributions import Contributions
from binas.tables.costs import Cost


@dataclass(frozen=True)
class StageRemoval:
    """Of one stage: blocks left out and narrowed, of how many, and what contributions and costs say of it."""

    name: str
    path: str
    blocks: int
    removed: int
    narrowed: int
    points: float
    saved: float

    def sentence(self, unit: str) -> str:
        """``stage s4 (layers.3): 2 of 5 blocks removed, 1 narrowed: -0.21 points, -1.9 ms``."""
        parts = [
            f"{self.removed} of {self.blocks} blocks removed" if self.removed else "",
            f"{self.narrowed} {'' if self.removed else f'of {self.blocks} blocks '}narrowed"
            if self.narrowed
            else "",
        ]
        what = ", ".join(part for part in parts if part) or "kept as it is"
        where = f" ({self.path})" if self.path else ""
        change = (
            f": {self.points:+.2f} points, {-self.saved:+.3g} {unit}" if self.removed or self.narrowed else ""
        )
        return f"stage {self.name}{where}: {what}{change}"


def removals(
    space: SearchSpace, contributions: Contributions, cost: Cost, architecture: Architecture
) -> Iterator[StageRemoval]:
    """Stage by stage, against the heaviest network; points as contributions add up, costs by the table."""
    assert space.network is not None
    blocks, number = network_of(space.network).blocks, 0
    for s, (stage, names) in enumerate(zip(space.stages, architecture.stages, strict=True)):
        chosen = [space.config_index(s, b, name) for b, name in enumerate(names)]
        points = sum(_gap(contributions.values.configs[s][b], c) for b, c in enumerate(chosen))
        saved = -sum(_gap(cost.values.configs[s][b], c) for b, c in enumerate(chosen))
        off = sum(name == OFF for name in names)
        narrow = sum(
            name != OFF and c < len(stage.blocks[b]) - 1
            for b, (name, c) in enumerate(zip(names, chosen, strict=True))
        )
        paths = [block.path for block in blocks[number : number + len(names)] if block.path]
        number += len(names)
        path = paths[0] if len(paths) == 1 else common_path(paths)
        yield StageRemoval(stage.name, path, len(names), off, narrow, points, saved)


def _gap(values: object, chosen: int) -> float:
    """What a choice has beyond the last one."""
    return float(values[chosen] - values[-1])  # type: ignore[index]
