"""An answer confirmed: near-optimal networks measured, the best of them taken and judged on images that chose nothing.

Predictions know no more than their form: where choices interact, another of the networks that are predicted almost as
good as the optimum may be better. So K of them are measured on the check images, and the one with the highest score is the
answer:

    score = predicted + G (measured - predicted),    G = D (D + N)^-1,    D = doubt + COMMON^2 1 1'.

It is the mean that two things give together: a normal prior around the predictions, as wide as their errors and their
lack of fit, which networks share as far as they are alike (``CalibratedEstimator.doubt``), and measurements whose noise
over images has the covariance N. An error that all predictions share (``COMMON``) moves no rank. Where predictions are
sure nothing is gained by measuring, and the optimum stays; taking what was measured alone would take the luckiest of
many good networks. Where nothing is known about the predictions, what was measured decides.

The first half of the K are the best by prediction. What is measured of them moves the scores of those that are like them,
measured or not, so the second half are those of the next best (``POOL`` K in all) that may now be best: the highest score
plus one standard error of it.

The winner was chosen by these images, so its accuracy there is too high, and it is not reported: the accuracy is that of
test images. The lead over random networks (the samples of the check, on the same images, paired image by image) is that of
the score, with the standard error sqrt((D - G D)_kk): a mean over all that the truth may be is not misled by choosing the
highest. With a single candidate the check images chose nothing, and accuracy and lead are what was measured.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from binas.base.settings import FileRecord
from binas.search.rivals import Difference, difference

Array = NDArray[np.float64]
Bits = NDArray[np.bool_]
Measure = Callable[[list[int]], Bits]

COMMON = 10.0  # points by which all predictions of good networks may be wrong alike
TINY = 1e-9  # points^2: candidates that are right on the same images can be told apart by nothing
POOL = 8  # networks among which a measured one is chosen, for each that is measured


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
    """Near-optimal networks, some measured on the same images: ``predicted`` (P,) in percent, ``correct`` (K, images).

    ``places`` are those of the K that were measured, in order; none given = all, P = K. ``reference`` (images,) is the share
    of random networks that are right on each image, None where it is not known; ``doubt`` (P, P) the covariance of the
    predictions' errors in points^2, None where it is not known.
    """

    predicted: Array
    correct: Bits
    reference: Array | None = None
    doubt: Array | None = None
    places: tuple[int, ...] | None = None

    @property
    def measured(self) -> tuple[int, ...]:
        """The places of those that were measured."""
        return tuple(range(len(self.correct))) if self.places is None else self.places

    def order(self) -> list[int]:
        """The measured ones by score, the best first; of equals the one predicted best, then the first."""
        scores = self._shares() if self.doubt is None else self._posterior(self.doubt)[0][[*self.measured]]
        known = dict(zip(self.measured, scores.tolist(), strict=True))
        return sorted(known, key=lambda k: (-known[k], -self.predicted[k], k))

    def promising(self, count: int) -> list[int]:
        """So many that were not measured yet, by what they may reach: score plus its standard error, the highest first."""
        hopes = self.predicted
        if self.doubt is not None and len(self.correct):
            scores, errors = self._posterior(self.doubt)
            hopes = scores + errors
        left = set(range(len(hopes))) - set(self.measured)
        return sorted(left, key=lambda k: (-hopes[k], -self.predicted[k], k))[:count]

    def lead(self, candidate: int) -> Difference | None:
        """Points of a measured one over the random networks, with their standard error; None where that is not known."""
        if self.reference is None or (self.doubt is None and len(self.correct) > 1):
            return None
        if self.doubt is None or len(self.correct) == 1:
            return difference(self.correct[self.measured.index(candidate)], self.reference)
        scores, errors = self._posterior(self.doubt)
        return float(scores[candidate] - 100 * self.reference.mean()), float(errors[candidate])

    def _shares(self) -> Array:
        return np.asarray(100.0 * self.correct.mean(axis=1))

    def _posterior(self, doubt: Array) -> tuple[Array, Array]:
        """Scores of all in percent, and their standard errors relative to the random networks on the same images."""
        known, outcomes = [*self.measured], 100.0 * self.correct
        common = outcomes.mean(axis=0) if self.reference is None else 100 * self.reference
        noise = np.atleast_2d(np.cov(outcomes - common)) / outcomes.shape[1]
        prior = doubt + COMMON**2
        within, across = prior[np.ix_(known, known)], prior[:, known]
        gain = np.linalg.solve(within + noise + TINY * np.eye(len(known)), across.T).T
        left = np.diag(prior) - np.einsum("pk,pk->p", gain, across)
        return self.predicted + gain @ (self._shares() - self.predicted[known]), np.sqrt(
            np.maximum(left, 0.0)
        )


def measure_candidates(
    count: int, predicted: Array, reference: Array | None, doubt: Array | None, measure: Measure
) -> Candidates:
    """``count`` of near-optimal networks measured (fewer where there are no more), in the order of their predictions given.

    ``measure`` gives (n, images) for the places of n networks.
    """
    rounds = [math.ceil(count / 2), count // 2]
    found = Candidates(predicted, np.zeros((0, 0), dtype=np.bool_), reference, doubt, ())
    for size in rounds:
        places = found.promising(size)
        if places:
            new = measure(places)
            correct = np.concatenate([found.correct, new]) if len(found.correct) else new
            found = replace(found, correct=correct, places=(*found.measured, *places))
    return found
