"""Sets of partial architectures ("labels"): choose, unite, read back; :mod:`binas.search.merging` adds them up.

A label has a value (row 0) and one number per cost row (rows 1..m); it is worth keeping only while no
other label is at least as good in all of them. Where a label came from is remembered as indices into
the sets it was made of, and architectures are read back for many labels at once by :func:`decode`.

With one cost row there may be one row more, the reach: what a label's value would be at most if nothing had been left out
for it. Reaches add up as values do, and a label takes over that of those it stands for, so where nothing was left out,
nothing is lost, however much was left out elsewhere.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from binas.search.pareto import pareto
from binas.search.terms import Terms

Array = NDArray[np.float64]
Indices = NDArray[np.intp]


@dataclass(frozen=True, eq=False)
class Choice:
    """Labels that are configs of one block."""

    stage: int
    block: int
    index: Indices


@dataclass(frozen=True, eq=False)
class Merge:
    """Labels that are sums of a left and a right label."""

    left: Labels
    right: Labels
    i: Indices
    j: Indices


@dataclass(frozen=True, eq=False)
class Union:
    """Labels of one stage taken from its allowed depths."""

    stage: int
    depths: tuple[int, ...]
    parts: tuple[Labels, ...]
    part: Indices
    index: Indices


@dataclass(frozen=True, eq=False)
class Labels:
    """``data`` has shape (1 + m, n), or (3, n) with the reach; ``source`` says how to read the labels back."""

    data: Array
    source: Choice | Merge | Union | None

    def __len__(self) -> int:
        return int(self.data.shape[1])

    def take(self, keep: Indices) -> Labels:
        """A subset of the labels."""
        source = self.source
        if isinstance(source, Choice):
            source = Choice(source.stage, source.block, source.index[keep])
        elif isinstance(source, Merge):
            source = Merge(source.left, source.right, source.i[keep], source.j[keep])
        elif isinstance(source, Union):
            source = Union(source.stage, source.depths, source.parts, source.part[keep], source.index[keep])
        return Labels(self.data[:, keep], source)

    def standing(self, keep: Indices) -> Labels:
        """The labels at ``keep``, by rising cost, which stand for all others (one cost row)."""
        return replace(self.take(keep), data=standing(self.data, keep))

    def tracked(self) -> Labels:
        """The same labels with their reach (one cost row): that of their own values, where nothing was left out yet."""
        return self if len(self.data) > 2 else replace(self, data=self.data[[0, 1, 0]])


def standing(data: Array, keep: Indices) -> Array:
    """Columns ``keep``, by rising cost, with the reach (row 2) of all that they stand for.

    A column stands for those that cost as much or more, up to the next one kept; the cheapest must be kept.
    """
    result, order = data[:, keep], np.argsort(data[1], kind="stable")
    if len(keep):
        first = np.searchsorted(data[1, order], result[1])  # sorted: neighbours are found next to each other
        np.maximum(result[2], np.maximum.reduceat(data[2, order], first), out=result[2])
    return result


def nothing(rows: int) -> Labels:
    """The one label of no decision at all."""
    return Labels(np.zeros((1 + rows, 1)), None)


def choices(stage: int, block: int, data: Array, keep: Indices | None = None) -> Labels:
    """The configs of a block as labels."""
    index = np.arange(data.shape[1]) if keep is None else keep
    return Labels(data[:, index], Choice(stage, block, index))


def unite(
    stage: int, depths: tuple[int, ...], parts: list[Labels], rank: int | None = 1, reach: bool = False
) -> Labels:
    """The labels of a stage: those of each allowed depth (its depth part already added).

    Of all depths together only those that fewer than ``rank`` others beat stay; None: all. ``reach``: they have one.
    """
    data = np.concatenate([part.data for part in parts], axis=1)
    part = np.repeat(np.arange(len(parts)), [len(p) for p in parts])
    index = np.concatenate([np.arange(len(p)) for p in parts])
    keep = np.arange(data.shape[1])
    if rank is not None and data.shape[1]:
        keep = pareto(data[:2] if reach else data, rank)
    kept = standing(data, keep) if reach else data[:, keep]
    return Labels(kept, Union(stage, depths, tuple(parts), part[keep], index[keep]))


def decode(terms: Terms, labels: Labels, index: Indices) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Depths (n, S) and config indices (n, S, D) of the labels at ``index``; -1 for inactive blocks."""
    stages, width = len(terms.space.stages), terms.space.max_depth
    depths = np.zeros((len(index), stages), dtype=np.int64)
    configs = np.full((len(index), stages, max(width, 1)), -1, dtype=np.int64)
    _read(terms, labels, index, np.arange(len(index)), depths, configs)
    return depths, configs[:, :, :width]


def _read(
    terms: Terms,
    labels: Labels,
    index: Indices,
    rows: Indices,
    depths: NDArray[np.int64],
    configs: NDArray[np.int64],
) -> None:
    """Walk from the labels back to the choices they are made of (a stack: stages may have a thousand blocks)."""
    left = [(labels, index, rows)]
    while left:
        labels, index, rows = left.pop()
        source = labels.source
        if isinstance(source, Merge):
            left += [(source.left, source.i[index], rows), (source.right, source.j[index], rows)]
        elif isinstance(source, Union):
            left += _parts(terms, source, index, rows, depths)
        elif isinstance(source, Choice):
            _write(terms, source, index, rows, depths, configs)


def _parts(
    terms: Terms, source: Union, index: Indices, rows: Indices, depths: NDArray[np.int64]
) -> list[tuple[Labels, Indices, Indices]]:
    """Note the depth of each label and send it on to the labels of that depth."""
    inner = []
    for p, (depth, part) in enumerate(zip(source.depths, source.parts, strict=True)):
        mine = np.flatnonzero(source.part[index] == p)
        if len(mine):
            if terms.stages[source.stage].variants is None:
                depths[rows[mine], source.stage] = depth
            inner.append((part, source.index[index[mine]], rows[mine]))
    return inner


def _write(
    terms: Terms,
    source: Choice,
    index: Indices,
    rows: Indices,
    depths: NDArray[np.int64],
    configs: NDArray[np.int64],
) -> None:
    variants, picked = terms.stages[source.stage].variants, source.index[index]
    if variants is None:
        configs[rows, source.stage, source.block] = picked
    else:
        depths[rows, source.stage] = variants[0][picked]
        configs[rows, source.stage, : variants[1].shape[1]] = variants[1][picked]
