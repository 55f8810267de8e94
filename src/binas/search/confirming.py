"""An answer confirmed: near-optimal networks measured, the best of them taken and judged on images that chose nothing.

Predictions know no more than their form: where choices interact, another of the networks that are predicted almost as
good as the optimum may be better. So the K best by prediction are measured on the check images, and the one with the
highest score is the answer:

    score = predicted + L (L + N)^-1 (measured - predicted),    L = lack_of_fit^2 alike + COMMON^2 1 1'.

It is the mean that two things give together: a normal prior around the predictions, as wide as their lack of fit, which two
networks share as far as they are alike (:mod:`binas.estimators.calibration`), and measurements whose noise over images
has the covariance N. An error that all predictions share (``COMMON``) moves no rank. Without lack of fit nothing is gained
by measuring, and the optimum stays; taking what was measured alone would take the luckiest of many good networks. Where the
lack of fit is not known, what was measured decides.

The winner was chosen by these images, so its accuracy there is too high, and it is not reported: the accuracy is that of
test images. The lead over random networks (the samples of the check, on the same images) is cross-fitted instead: in each of
``PARTS`` parts of the images the winner of all other parts is compared with them, paired image by image. With a
single candidate the check images chose nothing, and accuracy and lead are theirs.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from binas.base.settings import FileRecord
from binas.search.rivals import Difference

Array = NDArray[np.float64]
Bits = NDArray[np.bool_]

PARTS = 10
COMMON = 10.0  # points by which all predictions of good networks may be wrong alike
TINY = 1e-9  # points^2: candidates that are right on the same images can be told apart by nothing


class CandidateRecord(FileRecord):
    """A near-optimal network: predicted, and measured on the images that chose among the candidates; in percent."""

    architecture: str
    predicted: float
    measured: float


class Confirmed(FileRecord):
    """An answer re-evaluated on images that chose nothing: the supernet's weights, BatchNorm re-estimated.

    ``accuracy`` in percent of ``images`` images (the check's, or test images where the check's chose) with its standard
    error; ``lead`` points over the mean of ``over`` random networks, paired over the check's images, with its standard
    error; None where these images chose the estimator's parameters, or no random networks were measured on them.
    """

    images_of: Literal["check", "test"]
    images: int
    accuracy: float
    error: float
    lead: Difference | None = None
    over: int = 0
    candidates: tuple[CandidateRecord, ...] = ()

    @classmethod
    def of(
        cls,
        images_of: Literal["check", "test"],
        correct: Bits,
        lead: Difference | None,
        over: int,
        candidates: Sequence[CandidateRecord],
    ) -> Confirmed:
        """From which images the answer classifies rightly; standard error sqrt(p (1 - p) / n)."""
        share = float(correct.mean())
        return cls(
            images_of=images_of,
            images=len(correct),
            accuracy=100 * share,
            error=100 * math.sqrt(share * (1 - share) / len(correct)),
            lead=lead,
            over=0 if lead is None else over,
            candidates=tuple(candidates),
        )

    def sentence(self) -> str:
        """What was confirmed, for people."""
        lead = (
            ""
            if self.lead is None
            else (f", {self.lead[0]:+.2f} ± {self.lead[1]:.2f} points over {self.over} random networks")
        )
        chosen = f"; chosen among {len(self.candidates)} candidates" if len(self.candidates) > 1 else ""
        return f"confirmed {self.accuracy:.2f} ± {self.error:.2f} % on {self.images:,} {self.images_of} images{lead}{chosen}"


@dataclass(frozen=True, eq=False)
class Candidates:
    """Networks measured on the same images: ``predicted`` (K,) in percent, ``correct`` (K, images).

    ``reference`` (images,) is the share of random networks that are right on each image, None where it is not known;
    ``doubt`` (K, K) the prior covariance of what predictions leave over, lack_of_fit^2 alike, None where it is not known.
    """

    predicted: Array
    correct: Bits
    reference: Array | None = None
    doubt: Array | None = None

    def order(self) -> list[int]:
        """The candidates by score, the best first; of equals the one predicted best, then the first."""
        scores = self._scores(np.ones(self.correct.shape[1], dtype=bool))
        return sorted(range(len(scores)), key=lambda k: (-scores[k], -self.predicted[k], k))

    def lead(self) -> Difference | None:
        """Points over the random networks with their standard error over images, cross-fitted where there is a choice."""
        if self.reference is None:
            return None
        images = self.correct.shape[1]
        parts = np.random.default_rng(images).permutation(images) % PARTS
        gaps = np.empty(images)
        for part in range(PARTS):
            winner = int(np.argmax(self._scores(parts != part)))
            held = parts == part
            gaps[held] = 100 * (self.correct[winner, held] - self.reference[held])
        return float(gaps.mean()), float(gaps.std(ddof=1) / math.sqrt(images))

    def _scores(self, used: Bits) -> Array:
        """The scores by some of the images."""
        outcomes = 100.0 * self.correct[:, used]
        if self.doubt is None or len(outcomes) == 1:
            return np.asarray(outcomes.mean(axis=1))
        common = outcomes.mean(axis=0) if self.reference is None else 100 * self.reference[used]
        noise = np.cov(outcomes - common) / outcomes.shape[1]
        prior = self.doubt + COMMON**2
        weights = np.linalg.solve(
            prior + noise + TINY * np.eye(len(prior)), outcomes.mean(axis=1) - self.predicted
        )
        return np.asarray(self.predicted + prior @ weights)
