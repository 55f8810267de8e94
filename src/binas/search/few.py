"""Few choices left: every combination of them, one by one.

With a multiplier m, its bound UB and one budget, an architecture is worth UB - (sum of its reduced costs) - m * (what it
leaves of the budget). So only combinations whose reduced costs sum to at most a gap matter. Where these are few, plain
numbers added up in lists take a tenth of the time in which arrays of labels are set up.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import defaultdict

import numpy as np
from numpy.typing import NDArray

from binas.search.dual import Padded, Reduced, Relaxed, totals_of
from binas.search.merging import halved

Near = NDArray[np.bool_]
Pick = tuple[int, int, int]  # stage, block, config; block -1: the place of a depth
Option = tuple[float, float, float, tuple[Pick, ...]]  # reduced cost, value, cost, and of what

MOST = 3000  # combinations made in one step: about a millisecond


def best_of_few(
    padded: Padded, at: Relaxed, reduced: Reduced, gap: float
) -> tuple[Relaxed | None, int] | None:
    """The best architecture within the one budget and the gap, and how many parts of one were left in the end.

    Two halves of the stages are added up, and the best pair is found by bisection. None in place of both results where there
    are too many combinations to be tried one by one.
    """
    near = np.isfinite(reduced.configs) & (reduced.configs <= gap)
    stages = _stages(padded, reduced, near, gap) if int(near.sum()) <= MOST else None
    if stages is None:
        return None
    budget, (one, two) = float(padded.budget[0]), halved(stages)
    first, second = _added(one, two, gap, budget), _added(two, one, gap, budget)
    if first is None or second is None:
        return None
    best = _best_pair(first, second, budget)
    return None if best is None else _relaxed(padded, at, reduced, best), len(first) + len(second)


def _added(
    stages: list[list[Option]], others: list[list[Option]], gap: float, budget: float
) -> list[Option] | None:
    """What some stages come to beside the cheapest of the others; None where that is too much."""
    total: list[Option] = [(0.0, 0.0, 0.0, ())]
    for k, stage in enumerate(stages):
        if len(total) * len(stage) > MOST:
            return None
        rest = sum(min(option[2] for option in later) for later in (*stages[k + 1 :], *others))
        total = _unbeaten(_sums(total, stage, gap, budget - rest))
    return total


def _best_pair(one: list[Option], two: list[Option], budget: float) -> Option | None:
    """The pair of highest value within the budget; of ``two``, which is not beaten, the dearest that there is room for."""
    costs = [option[2] for option in two]
    best: Option = (0.0, -np.inf, 0.0, ())
    for loss, value, cost, picks in one:
        place = bisect_right(costs, budget - cost) - 1
        if place >= 0 and value + two[place][1] > best[1]:
            more, worth, price, own = two[place]
            best = (loss + more, value + worth, cost + price, picks + own)
    return best if best[3] else None


def _stages(padded: Padded, reduced: Reduced, near: Near, gap: float) -> list[list[Option]] | None:
    """For each stage what is within the gap and not beaten; None where that is too much. ``near`` says which configs are."""
    result, opened, given = (
        list[list[Option]](),
        _opened(padded, reduced, near),
        _given(padded, reduced, near),
    )
    for s, (stage, loss) in enumerate(zip(padded.terms.stages, reduced.depths.tolist(), strict=True)):
        options, own = list[Option](), stage.depth.tolist()
        for p, depth in enumerate(stage.depths):
            if loss[p] > gap:
                continue
            value, cost = (own[row][p] + given[row][s][depth] for row in (0, 1))
            variants: list[Option] = [(loss[p], value, cost, ((s, -1, p),))]
            for b, block in opened[s].items():
                if len(variants) * len(block) > MOST:
                    return None
                variants = variants if b >= depth else _unbeaten(_sums(variants, block, gap, np.inf))
            options += variants
        result.append(_unbeaten(options))
    return result


def _opened(padded: Padded, reduced: Reduced, near: Near) -> dict[int, dict[int, list[Option]]]:
    """By stage and block the configs that are near, where there are several."""
    places = (near & (near.sum(axis=2) > 1)[:, :, None]).nonzero()
    loss = reduced.configs[places] - reduced.configs.min(axis=2)[places[:2]]  # without that of the depth
    numbers = (*places, loss, padded.blocks[0][places], padded.blocks[1][places])
    result = defaultdict[int, dict[int, list[Option]]](dict)
    for s, b, c, lost, value, cost in zip(*(part.tolist() for part in numbers), strict=True):
        result[s].setdefault(b, []).append((lost, value, cost, ((s, b, c),)))
    return result


def _given(padded: Padded, reduced: Reduced, near: Near) -> list[list[list[float]]]:
    """[row][s][d]: value and cost of those of the first d blocks of which one config is near."""
    chosen = np.where(near.sum(axis=2) == 1, padded.flat_blocks[:2, padded.first + reduced.best], 0.0)
    sums = np.zeros((2, near.shape[0], 1 + near.shape[1]))
    np.cumsum(chosen, axis=2, out=sums[:, :, 1:])
    result: list[list[list[float]]] = sums.tolist()
    return result


def _sums(left: list[Option], right: list[Option], gap: float, room: float) -> list[Option]:
    """One of each, within gap and room."""
    return [
        (loss + more, value + worth, cost + price, picks + own)
        for loss, value, cost, picks in left
        for more, worth, price, own in right
        if loss + more <= gap and cost + price <= room
    ]


def _unbeaten(options: list[Option]) -> list[Option]:
    """Options that no other beats in value and cost."""
    kept, highest = list[Option](), -np.inf
    for option in sorted(options, key=lambda item: (item[2], -item[1])):
        if option[1] > highest:
            kept.append(option)
            highest = option[1]
    return kept


def _relaxed(padded: Padded, at: Relaxed, reduced: Reduced, option: Option) -> Relaxed:
    """The architecture of an option: blocks that were not picked have the config of least reduced cost."""
    depth, configs = at.depth.copy(), reduced.best.copy()
    for s, b, place in option[3]:
        if b < 0:
            depth[s] = place
        else:
            configs[s, b] = place
    return Relaxed(at.multipliers, depth, configs, totals_of(padded, depth, configs), at.bound)
