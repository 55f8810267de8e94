"""The paper's protocol (sections 3.2 and 3.3): one conditional multi-path pass per decision.

    Delta_b^s     = E[Acc | d^s = b] - E[Acc]
    Delta_{b,c}^s = E[Acc | O_b^s = c, d^s = b] - E[Acc]

Each expectation is the accuracy of one pass over the images in which the named decisions are fixed and all others
are drawn uniformly, anew for each image: 1 + (depths) + (configs) passes, 256 in the paper's space. Where b is not
an allowed depth of stage s (b below the smallest depth), d^s = b is impossible; the depth is then drawn uniformly from
the allowed depths that contain block b.

As printed, Delta_{b,c}^s contains the effect of the depth b itself, and the sum formula adds it once for every active
block, beside Delta_b^s: depth is counted several times. The reading ``depth`` takes the difference to the passes of
the same depth instead, E[Acc | O_b^s = c, d^s = b] - E[Acc | d^s = b], which leaves only what the config does. The passes
are the same.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from binas.base.errors import ConfigError
from binas.base.progress import Progress
from binas.contributions.design import table_of
from binas.contributions.journal import Journal
from binas.contributions.outcomes import Array, Evaluator, Indices
from binas.contributions.passes import PassesOf, PathsOf, check_measurable, measure
from binas.contributions.paths import Paths, conditioned_paths
from binas.space.odds import DEPTH
from binas.space.space import SearchSpace
from binas.tables.contributions import Contributions

Reading = Literal["base", "depth"]
STRETCH = 4096


@dataclass(frozen=True)
class Condition:
    """The decisions of stage ``stage`` that a pass fixes: its depth to one of ``depths`` (indices), a block's config."""

    stage: int
    depths: tuple[int, ...]
    block: int | None = None
    config: int | None = None

    @property
    def allowed(self) -> dict[tuple[int, int], Indices]:
        """As :func:`binas.contributions.paths.conditioned_paths` takes it."""
        fixed = {(self.stage, DEPTH): np.array(self.depths)}
        if self.block is not None:
            fixed[self.stage, self.block] = np.array([self.config])
        return fixed


def conditions(space: SearchSpace) -> list[Condition]:
    """One condition per config and per depth, in the order of ``space.layout``."""
    return [
        Condition(item.stage, (item.index,))
        if item.block is None
        else Condition(item.stage, depths_of_block(space, item.stage, item.block), item.block, item.index)
        for item in space.layout.choices
    ]


def depths_of_block(space: SearchSpace, stage: int, block: int) -> tuple[int, ...]:
    """Indices of the depths a 0-based block is measured at: its own, or all that contain it where that is not allowed."""
    depths = space.stages[stage].depths
    exact = [i for i, depth in enumerate(depths) if depth == block + 1]
    return tuple(exact or [i for i, depth in enumerate(depths) if depth > block])


def paper_passes(space: SearchSpace) -> int:
    """Passes of one repeat: E[Acc] and one per decision."""
    return 1 + space.layout.size


def paper(
    evaluator: Evaluator,
    journal: Journal,
    repeats: int = 10,
    reading: Reading = "base",
    seed: int = 0,
    progress: Progress | None = None,
    outcomes: PassesOf | None = None,
) -> Iterator[Contributions]:
    """Measure, and give the answer after every new repeat; passes that are recorded are not measured again.

    ``outcomes`` gives those of passes, in other processes perhaps.
    """
    check_measurable(evaluator.space, evaluator.images, 2)
    if repeats < 1:
        raise ConfigError(f"the paper protocol needs at least one repeat, got {repeats}.")
    space, note = evaluator.space, ""
    each, paths = paper_passes(space), paper_paths(space, seed)
    done = journal.first_missing(repeats * each)
    for repeat in range(max(1, done // each), repeats + 1):
        measure(evaluator, journal, repeat * each, paths, progress, repeats * each, note, outcomes)
        answer = paper_contributions(space, journal, repeat, reading, {"seed": seed})
        note = f", E[Acc] {answer.base:.2f} % after {repeat} of {repeats} repeats"
        yield answer


def paper_paths(space: SearchSpace, seed: int) -> PathsOf:
    """The paths of each pass: repeat after repeat, first unconditional, then one condition after the other."""
    fixed: list[Mapping[tuple[int, int], Indices]] = [{}, *(c.allowed for c in conditions(space))]

    def paths(images: Indices, number: int) -> Paths:
        return conditioned_paths(space, images, number, seed, fixed[number % len(fixed)])

    return paths


def paper_contributions(
    space: SearchSpace, journal: Journal, repeats: int, reading: Reading, about: Mapping[str, Any]
) -> Contributions:
    """Contributions from ``repeats`` recorded repeats, with the covariance over images.

    All passes see the same images, so their errors depend on each other: the covariance is that of the images'
    vectors of accuracies under all conditions, divided by the number of images.
    """
    means, errors = _accuracies(journal, repeats, paper_passes(space))
    mapping = contrasts(space, reading)
    count = np.full(len(means), float(repeats * journal.images))
    known = {"protocol": "paper", "reading": reading, "images": journal.images, **about}
    evaluations = repeats * len(means) * journal.images
    return table_of(
        space,
        mapping @ means,
        mapping @ errors @ mapping.T,
        count,
        {**known, "evaluations": evaluations},
        repeats,
    )


def contrasts(space: SearchSpace, reading: Reading) -> Array:
    """The linear map from accuracies of the passes (E[Acc], configs, depths) to (base, contributions)."""
    mapping = np.eye(paper_passes(space))
    mapping[1:, 0] = -1.0
    if reading == "depth":
        for row, condition in enumerate(conditions(space), 1):
            if condition.block is None:
                continue
            mapping[row, 0] = 0.0
            first = 1 + space.layout.depth_slices[condition.stage].start
            for i in condition.depths:
                mapping[row, first + i] = -1.0 / len(condition.depths)
    return mapping


def _accuracies(journal: Journal, repeats: int, passes: int) -> tuple[Array, Array]:
    """Means over images and repeats of each condition, (passes,), and their covariance."""
    total, products = np.zeros(passes), np.zeros((passes, passes))
    for first in range(0, journal.images, STRETCH):
        end = min(first + STRETCH, journal.images)
        shares = np.zeros((passes, end - first))
        for number in range(repeats * passes):
            shares[number % passes] += journal.read(number, first, end).correct
        shares /= repeats
        total += shares.sum(axis=1)
        products += shares @ shares.T
    means = total / journal.images
    spread = products / journal.images - np.outer(means, means)
    return means, spread / (journal.images - 1)
