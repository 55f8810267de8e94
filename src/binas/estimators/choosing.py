"""Which estimator to trust: all candidates ranked on measured networks that they did not learn from.

Those made of contributions predict every sample; those that learn predict each sample from the others (``folds`` parts, each
held out in turn). The best is the one with the highest Kendall tau. A difference of two taus on the same samples has a
standard error of its own, by bootstrap over samples drawn for both at once; of the estimators within one standard error of
the best, those that lose clearly more than another when they choose under limits are left out (mean regret under the
quartiles of MACs, more than one standard error above the least), and the simplest of the others is chosen.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from binas.base.errors import EstimatorError, several
from binas.base.files import dump_json, read_json, write_text
from binas.base.statistics import RESAMPLES, bootstrap, kendall
from binas.base.typed import found_problems
from binas.estimators._base import Estimator
from binas.estimators.bilinear import BilinearEstimator, ablation, link_of
from binas.estimators.calibration import (
    CalibratedEstimator,
    Calibration,
    calibrate,
    mean_gradient,
    own_errors,
)
from binas.estimators.judging import CostLimit, Judgement, Kept, NoiseCeiling, RankingReport, report
from binas.estimators.metrics import regret
from binas.estimators.registry import candidates, find_candidate, make_estimator
from binas.space.space import SearchSpace
from binas.tables.contributions import Contributions
from binas.tables.entries import SpaceReference, reference
from binas.tables.reading import other_space
from binas.tables.samples import Samples

Array = NDArray[np.float64]

FORMAT = "binas/estimator"
FOLDS = 5
QUARTILES = (0.25, 0.5, 0.75)  # of the samples' MACs: the limits under which estimators are to choose
FEWEST = 3  # samples near a limit that have a ranking
LEAST = 10  # samples: fewer cannot tell estimators apart
ENOUGH = 50  # samples: of fewer the quartiles leave so few to choose from that what is lost is chance


class JudgedCandidate(Judgement):
    """An estimator that could be chosen: how far its Kendall tau is behind the best one's, with standard error."""

    complexity: int = Field(description="Order from the simplest to the richest")
    learned: bool = Field(description="Judged by cross-validation, as it learns from samples")
    behind: float = Field(description="Kendall tau of the best minus its own")
    behind_error: float = Field(description="Standard error of that difference")
    calibration: Calibration | None = Field(
        None, description="The line from its predictions to what is shown"
    )
    lost: float | None = Field(None, description="Mean regret under the quartiles of MACs, in points")
    lost_more: float = Field(0.0, description="That minus the least of those that rank as well as the best")
    lost_error: float = Field(0.0, description="Standard error of that difference")

    @property
    def ranks_as_well(self) -> bool:
        """Whether its Kendall tau is within one standard error of the best."""
        return self.behind <= self.behind_error

    @property
    def as_good(self) -> bool:
        """Whether it ranks as well as the best, and loses no more under limits, within one standard error each."""
        return self.ranks_as_well and self.lost_more <= self.lost_error


class NearRanking(BaseModel):
    """How the chosen estimator ranks the samples that are nearest to one share of the range of MACs."""

    model_config = ConfigDict(extra="forbid", frozen=True)
    share: float = Field(description="Of the range of MACs, as in sample.around")
    samples: int = Field(description="Networks nearest to it")
    kendall: Kept = Field(description="Kendall tau among them alone")

    def sentence(self) -> str:
        """For people."""
        tau = self.kendall
        return (
            f"near {100 * self.share:.0f} % of the range of MACs Kendall tau {tau.value:.2f} "
            f"({tau.low:.2f} to {tau.high:.2f}) on {self.samples} networks"
        )


class Choice(BaseModel):
    """Which estimator the search uses and why, version 1."""

    model_config = ConfigDict(extra="forbid", frozen=True)
    format: Literal["binas/estimator"] = "binas/estimator"
    version: Literal[1] = 1
    space: SpaceReference
    chosen: str = Field(description="Name of the estimator")
    why: str = Field(description="A sentence for people")
    samples: int = Field(description="Measured networks that it was judged on")
    estimators: tuple[JudgedCandidate, ...] = ()
    left_out: dict[str, str] = Field({}, description="Estimators that could not be judged, and why")
    ablation: tuple[Judgement, ...] = Field((), description="The additive estimator without one of its parts")
    macs_only: Judgement | None = None
    noise_ceiling: NoiseCeiling | None = None
    near: tuple[NearRanking, ...] = Field((), description="The chosen one's ranking near each size asked for")

    def judgement(self, name: str | None = None) -> JudgedCandidate | None:
        """How one estimator was judged, the chosen one unless named; None where it was not."""
        wanted = self.chosen if name is None else name
        return next((item for item in self.estimators if item.name == wanted), None)

    def calibrated(self, name: str, estimator: Estimator, samples: Samples | None) -> Estimator:
        """The estimator called ``name``, with predictions as the samples say; unchanged where it was not judged."""
        judged = self.judgement(name)
        if judged is None or judged.calibration is None:
            return estimator
        reference = () if samples is None else samples.architectures
        return CalibratedEstimator(estimator, judged.calibration, reference)

    def save(self, path: Path) -> None:
        """Write as JSON, atomically."""
        write_text(Path(path), dump_json(self.model_dump(mode="json")))


