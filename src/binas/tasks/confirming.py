"""Answers of a run confirmed with the supernet's weights: candidates measured, the best judged on unseen images."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from pydantic import PositiveInt

from binas.base.errors import ProblemError
from binas.base.files import exists
from binas.base.identity import file_digest, identity_of
from binas.base.progress import Progress
from binas.base.settings import FileRecord
from binas.base.typed import read_typed
from binas.estimators.calibration import CalibratedEstimator
from binas.estimators.registry import find_candidate
from binas.search.alternatives import MOST, best_architectures
from binas.search.confirming import (
    POOL,
    Array,
    Bits,
    CandidateRecord,
    Candidates,
    Confirmed,
    measure_candidates,
)
from binas.search.problem import Evaluation
from binas.search.result import SearchResult, Status
from binas.search.rivals import Difference, difference
from binas.space.architecture import Architecture
from binas.space.twins import distinct
from binas.tables.samples import pack, unpack
from binas.tasks.artefacts import OUTCOMES, SAMPLES, SUPERNET, network_name
from binas.tasks.estimate import EstimateSettings
from binas.tasks.outcomes import correct_outcomes
from binas.tasks.sample import SampleSettings
from binas.training.config import FinetuneSettings

if TYPE_CHECKING:
    from binas.run.run import Run

NETWORKS = f"{OUTCOMES}/networks"
RANDOM, LEAD_IMAGES = (
    20,
    2000,
)  # random networks, and test images at most, for a lead that the check's images cannot tell
Keep = Callable[[SearchResult, Sequence[Evaluation]], SearchResult]


class NetworkOutcomes(FileRecord):
    """Which images of one set a network classifies rightly, a bit each, and what that depends on."""

    architecture: str
    identity: str
    images: PositiveInt
    correct: str


def can_confirm(run: Run) -> bool:
    """Whether there are weights to measure answers with, and samples to hold them against."""
    return exists(run.folder / SUPERNET / "weights.json") and exists(run.folder / SAMPLES.file)


def confirm(
    run: Run,
    result: SearchResult,
    count: int,
    time_limit: float | None,
    estimator: str,
    keep: Keep,
    progress: Progress,
) -> tuple[SearchResult, Confirmed | None]:
    """The best of ``count`` near-optimal networks under the limits of a result, and what it reaches on unseen images.

    The networks of which so many are measured are listed within ``time_limit`` seconds, or fewer of them.
    ``keep`` takes the result and candidates in order of preference, and gives back a result with the first of them that
    keeps the limits on the device.
    """
    if result.evaluation is None:
        return result, None
    items = near_optimal(result, 1 if count == 1 else min(POOL * count, MOST), time_limit)
    candidates = _measured_candidates(run, items, count, estimator, progress)
    best = keep(result, [items[k] for k in candidates.order()])
    if best.architecture != result.architecture:
        best = replace(best, status=Status.FEASIBLE)  # proven is the bound, which is about predictions
    own = [item.architecture for item in items].index(best.architecture or items[0].architecture)
    unseen, winner = len(candidates.correct) == 1 and _is_unseen(run, estimator), items[own].architecture
    correct = candidates.correct[0] if unseen else measured_outcomes(run, [winner], "test", progress)[winner]
    count = 0 if run.tables.samples is None else len(run.tables.samples)
    lead = candidates.lead(own)
    if lead is None and run.tables.samples is not None:
        lead, count = _lead_on_test(run, winner, progress)
    records = _records(items, candidates)
    return best, Confirmed.of("check" if unseen else "test", correct, lead, count, records)


def _measured_candidates(
    run: Run, items: Sequence[Evaluation], count: int, estimator: str, progress: Progress
) -> Candidates:
    """``count`` of some networks measured on the images of the samples."""
    half = run.settings(SampleSettings).half

    def measure(places: list[int]) -> Bits:
        chosen = [items[k].architecture for k in places]
        found = measured_outcomes(run, chosen, half, progress)
        return np.stack([found[item] for item in chosen])

    predicted = np.array([item.accuracy for item in items])
    known = _reference(run, estimator), _doubt(run, estimator, items)
    return measure_candidates(count, predicted, *known, measure)


def _records(items: Sequence[Evaluation], candidates: Candidates) -> list[CandidateRecord]:
    """What is kept of the candidates that were measured."""
    return [
        CandidateRecord(
            architecture=str(items[k].architecture),
            predicted=items[k].accuracy,
            measured=100 * float(correct.mean()),
        )
        for k, correct in zip(candidates.measured, candidates.correct, strict=True)
    ]


def _lead_on_test(run: Run, winner: Architecture, progress: Progress) -> tuple[Difference | None, int]:
    """Points over the first random networks of the check on test images, paired, and their number.

    For answers whose check images were learned from, or whose predictions have no known doubt: test images chose nothing.
    """
    assert run.tables.samples is not None
    random = [item for item in run.tables.samples.architectures if item != winner][:RANDOM]
    found = measured_outcomes(run, [winner, *random], "test", progress, LEAD_IMAGES)
    if not random:
        return None, 0
    shares = np.mean([found[item] for item in random], axis=0)
    return difference(found[winner], shares), len(random)


def near_optimal(result: SearchResult, count: int, time_limit: float | None = None) -> list[Evaluation]:
    """The answer, and where it is proven the best networks after it, ``count`` architectures together, but no network twice.

    Fewer where there are no more, or the time limit (seconds) ends first.
    """
    assert result.evaluation is not None
    if count == 1 or result.status is not Status.OPTIMAL:
        return [result.evaluation]
    try:
        items = best_architectures(result.problem, count, time_limit=time_limit).items
    except ProblemError:  # too many to list
        return [result.evaluation]
    others = [item for item in items if item.architecture != result.architecture]
    known = [result.evaluation, *others][:count]
    return list(distinct(result.problem.space, known, lambda item: item.architecture))


def measured_outcomes(
    run: Run, architectures: Sequence[Architecture], images: str, progress: Progress, most: int | None = None
) -> dict[Architecture, Bits]:
    """Which images each architecture classifies rightly; what was measured with the same weights and images stays.

    ``images`` is a set of :func:`correct_outcomes`, of which ``most`` are used at most.
    """
    recalibration, identity = _recalibration(run, images), _identity(run, images, most)
    part = images if most is None else f"{images}-{most}"
    known = {item: known_outcomes(_path(run, item, part), str(item), identity) for item in architectures}
    missing = [item for item, found in known.items() if found is None]
    measured = correct_outcomes(run, missing, [images], recalibration, progress, most)
    for item, (correct,) in zip(missing, measured, strict=True):
        record = NetworkOutcomes(
            architecture=str(item), identity=identity, images=len(correct), correct=pack(correct)
        )
        record.save(_path(run, item, part))
        known[item] = correct
    return {item: found for item, found in known.items() if found is not None}


def known_outcomes(path: Path, architecture: str, identity: str) -> Bits | None:
    """What was measured of an architecture before, where it depends on the same; None where there is nothing of it."""
    if not exists(path):
        return None
    record = read_typed(NetworkOutcomes, path, "Delete it; `binas search` measures it again.")
    same = (record.architecture, record.identity) == (architecture, identity)
    return unpack(record.correct, record.images) if same else None


def _path(run: Run, architecture: Architecture, images: str) -> Path:
    return run.folder / NETWORKS / f"{network_name(architecture)}-{images}.json"


def _identity(run: Run, images: str, most: int | None) -> str:
    """What the outcomes of a network depend on."""
    weights = file_digest(run.folder / SUPERNET / "weights.json")
    about = {"data": run.images, "images": images, "recalibration": _recalibration(run, images)}
    return identity_of({"weights": weights, **about, **({} if most is None else {"most": most})})


def _recalibration(run: Run, images: str) -> int:
    """Training images that BatchNorm is re-estimated on: on the samples' images as for the samples."""
    if images == "test" or run.settings(SampleSettings).recalibrate:
        return run.settings(FinetuneSettings).recalibration
    return 0


def _is_unseen(run: Run, estimator: str) -> bool:
    """Whether the samples' images chose nothing: neither contributions nor what an estimator learned are from them."""
    halves = {run.settings(EstimateSettings).half, run.settings(SampleSettings).half}
    return halves == {"first", "second"} and not find_candidate(estimator).learns


def _reference(run: Run, estimator: str) -> Array | None:
    """The share of the samples that are right on each image, where these images chose nothing."""
    samples = run.tables.samples
    if samples is None or samples.outcomes is None or not _is_unseen(run, estimator):
        return None
    return np.asarray(samples.outcomes.mean(axis=0))


def _doubt(run: Run, estimator: str, items: Sequence[Evaluation]) -> Array | None:
    """What predictions leave over of networks, where they were held against samples."""
    made = run.tables.estimator(estimator)
    return (
        made.doubt([item.architecture for item in items]) if isinstance(made, CalibratedEstimator) else None
    )
