"""An answer confirmed: near-optimal networks measured, the best of them taken and judged on images that chose nothing.

Predictions know no more than their form: where choices interact, another of the networks that are predicted almost as
good as the optimum may be better. So the K best by prediction are measured on the check images, and the one with the
highest score is the answer:

    score = predicted + G (measured - predicted),    G = D (D + N)^-1,    D = doubt + COMMON^2 1 1'.

It is the mean that two things give together: a normal prior around the predictions, as wide as their errors and their
lack of fit, which networks share as far as they are alike (``CalibratedEstimator.doubt``), and measurements whose noise
over images has the covariance N. An error that all predictions share (``COMMON``) moves no rank. Where predictions are
sure nothing is gained by measuring, and the optimum stays; taking what was measured alone would take the luckiest of
many good networks. Where nothing is known about the predictions, what was measured decides.

The winner was chosen by these images, so its accuracy there is too high, and it is not reported: the accuracy is that of
test images. The lead over random networks (the samples of the check, on the same images, paired image by image) is that of
the score, with the standard error sqrt((D - G D)_kk): a mean over all that the truth may be is not misled by choosing the
highest. With a single candidate the check images chose nothing, and accuracy and lead are what was measured.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from binas.base.settings import FileRecord
from binas.search.rivals import Difference, difference

Array = NDArray[np.float64]
Bits = NDArray[np.bool_]

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
    error; over test images where the check's taught the estimator; None where there are no random networks.
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
            else (
                f", {self.lead[0]:+.2f} ± {self.lead[1]:.2f} points over {self.over} random networks of any cost"
            )
        )
        chosen = f"; chosen among {len(self.candidates)} candidates" if len(self.candidates) > 1 else ""
        return f"confirmed {self.accuracy:.2f} ± {self.error:.2f} % on {self.images:,} {self.images_of} images{lead}{chosen}"


@dataclass(frozen=True, eq=False)
class Candidates:
    """Networks measured on the same images: ``predicted`` (K,) in percent, ``correct`` (K, images).

    ``reference`` (images,) is the share of random networks that are right on each image, None where it is not known;
    ``doubt`` (K, K) the covariance of the predictions' errors in points^2, None where it is not known.
    """

    predicted: Array
    correct: Bits
    reference: Array | None = None
    doubt: Array | None = None

    def order(self) -> list[int]:
        """The candidates by score, the best first; of equals the one predicted best, then the first."""
        scores = 100.0 * self.correct.mean(axis=1) if self.doubt is None else self._posterior(self.doubt)[0]
        return sorted(range(len(scores)), key=lambda k: (-scores[k], -self.predicted[k], k))

    def lead(self, candidate: int) -> Difference | None:
        """Points of one candidate over the random networks, with their standard error; None where that is not known."""
        if self.reference is None or (self.doubt is None and len(self.correct) > 1):
            return None
        if self.doubt is None or len(self.correct) == 1:
            return difference(self.correct[candidate], self.reference)
        scores, errors = self._posterior(self.doubt)
        return float(scores[candidate] - 100 * self.reference.mean()), float(errors[candidate])

    def _posterior(self, doubt: Array) -> tuple[Array, Array]:
        """Scores in percent, and their standard errors relative to the random networks on the same images."""
        outcomes = 100.0 * self.correct
        common = outcomes.mean(axis=0) if self.reference is None else 100 * self.reference
        noise = np.atleast_2d(np.cov(outcomes - common)) / outcomes.shape[1]
        prior = doubt + COMMON**2
        gain = np.linalg.solve(prior + noise + TINY * np.eye(len(prior)), prior).T
        left = np.diag(prior - gain @ prior)
        return self.predicted + gain @ (outcomes.mean(axis=1) - self.predicted), np.sqrt(
            np.maximum(left, 0.0)
        )