def load_choice(path: Path, space: SearchSpace | None = None) -> Choice:
    """Read what :meth:`Choice.save` wrote, and check that it was made for the space."""
    try:
        choice = Choice.model_validate(read_json(Path(path)))
    except ValidationError as error:
        problems = [f"{'.'.join(map(str, item['loc']))}: {item['msg']}" for item in found_problems(error)]
        raise EstimatorError(
            several(f"{path} is not a choice of estimators", problems, "Check again.")
        ) from error
    problems = [] if space is None else other_space(choice.space, space)
    if problems:
        raise EstimatorError(several(str(path), problems))
    return choice


def choose_estimator(
    contributions: Contributions | None,
    samples: Samples | None,
    macs: ArrayLike | None = None,
    limits: Sequence[CostLimit] = (),
    resamples: int = RESAMPLES,
    folds: int = FOLDS,
    seed: int = 0,
    around: Mapping[float, float] | None = None,
) -> Choice:
    """Judge every automatic estimator on the samples and choose; ``macs`` of every sample are the baseline.

    ``around`` are shares of the range of MACs with the MACs they stand for: where samples were drawn around limits, a tau
    over all of them also counts pairs of networks of different limits, which are easy to tell apart.

    Without samples enough to judge by, contributions are added up as their table says.
    """
    if samples is None or len(samples) < LEAST:
        return _unjudged(contributions, samples)
    bench = _Bench(contributions, samples, folds, seed)
    tried, left_out = bench.tried()
    predictions = {name: predicted for name, (predicted, _) in tried.items()}
    parts = {} if contributions is None else ablation(BilinearEstimator(contributions), samples.architectures)
    judged = report({**predictions, **parts}, samples, macs, limits, resamples, seed)
    rows = _candidate_rows(predictions, samples, judged, resamples, seed)
    rows = [row.model_copy(update={"calibration": tried[row.name][1]}) for row in rows]
    if macs is not None and len(samples) >= ENOUGH:
        rows = _with_regret(rows, predictions, samples, np.asarray(macs, dtype=np.float64), resamples, seed)
    best = min(rows, key=lambda item: item.behind)
    chosen = min((item for item in rows if item.as_good), key=lambda item: item.complexity)
    return Choice(
        space=SpaceReference.model_validate(reference(samples.space)),
        chosen=chosen.name,
        why=_why(chosen, best, len(samples)),
        samples=len(samples),
        estimators=tuple(rows),
        left_out=left_out,
        ablation=judged.judgements[len(predictions) :],
        macs_only=judged.macs,
        noise_ceiling=judged.ceiling,
        near=near_rankings(predictions[chosen.name], samples, macs, around or {}, resamples, seed),
    )


def near_rankings(
    predicted: Array,
    samples: Samples,
    macs: ArrayLike | None,
    around: Mapping[float, float],
    resamples: int = RESAMPLES,
    seed: int = 0,
) -> tuple[NearRanking, ...]:
    """Kendall tau among the samples nearest to each share's MACs, each sample at one share; three of them at least."""
    if macs is None or not around:
        return ()
    gaps = np.abs(np.asarray(macs, dtype=np.float64)[:, None] - np.array(list(around.values()))[None, :])
    nearest, rows = gaps.argmin(axis=1), []
    for number, share in enumerate(around):
        own = np.flatnonzero(nearest == number)
        if len(own) >= FEWEST:
            tau = bootstrap(kendall, predicted[own], samples.accuracy[own], resamples=resamples, seed=seed)
            rows.append(NearRanking(share=share, samples=len(own), kendall=tau))
    return tuple(rows)


@dataclass(frozen=True, eq=False)
class _Bench:
    """Candidates and the samples they are judged on."""

    contributions: Contributions | None
    samples: Samples
    folds: int
    seed: int

    def tried(self) -> tuple[dict[str, tuple[Array, Calibration]], dict[str, str]]:
        """Held-out accuracies in percent and their calibration by name of the candidate, and why others have none."""
        found, left_out = dict[str, tuple[Array, Calibration]](), dict[str, str]()
        for name in (item.name for item in candidates().values() if item.automatic):
            try:
                found[name] = self._try(name)
            except EstimatorError as error:
                left_out[name] = str(error)
        if not found:
            raise EstimatorError(several("no estimator can be judged", list(left_out.values())))
        return found, left_out

    def _try(self, name: str) -> tuple[Array, Calibration]:
        """Held-out predictions, and the line from them to measured accuracies; an error where no search could use it."""
        estimator, drawn = make_estimator(name, self.contributions, self.samples), self.samples.architectures
        estimator.objective()
        predicted = predict_held_out(name, self.contributions, self.samples, self.folds, self.seed)
        own = own_errors(estimator, drawn, mean_gradient(estimator, drawn))
        return predicted, calibrate(predicted, self.samples, own)


