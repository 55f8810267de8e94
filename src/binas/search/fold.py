"""Folding a whole problem: blocks into stages, stages into the frontier (exact for all limits at once).

Objective and costs are sums over stages, so the best completion of a partial architecture does not
depend on how it was made: a label that another beats in value and in every cost can be dropped at once.
Prefixes of a stage are shared by its depths.

With further limits, labels must be compared in several costs and far fewer are dominated. Two things then
keep the fold small and exact: an approximate frontier (a lower bound that real architectures reach) and the
concave hull of what the remaining stages can add (an upper bound, the relaxed knapsack). A label that cannot
reach the lower bound at any total cost is dropped. If even that is too much, values are thinned and the
certified error says by how much the result may fall short.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from binas.base.errors import ProblemError
from binas.search.bounds import Bounds, make_bounds
from binas.search.labels import Labels, choices, merge, nothing, pareto, staircase, unite
from binas.search.terms import StageTerms, Terms

Array = NDArray[np.float64]

MAX_LABELS = 400_000
MAX_LABELS_MANY = 100_000  # with further cost rows, where dominance is dearer to find
MAX_PAIRS = 400_000_000  # sums made in one merge, a few seconds; beyond that labels are thinned first
LEAST_LABELS = 2000
FIRST_PASS = 2000
BOUND_ROWS = 2  # from this many cost rows on, bounds pay off (measured; with one, dominance is cheap to find)


@dataclass(frozen=True, eq=False)
class Folded:
    """All non-dominated labels of a problem and the certified error: no value is short by more."""

    labels: Labels
    error: float


def fold_stage(stage: StageTerms, s: int, caps: Array) -> Labels:
    """Non-dominated variants of one stage over all its depths."""
    prefix = nothing(len(caps))
    parts: list[Labels] = []
    depth_parts = dict(zip(stage.depths, stage.depth.T, strict=True))
    for b in range(-1, stage.depths[-1]):
        if b >= 0:
            prefix = merge(
                prefix, choices(s, b, stage.blocks[b], pareto(stage.blocks[b])), np.full(len(caps), np.inf)
            )
        if b + 1 in depth_parts:
            parts.append(Labels(prefix.data + depth_parts[b + 1][:, None], prefix.source))
    return unite(s, stage.depths, parts)


def fold(terms: Terms, max_labels: int | None = None, tolerance: float = 0.0) -> Folded:
    """The frontier of the whole problem.

    Row 1 is the traced cost; rows with finite bounds are respected. ``tolerance`` > 0 allows thinning
    from the start with at most that certified error.
    """
    most = max_labels or (MAX_LABELS if terms.rows == 1 else MAX_LABELS_MANY)
    budget = terms.bounds - terms.constant[1:]
    stages = _feasible([fold_stage(stage, s, budget) for s, stage in enumerate(terms.stages)], budget)
    if stages is None:
        return Folded(Labels(np.zeros((1 + terms.rows, 0)), None), 0.0)
    stages.sort(key=len)
    bounds = None
    if terms.rows >= BOUND_ROWS:
        bounds = make_bounds(stages, budget)
        stages = _worthy(stages, bounds)
        bounds = _raised(terms, stages, budget, bounds)
        stages = _worthy(stages, bounds)
    return _fold_stages(terms, stages, budget, bounds, most, tolerance)


def _raised(terms: Terms, stages: list[Labels], budget: Array, bounds: Bounds) -> Bounds:
    """Better lower bounds from a first, rough fold; the same ones if even that holds too many labels."""
    try:
        first = _fold_stages(terms, stages, budget, bounds, FIRST_PASS, 0.0)
    except ProblemError:
        return bounds
    return bounds.raised(first.labels.data - terms.constant[:, None])


def _worthy(stages: list[Labels], bounds: Bounds) -> list[Labels]:
    return [stage.take(bounds.worth_keeping(k, stage.data)) for k, stage in enumerate(stages)]


def _feasible(stages: list[Labels], budget: Array) -> list[Labels] | None:
    """Stages without labels that break a budget even beside the cheapest others; None if one is left empty."""
    lows = np.array([stage.data[1:].min(axis=1, initial=np.inf) for stage in stages])
    if not np.isfinite(lows).all():
        return None
    others = lows.sum(axis=0) - lows
    kept = [_within(stage, budget - other) for stage, other in zip(stages, others, strict=True)]
    return kept if all(len(stage) for stage in kept) else None


def _within(labels: Labels, caps: Array) -> Labels:
    keep = np.flatnonzero((labels.data[1:] <= caps[:, None]).all(axis=0))
    return labels if len(keep) == len(labels) else labels.take(keep)


def _fold_stages(
    terms: Terms, stages: list[Labels], budget: Array, bounds: Bounds | None, most: int, tolerance: float
) -> Folded:
    lows = np.array([stage.data[1:].min(axis=1) for stage in stages])
    after = np.vstack([np.cumsum(lows[::-1], axis=0)[::-1][1:], np.zeros(terms.rows)])
    total, error = stages[0], 0.0
    for k, stage in enumerate(stages[1:], 1):
        total, lost = thin(total, max(LEAST_LABELS, MAX_PAIRS // max(1, len(stage))))
        error += lost
        needs = () if bounds is None else bounds.needs(list(range(k + 1)), error)
        last = k == len(stages) - 1
        total = merge(total, stage, budget - after[k], needs, rows=1 if last else None)
        if not last and len(total):
            total, lost = thin(total, most, tolerance / len(stages))
            error += lost
    if len(stages) == 1:
        total = total.take(pareto(total.data[:2]))
    return Folded(Labels(total.data + terms.constant[:, None], total.source), error)


def thin(labels: Labels, most: int, allowed: float = 0.0) -> tuple[Labels, float]:
    """Drop labels that another of no higher cost nearly reaches; the loss in value is certified.

    Loss at most ``allowed``, or as much as it takes to keep at most ``most`` labels.
    """
    if len(labels) <= most and allowed <= 0.0:
        return labels, 0.0
    spread = float(np.ptp(labels.data[0]))
    step, kept = allowed, _spaced(labels.data, allowed)
    while len(kept) > most:
        if step > spread:
            raise ProblemError(
                f"with these limits more than {most} partial architectures cannot be told apart; trace the frontier "
                "with fewer limits, or search limit by limit."
            )
        step = max(2 * step, spread / most / 8)
        kept = _spaced(labels.data, step)
    return labels.take(kept), step


def _spaced(data: Array, step: float) -> NDArray[np.intp]:
    """Subset such that every dropped label has a kept one of no higher cost and value >= its own - step."""
    if data.shape[0] == 2:
        kept, floor = [], -np.inf
        for index, value in enumerate(data[0].tolist()):
            if value > floor:
                kept.append(index)
                floor = value + step
        return np.array(kept, dtype=np.intp)
    if data.shape[0] == 3:
        return staircase(data, step)
    levels = np.floor(data[0] / step) if step > 0 else data[0]
    return pareto(np.concatenate([levels[None], data[1:]]))
