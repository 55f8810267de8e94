"""What a protocol sees: the outcome of each image on its own path, from whatever can answer that question."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, Protocol

import numpy as np
from numpy.typing import NDArray

from binas.base.errors import ArchitectureError
from binas.contributions.strata import drawn_architectures
from binas.space.architecture import Architecture
from binas.space.odds import Odds, network_odds
from binas.space.space import SearchSpace
from binas.tables.entries import Provenance
from binas.tables.samples import Sample, Samples

Array = NDArray[np.float64]
Indices = NDArray[np.int64]
OutcomeKind = Literal["correct", "probability", "log-probability"]

LOWEST_LOG = -3.0  # below 5 % an image is as good as lost; unclipped, a few hopeless ones outweigh all others
LEAST_ERROR = 1e-4  # share of wrong answers below which accuracies of a table are not told apart


@dataclass(frozen=True, eq=False)
class Outcomes:
    """Per evaluation: 1 where the class was right, else 0, and the natural logarithm of the true class's probability.

    Where an evaluator answers with accuracies, a share, and its :func:`log_error`.
    """

    correct: NDArray[np.float32]
    log_probability: NDArray[np.float32]

    def __len__(self) -> int:
        return len(self.correct)


def first_impossible(outcomes: Outcomes) -> int | None:
    """The first evaluation whose correctness is not in [0, 1] or whose log-probability is not finite and at most 0.

    A log-probability may be a little above 0: it was rounded.
    """
    logs = outcomes.log_probability
    right = (outcomes.correct >= 0) & (outcomes.correct <= 1) & np.isfinite(logs) & (logs <= 1e-3)
    wrong = np.flatnonzero(~right)  # NaN compares false
    return int(wrong[0]) if len(wrong) else None


def outcome_values(outcomes: Outcomes, kind: OutcomeKind) -> Array:
    """Outcomes as numbers: correctness, the probability of the true class, or its logarithm, at least ``LOWEST_LOG``."""
    if kind == "correct":
        return outcomes.correct.astype(np.float64)
    logs = outcomes.log_probability.astype(np.float64)
    return np.exp(logs) if kind == "probability" else np.maximum(logs, LOWEST_LOG)


def log_error(share: Array) -> Array:
    """-log(1 - share) of accuracies, moved to the range of log-probabilities: LOWEST_LOG for 0, 0 for 1 - LEAST_ERROR.

    Choices multiply the errors that are left rather than add to accuracy, so sums rank better on this scale. What one unit
    is worth in accuracy is fitted, so only the form counts.
    """
    error = np.clip(1 - share, LEAST_ERROR, 1.0)
    return np.asarray(LOWEST_LOG * (1 - np.log(error) / np.log(LEAST_ERROR)))


class Evaluator(Protocol):
    """Anything that classifies image i with path i: a supernet, a table, a remote service.

    The answer must depend on (image, path) only, not on what is asked before or beside it; then a resumed
    measurement equals an uninterrupted one.
    """

    @property
    def space(self) -> SearchSpace:
        """The space the paths belong to."""
        ...

    @property
    def images(self) -> int:
        """Number of images; they are called 0 to ``images`` - 1."""
        ...

    @property
    def fingerprint(self) -> str:
        """Short text that changes when outcomes would: weights and images. A resumed measurement checks it."""
        ...

    def outcomes(self, images: Indices, depths: Indices, configs: Indices) -> Outcomes:
        """Outcomes of ``images`` (n,) on paths ``depths`` (n, S) and ``configs`` (n, S, D)."""
        ...


class TableEvaluator:
    """Outcomes from known accuracies, such as a NAS benchmark's: no network.

    An "image" only stands for one more network looked up in each pass: every outcome is the accuracy itself, as a share.
    At least ten are needed for the cross-validation of a shrunken fit.

    A look-up of a deep network says as much as one of a shallow one, and most networks are deep; so give a protocol
    ``odds``, with which networks come about equally often. Taking out every image's mean, which a table has no need of,
    costs no ranking that could be measured.
    """

    def __init__(
        self,
        space: SearchSpace,
        accuracy: Callable[[Architecture], float],
        images: int,
        name: str = "table",
    ) -> None:
        """``accuracy`` gives percent; ``name`` says which table, for the record of a measurement."""
        self.space, self.accuracy, self.images = space, accuracy, images
        self.fingerprint = f"{name}/{images}"

    @property
    def odds(self) -> tuple[Odds, ...]:
        """Of networks about equally likely (:func:`binas.space.odds.network_odds`)."""
        return (network_odds(self.space),)

    def samples(self, count: int, seed: int = 0) -> Samples:
        """Networks drawn by ``odds``, each once, and looked up: what predictors learn from."""
        drawn = drawn_architectures(self.space, self.odds, count, seed)
        found = tuple(Sample(item, self.accuracy(item)) for item in drawn)
        return Samples(self.space, found, Provenance(source=self.fingerprint, strata="networks", seed=seed))

    def outcomes(self, images: Indices, depths: Indices, configs: Indices) -> Outcomes:
        """Outcomes of ``images`` (n,) on paths ``depths`` (n, S) and ``configs`` (n, S, D)."""
        paths = zip(depths.tolist(), configs.tolist(), strict=True)
        share = np.array([self.accuracy(self.space.from_indices(d, c)) for d, c in paths]) / 100
        wrong = np.flatnonzero(~((share > 0) & (share <= 1)))
        if len(wrong):
            first = self.space.from_indices(depths[wrong[0]].tolist(), configs[wrong[0]].tolist())
            raise ArchitectureError(
                f"the table gives {first} an accuracy of {100 * share[wrong[0]]:g}; it must be in percent, "
                "above 0 and at most 100."
            )
        return Outcomes(share.astype(np.float32), log_error(share).astype(np.float32))
