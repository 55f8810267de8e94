"""What looks wrong in a table although it may be right: real devices do surprise, so these are doubts, not errors.

* A config that is larger than another in one option, and equal in the rest, but much cheaper.
* A block far from what the others cost for their multiply-accumulates: log cost against log MACs, by the line of
  Theil and Sen (the median of slopes), which single wrong rows do not move. The fixed part is held against the
  same line, more loosely: it has other layers than blocks.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from binas.base.errors import SpaceError
from binas.costs.analytic import config_work, shapes
from binas.space.space import Config, SearchSpace
from binas.tables.costs import Cost

CHEAPER = 0.8  # of the smaller config: below this a larger one is doubted
FACTOR, DEVIATIONS, UNIT = 3.0, 6.0, 100.0  # from the line: doubted are factors above FACTOR and so many
# deviations, and above UNIT always, for then the unit is wrong
FIXED_FACTOR = 10.0
LISTED = 5
FEWEST, MOST = 4, 2000  # points to draw the line through


def doubts(space: SearchSpace, cost: Cost) -> list[str]:
    """Sentences with numbers about what to look at again; empty where all looks plausible."""
    return [*_larger_but_cheaper(space, cost), *_off_the_line(space, cost)]


def _sentence(headline: str, worst: list[str]) -> str:
    rest = f"; and {len(worst) - LISTED} more" if len(worst) > LISTED else ""
    return f"{headline}: {'; '.join(worst[:LISTED])}{rest}."


def _larger_but_cheaper(space: SearchSpace, cost: Cost) -> Iterator[str]:
    doubtful: dict[
        tuple[int, int, int, float], str
    ] = {}  # blocks of one shape share their numbers; each pair is named once
    for s, stage in enumerate(space.stages):
        for b, block in enumerate(stage.blocks):
            values = cost.values.configs[s][b]
            for i, j in itertools.permutations(range(len(block)), 2):
                if values[i] < CHEAPER * values[j] and _one_larger(block[i], block[j]):
                    share = float(values[i] / values[j])
                    text = (
                        f"{block[i].name} costs {share:.2f} of {block[j].name} in {stage.name} block {b + 1}"
                    )
                    doubtful.setdefault((s, i, j, share), text)
    if doubtful:
        worst = [doubtful[key] for key in sorted(doubtful, key=lambda key: key[-1])]
        yield _sentence(f"in {len(worst)} cases a larger config is much cheaper than a smaller one", worst)


def _one_larger(one: Config, two: Config) -> bool:
    """Whether the first config is larger in exactly one number (on is larger than off), all else equal."""
    first, second = dict(one.options), dict(two.options)
    unlike = [key for key in {*first, *second} if first.get(key) != second.get(key)]
    if len(unlike) != 1:
        return False
    a, b = first.get(unlike[0]), second.get(unlike[0])
    return isinstance(a, int | float) and isinstance(b, int | float) and a > b


@dataclass(frozen=True, slots=True)
class _Point:
    """A block: how it is called, its MACs and its cost."""

    name: str
    macs: float
    cost: float


def _points(space: SearchSpace, cost: Cost) -> list[_Point]:
    """Every block once; those of one shape share MACs and cost."""
    work = config_work(space)
    points: dict[tuple[int, int, float, float], _Point] = {}
    for s, stage in enumerate(space.stages):
        for b, block in enumerate(stage.blocks):
            for c, config in enumerate(block):
                macs, value = float(work[s][b][c].macs), float(cost.values.configs[s][b][c])
                point = _Point(f"{config.name} of {stage.name} block {b + 1}", macs, value)
                points.setdefault((s, c, macs, value), point)
    return list(points.values())


def _off_the_line(space: SearchSpace, cost: Cost) -> Iterator[str]:
    try:
        points, fixed = _points(space, cost), float(shapes(space).fixed.macs)
    except SpaceError:  # blocks that cannot be counted have no line
        return
    drawn = [point for point in points if point.macs > 0 and point.cost > 0]
    if len(drawn) < FEWEST:
        return
    line = _line(drawn)
    away = np.array([line.away(point) for point in drawn])
    spread = 1.4826 * float(np.median(np.abs(away)))  # of a normal distribution: its standard deviation
    allowed = min(max(math.log(FACTOR), DEVIATIONS * spread), math.log(UNIT))
    order = [i for i in np.argsort(-np.abs(away)) if abs(away[i]) > allowed]
    if order:
        worst = [f"{drawn[i].name} {math.exp(away[i]):.3g} times" for i in order]
        yield _sentence(f"far from what others cost for their MACs ({len(order)} blocks)", worst)
    free = [point.name for point in points if point.cost == 0 and point.macs > 0]
    if free:
        yield _sentence(f"cost nothing although they compute something ({len(free)} blocks)", free)
    yield from _doubt_fixed(_Point("the fixed part", fixed, cost.fixed), line)


def _doubt_fixed(point: _Point, line: _Line) -> Iterator[str]:
    if point.macs > 0 and point.cost == 0:
        yield "the fixed part (stem, head, classifier) costs nothing."
    elif point.macs > 0 and abs(line.away(point)) > math.log(FIXED_FACTOR):
        times = math.exp(line.away(point))
        yield f"the fixed part costs {times:.3g} times what blocks of its MACs would."


@dataclass(frozen=True, slots=True)
class _Line:
    """log cost = start + slope * log MACs."""

    slope: float
    start: float

    def away(self, point: _Point) -> float:
        """How far above the line a point is, as a logarithm."""
        return math.log(point.cost) - self.start - self.slope * math.log(point.macs)


def _line(points: list[_Point]) -> _Line:
    some = points[:: -(-len(points) // MOST)]
    macs, costs = (np.log([getattr(point, key) for point in some]) for key in ("macs", "cost"))
    if np.ptp(macs) == 0:
        return _Line(0.0, float(np.median(costs)))
    first, second = np.nonzero(macs[:, None] < macs)
    slope = float(np.median((costs[second] - costs[first]) / (macs[second] - macs[first])))
    return _Line(slope, float(np.median(costs) - slope * np.median(macs)))
