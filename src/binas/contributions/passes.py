"""Measuring passes: every image once, on the path the protocol gives it, recorded before the next pass begins."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

import numpy as np

from binas.base.errors import ConfigError, EvaluatorError
from binas.base.progress import Progress
from binas.contributions.journal import Journal
from binas.contributions.outcomes import Evaluator, Indices, Outcomes, first_impossible
from binas.contributions.paths import Paths
from binas.space.space import SearchSpace

STRETCH = 8192  # images whose paths are drawn at once

PathsOf = Callable[[Indices, int], Paths]
PassesOf = Callable[[Sequence[int]], Iterable[Outcomes]]  # the outcomes of passes, by their numbers


def check_measurable(space: SearchSpace, images: int, least: int) -> None:
    """Refuse a space without a choice and too few images."""
    if space.count < 2:
        raise ConfigError(f"the space {space.name!r} has a single architecture; there is nothing to measure.")
    if images < least:
        raise ConfigError(f"{images} images are too few; the protocol needs at least {least}.")


def measure(
    evaluator: Evaluator,
    journal: Journal,
    end: int,
    paths: PathsOf,
    progress: Progress | None = None,
    total: int | None = None,
    note: str = "",
    passes: PassesOf | None = None,
) -> None:
    """Record the passes before ``end`` that are not recorded yet; ``total`` there may be, ``note`` is shown beside.

    ``passes`` gives their outcomes, in other processes perhaps.
    """
    progress, total = progress or Progress(), total or end
    missing = [number for number in range(end) if not journal.has(number)]
    found = (
        (pass_outcomes(evaluator, number, paths) for number in missing) if passes is None else passes(missing)
    )
    for number, outcomes in zip(missing, found, strict=True):
        journal.write(number, _checked(outcomes, evaluator.images, number))
        progress.show((number + 1) / total, f"pass {number + 1} of {total}{note}")


def _checked(outcomes: Outcomes, images: int, number: int) -> Outcomes:
    """Refuse answers that are not outcomes, before they are recorded."""
    counts = len(outcomes.correct), len(outcomes.log_probability)
    if counts != (images, images):
        raise EvaluatorError(f"pass {number}: the evaluator answered {counts} outcomes for {images} images.")
    i = first_impossible(outcomes)
    if i is not None:
        raise EvaluatorError(
            f"pass {number}: the evaluator answered correct={outcomes.correct[i]:g}, "
            f"log_probability={outcomes.log_probability[i]:g} for image {i}; correct must be between 0 and 1 and the "
            "log-probability finite and at most 0. Nothing of this pass was recorded; the same command measures it again."
        )
    return outcomes


def pass_outcomes(evaluator: Evaluator, number: int, paths: PathsOf) -> Outcomes:
    """The outcomes of one pass over all images, which depend on its number only."""
    parts = []
    for start in range(0, evaluator.images, STRETCH):
        images = np.arange(start, min(start + STRETCH, evaluator.images))
        parts.append(evaluator.outcomes(images, *paths(images, number)))
    return Outcomes(
        np.concatenate([part.correct for part in parts]),
        np.concatenate([part.log_probability for part in parts]),
    )


def affordable(budget: int, images: int, least: int, what: str) -> int:
    """How many passes over ``images`` a budget of image evaluations pays for; at least ``least``."""
    passes = budget // images
    if passes < least:
        raise ConfigError(
            f"a budget of {budget} image evaluations is {passes} passes over {images} images; {what} needs {least} "
            f"({least * images} evaluations). Give a larger --budget, or fewer images with --images."
        )
    return passes
