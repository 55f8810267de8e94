"""The plan of a mixed batch: in which order images stand at each block, and which run together.

Worked out for the whole network before anything runs, from small arrays of integers.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from binas.supernet.families import Group
from binas.supernet.paths import Indices
from binas.supernet.rows import Order


@dataclass(frozen=True, slots=True)
class BlockPlan:
    """What happens at one block to the rows that arrive.

    ``rows`` puts them in order (None where they stand in order): first those that have reached their depth,
    ``stopped`` of them, which are set aside, then the groups of equal configs. ``images`` says which image of the batch
    each row of the groups is.
    """

    rows: Order | None
    stopped: int
    groups: list[Group]
    images: Order


@dataclass(frozen=True, slots=True)
class Plan:
    """How images enter (``first``), the plans of all blocks, and how logits go back; None: nothing moves."""

    first: Order | None
    stages: list[list[BlockPlan]]
    back: Order | None


def plan_batch(ranks: Sequence[Sequence[Order]], indices: Indices) -> Plan:
    """The plan of checked paths; ``ranks[s][b]`` says where each config of a block stands.

    Images are put in the order of the first block before the stem, where they are smallest.
    """
    depths, configs = indices
    order, stages = np.arange(len(depths)), []
    first = _plan_block(ranks[0][0], order, depths[:, 0] > 0, configs[:, 0, 0]).rows if ranks[0] else None
    order = order if first is None else first
    for s, blocks in enumerate(ranks):
        plans, aside = [], []
        for b, rank in enumerate(blocks):
            plan = _plan_block(rank, order, depths[order, s] > b, configs[order, s, b])
            order = order if plan.rows is None else order[plan.rows]
            plans.append(plan)
            aside.append(order[: plan.stopped])
            order = plan.images
            if not len(order):
                break
        order = np.concatenate([*aside, order])
        stages.append(plans)
    return Plan(first, stages, _unless_sorted(np.argsort(order)))


def _plan_block(rank: Order, order: Order, active: NDArray[np.bool_], configs: Order) -> BlockPlan:
    keys = np.where(active, rank[np.where(active, configs, 0)], -1)
    rows = _unless_sorted(np.argsort(keys, kind="stable"))
    keys = keys if rows is None else keys[rows]
    stopped = len(keys) - int(active.sum())
    images = (order if rows is None else order[rows])[stopped:]
    return BlockPlan(rows, stopped, list(_groups(keys[stopped:], np.argsort(rank))), images)


def _unless_sorted(rows: Order) -> Order | None:
    return None if (rows == np.arange(len(rows))).all() else rows


def _groups(keys: Order, config_at: Order) -> Iterator[Group]:
    """(config, rows) of each run of equal keys in a sorted array."""
    if len(keys):
        edges = [0, *(np.flatnonzero(np.diff(keys)) + 1).tolist(), len(keys)]
        for start, stop in pairwise(edges):
            yield int(config_at[keys[start]]), slice(start, stop)
