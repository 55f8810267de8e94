"""Measuring passes: every image once, on the path the protocol gives it, recorded before the next pass begins."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from binas.accuracy.journal import Journal
from binas.accuracy.outcomes import Evaluator, Indices, Outcomes
from binas.accuracy.paths import Paths
from binas.accuracy.progress import Watcher
from binas.errors import ConfigError

STRETCH = 8192  # images whose paths are drawn at once

PathsOf = Callable[[Indices, int], Paths]


def measure(
    evaluator: Evaluator, journal: Journal, first: int, end: int, paths: PathsOf, watcher: Watcher
) -> None:
    """Record passes ``first`` to ``end`` that are not recorded yet."""
    for number in range(first, end):
        if not journal.has(number):
            journal.write(number, _outcomes(evaluator, number, paths))
        watcher.advance(number + 1)


def _outcomes(evaluator: Evaluator, number: int, paths: PathsOf) -> Outcomes:
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
