"""Small spaces, contributions and samples made for the tests of the estimators."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from binas.space import Architecture, Config, SearchSpace, Stage, enumerate_all, sample_many
from binas.tables import Column, Contributions, Sample, Samples


def space_of(*stages: tuple[tuple[int, ...], tuple[int, ...]], name: str = "made") -> SearchSpace:
    """A space from (allowed depths, number of configs of each block) per stage."""
    made = tuple(
        Stage(f"s{i}", depths, tuple(tuple(Config(f"c{c}") for c in range(size)) for size in sizes))
        for i, (depths, sizes) in enumerate(stages, 1)
    )
    return SearchSpace(name, made)


UNEVEN = space_of(((0, 2, 3), (2, 3, 2)), ((1, 2), (3, 1)), ((2,), (2, 2)))


def random_column(space: SearchSpace, seed: int, scale: float) -> Column:
    rng = np.random.default_rng(seed)
    return Column.build(space, lambda s, i: scale * rng.normal(), lambda s, b, c: scale * rng.normal())


def random_contributions(space: SearchSpace, seed: int = 0, scale: float = 1.0) -> Contributions:
    """Contributions with standard errors."""
    errors = random_column(space, seed + 1, 0.1).map(np.abs)
    return Contributions(space, 70.0, random_column(space, seed, scale), 0.05, errors)


def distinct(space: SearchSpace, count: int, seed: int = 0) -> list[Architecture]:
    """Different architectures, drawn at random."""
    return list(dict.fromkeys(sample_many(space, 4 * count, seed)))[:count]


def samples_of(
    space: SearchSpace,
    accuracy: Callable[[Architecture], float] | Sequence[float],
    architectures: Sequence[Architecture] | None = None,
) -> Samples:
    """Samples with given accuracies; all architectures of the space unless told which."""
    items = enumerate_all(space) if architectures is None else architectures
    values = [accuracy(item) for item in items] if callable(accuracy) else accuracy
    rows = [Sample(item, float(value)) for item, value in zip(items, values, strict=True)]
    return Samples(space, tuple(rows))