def predict_held_out(
    name: str, contributions: Contributions | None, samples: Samples, folds: int = FOLDS, seed: int = 0
) -> Array:
    """Accuracies of samples in percent by an estimator that did not learn from them, (n,).

    One that learns is fitted ``folds`` times, each time without the part it then predicts.
    """
    if not find_candidate(name).learns:
        return make_estimator(name, contributions, samples).predict(samples.architectures)
    result = np.empty(len(samples))
    for held in _parts(len(samples), folds, seed):
        rest = np.setdiff1d(np.arange(len(samples)), held)
        fitted = make_estimator(name, contributions, samples.take(rest.tolist()))
        result[held] = fitted.predict(samples.take(held.tolist()).architectures)
    return result


def _parts(count: int, folds: int, seed: int) -> list[NDArray[np.int64]]:
    """Random parts of almost equal size."""
    if not 2 <= folds <= count:
        raise EstimatorError(f"{folds} folds cannot be made of {count} samples; ask for 2 up to that many.")
    return np.array_split(np.random.default_rng(seed).permutation(count), folds)


def _candidate_rows(
    predictions: Mapping[str, Array], samples: Samples, judged: RankingReport, resamples: int, seed: int
) -> list[JudgedCandidate]:
    """Judgements with the difference to the best, in the order of complexity."""
    known, drawn = candidates(), _drawn_taus(predictions, samples, resamples, seed)
    taus = np.array([item.kendall.value for item in judged.judgements[: len(predictions)]])
    best = int(np.nanargmax(taus)) if not np.isnan(taus).all() else 0
    errors = np.nanstd(drawn[best] - drawn, axis=1)
    rows = []
    for item, tau, error in zip(judged.judgements, taus, errors, strict=False):
        extra: dict[str, Any] = {
            "complexity": known[item.name].complexity,
            "learned": known[item.name].learns,
            "behind": float(np.nan_to_num(taus[best]) - np.nan_to_num(tau)),
            "behind_error": float(np.nan_to_num(error)),
        }
        rows.append(JudgedCandidate.model_validate({**item.model_dump(), **extra}))
    return rows


def _drawn(count: int, resamples: int, seed: int) -> list[NDArray[np.int64]]:
    """Samples drawn with replacement, the same ones for all candidates."""
    rng = np.random.default_rng(seed)
    return [rng.integers(count, size=count) for _ in range(resamples)]


def _drawn_taus(predictions: Mapping[str, Array], samples: Samples, resamples: int, seed: int) -> Array:
    """Kendall taus (candidates, resamples) on drawn samples."""
    truth, indices = samples.accuracy, _drawn(len(samples), resamples, seed)
    return np.array([[kendall(row[i], truth[i]) for i in indices] for row in predictions.values()])


def _with_regret(
    rows: Sequence[JudgedCandidate],
    predictions: Mapping[str, Array],
    samples: Samples,
    macs: Array,
    resamples: int,
    seed: int,
) -> list[JudgedCandidate]:
    """The rows with what each loses under limits, held against the least of those that rank as well as the best."""
    truth, limits = samples.accuracy, np.quantile(macs, QUARTILES)

    def lost(row: Array, i: NDArray[np.int64]) -> float:
        return float(np.nanmean([regret(row[i], truth[i], macs[i], limit) for limit in limits]))

    indices = _drawn(len(samples), resamples, seed)
    values = {row.name: lost(predictions[row.name], np.arange(len(samples))) for row in rows}
    drawn = {row.name: np.array([lost(predictions[row.name], i) for i in indices]) for row in rows}
    least = min((row.name for row in rows if row.ranks_as_well), key=values.__getitem__)
    result = []
    for row in rows:
        figures = {
            "lost": values[row.name],
            "lost_more": values[row.name] - values[least],
            "lost_error": float(np.std(drawn[row.name] - drawn[least])),
        }
        result.append(row.model_copy(update=figures))
    return result


def _why(chosen: JudgedCandidate, best: JudgedCandidate, count: int) -> str:
    tau = f"Kendall tau {chosen.kendall.value:.3f} on {count} networks it was not fitted on"
    if chosen.lost is not None:
        tau += f", {chosen.lost:.2f} points lost under limits"
    if chosen.name == best.name:
        return f"{chosen.name} ranks best: {tau}."
    return (
        f"{chosen.name} is the simplest within one standard error of the best: {tau}, {chosen.behind:.3f} ± "
        f"{chosen.behind_error:.3f} behind {best.name}."
    )


def _unjudged(contributions: Contributions | None, samples: Samples | None) -> Choice:
    """The estimator that a table of contributions asks for by itself."""
    count = 0 if samples is None else len(samples)
    if contributions is None:
        raise EstimatorError(
            f"there are no contributions and {count} samples; an estimator needs contributions, or at least {LEAST} samples."
        )
    link = link_of(contributions).name
    name = "additive" if link == "identity" else f"additive-{link}"
    few = "no measured networks" if not count else f"only {count} measured networks"
    return Choice(
        space=SpaceReference.model_validate(reference(contributions.space)),
        chosen=name,
        why=f"{name} is taken as the contributions are: there are {few} to judge others by.",
        samples=count,
    )
